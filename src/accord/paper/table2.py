"""Table 2 and the stock figure: Google's opening prices of January 2017."""

from collections.abc import Iterable, Sequence

import numpy as np

from accord.datasets import load
from accord.distributions import Normal
from accord.estimators import RECIPES
from accord.paper.claims import JudgedClaim, alike, judged, lower, share_between
from accord.paper.results import Results
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
    bvm_ensemble,
    deep_ensembles,
    printed,
)
from accord.paper.tables import BOTH_DENSITIES, ResultTable, by_source, formatted

NAME, DATASET = "table2", "google"
# the two heads of the mean between which the paper does not decide
SIGMOID, IDENTITY = "sigmoid mean", "identity mean"
HEADS = {SIGMOID: RECIPES["stocks"], IDENTITY: RECIPES["stocks-identity"]}
SMALL, LARGE = "BVM eps=0.01", "BVM eps=0.1"
PROTOCOL = Protocol("holdout", (DATASET,), splits=20, quick_splits=2, keep_predictions=True)


def bvm(method: str, heads: str, predictive: Predictive) -> Source:
    """Where a BVM ensemble's numbers are found, by its tolerance and heads."""
    return Source(NAME, method, heads, predictive.name)


def deep(heads: str) -> Source:
    """Where Deep Ensembles' numbers are found."""
    return Source(NAME, "Deep Ensembles", heads)


def _group(heads: str) -> Group:
    settings = HEADS[heads]
    tolerances = {SMALL: "1%", LARGE: "10%"}
    return Group(
        NAME,
        heads,
        PROTOCOL,
        (
            deep_ensembles(heads, settings),
            *(bvm_ensemble(heads, settings, eps, method=name) for name, eps in tolerances.items()),
        ),
    )


_LOCAL = bvm_ensemble(SIGMOID, HEADS[SIGMOID], "local")
DEPARTURES = (
    Departure(
        "states sigmoid outputs for the UCI sets only",
        "trains both: a sigmoid mean, as there, and an identity mean; claims of the paper are "
        "judged on the sigmoid, the identity is beyond it",
        "a sigmoid cannot predict prices above those of the training years, which January 2017 has",
    ),
    Departure(
        "activation and scaling not stated for the stocks",
        "those of the UCI sets: ReLU, standardised features, targets in [0, 1]; ε is a share of "
        "that range",
        "the likeliest reading; ε = 0.01 and 0.1 are of that size",
    ),
    Departure(
        "one run",
        "twenty seeds, the first of them in the figure",
        "differences between losses are of the size of those between seeds",
    ),
    *SHARED,
)


def _rows(heads: str) -> dict[str, Source]:
    rows = {"Deep Ensembles": deep(heads)}
    for method in (SMALL, LARGE):
        for predictive in (AS_PRINTED, SMOOTHED):
            label = f"{method.replace('eps=', 'ε = ')}, {predictive.name}"
            rows[label] = bvm(method, heads, predictive)
    if heads == SIGMOID:
        rows["BVM, local tolerance (ours)"] = Source(NAME, "BVM", heads, LOCAL.name)
    return rows


def tables(results: Results) -> list[ResultTable]:
    """One per choice of heads."""
    note = (
        "Ours, mean ± standard error over seeds; in italics below it, what the paper prints. † "
        "more than two combined standard errors from the published number, which is of one run and "
        "is taken to vary as one of ours does. "
        f"{BOTH_DENSITIES} {_nearer(results)}"
    ).strip()
    return [
        by_source(
            f"table2-{heads.split()[0]}",
            f"Table 2, Google stocks (N = 1,198, d = 60): {heads}",
            note,
            DATASET,
            _rows(heads),
            results,
            "table2",
        )
        for heads in HEADS
    ]


def _nearer(results: Results) -> str:
    """Which heads reproduce the printed Deep Ensembles, in words."""
    found = {heads: results.estimate(DATASET, deep(heads), "nll") for heads in HEADS}
    known = {heads: estimate for heads, estimate in found.items() if estimate is not None}
    if len(known) < len(HEADS):
        return ""
    goal = printed("table2", DATASET, "nll", "Deep Ensembles")
    nearest = min(known, key=lambda heads: abs(known[heads].value - goal.value))
    numbers = ", ".join(f"{heads} {formatted(estimate)}" for heads, estimate in known.items())
    words = f"Deep Ensembles are printed as {formatted(goal)}; ours: {numbers}."
    return f"{words} The {nearest} is nearer."


