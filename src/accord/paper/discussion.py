"""The Discussion: how ε matters, how to choose it, and what else the paper names.

One recipe, that of Table 3, on random rows and on outliers of the five small sets, so that nothing
but the rows differs between the two.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any, Literal

from accord.datasets import info
from accord.estimators import RECIPES
from accord.paper.claims import JudgedClaim, judged, lower, not_far_above
from accord.paper.results import Results
from accord.paper.study import (
    AS_PRINTED,
    LOCAL,
    PLAIN,
    SHARED,
    SMOOTHED,
    Departure,
    Drawing,
    Group,
    Predictive,
    Protocol,
    Source,
    Study,
    StudyModel,
    published_datasets,
)
from accord.paper.tables import (
    GAUSSIAN,
    INTERVALS,
    MIXTURE,
    ResultTable,
    of_sources,
)

NAME = "discussion"
DATASETS = tuple(name for name in published_datasets("table3") if info(name).n < 2_000)
# where the test rows come from; recorded in the place of a recipe, of which there is only one
INSIDE, OUTSIDE = "random rows", "outliers"
_SCHEMES: dict[str, Literal["standard", "outlier"]] = {INSIDE: "standard", OUTSIDE: "outlier"}
_SETTINGS = RECIPES["table3"]
_BOTH = (AS_PRINTED, SMOOTHED)
_CHOSEN = 10  # splits on which ε is validated, robust or local
# ε as shares of the targets' range; 0 is NLL
SHARES = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0)


def at_tolerance(share: float, rows: str, predictive: Predictive) -> Source:
    """Where the numbers of a constant ε are found; those of ε = 0 are Deep Ensembles'."""
    if share == 0:
        return Source(NAME, "Deep Ensembles", rows)
    return Source(NAME, f"BVM ε = {share:g}", rows, predictive.name)


def _model(
    method: str, rows: str, settings: Mapping[str, Any], *predictives: Predictive
) -> StudyModel:
    return StudyModel(method, rows, "BVMRegressor", {**_SETTINGS, **settings}, predictives)


def _sweep(rows: str) -> tuple[StudyModel, ...]:
    return (
        StudyModel("Deep Ensembles", rows, "DeepEnsembleRegressor", _SETTINGS),
        *(
            _model(f"BVM ε = {share:g}", rows, {"tolerance": f"{100 * share:g}%"}, *_BOTH)
            for share in SHARES
        ),
        _model("BVM learnt ε", rows, {"tolerance": "learn"}, *_BOTH),
    )


def _families(rows: str) -> tuple[StudyModel, ...]:
    laplace = {"family": "laplace"}
    heads = ("mean_head", "target_scaling")
    evidential = {
        name: value
        for name, value in _SETTINGS.items()
        if name not in heads and not name.startswith("variance")
    }
    return (
        _model("Laplace NLL", rows, {**laplace, "tolerance": 0.0}, PLAIN),
        _model("Laplace BVM", rows, {**laplace, "tolerance": "1%"}, *_BOTH),
        StudyModel("evidential", rows, "EvidentialRegressor", evidential),
    )


def _chosen(rows: str) -> tuple[StudyModel, ...]:
    return (
        _model("BVM validated ε", rows, {"tolerance": "validate"}, SMOOTHED),
        _model("BVM robust ε", rows, {"tolerance": "robust"}, SMOOTHED),
        _model("BVM", rows, {"tolerance": "local"}, LOCAL),
    )


_HELD_OUT = 0.2
_PART = "BVM on four fifths"
_POST_HOC: dict[str, Literal["variance", "layers"] | None] = {
    "": None,
    ", variance scaled": "variance",
    ", extra layers": "layers",
}


def _post_hoc(rows: str) -> StudyModel:
    """One training, calibrated in several ways on the same held-out rows."""
    predictives = tuple(
        Predictive(predictive.name + suffix, predictive.settings, recalibration)
        for predictive in _BOTH
        for suffix, recalibration in _POST_HOC.items()
    )
    model = _model(_PART, rows, {"tolerance": "1%"}, *predictives)
    return replace(model, held_out=_HELD_OUT)


def _groups(rows: str) -> list[Group]:
    cheap = Protocol(_SCHEMES[rows], DATASETS, splits=20, quick_splits=2)
    costly = Protocol(_SCHEMES[rows], DATASETS, splits=_CHOSEN, quick_splits=1)
    return [
        Group(NAME, f"{rows}, sweep", cheap, _sweep(rows)),
        Group(NAME, f"{rows}, likelihoods", cheap, _families(rows)),
        Group(NAME, f"{rows}, chosen tolerance", costly, _chosen(rows)),
        Group(NAME, f"{rows}, post-hoc", cheap, (_post_hoc(rows),)),
    ]


