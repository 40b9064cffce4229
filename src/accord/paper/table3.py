"""Table 3: test NLL on the most anomalous tenth of nine UCI datasets."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from accord.datasets import info
from accord.estimators import RECIPES
from accord.paper.claims import JudgedClaim, judged, lower, not_above_printed, not_far_above
from accord.paper.results import Results
from accord.paper.study import (
    AS_PRINTED,
    FLOOR,
    LOCAL,
    NO_ADVERSARY,
    SCORED,
    SMOOTHED,
    SMOOTHING,
    Departure,
    Drawing,
    Group,
    Predictive,
    Protocol,
    Source,
    Study,
    StudyModel,
    bvm_ensemble,
    deep_ensembles,
    is_grey,
    printed,
    published,
    published_datasets,
)
from accord.paper.tables import (
    COSINE_IN_WORDS,
    GAUSSIAN,
    LEGEND,
    MIXTURE,
    Entry,
    ResultColumn,
    ResultTable,
    by_dataset,
    deep_and_bvm,
    of_sources,
)

NAME = "table3"
DATASETS = tuple(published_datasets("table3"))
GREY = tuple(name for name in DATASETS if is_grey(name))
WHITE = tuple(name for name in DATASETS if not is_grey(name))
PRINTED, FLOORED, COSINE = "printed", "floor 1e-6", "cosine"
LARGER = "BVM eps=0.1"
PROTOCOL = Protocol(
    scheme="outlier",
    datasets=DATASETS,
    splits=20,
    quick_splits=2,
    quick_splits_on={"kin8nm": 1, "naval": 1, "power": 1, "protein": 0},
)
# what the paper does not have gets fewer forests
_FEWER = replace(PROTOCOL, splits=10, splits_on={"protein": 5})


def bvm(predictive: Predictive, *, method: str = "BVM", recipe: str = PRINTED) -> Source:
    """Where a BVM ensemble's numbers are found."""
    return Source(NAME, method, recipe, predictive.name)


def deep(recipe: str = PRINTED) -> Source:
    """Where Deep Ensembles' numbers are found."""
    return Source(NAME, "Deep Ensembles", recipe)


_RECIPES = {
    PRINTED: RECIPES["table3"],
    FLOORED: {**RECIPES["table3"], "variance_floor": 1e-6},
    COSINE: RECIPES["cosine"],
}


def _deep(recipe: str) -> StudyModel:
    return deep_ensembles(recipe, _RECIPES[recipe])


def _bvm(recipe: str, tolerance: str, method: str = "BVM") -> StudyModel:
    return bvm_ensemble(recipe, _RECIPES[recipe], tolerance, method=method)


_PAPER = (_deep(PRINTED), _bvm(PRINTED, "1%"), _bvm(PRINTED, "10%", LARGER))
GROUPS = (
    Group(NAME, "ensembles", PROTOCOL, _PAPER),
    Group(NAME, "variance floor", _FEWER, (_deep(FLOORED), _bvm(FLOORED, "1%"))),
    Group(NAME, "local tolerance", _FEWER, (_bvm(PRINTED, "local"),)),
    Group(NAME, "cosine", _FEWER, (_deep(COSINE),)),
    Group(NAME, "cosine, local tolerance", _FEWER, (_bvm(COSINE, "local"),)),
)
_TICKS = (-30, -10, -3, -1, -0.5, 0, 0.5, 1, 3, 10, 30, 100)
DEPARTURES = (
    Departure(
        "one outlier split by an Isolation Forest, its seed not named",
        "twenty forests, each with its own networks; ten (five on protein) for what is not the "
        "paper's",
        "which rows are outliers depends on the forest; the published numbers are of one run",
    ),
    Departure(
        "activation, outputs and scaling not repeated for this experiment",
        "those of Table 1: ReLU, sigmoid outputs, standardised features, targets in [0, 1]; 50 "
        "units on all nine sets",
        "the same benchmark; the 100 units on protein are stated for Table 1 only",
    ),
    Departure(
        "ε = 0.01",
        "that, and ε = 0.1 in a table of its own",
        "shows what the smoothed predictive gains from a tolerance of the size of the errors",
    ),
    NO_ADVERSARY,
    SCORED,
    replace(
        FLOOR,
        ours=f"{FLOOR.ours}; a table shows what the estimators' default floor of 1e-6 does",
        why=f"{FLOOR.why}; 1e-6 hides how far Deep Ensembles fall on yacht",
    ),
    SMOOTHING,
)


