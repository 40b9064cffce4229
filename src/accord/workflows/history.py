"""What a model has been shown since it was made, and whether its coverage still holds."""

import base64
import json
import math
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from accord._files import OptionError, write_whole
from accord._types import Bools, Floats
from accord._wording import count, json_text, number, percent, quoted
from accord.tabular import Expectation
from accord.validation import coverage_log_evidence, coverage_sequence
from accord.workflows.drift import Drift
from accord.workflows.verdict import (
    NEGLIGIBLE,
    TRAINED_ON,
    Level,
    Verdict,
    least_coverage,
    worst,
)

_KIND, _VERSION = "accord monitoring", 1
_MOST_ROWS = 2**53  # counts are added up as floats
# 20: a false alarm in at most one stream of twenty, however long it is watched.
ALARM = 20.0
_SHORT: dict[Level, str] = {
    "good": "Coverage holds",
    "caution": "No alarm so far",
    "poor": "Coverage no longer holds",
}


@dataclass(frozen=True)
class MonitoredTable:
    """One table that a model was shown.

    ``content`` is a fingerprint of its rows; ``labelled`` of them had a target, ``misses`` of these
    lay outside their interval. A row counts as ``weight`` rows in the evidence, less than one where
    rows repeat each other or belong together. ``drift`` has the columns that were distributed
    otherwise than in training. ``error`` is the mean absolute error, None without targets.
    """

    content: str
    source: str
    time: str
    rows: int
    labelled: int
    misses: int
    unusual: float
    expected_coverage: float
    expected_error: float
    error: float | None
    drift: dict[str, float] = field(default_factory=dict)
    weight: float = 1.0

    @property
    def covered(self) -> float:
        return 1 - self.misses / self.labelled if self.labelled else float("nan")


def _checked(**state: Any) -> MonitoredTable:
    """A batch of a state file, which anybody may have written."""
    batch = MonitoredTable(**state)
    datetime.fromisoformat(batch.time)
    counts = (batch.misses, batch.labelled, batch.rows)
    if not (
        all(type(count) is int for count in counts)
        and 0 <= batch.misses <= batch.labelled <= batch.rows < _MOST_ROWS
        and 0 < _number(batch.weight) < 1 + 1e-9
        and isinstance(batch.source, str)
    ):
        raise ValueError("batch")
    return replace(
        batch,
        unusual=_number(batch.unusual),
        expected_coverage=_number(batch.expected_coverage),
        expected_error=_number(batch.expected_error),
        error=None if batch.error is None else _number(batch.error),
        drift={str(name): _number(distance) for name, distance in batch.drift.items()},
    )


def _number(value: Any) -> float:
    """A number as JSON has it, where null is NaN."""
    if value is None:
        return math.nan
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError("number")
    return float(value)


@final
@dataclass(frozen=True)
class History:
    """All batches of one model in the order in which they came, and what they say together.

    ``counted`` holds the numbers of the rows that were judged (:func:`accord.splits.row_hashes`),
    eight bytes each, as base64.
    """

    model: str
    coverage: float
    batches: tuple[MonitoredTable, ...] = ()
    counted: str = ""

    @classmethod
    def read(cls, path: Path, *, model: str, coverage: float) -> Self:
        """The history in a file, or an empty one if there is none yet."""
        if not path.exists():
            return cls(model, coverage)
        shown = quoted(path.name)
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            if state["kind"] != _KIND or state["version"] != _VERSION:
                raise KeyError("kind")
            found = cls(
                str(state["model"]),
                float(state["coverage"]),
                tuple(_checked(**batch) for batch in state["batches"]),
                str(state["counted"]),
            )
            found.has(np.empty(0, np.uint64))  # fails if the numbers are none
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise OptionError(
                f"state must be a file that monitoring wrote, got {shown}. Give another name, or "
                "remove the file to start again."
            ) from None
        if (found.model, found.coverage) != (model, coverage):
            raise OptionError(
                f"the state {shown} must belong to this model, got that of another one. Give each "
                "model a state file of its own, or remove this one to start again."
            )
        return found

    def write(self, path: Path) -> None:
        """Put the history in place of the old one, in one step."""
        state: dict[str, Any] = {"kind": _KIND, "version": _VERSION, **asdict(self)}
        write_whole(path, json_text(state) + "\n")

    def having(self, batch: MonitoredTable, rows: NDArray[np.uint64] | None = None) -> "History":
        """The history with one more batch, of which these rows were judged."""
        more = b"" if rows is None else rows.astype("<u8").tobytes()
        counted = base64.b64encode(base64.b64decode(self.counted) + more).decode()
        return replace(self, batches=(*self.batches, batch), counted=counted)

    def has(self, rows: NDArray[np.uint64]) -> Bools:
        """Which rows were judged before.

        **Shape**: (n,) → (n,).
        """
        known = np.frombuffer(base64.b64decode(self.counted, validate=True), dtype="<u8")
        return np.isin(rows, known)

    @property
    def judged(self) -> tuple[MonitoredTable, ...]:
        """The batches with targets."""
        return tuple(batch for batch in self.batches if batch.labelled)

    @property
    def rows(self) -> int:
        return sum(batch.labelled for batch in self.batches)

    @property
    def covered(self) -> float:
        missed = sum(batch.misses for batch in self.batches)
        return 1 - missed / self.rows if self.rows else float("nan")

    @cached_property
    def log_evidence(self) -> Floats:
        """log E after each judged batch, against the stated coverage less one percentage point.

        **Shape**: (J,).
        """
        margin = min(NEGLIGIBLE, self.coverage / 2)
        return coverage_log_evidence(*self._counts(), coverage=self.coverage, margin=margin)

    @cached_property
    def intervals(self) -> Floats:
        """Confidence range of the coverage after each judged batch, valid at all of them at once.

        **Shape**: (J, 2).
        """
        return coverage_sequence(*self._counts())

    @property
    def evidence(self) -> float:
        """E now; 1 is no evidence either way."""
        return float(np.exp(min(self.log_evidence[-1], 700.0))) if self.judged else 1.0

    @property
    def broken_by(self) -> MonitoredTable | None:
        """The batch with which the evidence first reached the alarm; once reached, it stays."""
        reached = np.flatnonzero(self.log_evidence >= np.log(ALARM))
        return self.judged[reached[0]] if len(reached) else None

    def _counts(self) -> tuple[Floats, Floats]:
        judged = self.judged
        weight = np.array([batch.weight for batch in judged], dtype=np.float64)
        rows = np.array([batch.labelled for batch in judged], dtype=np.float64)
        misses = np.array([batch.misses for batch in judged], dtype=np.float64)
        return weight * rows, weight * misses


