"""Does a saved model hold on new labelled rows?"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from accord._progress import Progress, parts, silent
from accord._types import Bools, Floats, Indices
from accord._wording import count, percent, quoted
from accord.distributions import Distribution
from accord.metrics import MINIMUM_ROWS
from accord.splits import groups_of_copies
from accord.tables import (
    Schema,
    Table,
    TableError,
    TableSource,
    check_present,
    conform,
    number_column,
    read_table,
)
from accord.tabular import Assessment, ModelCard, TableRegressor, groups_of
from accord.workflows.explain import UnusualRow, most_unusual
from accord.workflows.predict import load_model
from accord.workflows.verdict import Use, Verdict, evaluation_verdict, use_of

_CHUNK = 16_384


@dataclass(frozen=True)
class EvaluateResult:
    """How a model does on new labelled rows."""

    card: ModelCard
    source: str
    verdict: Verdict
    found: Assessment
    use: Use
    unusual_rows: tuple[UnusualRow, ...]
    unusual: Bools
    distances: Floats
    warnings: tuple[str, ...]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict.level,
            "headline": self.verdict.headline,
            "summary": self.verdict.summary,
            "figures": self.found.figures(),
            "width": vars(self.use),
            "trained_on": self.card.held_out,
            "unusual": float(self.unusual.mean()),
            "warnings": list(self.warnings),
            "seconds": round(self.seconds, 2),
        }


def evaluate_table(
    model: str | Path | TableRegressor,
    table: TableSource,
    *,
    coverage: float | None = None,
    by_name: bool = False,
    strict: bool = False,
    progress: Progress | None = None,
) -> EvaluateResult:
    """Compare a model's predictions with the target column of a table.

    Args:
        model: A fitted model, or its file.
        table: Rows with the columns of the training table, and the target.
        coverage: Share of the values that intervals should contain; the model's own unless given.
        by_name: Find columns by name: in any order, unexpected ones ignored. Else both are refused.
        strict: Infinite and extreme values, words among numbers and unknown categories are refused;
            they are flagged otherwise.
        progress: Called with the share of the work that is done.
    """
    start = time.perf_counter()
    reading, predicting = parts(progress or silent, (1, 4))
    reading(0.0, "Reading")
    model = load_model(model)
    schema, card = model.schema_, model.card_
    source = read_table(table)
    y = _observed(source, schema)
    whole = conform(source.data, schema, source=source.name, by_name=by_name, strict=strict)
    rows = np.flatnonzero(~np.isnan(y))
    X, y = whole.X.iloc[rows].reset_index(drop=True), y[rows]
    share = model.coverage if coverage is None else coverage
    found, unusual, distances = _judged(model, X, y, rows + 1, share, predicting)
    found = replace(found, alike=alike_rows(source, model, X, y, rows))
    unusual = unusual | whole.unlike[rows]
    seen, use = model.seen_in_training(X, y), use_of(found)
    notes = []
    if seen > 0:
        notes.append(
            f"About {percent(seen, 0)} of the rows equal training rows: their figures are too good."
        )
    if left_out := source.data.num_rows - len(rows):
        notes.append(f"{count(left_out, 'row')} without a target value left out.")
    return EvaluateResult(
        card=card,
        source=source.name,
        verdict=evaluation_verdict(found, use, target=schema.target, seen=seen),
        found=found,
        use=use,
        unusual_rows=most_unusual(found, X, distance=distances, model=model),
        unusual=unusual,
        distances=distances,
        warnings=(*notes, *source.notes, *whole.surprises().sentences()),
        seconds=time.perf_counter() - start,
    )


def _judged(
    model: TableRegressor,
    X: pd.DataFrame,
    y: Floats,
    rows: Indices,
    coverage: float,
    progress: Progress,
) -> tuple[Assessment, Bools, Floats]:
    """Predictions beside the truth, flags and distances."""
    found, flags, distances = [], [], []
    for piece, features, dist, unusual in answers(model, X, progress):
        found.append(Assessment.of(dist, y[piece], rows=rows[piece], coverage=coverage))
        flags.append(unusual)
        distances.append(model.engine_.proximity_.distance(features))
    return Assessment.join(found), np.concatenate(flags), np.concatenate(distances)


def answers(
    model: TableRegressor, X: pd.DataFrame, progress: Progress
) -> Iterator[tuple[slice, Floats, Distribution, Bools]]:
    """Which rows, their features, distributions and flags, chunk by chunk."""
    for begin in range(0, len(X), _CHUNK):
        progress(begin / len(X), "Predicting")
        piece = slice(begin, begin + _CHUNK)
        features = model.transform(X.iloc[piece])
        yield piece, features, *model.answer(features)
    progress(1.0, "Predicting")


def alike_rows(
    source: Table, model: TableRegressor, X: pd.DataFrame, y: Floats, places: Indices
) -> Indices:
    """Which rows are alike: those of one of the model's groups, else copies of a row.

    **Shape**: X (n, d); y and places (n,), those of the rows in the table → (n,).
    """
    if model.group is not None and model.group in source.data.column_names:
        return groups_of(source, places, model.group)
    return groups_of_copies(X, y)


def _observed(source: Table, schema: Schema) -> Floats:
    check_present([("target", schema.target)], source.data.column_names, source=source.name)
    y = number_column(source, "target", schema.target, written=schema.target_cells)
    known = int((~np.isnan(y)).sum())
    if known < MINIMUM_ROWS:
        raise TableError(
            f"evaluation needs at least {MINIMUM_ROWS} rows with a target, got {known} in "
            f"{quoted(source.name)}. Add rows."
        )
    return y
