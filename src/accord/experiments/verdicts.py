"""The paper's claims, one line each: does it hold in our runs, and under which predictive?"""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import hypot

import numpy as np

from accord.datasets import info
from accord.experiments import published
from accord.experiments.estimates import Estimate
from accord.experiments.folds import TOY_GRID
from accord.experiments.results import Results
from accord.experiments.studies import TABLE1_VARIANTS
from accord.experiments.tables import formatted

__all__ = ["Trial", "Verdict", "judged", "to_csv", "to_markdown", "verdicts_of"]

_READINGS = {
    "model": "N(μ, σ²), as the paper predicts",
    "smoothed": "smoothed by its tolerance",
    "local": "local tolerance",
}
Place = tuple[str, str]  # method, variant


@dataclass(frozen=True)
class Verdict:
    """A claim, the predictive under which it was tried, and the outcome.

    ``holds`` is None where records are missing, so that nothing can be said.
    """

    where: str
    claim: str
    predictive: str
    holds: bool | None
    evidence: str

    @property
    def outcome(self) -> str:
        return {True: "holds", False: "does not hold", None: "not run"}[self.holds]


@dataclass(frozen=True)
class Trial:
    """One dataset's answer to a claim: won, lost, or None where records are missing."""

    dataset: str
    won: bool | None
    text: str


def verdicts_of(study: str, results: Results) -> list[Verdict]:
    """The verdicts on the claims that a study bears on."""
    return list(_JUDGES[study](results))


def to_markdown(verdicts: Sequence[Verdict]) -> str:
    """One line per claim and predictive."""
    lines = [
        "| where | claim | predictive | verdict | evidence |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {v.where} | {v.claim} | {v.predictive} | **{v.outcome}** | {v.evidence} |"
        for v in verdicts
    ]
    return "\n".join([*lines, ""])


