"""What a model has been shown since it was made: whether it drifted, and if coverage holds."""

import base64
import json
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from accord._files import OptionError, quoted, write_whole
from accord._types import Bools, Floats
from accord._wording import count, json_text, listed, number, percent
from accord.tabular import Expectation, TableProfile, as_floats
from accord.trust import UNUSUAL_SHARE
from accord.validation import coverage_log_evidence, coverage_sequence
from accord.workflows.verdict import (
    NEGLIGIBLE,
    TRAINED_ON,
    Level,
    Verdict,
    least_coverage,
    worst,
)

# Chance that an undrifted table is called drifted, over all its columns.
_FALSE_ALARM = 0.01
# Categories with fewer training rows than this are compared together, and unseen ones with them.
_RARE = 5
# With many rows every difference is significant: smaller ones than this do not matter.
_SMALLEST_DISTANCE = 0.1


@dataclass(frozen=True)
class ColumnDrift:
    """Distance between a column's distributions, 0 (the same) to 1 (nothing in common)."""

    name: str
    distance: float
    p_value: float
    drifted: bool


@dataclass(frozen=True)
class Drift:
    """All columns, the target if it is known, and unusual rows beside the expected share.

    ``n_rows`` is how many rows would tell as much beside a share that is known exactly.
    """

    columns: tuple[ColumnDrift, ...]
    target: ColumnDrift | None
    unusual: float
    unusual_expected: float
    n_rows: int

    @property
    def drifted(self) -> list[str]:
        """Columns with another distribution than in training."""
        return [column.name for column in self.columns if column.drifted]

    @property
    def any(self) -> bool:
        return bool(self.drifted) or self.many_unusual or self.target_drifted

    @property
    def target_drifted(self) -> bool:
        return self.target is not None and self.target.drifted

    @property
    def many_unusual(self) -> bool:
        """More unusual rows than chance explains, and so many that it matters."""
        found = round(self.unusual * self.n_rows)
        test = stats.binomtest(found, self.n_rows, self.unusual_expected, alternative="greater")
        return bool(test.pvalue < _FALSE_ALARM and self.unusual > 1.5 * self.unusual_expected)

    def sentences(self) -> list[str]:
        """The statement of drift, in plain words."""
        shifted = self.drifted
        if shifted and len(self.columns) == 1:
            first = (
                f"The only column, {listed(shifted)}, has another distribution than in training."
            )
        elif shifted:
            verb = "has" if len(shifted) == 1 else "have"
            first = (
                f"{len(shifted)} of {count(len(self.columns), 'column')} {verb} another "
                f"distribution than in training: {listed(shifted)}."
            )
        elif len(self.columns) == 1:
            first = "The only column has the same distribution as in training."
        else:
            all_of_them = "Both" if len(self.columns) == 2 else f"All {len(self.columns)}"
            first = (
                f"{all_of_them} columns, each by itself, have the same distribution as in training."
            )
        combined = self.many_unusual and not shifted
        second = (
            f"{percent(self.unusual)} of the rows are unlike the training rows; "
            f"{percent(self.unusual_expected)} would be expected"
            f"{': their combinations of values are new.' if combined else '.'}"
        )
        third = ["The target itself has another distribution than in training."]
        return [first, second, *(third if self.target_drifted else [])]


def measure_drift(
    X: pd.DataFrame,
    usual: TableProfile,
    *,
    unusual: Bools,
    y: Floats | None = None,
    usual_target: TableProfile | None = None,
    separate: tuple[float, float] = (1.0, 1.0),
) -> Drift:
    """Compare a table, column by column, with the profile of the training table.

    ``separate`` is the share of these rows, and of the training rows, that repeat no other one:
    copies tell nothing more. New categories where training rows had many that were nobody else's
    are no drift.

    **Shape**: X (n, d), unusual (n,), y (m,): the targets that are known.
    """
    level = _FALSE_ALARM / (len(usual.names) + 1)  # Bonferroni
    compare = partial(_compare, level=level, separate=separate)
    columns = tuple(compare(X, usual, place) for place in range(len(usual.names)))
    target = None
    if y is not None and len(y) and usual_target is not None:
        target = compare(pd.DataFrame({usual_target.names[0]: y}), usual_target, 0)
    expected = UNUSUAL_SHARE + max(usual.single.values(), default=0.0)
    n, before = len(X) * separate[0], usual.n_rows * separate[1]
    # where training rows are few, the share of them that is unusual is not known well either
    n_rows = max(1, round(n * before / (n + before)))
    return Drift(columns, target, float(np.mean(unusual)), expected, n_rows)


