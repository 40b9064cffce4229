"""Verdicts on claims: holds, does not hold, or undecided by our runs.

A comparison of two methods on a dataset goes by the mean of their differences over the splits, each
method trained and tested on the same rows, and by its confidence interval (Student's t). The claim
"lower" holds on that dataset if the whole interval lies below 0, does not hold if none of it does,
and is undecided otherwise; "not lower" is the exact opposite. A claim about several datasets gives
each of them its share of ``LEVEL``, so that the verdict as a whole errs in at most 5 % of cases.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, hypot, inf, isnan, log, nan, sqrt
from typing import Literal, cast

from accord.datasets import info
from accord.paper.results import MeanOverSplits, Results
from accord.paper.study import Source
from accord.paper.tables import csv_text, formatted

Outcome = Literal["holds", "does not hold", "undecided", "not run"]
LEVEL = 0.05
RULE = (
    "A claim *holds* or *does not hold* where the 95 % confidence interval of the paired "
    "differences over splits says so (Student's t, the 5 % shared among a claim's datasets), and "
    "is *undecided* otherwise. Likelihoods of single splits have long tails, so that a mean can "
    "stay undecided although nearly all splits agree. Splits of a set share rows: the intervals "
    "speak of these sets, not of others like them. A difference can be certain and still be small: "
    "the evidence says how large it is."
)
_OPPOSITE: dict[Outcome, Outcome] = {"holds": "does not hold", "does not hold": "holds"}


@dataclass(frozen=True)
class JudgedClaim:
    """A claim, what it was tried with, the outcome, and the numbers behind it.

    ``predictive`` is "as printed" or "smoothed" for the paper's claims, and says more for ours.
    """

    where: str
    claim: str
    predictive: str
    outcome: Outcome
    evidence: str


@dataclass(frozen=True)
class Trial:
    """One dataset's answer to a claim."""

    dataset: str
    outcome: Outcome
    text: str = ""


def decided(
    estimate: MeanOverSplits | None,
    *,
    above: float = -inf,
    below: float = inf,
    level: float = LEVEL,
) -> Outcome:
    """Whether a quantity lies between two bounds, by its confidence interval.

    Example:
        >>> [decided(MeanOverSplits(mean, 0.1, 20), below=2.0) for mean in (1.0, 1.9)]
        ['holds', 'undecided']
    """
    if estimate is None:
        return "not run"
    if isnan(estimate.error):
        return "undecided"  # a single split tells nothing of its spread
    half = estimate.error * _student_t(1 - level / 2, estimate.n - 1)
    low, high = estimate.value - half, estimate.value + half
    if above < low and high < below:
        return "holds"
    return "does not hold" if high <= above or low >= below else "undecided"


def _student_t(probability: float, df: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(df, probability))


def lower(
    results: Results, datasets: Sequence[str], ours: Source, theirs: Source, measure: str
) -> list[Trial]:
    """Is our measure the lower one, dataset by dataset?"""
    trials = []
    for dataset in datasets:
        found = results.compared(dataset, ours, theirs, measure)
        if found is None:
            trials.append(Trial(dataset, "not run"))
            continue
        outcome = decided(found.difference, below=0.0, level=LEVEL / len(datasets))
        text = (
            f"{formatted(found.ours)} against {formatted(found.theirs)}, difference "
            f"{formatted(found.difference)}"
        )
        if len(datasets) == 1:
            text += f", lower on {results.wins(dataset, ours, theirs, measure)}"
        trials.append(Trial(dataset, outcome, text))
    return trials


def not_lower(
    results: Results, datasets: Sequence[str], ours: Source, theirs: Source, measure: str
) -> list[Trial]:
    """The opposite of :func:`lower`, by the same intervals."""
    return [
        replace(trial, outcome=_OPPOSITE.get(trial.outcome, trial.outcome))
        for trial in lower(results, datasets, ours, theirs, measure)
    ]


def not_far_above(
    results: Results, datasets: Sequence[str], ours: Source, theirs: Source
) -> list[Trial]:
    """Is our NLL at most a tenth of a nat above the other, dataset by dataset?"""
    trials = []
    for dataset in datasets:
        gap = results.difference(dataset, ours, theirs, "nll")
        outcome = decided(gap, below=0.1, level=LEVEL / len(datasets))
        trials.append(Trial(dataset, outcome, f"difference {formatted(gap)}" if gap else ""))
    return trials


def alike(dataset: str, ratios: Sequence[float], words: str) -> Trial:
    """Whether a ratio lies between 4/5 and 5/4, by the mean of its logarithm over splits."""
    if not ratios:
        return Trial(dataset, "not run")
    mean = MeanOverSplits.over([log(ratio) for ratio in ratios])
    shown = MeanOverSplits(exp(mean.value), exp(mean.value) * mean.error, mean.n)
    outcome = decided(mean, above=-log(1.25), below=log(1.25))
    return Trial(dataset, outcome, f"{words} {formatted(shown, 2)}")