_EPSILON = {
    "as printed, ε = 0.01": bvm(AS_PRINTED),
    "as printed, ε = 0.1": bvm(AS_PRINTED, method=LARGER),
    "smoothed, ε = 0.01": bvm(SMOOTHED),
    "smoothed, ε = 0.1": bvm(SMOOTHED, method=LARGER),
}
_FLOOR = {
    "Deep Ensembles": deep(),
    "Deep Ensembles, floor 1e-6": deep(FLOORED),
    "BVM as printed": bvm(AS_PRINTED),
    "BVM as printed, floor 1e-6": bvm(AS_PRINTED, recipe=FLOORED),
    "BVM smoothed": bvm(SMOOTHED),
    "BVM smoothed, floor 1e-6": bvm(SMOOTHED, recipe=FLOORED),
}
_OURS = {
    "local": bvm(LOCAL),
    "Deep Ensembles, cosine": deep(COSINE),
    "local, cosine": bvm(LOCAL, recipe=COSINE),
}
_MIXTURE = {
    "Deep Ensembles": deep(),
    "BVM as printed": bvm(AS_PRINTED),
    "BVM smoothed": bvm(SMOOTHED),
    "BVM ε = 0.1, smoothed": bvm(SMOOTHED, method=LARGER),
    "BVM local": bvm(LOCAL),
    "BVM local, cosine": bvm(LOCAL, recipe=COSINE),
}


def tables(results: Results) -> list[ResultTable]:
    """The paper's table; its shifts; a larger ε; the floor; ours; the mixture's NLL."""
    single = "The published numbers are of one run, taken to vary as one of ours does."
    grey = ", ".join(info(name).title for name in GREY)
    note = f"{LEGEND} {single} {GAUSSIAN} Shaded by the paper: {grey}."
    main = deep_and_bvm(results, "table3", "nll", [deep(), bvm(AS_PRINTED), bvm(SMOOTHED)])
    others = (
        ("epsilon", "Table 3, a larger ε: NLL of BVM on outliers", _EPSILON, GAUSSIAN),
        (
            "floor",
            "Table 3, what a variance floor does: NLL on outliers",
            _FLOOR,
            f"{GAUSSIAN} The floor, 1e-6 of the squared range added to every variance, is the "
            "default of the estimators; the other columns are the paper's presets. With it ten "
            "forests, five on protein; without twenty.",
        ),
        (
            "ours",
            "Beyond the paper: NLL on outliers with a local tolerance",
            _OURS,
            f"{GAUSSIAN} {COSINE_IN_WORDS}",
        ),
    )
    title = "Table 3, test NLL of the mixture itself"
    fewer = "Local over ten forests, five on protein; the others over twenty."
    mixture = f"{MIXTURE} {fewer} {COSINE_IN_WORDS}"
    return [
        by_dataset("table3", "Table 3, test NLL on outliers", note, main),
        _shifts(results),
        *(
            of_sources(f"table3-{name}", title, words, results, DATASETS, sources)
            for name, title, sources, words in others
        ),
        of_sources("table3-mixture", title, mixture, results, DATASETS, _MIXTURE, "nll_exact"),
    ]


def _shifts(results: Results) -> ResultTable:
    """How far the targets moved between training and test rows."""
    columns = []
    for measure, heading in (("mean_shift", "of the mean"), ("variance_shift", "of the variance")):
        entries = [
            Entry(
                dataset,
                measure,
                deep(),
                results.estimate(dataset, deep(), measure),
                published("table3", dataset, measure),
            )
            for dataset in DATASETS
        ]
        columns.append(ResultColumn(heading, tuple(entries), beside=True))
    note = (
        "Differences between the normalised targets of training and test rows: ours, mean ± "
        "standard error over forests, and in italics what the paper prints. Nothing is "
        "predicted here."
    )
    table = by_dataset("table3-shifts", "Table 3, shift of the targets", note, columns)
    return replace(table, best_of=None)


def claims(results: Results) -> Iterable[JudgedClaim]:
    """The paper's, with ε = 0.01."""
    for predictive in (AS_PRINTED, SMOOTHED):
        yield from _judged(results, bvm(predictive), deep(), predictive.name)


