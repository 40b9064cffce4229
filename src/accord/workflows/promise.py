"""The judgement on a promise of coverage: kept, broken, or not to be told yet."""

from accord._wording import count, number, percent
from accord.tabular import Expectation
from accord.workflows.drift import Drift
from accord.workflows.history import ALARM, History, MonitoredTable
from accord.workflows.verdict import NEGLIGIBLE, Level, Verdict, least_coverage, worst

_SHORT: dict[Level, str] = {"good": "Kept", "caution": "Keep watching", "poor": "Broken"}


def promise_verdict(
    history: History, batch: MonitoredTable, expected: Expectation, drift: Drift
) -> Verdict:
    """Whether intervals contain what they state, by all batches so far; ``batch`` is the last."""
    level, headline, summary = _broken(history) or _kept(history) or _awaited(history, expected)
    if drift.any:
        level, headline = worst(level, "caution"), f"{headline[:-1]}; the data have drifted."
    remarks = [*drift.sentences(), _expected(batch, expected, history.coverage)]
    short = _SHORT[level] if history.judged else "No targets yet"
    return Verdict(level, headline, summary, tuple(remarks), short)


def _broken(history: History) -> tuple[Level, str, str] | None:
    cause = history.broken_by
    if cause is None:
        return None
    headline = f"The promise is broken: {_inside(history)}."
    summary = (
        f"The evidence reached {ALARM:g} with {cause.source} ({cause.time[:10]}). If the promise "
        "were kept, that would happen in at most one stream of twenty, however long it is watched. "
        f"{_allowed(history)} Fit a new model with recent rows."
    )
    return "poor", headline, summary


def _kept(history: History) -> tuple[Level, str, str] | None:
    if not history.judged:
        return None
    low, _ = history.intervals[-1]
    evidence = (
        f"The evidence against the promise is {number(history.evidence, 2)}; {ALARM:g} would mean "
        f"that it is broken. {_allowed(history)}"
    )
    if low >= least_coverage(history.coverage):
        return "good", f"The promise is kept: {_inside(history)}.", evidence
    return (
        "caution",
        f"No sign that the promise is broken, on few rows: {_inside(history)}.",
        evidence,
    )


def _awaited(history: History, expected: Expectation) -> tuple[Level, str, str]:
    stated = history.coverage
    short = expected.high < stated - NEGLIGIBLE
    headline = f"No target is known yet: expect {percent(expected.coverage, 0)} of the rows in "
    summary = (
        "Held-out rows at the same distance from those that a model had seen were covered so "
        f"often ({percent(expected.low, 0)} to {percent(expected.high, 0)})."
    )
    level: Level = "caution" if short else "good"
    return level, f"{headline}their {percent(stated)} interval.", summary


def _inside(history: History) -> str:
    return (
        f"{percent(history.covered)} of {count(history.rows, 'row')} in "
        f"{count(len(history.judged), 'batch', 'batches')} lie in their "
        f"{percent(history.coverage)} interval"
    )


def _allowed(history: History) -> str:
    low, high = history.intervals[-1]
    return f"The rows allow a coverage of {percent(low, 0)} to {percent(high, 0)}."


def _expected(batch: MonitoredTable, expected: Expectation, stated: float) -> str:
    """What was to be expected of the last batch, beside what was found."""
    error = f"a mean absolute error of {number(expected.error)}"
    if not batch.labelled:
        return f"To be expected of these rows: {error}."
    return (
        f"Of these rows, {percent(expected.coverage, 0)} were expected in their "
        f"{percent(stated)} interval, and {error}; found were {percent(batch.covered)} and "
        f"{number(batch.error if batch.error is not None else float('nan'))}."
    )
