"""Figure 2 and Appendix A: reliability diagrams, ECE and MCE on the splits of Table 1."""

from collections.abc import Iterable, Sequence
from math import ceil

import numpy as np

from accord.datasets import info
from accord.metrics import ReliabilityCurve
from accord.paper import published
from accord.paper.claims import LEVEL, Trial, Verdict, decided, decided_on_mean, judged, lower
from accord.paper.folds import LEVELS
from accord.paper.results import Estimate, Results
from accord.paper.study import (
    AS_PRINTED,
    LOCAL,
    SMOOTHED,
    SMOOTHING,
    Departure,
    Drawing,
    Group,
    Model,
    Predictive,
    Source,
    Study,
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
from accord.paper.tables import LEGEND, Column, Table, by_dataset, ours, printed

__all__ = ["STUDY"]

NAME = "calibration"
DATASETS = tuple(published.datasets("calibration"))
_MARGIN = 0.02  # of ECE, within which two methods are as well calibrated


def mse(recipe: str) -> Source:
    """Where the MSE ensemble's numbers are found."""
    return Source(NAME, "MSE Ensemble", recipe)


def _group(recipe: str) -> Group:
    settings = {
        name: value
        for name, value in RECIPE_NAMES[recipe].items()
        if not name.startswith("variance")  # these networks predict a mean only
    }
    model = Model("MSE Ensemble", recipe, "MSEEnsembleRegressor", settings, for_dataset=WIDER)
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
    SMOOTHING,
)


def tables(results: Results) -> list[Table]:
    """Per recipe, ECE and MCE."""
    note = f"{LEGEND} Errors by jackknife over splits. Scored: Gaussian intervals."
    names = {PRINTED: "the printed recipe", RATE: "ten times the printed rate"}
    found = []
    for recipe, words in names.items():
        for measure in ("ece", "mce"):
            title = f"Appendix A, {measure.upper()}: {words}"
            columns = _columns(results, measure, recipe)
            suffix = "" if recipe == PRINTED else "-rate"
            found.append(
                by_dataset(f"calibration-{measure}{suffix}", title, note, columns, sizes=False)
            )
    local = {
        **{f"local, {recipe}": bvm(recipe, LOCAL) for recipe in RECIPE_NAMES},
        "Deep Ensembles, cosine": deep(COSINE),
        "MSE Ensemble, cosine": mse(COSINE),
    }
    columns = [
        ours(heading, results, "calibration", "ece", source, compared=False)
        for heading, source in local.items()
    ]
    title = "Beyond the paper: ECE with a local tolerance and with our recipe"
    return [*found, by_dataset("calibration-ece-ours", title, note, columns, sizes=False)]


def _columns(results: Results, measure: str, recipe: str) -> list[Column]:
    columns = []
    for source in (mse(recipe), deep(recipe)):
        columns += [
            printed(f"{source.method}, paper", "calibration", measure, source.method),
            ours(f"{source.method}, ours", results, "calibration", measure, source),
        ]
    columns.append(printed("BVM, paper", "calibration", measure, "BVM"))
    for predictive in (AS_PRINTED, SMOOTHED):
        heading = f"BVM {predictive.name}, ours"
        source = bvm(recipe, predictive)
        columns.append(ours(heading, results, "calibration", measure, source))
    return columns


def claims(results: Results) -> Iterable[Verdict]:
    """The paper's, on its recipe."""
    for predictive in (AS_PRINTED, SMOOTHED):
        yield from _judged(results, PRINTED, predictive, predictive.name)


def beyond(results: Results) -> Iterable[Verdict]:
    """The same with ten times the rate, and with the local tolerance."""
    for recipe, predictive in (
        (RATE, AS_PRINTED),
        (RATE, SMOOTHED),
        (RATE, LOCAL),
        (COSINE, LOCAL),
    ):
        yield from _judged(results, recipe, predictive, f"{predictive.name}, {recipe}")


def _judged(results: Results, recipe: str, predictive: Predictive, label: str) -> Iterable[Verdict]:
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
    yield judged(
        "Figure 2, Appendix A",
        "the MSE ensemble is overconfident: its 40 % interval holds about 10 % of the energy "
        "data, its 60 % interval about 20 % of the Boston data (within 5 %)",
        label,
        [
            _share_inside(results, "energy", mse(recipe), 0.4, 0.1),
            _share_inside(results, "boston", mse(recipe), 0.6, 0.2),
        ],
    )


def _share_inside(
    results: Results, dataset: str, source: Source, level: float, stated: float
) -> Trial:
    """Whether the stated share of rows lies inside an interval, give or take 5 %."""
    if not results.at(dataset, source):
        return Trial(dataset, "not run")
    observed = Estimate.over(results.reliability(dataset, source)[:, LEVELS.index(level)].tolist())
    outcome = decided(observed, above=stated - 0.05, below=stated + 0.05, level=LEVEL / 2)
    text = f"{info(dataset).title}: {100 * observed.value:.0f} % inside {100 * level:.0f} %"
    return Trial(dataset, outcome, text)


def figures(results: Results) -> Sequence[Drawing]:
    """The energy data's diagram, as the paper's Figure 2, and those of all nine sets."""
    from accord import plots

    panels = {name: _panel(results, name) for name in DATASETS}
    panels = {name: curves for name, curves in panels.items() if curves}
    drawings: list[Drawing] = []
    if "energy" in panels:
        fig, [ax] = plots.figure(height=4.6)
        plots.reliability_diagram(panels["energy"], ax=ax)
        ax.set_title(f"Energy, {RATE}")
        drawings.append(("figure2", fig, f"Reliability diagram of the energy data, {RATE}"))
    if len(panels) > 1:
        n_rows = ceil(len(panels) / 3)
        fig, axes = plots.figure(n_rows, 3, width=11.8, height=5.1 * n_rows)
        for ax in axes[len(panels) :]:
            ax.set_axis_off()
        for ax, (name, curves) in zip(axes, panels.items(), strict=False):
            plots.reliability_diagram(curves, ax=ax)
            ax.set_title(info(name).title)
        words = f"Reliability diagrams of the datasets, {RATE}"
        drawings.append(("reliability", fig, words))
    return drawings


def _panel(results: Results, dataset: str) -> dict[str, ReliabilityCurve]:
    sources = {
        "MSE ensemble": mse(RATE),
        "Deep Ensembles": deep(RATE),
        "BVM as printed": bvm(RATE, AS_PRINTED),
        "BVM smoothed": bvm(RATE, SMOOTHED),
    }
    return {
        label: _curve(results, dataset, source)
        for label, source in sources.items()
        if results.at(dataset, source)
    }


def _curve(results: Results, dataset: str, source: Source) -> ReliabilityCurve:
    observed = results.reliability(dataset, source)
    n_rows = sum(record.measures["n_test"] for record in results.at(dataset, source))
    return ReliabilityCurve(np.array(LEVELS), observed.mean(axis=0), int(n_rows))


STUDY = Study(
    name=NAME,
    title="Figure 2 and Appendix A: reliability diagrams, ECE and MCE",
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