def _judged(results: Results, own: Source, rival: Source, label: str) -> Iterable[JudgedClaim]:
    yield judged(
        "Table 3",
        "BVM outperforms Deep Ensembles on all datasets with a large shift (grey rows)",
        label,
        lower(results, GREY, own, rival, "nll"),
    )
    yield judged(
        "Table 3",
        "Deep Ensembles beat BVM on the other datasets (white rows)",
        label,
        lower(results, WHITE, rival, own, "nll"),
    )


def beyond(results: Results) -> Iterable[JudgedClaim]:
    """What a larger ε and the local tolerance reach; every choice is made on training rows."""
    yield from _judged(results, bvm(SMOOTHED, method=LARGER), deep(), "smoothed, ε = 0.1")
    numbers = {d: printed("table3", d, "nll", "BVM") for d in DATASETS}
    bounds = {d: (number.value, number.rounding) for d, number in numbers.items()}
    for recipe in (PRINTED, COSINE):
        own, label = bvm(LOCAL, recipe=recipe), f"local, {recipe}"
        yield judged(
            "Table 3",
            "NLL on outliers not above our Deep Ensembles of the same recipe, by a tenth of a nat, "
            "on all nine",
            label,
            not_far_above(results, DATASETS, own, deep(recipe)),
        )
        yield judged(
            "Table 3",
            "NLL on outliers below the published BVM on all nine",
            label,
            not_above_printed(results, own, bounds),
        )


def figures(results: Results) -> list[Drawing]:
    """NLL above that of Deep Ensembles, by dataset, the published difference among them."""
    from accord import plots

    places = {
        "as printed": bvm(AS_PRINTED),
        "smoothed": bvm(SMOOTHED),
        "smoothed, ε = 0.1": bvm(SMOOTHED, method=LARGER),
        "local (ours)": bvm(LOCAL),
    }
    if not results.at(DATASETS[0], deep()):
        return []
    fig, [ax] = plots.figure(height=5.2)
    gaps = [_published_gap(name) for name in DATASETS]
    rows = np.arange(len(DATASETS))
    ax.plot(gaps, rows - 0.36, "x", color=plots.ink(ax), label="published", linestyle="none")
    for number, (label, source) in enumerate(places.items()):
        found = [results.difference(name, source, deep(), "nll") for name in DATASETS]
        shown = [(row, gap) for row, gap in zip(rows, found, strict=True) if gap is not None]
        ax.errorbar(
            [gap.value for _, gap in shown],
            [row + 0.16 * (number - 1.2) for row, _ in shown],
            xerr=np.nan_to_num([gap.error for _, gap in shown]),
            label=label,
            linestyle="none",
            capsize=2,
            **plots.method_look(number),
        )
    ax.axvline(0.0, color=plots.ink(ax), alpha=0.6, linewidth=1)
    ax.set(
        title="Outliers: test NLL against Deep Ensembles",
        xlabel="NLL − NLL of Deep Ensembles; linear up to ±1, logarithmic beyond",
        yticks=rows,
        yticklabels=[info(name).title for name in DATASETS],
    )
    ax.set_xscale("symlog", linthresh=1.0)
    low, high = ax.get_xlim()
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    ax.set_xticks(ticks, [f"{tick:g}".replace("-", "−") for tick in ticks])
    ax.minorticks_off()
    ax.invert_yaxis()
    plots.legend(ax)
    words = (
        "Test NLL on outliers less that of Deep Ensembles, by dataset: published and ours, with "
        "standard errors, of the Gaussian with the ensemble's mean and variance; left of 0 is "
        "better; the axis is logarithmic beyond ±1"
    )
    return [("table3", fig, words)]


def _published_gap(dataset: str) -> float:
    ours, theirs = (
        printed("table3", dataset, "nll", method) for method in ("BVM", "Deep Ensembles")
    )
    return ours.value - theirs.value


STUDY = Study(
    name=NAME,
    title="Table 3: test NLL on the most anomalous tenth",
    asks="Is BVM better than Deep Ensembles on outliers?",
    about="Nine UCI sets, the top tenth of outliers by Isolation Forest held out.",
    departures=DEPARTURES,
    groups=GROUPS,
    tables=tables,
    claims=claims,
    beyond=beyond,
    figures=figures,
)