def coverage_verdict(
    history: History,
    batch: MonitoredTable,
    expected: Expectation,
    drift: Drift,
    *,
    trained_on: bool = False,
) -> Verdict:
    """Whether intervals contain what they state, by all batches so far; ``batch`` is the last.

    Rows that were ``trained_on`` are not counted: of them alone, nothing can be said.
    """
    level, headline, summary = _broken(history) or _kept(history) or _awaited(history, expected)
    if trained_on and not history.judged:
        level, headline = "caution", TRAINED_ON
    if drift.any:
        level, headline = worst(level, "caution"), f"{headline[:-1]}; the data have drifted."
    remarks = [*drift.sentences(), _expected(batch, expected, history.coverage)]
    short = _SHORT[level] if history.judged else "No targets yet"
    return Verdict(level, headline, summary, tuple(remarks), short)


def _broken(history: History) -> tuple[Level, str, str] | None:
    cause = history.broken_by
    if cause is None:
        return None
    headline = f"Coverage no longer holds: {_inside(history)}."
    summary = (
        f"The evidence reached {ALARM:g} with {cause.source} ({cause.time[:10]}). If coverage "
        "held, that would happen in at most one of twenty streams, however long it is watched. "
        f"{_confidence(history)} Fit a new model with recent rows."
    )
    return "poor", headline, summary


def _kept(history: History) -> tuple[Level, str, str] | None:
    if not history.judged:
        return None
    low, _ = history.intervals[-1]
    evidence = (
        f"After {count(len(history.judged), 'batch', 'batches')} the evidence that coverage has "
        f"fallen is {number(history.evidence, 2)}; the alarm is at {ALARM:g}. "
        f"{_confidence(history)}"
    )
    if low >= least_coverage(history.coverage):
        return "good", f"Coverage holds: {_inside(history)}.", evidence
    return (
        "caution",
        f"No sign that coverage has fallen, but few rows so far: {_inside(history)}.",
        evidence,
    )


def _awaited(history: History, expected: Expectation) -> tuple[Level, str, str]:
    stated = history.coverage
    short = expected.high < stated - NEGLIGIBLE
    headline = f"No target is known yet: expect {percent(expected.coverage, 0)} of the rows in "
    summary = (
        "Held-out rows at the same distance from the training rows were covered this often "
        f"({percent(expected.low, 0)} to {percent(expected.high, 0)})."
    )
    level: Level = "caution" if short else "good"
    return level, f"{headline}their {percent(stated)} interval.", summary


def _inside(history: History) -> str:
    return (
        f"{percent(history.covered)} of {count(history.rows, 'row')} lie in their "
        f"{percent(history.coverage)} interval"
    )


def _confidence(history: History) -> str:
    low, high = history.intervals[-1]
    return f"Confidence range of the coverage: {percent(low, 0)} to {percent(high, 0)}."


def _expected(batch: MonitoredTable, expected: Expectation, stated: float) -> str:
    """What was to be expected of the last batch, beside what was found."""
    error = f"a mean absolute error of {number(expected.error)}"
    if not batch.labelled:
        return f"Expected for these rows: {error}."
    return (
        f"Expected for these rows: {percent(expected.coverage, 0)} in their {percent(stated)} "
        f"interval, and {error}. Found: {percent(batch.covered)} and "
        f"{number(batch.error if batch.error is not None else float('nan'))}."
    )