def _compare(
    X: pd.DataFrame,
    usual: TableProfile,
    place: int,
    *,
    level: float,
    separate: tuple[float, float],
) -> ColumnDrift:
    name = usual.names[place]
    column = X[name]
    present = column.dropna()
    n, before = len(column) * separate[0], usual.n_rows * separate[1]
    known = len(present) * separate[0]
    found = [_gaps(float(column.isna().mean()), n, usual.missing[place], before)]
    if len(present) and name in usual.shares:
        found.append(_categories(present, usual.shares[name], known, before))
    elif len(present):
        values = as_floats(present.to_frame())[:, 0]
        found.append(_numbers(values, usual.quantiles[place], known, before))
    # Missing or different values: the clearer sign of the two counts.
    distance, p_value = min(found, key=lambda pair: pair[1])
    return ColumnDrift(name, distance, p_value, p_value < level and distance > _SMALLEST_DISTANCE)


def _gaps(missing: float, n: float, before: float, n_before: float) -> tuple[float, float]:
    """Two shares of missing values, by the normal approximation."""
    pooled = (missing * n + before * n_before) / (n + n_before)
    error = np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / n_before))
    gap = abs(missing - before)
    return gap, float(2 * stats.norm.sf(gap / error)) if error > 0 else 1.0


def _numbers(values: Floats, quantiles: Floats, n: float, n_before: float) -> tuple[float, float]:
    """Kolmogorov–Smirnov distance to the training quantiles; both samples are finite."""
    grid = np.unique(np.concatenate([quantiles, values]))
    now = np.searchsorted(np.sort(values), grid, side="right") / len(values)
    distance = float(np.max(np.abs(now - _cdf(grid, quantiles))))
    size = n * n_before / (n + n_before)
    return distance, float(stats.kstwobign.sf(distance * np.sqrt(size)))


def _cdf(grid: Floats, quantiles: Floats) -> Floats:
    """The training cdf: linear between quantiles, with jumps where several agree."""
    steps = len(quantiles) - 1
    below = np.searchsorted(quantiles, grid, side="right") - 1
    start = np.clip(below, 0, steps - 1)
    gap = quantiles[start + 1] - quantiles[start]
    part = np.where(gap > 0, (grid - quantiles[start]) / np.where(gap > 0, gap, 1.0), 0.0)
    return np.clip(np.where(below < 0, 0.0, (below + part * (below < steps)) / steps), 0.0, 1.0)


def _categories(
    values: "pd.Series[str]", shares: dict[str, float], n: float, n_before: float
) -> tuple[float, float]:
    """Total variation distance and a chi-squared test; rare and unseen categories are one."""
    found = values.value_counts(normalize=True)
    common = {name: share for name, share in shares.items() if share * n_before >= _RARE}
    now = np.array([float(found.get(name, 0.0)) for name in common])
    then = np.array(list(common.values()))
    now, then = (np.append(part, max(0.0, 1 - part.sum())) for part in (now, then))
    distance = 0.5 * float(np.abs(now - then).sum())
    table = np.stack([now * n, then * n_before])
    table[:, -1] = np.where(table[:, -1] < 1e-6, 0.0, table[:, -1])  # rounding
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] < 2:
        return distance, 1.0
    return distance, float(stats.chi2_contingency(table).pvalue)


_KIND, _VERSION = "accord monitoring", 1
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
                tuple(MonitoredTable(**batch) for batch in state["batches"]),
                str(state["counted"]),
            )
            found.has(np.empty(0, np.uint64))  # fails if the numbers are none
        except (ValueError, KeyError, TypeError):
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
