"""Figure 2 and Appendix A: reliability diagrams, ECE and MCE on the splits of Table 1."""

from collections.abc import Iterable, Sequence
from math import ceil
from typing import Final

import numpy as np

from accord.datasets import info
from accord.metrics import PAPER_LEVELS, ReliabilityCurve
from accord.paper.claims import JudgedClaim, Trial, decided_on_mean, judged, lower, share_between
from accord.paper.results import MeanOverSplits, Results
from accord.paper.study import (
    AS_PRINTED,
    FLOOR,
    LOCAL,
    NO_ADVERSARY,
    SMOOTHED,
    SMOOTHING,
    Departure,
    Drawing,
    Group,
    Predictive,
    Source,
    Study,
    StudyModel,
    published_datasets,
)
from accord.paper.table1 import (
    COSINE,
    ENSEMBLES,
    OURS,
    PRINTED,
    PROTOCOL,
    RATE,
    RECIPE_NAMES,
    TUNED,
    WIDER,
    bvm,
    deep,
)
from accord.paper.tables import (
    COSINE_IN_WORDS,
    INTERVALS,
    LEGEND,
    ResultTable,
    by_dataset,
    deep_and_bvm,
    of_sources,
    ours,
)

NAME: Final = "calibration"
DATASETS = tuple(published_datasets("calibration"))
_MARGIN = 0.02  # of ECE, within which two methods are as well calibrated
_RECIPES = {PRINTED: "the printed recipe", RATE: "ten times the printed rate"}


def mse(recipe: str) -> Source:
    """Where the MSE ensemble's numbers are found."""
    return Source(NAME, "MSE Ensemble", recipe)


def _group(recipe: str) -> Group:
    settings = {
        name: value
        for name, value in RECIPE_NAMES[recipe].items()
        if not name.startswith("variance")  # these networks predict a mean only
    }
    model = StudyModel("MSE Ensemble", recipe, "MSEEnsembleRegressor", settings, for_dataset=WIDER)
    return Group(NAME, recipe, PROTOCOL, (model,))


DEPARTURES = (
    Departure(
        "ECE and MCE of reliability curves; how splits are joined is not said",
        "of the mean curve over the splits, at the levels 10 % to 90 %; errors by jackknife",
        "a single split of a small set has too few rows for a curve of its own",
    ),
    Departure(
        "intervals from the predicted mean and variance",
        "the Gaussian with the ensemble's mean and variance; an MSE ensemble's variance is that of "
        "its members' means",
        "as in the paper",
    ),
    Departure(
        "recipe not repeated in the appendix",
        f"that of Table 1, and the same networks; {RATE} in tables of its own",
        "the appendix refers to the same benchmark",
    ),
    NO_ADVERSARY,
    FLOOR,
    SMOOTHING,
)


def tables(results: Results) -> list[ResultTable]:
    """Per recipe, ECE and MCE."""
    note = f"{LEGEND} {INTERVALS}"
    found = []
    for recipe, words in _RECIPES.items():
        for measure in ("ece", "mce"):
            title = f"Appendix A, {measure.upper()}: {words}"
            sources = [deep(recipe), bvm(recipe, AS_PRINTED), bvm(recipe, SMOOTHED)]
            first = ours("MSE Ensemble", results, NAME, measure, mse(recipe))
            columns = [first, *deep_and_bvm(results, NAME, measure, sources)]
            name = f"calibration-{measure}{_suffix(recipe)}"
            found.append(by_dataset(name, title, note, columns))
    local = {
        **{f"local, {recipe}": bvm(recipe, LOCAL) for recipe in RECIPE_NAMES},
        "Deep Ensembles, cosine": deep(COSINE),
        "MSE Ensemble, cosine": mse(COSINE),
    }
    title = "Beyond the paper: ECE with a local tolerance and with our recipe"
    own = f"{INTERVALS} {COSINE_IN_WORDS}"
    return [
        *found,
        of_sources("calibration-ece-ours", title, own, results, DATASETS, local, "ece"),
    ]


def _suffix(recipe: str) -> str:
    return "" if recipe == PRINTED else "-rate"


def claims(results: Results) -> Iterable[JudgedClaim]:
    """The paper's, on its recipe."""
    for predictive in (AS_PRINTED, SMOOTHED):
        yield from _of_bvm(results, PRINTED, predictive, predictive.name)
        yield from _of_mse(results, PRINTED, predictive.name)


def beyond(results: Results) -> Iterable[JudgedClaim]:
    """The same with ten times the rate, and with the local tolerance."""
    for recipe, predictives in ((RATE, (AS_PRINTED, SMOOTHED, LOCAL)), (COSINE, (LOCAL,))):
        for predictive in predictives:
            yield from _of_bvm(results, recipe, predictive, f"{predictive.name}, {recipe}")
        yield from _of_mse(results, recipe, f"{predictives[0].name}, {recipe}")


