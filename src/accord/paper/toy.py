"""Figure 1: the cubic toy, twenty points of t = x³ + N(0, 3²)."""

from collections.abc import Iterable, Sequence

import numpy as np

from accord.estimators import RECIPES
from accord.paper.claims import JudgedClaim, Trial, alike, decided, judged, lower
from accord.paper.results import MeanOverSplits, Results
from accord.paper.sets import TOY_GRID, folds
from accord.paper.stacks import Record
from accord.paper.study import (
    AS_PRINTED,
    LOCAL,
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
    bvm_ensemble,
    deep_ensembles,
)
from accord.paper.tables import BOTH_DENSITIES, ResultTable, by_source, formatted

NAME, DATASET = "figure1", "cubic"
RECIPE = "toy"
PROTOCOL = Protocol("toy", (DATASET,), splits=20, quick_splits=3, keep_predictions=True)
MSE = Source(NAME, "MSE Ensemble", RECIPE)
DEEP = Source(NAME, "Deep Ensembles", RECIPE)


def bvm(predictive: Predictive, *, method: str = "BVM") -> Source:
    """Where the numbers of the BVM ensemble or the single network are found."""
    return Source(NAME, method, RECIPE, predictive.name)


_SETTINGS = RECIPES["toy"]
_WITHOUT_VARIANCE = {
    name: value for name, value in _SETTINGS.items() if not name.startswith("variance")
}
_EPS = 1.0  # in the targets' units
GROUPS = (
    Group(
        NAME,
        "ensembles",
        PROTOCOL,
        (
            StudyModel("MSE Ensemble", RECIPE, "MSEEnsembleRegressor", _WITHOUT_VARIANCE),
            deep_ensembles(RECIPE, _SETTINGS),
            bvm_ensemble(RECIPE, {**_SETTINGS, "n_members": 1}, _EPS, method="BVM single"),
            bvm_ensemble(RECIPE, _SETTINGS, _EPS),
        ),
    ),
    Group(NAME, "local tolerance", PROTOCOL, (bvm_ensemble(RECIPE, _SETTINGS, "local"),)),
)
DEPARTURES = (
    Departure(
        "the data are not normalised",
        "targets as they are; the one feature standardised",
        "our networks always standardise features, which the first layer could undo",
    ),
    Departure(
        "activation, optimiser, rate, epochs and batch size not printed",
        "ReLU, Adam, {learning_rate:g}, {epochs} epochs, batches of {batch_size}".format(
            **_SETTINGS
        ),
        "settled on other draws of the toy than those shown",
    ),
    Departure(
        "sigmoid for the variance, since data are standardised",
        "softplus for the variance, identity for the mean",
        "a sigmoid stays below 1, the noise has variance 9; the toy is not standardised",
    ),
    Departure(
        "one draw",
        "twenty draws, the first of them in the figure",
        "twenty points differ much from draw to draw",
    ),
    Departure(
        "very similar to the results of NLL, shown in another paper",
        "Deep Ensembles by the same recipe, in a panel of their own",
        "so that the two can be compared",
    ),
    *SHARED,
)


def tables(results: Results) -> list[ResultTable]:
    """All methods, on fresh targets."""
    rows = {
        "MSE Ensemble": MSE,
        "Deep Ensembles (NLL)": DEEP,
        **{
            f"{method}, {predictive.name}": bvm(predictive, method=method)
            for method in ("BVM single", "BVM")
            for predictive in (AS_PRINTED, SMOOTHED)
        },
        "BVM, local tolerance (ours)": bvm(LOCAL),
    }
    note = (
        "Mean ± standard error over draws. Fresh targets on the grid from −6 to 6; the training "
        f"data lie in [−4, 4]. {BOTH_DENSITIES}"
    )
    return [by_source("figure1", "Figure 1, the toy", note, DATASET, rows, results)]