DEPARTURES = (
    Departure(
        "discusses without numbers",
        "trains what it names on the five sets below 2,000 rows, with the recipe of Table 3, on "
        "twenty random and twenty outlier splits; ten where ε is validated, robust or local",
        "the same recipe on both kinds of rows leaves only these to differ; twenty splits, as in "
        "Tables 1 and 3, decide a difference of 0.64 of its deviation over splits on each of five "
        "sets, ten one of 1.03; a chosen ε takes about thirty ensembles a split",
    ),
    Departure(
        "ε learnt during training",
        "log ε is one more weight of each network, from a quarter of the range, in the loss with "
        "its term log 2ε",
        "without that term a larger ε always has the lower loss",
    ),
    Departure(
        "ε by grid search on a validation set",
        "0 to 0.2 of the range on three inner splits: of random rows (validated) and, ours, of "
        "the training rows' own outliers (robust)",
        "random rows cannot show what a tolerance does for outliers",
    ),
    Departure(
        "scaling the variance, or extra layers, on a calibration set",
        "both, on a fifth of the training rows, which their networks are not trained on",
        "compared with the same networks as they are, so that only the calibration differs",
    ),
    Departure(
        "names the Laplace likelihood and evidential regression, from other papers",
        "Laplace networks by the same recipe; evidential networks as an ensemble of five, with "
        "standardised targets and their own outputs",
        "a sigmoid mean is no part of evidential regression",
    ),
    *SHARED,
)


def tables(results: Results) -> list[ResultTable]:
    """The sweep, the choices, the likelihoods and the calibration after training."""
    found = []
    for rows in _SCHEMES:
        for predictive in _BOTH:
            sources = {
                "ε = 0 (NLL)": at_tolerance(0, rows, PLAIN),
                **{f"{share:g}": at_tolerance(share, rows, predictive) for share in SHARES},
            }
            title = f"ε as a share of the range, test NLL on {rows}, {predictive.name}"
            name = f"sweep-{predictive.name.replace(' ', '-')}"
            found.append(_table(results, name, rows, title, sources))
    for rows in _SCHEMES:
        title = f"Ways to choose ε, test NLL on {rows}, smoothed"
        found.append(_table(results, "chosen", rows, title, _choices(rows)))
    for rows in _SCHEMES:
        title = f"Other likelihoods, test NLL on {rows}"
        found.append(_table(results, "likelihoods", rows, title, _likelihoods(rows), "nll_exact"))
    return [
        *found,
        _table(
            results, "post-hoc", INSIDE, "After training, ECE on random rows", _after(INSIDE), "ece"
        ),
        _table(
            results, "post-hoc", OUTSIDE, "After training, test NLL on outliers", _after(OUTSIDE)
        ),
    ]


def _choices(rows: str) -> dict[str, Source]:
    return {
        "ε = 0 (NLL)": at_tolerance(0, rows, PLAIN),
        "ε = 0.01": at_tolerance(0.01, rows, SMOOTHED),
        "learnt": Source(NAME, "BVM learnt ε", rows, SMOOTHED.name),
        "validated": Source(NAME, "BVM validated ε", rows, SMOOTHED.name),
        "robust (ours)": Source(NAME, "BVM robust ε", rows, SMOOTHED.name),
        "local (ours)": Source(NAME, "BVM", rows, LOCAL.name),
    }


def _likelihoods(rows: str) -> dict[str, Source]:
    return {
        "Gaussian NLL": at_tolerance(0, rows, PLAIN),
        "Gaussian BVM, as printed": at_tolerance(0.01, rows, AS_PRINTED),
        "Gaussian BVM, smoothed": at_tolerance(0.01, rows, SMOOTHED),
        "Laplace NLL": Source(NAME, "Laplace NLL", rows),
        "Laplace BVM, as printed": Source(NAME, "Laplace BVM", rows, AS_PRINTED.name),
        "Laplace BVM, smoothed": Source(NAME, "Laplace BVM", rows, SMOOTHED.name),
        "evidential": Source(NAME, "evidential", rows),
    }


def _after(rows: str) -> dict[str, Source]:
    return {
        predictive.name + suffix: Source(NAME, _PART, rows, predictive.name + suffix)
        for predictive in _BOTH
        for suffix in _POST_HOC
    }


_SCORED = {
    "nll": GAUSSIAN,
    "nll_exact": MIXTURE,
    "ece": INTERVALS,
}


def _table(
    results: Results,
    name: str,
    rows: str,
    title: str,
    sources: Mapping[str, Source],
    measure: str = "nll",
) -> ResultTable:
    full = f"{NAME}-{name}-{'in' if rows == INSIDE else 'out'}"
    note, first = _SCORED[measure], None
    if name == "chosen":
        note, first = f"{note} The first ten splits, which all have.", _CHOSEN
    return of_sources(
        full, f"Discussion: {title}", note, results, DATASETS, sources, measure, first=first
    )


