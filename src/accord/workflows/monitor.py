"""Does coverage still hold? What to expect of new rows, and a test once targets are known."""

import hashlib
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from accord._files import check_output, one_at_a_time
from accord._progress import Progress, parts, silent
from accord._types import Bools, Floats, Indices
from accord._wording import count, json_text, percent
from accord.distributions import PARTS
from accord.splits import groups_of_copies, row_hashes
from accord.tables import (
    Schema,
    Table,
    TableSource,
    TableWriter,
    conform,
    number_column,
    read_table,
)
from accord.tabular import (
    Assessment,
    DistanceCurve,
    Expectation,
    ModelCard,
    TableRegressor,
)
from accord.workflows.evaluate import alike_rows, answers
from accord.workflows.explain import unused_columns
from accord.workflows.history import (
    ALARM,
    Drift,
    History,
    MonitoredTable,
    coverage_verdict,
    measure_drift,
)
from accord.workflows.predict import load_model
from accord.workflows.verdict import MOSTLY_SEEN, TRAINED_ON, Verdict

# Of a wide table, only so many columns' distances are kept with each batch.
_KEPT_COLUMNS = 20
_REAL = pa.float64()
# Rows are known again by their values where nearly all rows of a table differ.
_DISTINCT = 0.99


@dataclass(frozen=True)
class RowToLabel:
    """A row whose target would teach the model most, and in what it is unusual.

    ``gain`` is the deviation that further rows like it could remove: the root of disagreement² +
    distance². The noise would stay.
    """

    row: int
    gain: float
    mean: float
    lower: float
    upper: float
    noise: float
    disagreement: float
    distance: float
    unusual: bool
    peculiar: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class MonitorResult:
    """What a table says about a model, alone and together with those before it.

    ``counted`` says whether the table's targets were added to the evidence just now.
    """

    card: ModelCard
    source: str
    verdict: Verdict
    batch: MonitoredTable
    history: History
    counted: bool
    expected: Expectation
    drift: Drift
    label_first: tuple[RowToLabel, ...]
    state: Path | None
    warnings: tuple[str, ...]
    seconds: float

    @property
    def broken(self) -> bool:
        return self.history.broken_by is not None

    def to_json(self) -> dict[str, Any]:
        history = self.history
        low, high = history.intervals[-1] if history.judged else (0.0, 1.0)
        return {
            "broken": self.broken,
            "verdict": self.verdict.level,
            "headline": self.verdict.headline,
            "summary": self.verdict.summary,
            "remarks": list(self.verdict.remarks),
            "evidence": history.evidence,
            "alarm": ALARM,
            "coverage": {
                "stated": history.coverage,
                "found": history.covered,
                "low": low,
                "high": high,
                "rows": history.rows,
                "batches": len(history.judged),
            },
            "counted": self.counted,
            "batch": asdict(self.batch),
            "expected": vars(self.expected),
            "drift": {
                "statement": self.drift.sentences(),
                "columns": {column.name: column.distance for column in self.drift.columns},
                "drifted": self.drift.drifted,
                "unusual": self.drift.unusual,
                "unusual_expected": self.drift.unusual_expected,
            },
            "label_first": [row.row for row in self.label_first],
            "state": None if self.state is None else str(self.state),
            "warnings": list(self.warnings),
            "seconds": round(self.seconds, 2),
        }

    def write_label_first(self, path: str | Path) -> None:
        """The rows to label first as CSV or Parquet, the most instructive one first."""
        types = {"row": pa.int64(), "unusual": pa.bool_()}
        names = [name for name in RowToLabel.__dataclass_fields__ if name != "peculiar"]
        columns = {
            name: pa.array([getattr(row, name) for row in self.label_first], types.get(name, _REAL))
            for name in names
        }
        words = [", ".join(f"{n}: {v}" for n, v in row.peculiar) for row in self.label_first]
        with TableWriter(path) as writer:
            writer.write(pa.table({**columns, "unusual_for": pa.array(words, pa.string())}))