def share_between(
    dataset: str, share: MeanOverSplits | None, words: str, *, above: float, below: float = inf
) -> Trial:
    """Whether a share of rows lies between two bounds."""
    if share is None:
        return Trial(dataset, "not run")
    percent = MeanOverSplits(100 * share.value, 100 * share.error, share.n)
    return Trial(
        dataset, decided(share, above=above, below=below), f"{formatted(percent, 0)} % {words}"
    )


def not_above_printed(
    results: Results, ours: Source, printed: Mapping[str, tuple[float, float]]
) -> list[Trial]:
    """Is our NLL at most a published bound, given by dataset as value and standard error?

    Nothing is paired here: the two standard errors are combined.
    """
    trials = []
    for dataset, (value, error) in printed.items():
        found = results.estimate(dataset, ours, "nll")
        if found is None:
            trials.append(Trial(dataset, "not run"))
            continue
        gap = MeanOverSplits(found.value - value, hypot(found.error, error), found.n)
        outcome = decided(gap, below=0.0, level=LEVEL / len(printed))
        text = f"{formatted(found)} against {formatted(MeanOverSplits(value, error or nan, 1))}"
        trials.append(Trial(dataset, outcome, text))
    return trials


def judged(
    where: str, claim: str, predictive: str, trials: Sequence[Trial], *, needed: int | None = None
) -> JudgedClaim:
    """Holds if it does on all datasets, or on as many as needed; open ones may leave it undecided.

    A dataset that was not run is as open as one that is undecided.
    """
    by_outcome: dict[Outcome, list[Trial]] = {}
    for trial in trials:
        by_outcome.setdefault(trial.outcome, []).append(trial)
    n_holds = len(by_outcome.get("holds", []))
    n_open = sum(len(by_outcome.get(o, [])) for o in ("undecided", "not run"))
    needed = len(trials) if needed is None else needed
    outcome: Outcome = "undecided"
    if len(by_outcome.get("not run", [])) == len(trials):
        outcome = "not run"
    elif n_holds >= needed:
        outcome = "holds"
    elif n_holds + n_open < needed:
        outcome = "does not hold"
    return JudgedClaim(where, claim, predictive, outcome, _evidence(trials, by_outcome))


def _evidence(trials: Sequence[Trial], by_outcome: dict[Outcome, list[Trial]]) -> str:
    if len(trials) <= 2:
        return "; ".join(trial.text for trial in trials if trial.text)
    if len(by_outcome.get("not run", [])) == len(trials):
        return ""
    parts = [f"{len(by_outcome.get('holds', []))} of {len(trials)}"]
    words: dict[Outcome, str] = {"does not hold": "not", "undecided": "undecided:"}
    for outcome, word in words.items():
        named = [f"{_title(t)} ({t.text})" for t in by_outcome.get(outcome, [])]
        parts += [f"{word} {', '.join(named)}"] if named else []
    absent = [_title(trial) for trial in by_outcome.get("not run", [])]
    return "; ".join([*parts, *([f"not run: {', '.join(absent)}"] if absent else [])])


def _title(trial: Trial) -> str:
    return info(trial.dataset).title


def decided_on_mean(
    where: str,
    claim: str,
    predictive: str,
    gaps: Sequence[MeanOverSplits | None],
    *,
    below: float,
) -> JudgedClaim:
    """Whether the mean over datasets of a paired difference lies below a bound."""
    found = [gap for gap in gaps if gap is not None]
    if not found:
        return JudgedClaim(where, claim, predictive, "not run", "")
    error = sqrt(sum(gap.error**2 for gap in found)) / len(found)
    mean = MeanOverSplits(sum(g.value for g in found) / len(found), error, min(g.n for g in found))
    text = f"mean difference {formatted(mean, 3)}, {len(found)} sets"
    return JudgedClaim(where, claim, predictive, decided(mean, below=below), text)


def fact(where: str, claim: str, predictive: str, holds: bool | None, evidence: str) -> JudgedClaim:
    """A verdict on something that has no spread, such as a formula; None: not run."""
    outcome: Outcome = "not run" if holds is None else "holds" if holds else "does not hold"
    return JudgedClaim(where, claim, predictive, outcome, evidence)


def counted(verdicts: Sequence[JudgedClaim]) -> dict[str, int]:
    """How many verdicts have each outcome, those that occur."""
    outcomes = [verdict.outcome for verdict in verdicts]
    order = ("holds", "does not hold", "undecided", "not run")
    return {outcome: outcomes.count(outcome) for outcome in order if outcome in outcomes}


def to_csv(verdicts: Sequence[JudgedClaim], beyond: Sequence[JudgedClaim]) -> str:
    """One line per claim, for machines; ``of`` says whose claim it is."""
    rows = (
        (of, v.where, v.claim, v.predictive, v.outcome, v.evidence)
        for of, group in (("paper", verdicts), ("accord", beyond))
        for v in group
    )
    return csv_text(("of", "where", "claim", "predictive", "verdict", "evidence"), rows)


def from_csv(text: str) -> list[JudgedClaim]:
    """What :func:`to_csv` wrote, the paper's claims first."""
    return [
        JudgedClaim(
            row["where"],
            row["claim"],
            row["predictive"],
            cast("Outcome", row["verdict"]),
            row["evidence"],
        )
        for row in csv.DictReader(io.StringIO(text))
    ]