def claims(results: Results) -> Iterable[JudgedClaim]:
    """The paper's, and those that it cites."""
    for predictive in _BOTH:
        own = predictive.name
        for rows in _SCHEMES:
            small, whole = (at_tolerance(share, rows, predictive) for share in (0.01, 1.0))
            yield judged(
                "Section 3.4.1",
                f"a very large ε loses predictive power (ε = 1 against 0.01, NLL on {rows})",
                own,
                lower(results, DATASETS, small, whole, "nll"),
            )
        yield judged(
            "Section 3.4.3",
            "a larger ε widens the prediction intervals (ε = 0.1 against NLL, on outliers)",
            own,
            lower(
                results,
                DATASETS,
                at_tolerance(0, OUTSIDE, PLAIN),
                at_tolerance(0.1, OUTSIDE, predictive),
                "width95",
            ),
        )
        yield judged(
            "Section 1",
            "a Laplace likelihood is more robust to outliers than a Gaussian one (NLL, BVM)",
            own,
            lower(
                results,
                DATASETS,
                Source(NAME, "Laplace BVM", OUTSIDE, own),
                at_tolerance(0.01, OUTSIDE, predictive),
                "nll_exact",
            ),
        )
        yield judged(
            "Discussion",
            "extra layers trained on calibration rows improve the calibration (ECE, random rows)",
            own,
            lower(
                results,
                DATASETS,
                _after(INSIDE)[f"{own}, extra layers"],
                _after(INSIDE)[own],
                "ece",
            ),
        )


def beyond(results: Results) -> Iterable[JudgedClaim]:
    """What each way to choose ε gains on outliers over NLL, and costs on random rows."""
    for label, outside in list(_choices(OUTSIDE).items())[1:]:
        inside = _choices(INSIDE)[label]
        yield judged(
            "Discussion",
            "NLL on outliers below Deep Ensembles'",
            label,
            lower(results, DATASETS, outside, at_tolerance(0, OUTSIDE, PLAIN), "nll"),
        )
        yield judged(
            "Discussion",
            "NLL on random rows not above Deep Ensembles' by a tenth of a nat",
            label,
            not_far_above(results, DATASETS, inside, at_tolerance(0, INSIDE, PLAIN)),
        )


_TICKS = (-100, -10, -1, 0, 1, 10, 100, 1_000, 10_000)


def figures(results: Results) -> Sequence[Drawing]:
    """NLL above that of Deep Ensembles against ε, a panel per dataset."""
    from accord import plots

    if not results.at(DATASETS[0], at_tolerance(0, INSIDE, PLAIN)):
        return []
    n_rows = ceil(len(DATASETS) / 2)
    fig, axes = plots.figure(n_rows, 2, height=3.1 * n_rows)
    lines = [(rows, predictive) for rows in _SCHEMES for predictive in _BOTH]
    for ax in axes[len(DATASETS) :]:
        ax.set_axis_off()
    for ax, dataset in zip(axes, DATASETS, strict=False):
        for number, (rows, predictive) in enumerate(lines):
            gaps = _gaps(results, dataset, rows, predictive)
            label = f"{rows}, {predictive.name}"
            ax.plot(list(gaps), list(gaps.values()), label=label, **plots.method_look(number))
        ax.axhline(0.0, color=plots.ink(ax), alpha=0.6, linewidth=1)
        ax.set_xscale("log")
        ax.set_xticks([0.001, 0.01, 0.1, 1.0], ["0.001", "0.01", "0.1", "1"])
        ax.set_yscale("symlog", linthresh=1.0)
        low, high = ax.get_ylim()
        ticks = [tick for tick in _TICKS if low <= tick <= high]
        ax.set_yticks(ticks, [f"{tick:g}".replace("-", "−") for tick in ticks])
        ax.minorticks_off()
        ax.set(
            title=info(dataset).title, xlabel="ε, share of the range", ylabel="NLL − NLL at ε = 0"
        )
    handles, labels = axes[0].get_legend_handles_labels()
    spare = axes[-1] if len(DATASETS) < len(axes) else axes[0]
    spare.legend(handles, labels, frameon=False, labelcolor=plots.ink(spare), loc="center")
    words = (
        "Test NLL less that of Deep Ensembles against the tolerance, on random rows and on "
        "outliers, of the Gaussian with the ensemble's mean and variance; the vertical axis is "
        "logarithmic beyond ±1"
    )
    return [("discussion", fig, words)]


def _gaps(results: Results, dataset: str, rows: str, predictive: Predictive) -> dict[float, float]:
    exact = at_tolerance(0, rows, PLAIN)
    found = {
        share: results.difference(dataset, at_tolerance(share, rows, predictive), exact, "nll")
        for share in SHARES
    }
    return {share: gap.value for share, gap in found.items() if gap is not None}


STUDY = Study(
    name=NAME,
    title="Discussion: how ε matters, how to choose it, and calibration after training",
    asks="Does too large an ε lose power, and do Laplace likelihoods and extra layers help?",
    about=(
        "Five small sets, random rows and outliers: ε from 0 to the whole range; learnt, "
        "validated, robust and local; a Laplace likelihood, evidential regression; scaled "
        "variances and extra layers."
    ),
    departures=DEPARTURES,
    groups=tuple(group for rows in _SCHEMES for group in _groups(rows)),
    tables=tables,
    claims=claims,
    beyond=beyond,
    figures=figures,
)