def monitor_table(
    model: str | Path | TableRegressor,
    table: TableSource,
    *,
    state: str | Path | None = None,
    label_rows: int = 20,
    by_name: bool = False,
    strict: bool = False,
    progress: Progress | None = None,
) -> MonitorResult:
    """Show new rows to a model: how unlike they are, what to expect, and whether it came true.

    Args:
        model: A fitted model, or its file.
        table: New rows, with the target column or without it; a row without a target is predicted
            and not judged.
        state: A file that keeps the batches. It is made if it is not there; rows that it
            has already are not counted again. None remembers nothing: the table is judged alone.
        label_rows: How many rows to name that should be labelled first.
        by_name: Find columns by name: in any order, unexpected ones ignored. Else both are refused.
        strict: Infinite and extreme values, words among numbers and unknown categories are refused;
            they are flagged otherwise.
        progress: Called with the share of the work that is done.
    """
    start = time.perf_counter()
    reading, predicting = parts(progress or silent, (1, 4))
    reading(0.0, "Reading")
    model = load_model(model)
    known_as = _fingerprint(model.card_)
    place = None if state is None else check_output(state, force=True)
    _history(place, model, known_as)  # a state that does not fit is refused before any work
    source = read_table(table)
    whole = conform(source.data, model.schema_, source=source.name, by_name=by_name, strict=strict)
    X = whole.X
    y = _targets(source, model.schema_)
    alike = alike_rows(source, model, X, y, np.arange(len(X)))
    rows = _Rows.of(model, X, y, alike, whole.unlike, predicting)
    drift = measure_drift(
        X,
        model.profile_,
        unusual=rows.unusual,
        y=rows.y[rows.labelled],
        usual_target=model.target_profile_,
        separate=(_distinct(groups_of_copies(X, y)), _distinct(model.remembered_)),
    )
    curve = DistanceCurve.from_dict(model.card_.by_distance)
    expected = curve.expect(rows.growth, rows.column("std"))
    seen = model.seen_in_training(X[rows.labelled], rows.y[rows.labelled])
    record = partial(rows.batch, source.name, expected, drift, model.coverage)
    with nullcontext() if place is None else one_at_a_time(place):
        recorded = _recorded(
            _history(place, model, known_as), rows, record, trained_on=seen > MOSTLY_SEEN
        )
        if place is not None and recorded.before is None:
            recorded.history.write(place)
    return MonitorResult(
        card=model.card_,
        source=source.name,
        verdict=coverage_verdict(
            recorded.history, recorded.batch, expected, drift, trained_on=seen > MOSTLY_SEEN
        ),
        batch=recorded.batch,
        history=recorded.history,
        counted=recorded.before is None and recorded.batch.labelled > 0,
        expected=expected,
        drift=drift,
        label_first=rows.label_first(model, label_rows),
        state=place,
        warnings=(
            *_notes(recorded.before, recorded.repeated, seen),
            *source.notes,
            *whole.surprises().sentences(),
        ),
        seconds=time.perf_counter() - start,
    )