def claims(results: Results) -> Iterable[JudgedClaim]:
    """The paper's, with the heads that it states elsewhere."""
    for predictive in (AS_PRINTED, SMOOTHED):
        yield from _judged(results, SIGMOID, predictive, predictive.name)


def beyond(results: Results) -> Iterable[JudgedClaim]:
    """The same with an identity mean."""
    for predictive in (AS_PRINTED, SMOOTHED):
        yield from _judged(results, IDENTITY, predictive, f"{predictive.name}, {IDENTITY}")


def _judged(
    results: Results, heads: str, predictive: Predictive, label: str
) -> Iterable[JudgedClaim]:
    small, large = (bvm(method, heads, predictive) for method in (SMALL, LARGE))
    yield judged(
        "Table 2",
        "a larger ε widens the prediction interval",
        label,
        lower(results, [DATASET], small, large, "width95"),
    )
    yield judged(
        "Stock figure",
        "with ε = 0.01 the envelope almost overlaps with that of Deep Ensembles (widths within "
        "25 %)",
        label,
        [alike(DATASET, _ratios(results, small, deep(heads)), "ratio of widths")],
    )
    rivals = [
        trial
        for other in (deep(heads), small)
        for trial in lower(results, [DATASET], large, other, "nll")
    ]
    yield judged("Table 2", "ε = 0.1 gives the lowest NLL", label, rivals)
    inside = results.estimate(DATASET, large, "coverage95")
    yield judged(
        "Stock figure",
        "with ε = 0.1 all test points fall within the 95 % envelope",
        label,
        [share_between(DATASET, inside, "of the test points inside", above=0.995)],
    )


def _ratios(results: Results, one: Source, other: Source) -> list[float]:
    """Of the widths of two methods' intervals, seed by seed."""
    pairs = results.pairs(DATASET, one, other)
    return [a.measures["width95"] / b.measures["width95"] for a, b in pairs]


def figures(results: Results) -> Sequence[Drawing]:
    """The envelopes of the three losses in January 2017, first seed."""
    from accord import plots

    holdout = load(DATASET).holdout if results.at(DATASET, deep(SIGMOID)) else None
    drawings: list[Drawing] = []
    for predictive in (AS_PRINTED, SMOOTHED) if holdout is not None else ():
        places = {
            "Deep Ensembles": deep(SIGMOID),
            "BVM ε = 0.01": bvm(SMALL, SIGMOID, predictive),
            "BVM ε = 0.1": bvm(LARGE, SIGMOID, predictive),
        }
        found = {label: results.at(DATASET, place) for label, place in places.items()}
        if holdout is None or not all(found.values()):
            continue
        fig, [ax] = plots.figure(height=4.4)
        plots.series_envelope(
            x=np.arange(1, len(holdout.y) + 1),
            y_true=holdout.y,
            methods={
                label: Normal(records[0].curves["mean"], records[0].curves["std"])
                for label, records in found.items()
            },
            ax=ax,
        )
        title = f"BVM {predictive.name}, 95 % intervals of the Gaussian with its moments"
        ax.set(title=title, xlabel="trading day of January 2017", ylabel="opening price [USD]")
        ax.set_xticks(range(1, len(holdout.y) + 1))
        words = f"Google stocks, January 2017, {title}"
        drawings.append((f"stocks-{predictive.name.replace(' ', '-')}", fig, words))
    return drawings


STUDY = Study(
    name=NAME,
    title="Table 2 and the stock figure: Google stocks in January 2017",
    asks="Does a larger ε cover volatile stock prices better?",
    about="Opening prices from the 60 days before.",
    departures=DEPARTURES,
    groups=(
        _group(SIGMOID),
        _group(IDENTITY),
        Group(NAME, "local tolerance", PROTOCOL, (_LOCAL,)),
    ),
    tables=tables,
    claims=claims,
    beyond=beyond,
    figures=figures,
)