def to_csv(verdicts: Sequence[Verdict]) -> str:
    """The same for machines."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(("where", "claim", "predictive", "verdict", "evidence"))
    writer.writerows((v.where, v.claim, v.predictive, v.outcome, v.evidence) for v in verdicts)
    return stream.getvalue()


def _figure1(results: Results) -> Iterable[Verdict]:
    for variant in _READINGS:
        yield judged(
            "Figure 1",
            "a learned variance estimates uncertainty better than the spread of an MSE ensemble",
            variant,
            _compared(results, "figure1", ["cubic"], ("BVM", variant), ("MSE Ensemble", "plain")),
        )
    for variant in ("model", "smoothed"):
        single, ensemble = (_widening(results, method, variant) for method in ("BVM single", "BVM"))
        known = single is not None and ensemble is not None
        yield Verdict(
            "Figure 1",
            "an ensemble's uncertainty grows more than a single network's away from the data",
            _READINGS[variant],
            ensemble > single if single is not None and ensemble is not None else None,
            f"σ beyond the data / σ within: {ensemble:.1f} against {single:.1f}" if known else "",
        )


def _table1(results: Results) -> Iterable[Verdict]:
    sets = published.datasets("table1")
    for recipe, variant in TABLE1_VARIANTS:
        bvm = ("BVM", f"{recipe}, {variant}")
        predictive = f"{_READINGS[variant]}; {_recipe(recipe)}"
        yield judged(
            "Table 1",
            "in distribution, BVM does not outperform Deep Ensembles in NLL by more than one "
            "combined standard error",
            predictive,
            [_not_below(results, d, bvm, ("Deep Ensembles", recipe)) for d in sets],
        )
        for rival in ("PBP", "MC-dropout"):
            printed = _printed_wins(rival)
            yield judged(
                "Table 1",
                f"BVM outperforms {rival} in NLL on many datasets (printed: {printed} of 9)",
                predictive,
                _compared(results, "table1", sets, bvm, (rival, "plain")),
                needed=printed,
            )


def _calibration(results: Results) -> Iterable[Verdict]:
    sets = published.datasets("calibration")
    for recipe, variant in TABLE1_VARIANTS:
        place = ("BVM", f"{recipe}, {variant}")
        mse = {d: results.estimate("calibration", d, "MSE Ensemble", recipe, "ece") for d in sets}
        deep = {d: results.estimate("table1", d, "Deep Ensembles", recipe, "ece") for d in sets}
        ours = {d: results.estimate("table1", d, *place, "ece") for d in sets}
        predictive = f"{_READINGS[variant]}; {_recipe(recipe)}"
        yield judged(
            "Appendix A",
            "BVM is better calibrated than the MSE ensemble (ECE)",
            predictive,
            [_lower(d, ours[d], mse[d]) for d in sets],
        )
        yield _as_calibrated(predictive, list(ours.values()), list(deep.values()))


def _table2(results: Results) -> Iterable[Verdict]:
    deep = ("Deep Ensembles", "plain")
    for variant in ("model", "smoothed"):
        small, large = ("BVM eps=0.01", variant), ("BVM eps=0.1", variant)
        widths = {
            p: results.estimate("table2", "google", *p, "width95") for p in (small, large, deep)
        }
        yield judged(
            "Table 2",
            "a larger ε widens the prediction interval",
            _READINGS[variant],
            [_lower("google", widths[small], widths[large], "width")],
        )
        yield _ratio_near_one(
            "with ε = 0.01 the interval is nearly that of Deep Ensembles (widths within 25 %)",
            _READINGS[variant],
            widths[small],
            widths[deep],
        )
        rivals = [
            _compared(results, "table2", ["google"], large, other)[0] for other in (deep, small)
        ]
        yield judged("Table 2", "ε = 0.1 gives the lowest NLL", _READINGS[variant], rivals)
        inside = results.estimate("table2", "google", *large, "coverage95")
        yield Verdict(
            "Stock figure",
            "with ε = 0.1 all test points fall within the 95 % envelope",
            _READINGS[variant],
            None if inside is None else inside.value > 0.995,
            "" if inside is None else f"{100 * inside.value:.0f} % inside, mean over the seeds",
        )


def _table3(results: Results) -> Iterable[Verdict]:
    sets = published.datasets("table3")
    grey = [name for name in sets if published.is_grey(name)]
    white = [name for name in sets if not published.is_grey(name)]
    deep = ("Deep Ensembles", "plain")
    for variant in _READINGS:
        ours = ("BVM", variant)
        yield judged(
            "Table 3",
            "BVM beats Deep Ensembles on all grey rows",
            _READINGS[variant],
            _compared(results, "table3", grey, ours, deep),
        )
        yield judged(
            "Table 3",
            "Deep Ensembles beat BVM on the white rows",
            _READINGS[variant],
            _compared(results, "table3", white, deep, ours),
        )


def _expansion(results: Results) -> Iterable[Verdict]:
    records = results.at("expansion", "cubic", "BVM", "exact")
    found = records[0].measures if records else {}
    yield Verdict(
        "Appendix B",
        "the loss is NLL − ε²/6 [(t−μ)²/σ⁴ − 1/σ²] to its order",
        "–",
        found["order"] > 3 if found else None,
        f"error of power {found['order']:.2f} in ε; {found['error_at_1']:.2g} at ε = σ"
        if found
        else "",
    )
    yield Verdict(
        "Appendix B",
        "the loss is least at μ = t, σ = ε/√3, so σ grows with ε",
        _READINGS["model"],
        found["exact_at_minimiser"] <= found["exact_at_zero"] if found else None,
        (
            f"exact loss {found['exact_at_minimiser']:.3f} there, {found['exact_at_zero']:.3f} as "
            f"σ → 0; on noise s = ε, σ shrinks to {found['population_at_1']:.2f} s"
        )
        if found
        else "",
    )


_JUDGES: dict[str, Callable[[Results], Iterable[Verdict]]] = {
    "figure1": _figure1,
    "table1": _table1,
    "calibration": _calibration,
    "table2": _table2,
    "table3": _table3,
    "expansion": _expansion,
}


def _compared(
    results: Results, study: str, sets: Sequence[str], ours: Place, theirs: Place
) -> list[Trial]:
    """Is our mean NLL the lower one?"""
    return [
        _lower(
            d, results.estimate(study, d, *ours, "nll"), results.estimate(study, d, *theirs, "nll")
        )
        for d in sets
    ]


def _not_below(results: Results, dataset: str, ours: Place, theirs: Place) -> Trial:
    """Is our NLL not lower, beyond the errors that a table shows?

    On the same splits the difference has a far smaller error, but the paper's claim is not about
    thousandths.
    """
    one, two = (results.estimate("table1", dataset, *place, "nll") for place in (ours, theirs))
    if one is None or two is None:
        return Trial(dataset, None, "")
    beyond = hypot(one.error, two.error) if one.n > 1 and two.n > 1 else 0.0
    text = f"{formatted(one)} against {formatted(two)}"
    return Trial(dataset, one.value >= two.value - beyond, text)


def _lower(dataset: str, ours: Estimate | None, theirs: Estimate | None, what: str = "") -> Trial:
    if ours is None or theirs is None:
        return Trial(dataset, None, "")
    text = f"{what} {formatted(ours)} against {formatted(theirs)}".strip()
    return Trial(dataset, ours.value < theirs.value, text)


def judged(
    where: str,
    claim: str,
    variant: str,
    trials: Sequence[Trial],
    *,
    needed: int | None = None,
) -> Verdict:
    """Holds if it does on all datasets that were run, or on as many as needed."""
    predictive = _READINGS.get(variant, variant)
    tried = [trial for trial in trials if trial.won is not None]
    if not tried:
        return Verdict(where, claim, predictive, None, "")
    won = [trial for trial in tried if trial.won]
    holds: bool | None = len(won) >= (len(tried) if needed is None else needed)
    if needed is not None and len(won) < needed <= len(won) + len(trials) - len(tried):
        holds = None  # the sets that were not run decide
    if len(trials) <= 2:
        return Verdict(where, claim, predictive, holds, "; ".join(trial.text for trial in tried))
    lost = [f"{info(trial.dataset).title} ({trial.text})" for trial in tried if not trial.won]
    absent = [info(trial.dataset).title for trial in trials if trial.won is None]
    parts = [f"{len(won)} of {len(tried)}", _listed("not", lost), _listed("not run:", absent)]
    return Verdict(where, claim, predictive, holds, "; ".join(part for part in parts if part))


def _listed(word: str, items: Sequence[str]) -> str:
    return f"{word} {', '.join(items)}" if items else ""


def _as_calibrated(
    predictive: str, ours: Sequence[Estimate | None], deep: Sequence[Estimate | None]
) -> Verdict:
    """On average over the sets, since single ones differ both ways in the paper as well."""
    claim = "BVM is as well calibrated as NLL (mean ECE over the sets, within 0.02)"
    pairs = [(a.value, b.value) for a, b in zip(ours, deep, strict=True) if a and b]
    if not pairs:
        return Verdict("Figure 2", claim, predictive, None, "")
    one, two = np.mean(pairs, axis=0)
    evidence = f"{one:.3f} against {two:.3f}, {len(pairs)} sets"
    return Verdict("Figure 2", claim, predictive, bool(one <= two + 0.02), evidence)


def _ratio_near_one(
    claim: str, predictive: str, ours: Estimate | None, theirs: Estimate | None
) -> Verdict:
    if ours is None or theirs is None:
        return Verdict("Stock figure", claim, predictive, None, "")
    ratio = ours.value / theirs.value
    return Verdict(
        "Stock figure", claim, predictive, 0.8 <= ratio <= 1.25, f"ratio of widths {ratio:.2f}"
    )


def _widening(results: Results, method: str, variant: str) -> float | None:
    """Mean σ where |x| > 4, beyond the data, over mean σ within; averaged over the draws."""
    records = results.at("figure1", "cubic", method, variant)
    if not records:
        return None
    std = np.array([record.curves["std"] for record in records])
    beyond = np.abs(TOY_GRID) > 4
    return float((std[:, beyond].mean(axis=1) / std[:, ~beyond].mean(axis=1)).mean())


def _printed_wins(rival: str) -> int:
    def value(dataset: str, method: str) -> float:
        found = published.figure("table1", dataset, "nll", method)
        return found.value if found else np.nan

    return sum(value(d, "BVM") < value(d, rival) for d in published.datasets("table1"))


def _recipe(recipe: str) -> str:
    return "printed recipe" if recipe == "printed" else recipe