def _of_bvm(
    results: Results, recipe: str, predictive: Predictive, label: str
) -> Iterable[JudgedClaim]:
    own = bvm(recipe, predictive)
    for measure in ("ece", "mce"):
        yield judged(
            "Appendix A",
            f"BVM is better calibrated than the MSE ensemble ({measure.upper()})",
            label,
            lower(results, DATASETS, own, mse(recipe), measure),
        )
    yield decided_on_mean(
        "Figure 2",
        f"BVM is as well calibrated as Deep Ensembles (mean ECE over the sets, within {_MARGIN})",
        label,
        [results.difference(d, own, deep(recipe), "ece") for d in DATASETS],
        below=_MARGIN,
    )


def _of_mse(results: Results, recipe: str, label: str) -> Iterable[JudgedClaim]:
    """Of the MSE ensemble alone, whatever BVM predicts with."""
    for where, dataset, level, stated in (
        ("Figure 2", "energy", 0.4, 0.1),
        ("Appendix A", "boston", 0.6, 0.2),
    ):
        yield judged(
            where,
            f"the MSE ensemble is overconfident: its {100 * level:.0f} % interval holds about "
            f"{100 * stated:.0f} % of the {dataset.capitalize()} data (±5 points)",
            label,
            [_share_inside(results, dataset, mse(recipe), level, stated)],
        )


def _share_inside(
    results: Results, dataset: str, source: Source, level: float, stated: float
) -> Trial:
    """Whether the stated share of rows lies inside an interval, give or take five points."""
    observed = None
    if results.at(dataset, source):
        shares = results.reliability(dataset, source)[:, PAPER_LEVELS.index(level)]
        observed = MeanOverSplits.over(shares.tolist())
    words = f"of the rows inside the {100 * level:.0f} % interval"
    return share_between(dataset, observed, words, above=stated - 0.05, below=stated + 0.05)


def figures(results: Results) -> Sequence[Drawing]:
    """The energy data's diagram by both rates, as the paper's Figure 2, and all nine sets'."""
    from accord import plots

    drawings: list[Drawing] = []
    recipes = [recipe for recipe in _RECIPES if _panel(results, "energy", recipe)]
    if recipes:
        fig, axes = plots.figure(1, len(recipes), height=4.6)
        for ax, recipe in zip(axes, recipes, strict=True):
            plots.reliability_diagram(_panel(results, "energy", recipe), ax=ax)
            ax.set_title(f"Energy, {_RECIPES[recipe]}")
        words = "Reliability diagrams of the energy data, Gaussian intervals"
        drawings.append(("figure2", fig, words))
    return [*drawings, *(drawing for recipe in _RECIPES for drawing in _all_sets(results, recipe))]


def _all_sets(results: Results, recipe: str) -> list[Drawing]:
    from accord import plots

    panels = {name: _panel(results, name, recipe) for name in DATASETS}
    panels = {name: curves for name, curves in panels.items() if curves}
    if len(panels) < 2:
        return []
    n_rows = ceil(len(panels) / 3)
    fig, axes = plots.figure(n_rows, 3, width=11.8, height=5.1 * n_rows)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    for ax, (name, curves) in zip(axes, panels.items(), strict=False):
        plots.reliability_diagram(curves, ax=ax)
        ax.set_title(info(name).title)
    words = f"Reliability diagrams of the datasets, {_RECIPES[recipe]}, Gaussian intervals"
    return [("reliability" + _suffix(recipe), fig, words)]


def _panel(results: Results, dataset: str, recipe: str) -> dict[str, ReliabilityCurve]:
    sources = {
        "MSE ensemble": mse(recipe),
        "Deep Ensembles": deep(recipe),
        "BVM as printed": bvm(recipe, AS_PRINTED),
        "BVM smoothed": bvm(recipe, SMOOTHED),
    }
    return {
        label: _curve(results, dataset, source)
        for label, source in sources.items()
        if results.at(dataset, source)
    }


def _curve(results: Results, dataset: str, source: Source) -> ReliabilityCurve:
    observed = results.reliability(dataset, source)
    n_rows = sum(record.measures["n_test"] for record in results.at(dataset, source))
    return ReliabilityCurve(np.array(PAPER_LEVELS), observed.mean(axis=0), int(n_rows))


STUDY = Study(
    name=NAME,
    title="Figure 2 and Appendix A: reliability diagrams, ECE and MCE",
    asks="Is BVM as well calibrated as Deep Ensembles, and better than an MSE ensemble?",
    about=(
        "Observed against expected coverage of the MSE ensemble, Deep Ensembles and BVM, the last "
        "two from the networks of Table 1."
    ),
    departures=DEPARTURES,
    groups=(*(_group(recipe) for recipe in RECIPE_NAMES), ENSEMBLES, TUNED, *OURS),
    tables=tables,
    claims=claims,
    beyond=beyond,
    figures=figures,
)