@dataclass(frozen=True)
class _Rows:
    """New rows with their predictions.

    **Shape**: X (n, d), y (n,) with NaN for unknown targets, growth and unusual (n,); alike (n,),
    the same number for rows that count for less than as many separate ones.
    """

    X: pd.DataFrame
    y: Floats
    alike: Indices
    predicted: pd.DataFrame
    growth: Floats
    unusual: Bools

    @classmethod
    def of(
        cls,
        model: TableRegressor,
        X: pd.DataFrame,
        y: Floats,
        alike: Indices,
        unlike: Bools,
        progress: Progress,
    ) -> "_Rows":
        found, growths, flags = [], [], []
        for _, features, dist, unusual in answers(model, X, progress):
            lower, upper = np.asarray(dist.interval(model.coverage)).T
            columns = {name: np.asarray(getattr(dist, name)) for name in ("mean", "std", *PARTS)}
            found.append(pd.DataFrame({**columns, "lower": lower, "upper": upper}))
            growths.append(model.engine_.growth_(features))
            flags.append(unusual)
        predicted = pd.concat(found, ignore_index=True)
        return cls(X, y, alike, predicted, np.concatenate(growths), np.concatenate(flags) | unlike)

    @property
    def labelled(self) -> Bools:
        return ~np.isnan(self.y)

    def column(self, name: str) -> Floats:
        return np.asarray(self.predicted[name], dtype=np.float64)

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """A number per row, by which it is known again."""
        return row_hashes(self.X, self.y)

    def new_to(self, history: History) -> Bools:
        """Which rows have a target and were not judged before.

        Where rows of this table repeat each other, values are few: a row of another table that is
        the same is no sign that it is the same one.
        """
        own = self.hashes[self.labelled]
        if len(np.unique(own)) < _DISTINCT * len(own):
            return self.labelled
        return self.labelled & ~history.has(self.hashes)

    def batch(
        self, source: str, expected: Expectation, drift: Drift, coverage: float, *, judged: Bools
    ) -> MonitoredTable:
        """The record of these rows, of which some are judged."""
        y = self.y[judged]
        mean, interval = self.column("mean")[judged], self.predicted[["lower", "upper"]][judged]
        found = Assessment.of_intervals(
            mean, interval.to_numpy(), y, rows=self.alike[judged], coverage=coverage
        )
        moved = sorted((c for c in drift.columns if c.drifted), key=lambda c: -c.distance)
        return MonitoredTable(
            content=hashlib.sha256(np.sort(self.hashes).tobytes()).hexdigest(),
            source=source,
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            rows=len(self.y),
            labelled=int(judged.sum()),
            misses=int(np.sum(~found.inside)),
            unusual=drift.unusual,
            expected_coverage=expected.coverage,
            expected_error=expected.error,
            error=float(np.abs(y - mean).mean()) if len(y) else None,
            drift={c.name: round(c.distance, 4) for c in moved[:_KEPT_COLUMNS]},
            weight=found.separate_rows / len(y) if len(y) else 1.0,
        )

    def label_first(self, model: TableRegressor, limit: int) -> tuple[RowToLabel, ...]:
        """The rows without a target of which the model knows least."""
        gain = np.hypot(self.column("disagreement"), self.column("distance"))
        order = np.argsort(-gain, kind="stable")
        order = order[~self.labelled[order]][:limit]
        rows, unused = self.X.iloc[order], unused_columns(model)
        peculiar = model.profile_.peculiarities(rows, unused=unused) if len(order) else []
        names = ("mean", "lower", "upper", *PARTS)
        return tuple(
            RowToLabel(
                row=int(line) + 1,
                gain=float(gain[line]),
                **{name: float(self.column(name)[line]) for name in names},
                unusual=bool(self.unusual[line]),
                peculiar=words,
            )
            for line, words in zip(order, peculiar, strict=True)
        )


def _distinct(names: NDArray[Any]) -> float:
    """The share of names that repeat no other one; 1 without any."""
    return len(np.unique(names)) / len(names) if len(names) else 1.0


def _targets(source: Table, schema: Schema) -> Floats:
    """The targets, NaN where they are not known."""
    if schema.target not in source.data.column_names:
        return np.full(source.data.num_rows, np.nan)
    return number_column(source, "target", schema.target, written=schema.target_cells)


def _fingerprint(card: ModelCard) -> str:
    """What tells a model from all others: the card names its rows, its seed and its moment."""
    return hashlib.sha256(json_text(card.to_dict()).encode()).hexdigest()


def _history(place: Path | None, model: TableRegressor, known_as: str) -> History:
    if place is None:
        return History(known_as, model.coverage)
    return History.read(place, model=known_as, coverage=model.coverage)


class _Recorded(NamedTuple):
    """The history with a batch; the batch that had the same rows before, if one had them."""

    history: History
    batch: MonitoredTable
    before: MonitoredTable | None
    repeated: int


def _recorded(
    history: History, rows: _Rows, record: Callable[..., MonitoredTable], *, trained_on: bool
) -> _Recorded:
    """Rows that were judged before, or that the model was trained on, judge nothing."""
    new = rows.new_to(history)
    batch = record(judged=new & (not trained_on))
    before = next((each for each in history.batches if each.content == batch.content), None)
    if before is None:
        history = history.having(batch, rows.hashes[new & (not trained_on)])
    return _Recorded(history, batch, before, int((rows.labelled & ~new).sum()))


def _notes(before: MonitoredTable | None, repeated: int, seen: float) -> list[str]:
    notes = []
    if before is not None:
        when = before.time[:16].replace("T", " ")
        notes.append(
            f"These {count(before.rows, 'row')} were shown before, as {before.source} on {when} "
            "UTC: they are not counted again."
        )
    elif repeated:
        rows = "row was" if repeated == 1 else "rows were"
        notes.append(f"{repeated:,} {rows} shown before, in other tables: not counted again.")
    if seen > MOSTLY_SEEN:
        notes.append(f"{TRAINED_ON[:-1]} and do not count.")
    elif seen > 0:
        notes.append(
            f"About {percent(seen, 0)} of the rows equal training rows: the result looks too good."
        )
    return notes