def claims(results: Results) -> Iterable[JudgedClaim]:
    """The paper's."""
    for predictive in (AS_PRINTED, SMOOTHED):
        yield judged(
            "Figure 1",
            "a learned variance estimates uncertainty better than the spread of an MSE ensemble",
            predictive.name,
            lower(results, [DATASET], bvm(predictive), MSE, "nll"),
        )
        yield judged(
            "Figure 1",
            "an ensemble's uncertainty grows more than a single network's away from the data",
            predictive.name,
            [_grows_more(results, predictive)],
        )
        yield judged(
            "Figure 1",
            "the results are very similar to those of NLL (mean σ within 25 % of Deep Ensembles')",
            predictive.name,
            [alike(DATASET, _ratios(results, predictive), "ratio of mean σ")],
        )


def _grows_more(results: Results, predictive: Predictive) -> Trial:
    """By the difference, draw by draw, of σ beyond the data over σ within."""
    pairs = results.pairs(DATASET, bvm(predictive), bvm(predictive, method="BVM single"))
    if not pairs:
        return Trial(DATASET, "not run")
    ratios = np.array([[_growth(record) for record in pair] for pair in pairs])
    outcome = decided(MeanOverSplits.over((ratios[:, 0] - ratios[:, 1]).tolist()), above=0.0)
    ensemble, single = (MeanOverSplits.over(side.tolist()) for side in ratios.T)
    sides = f"{formatted(ensemble, 1)} against {formatted(single, 1)}"
    return Trial(DATASET, outcome, f"σ beyond the data / σ within: {sides}")


def _growth(record: Record) -> float:
    std, beyond = np.array(record.curves["std"]), np.abs(TOY_GRID) > 4
    return float(std[beyond].mean() / std[~beyond].mean())


def _ratios(results: Results, predictive: Predictive) -> list[float]:
    """Of the mean σ of BVM to that of Deep Ensembles, draw by draw."""
    pairs = results.pairs(DATASET, bvm(predictive), DEEP)
    return [float(np.mean(a.curves["std"]) / np.mean(b.curves["std"])) for a, b in pairs]


def beyond(results: Results) -> Iterable[JudgedClaim]:
    """The local tolerance on the toy."""
    yield judged(
        "Figure 1",
        "a local tolerance has a lower NLL than Deep Ensembles",
        "local",
        lower(results, [DATASET], bvm(LOCAL), DEEP, "nll"),
    )


def figures(results: Results) -> Sequence[Drawing]:
    """The paper's three panels, NLL beside them, and ours; first draw."""
    from accord import plots

    panels = {
        "MSE ensemble of 5": MSE,
        "NLL (Deep Ensembles), 5": DEEP,
        "single BVM, as printed": bvm(AS_PRINTED, method="BVM single"),
        "BVM ensemble of 5, as printed": bvm(AS_PRINTED),
        "BVM ensemble of 5, smoothed": bvm(SMOOTHED),
        "BVM, local tolerance (ours)": bvm(LOCAL),
    }
    found = {title: results.at(DATASET, source) for title, source in panels.items()}
    if not all(records and records[0].split == 0 for records in found.values()):
        return []
    [toy] = folds(DATASET, "toy", [0])
    fig, axes = plots.figure(3, 2, height=9.0)
    for place, (ax, (title, records)) in enumerate(zip(axes, found.items(), strict=True)):
        plots.envelope(
            x=TOY_GRID,
            mean=records[0].curves["mean"],
            std=records[0].curves["std"],
            n_std=3.0,
            truth=TOY_GRID**3,
            x_data=toy.X_train[:, 0],
            y_data=toy.y_train,
            show_legend=place == 0,
            ax=ax,
        )
        ax.set(title=title, ylim=(-220, 220))
    return [("figure1", fig, "Cubic toy, first draw: mean and three standard deviations")]


STUDY = Study(
    name=NAME,
    title="Figure 1: the cubic toy",
    asks="Does a learned variance show uncertainty better than the spread of an MSE ensemble?",
    about=(
        "Twenty points of t = x³ + N(0, 3²), one hidden layer of 100 units, ε = 1; the spread of "
        "an MSE ensemble, NLL, a single BVM network and a BVM ensemble, ±3σ."
    ),
    departures=DEPARTURES,
    groups=GROUPS,
    tables=tables,
    claims=claims,
    beyond=beyond,
    figures=figures,
)
