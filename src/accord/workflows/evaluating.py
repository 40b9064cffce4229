"""Does a saved model hold on new labelled rows, and have the data drifted?"""

import time
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from accord.tables import (
    Table,
    TableError,
    absent_column,
    check_columns,
    conform,
    number_column,
    quoted,
    read_table,
)
from accord.workflows.assessment import Assessment
from accord.workflows.drift import measure_drift
from accord.workflows.model import TableModel, load_model
from accord.workflows.progress import Progress, Silent
from accord.workflows.results import EvaluateResult
from accord.workflows.unusual import most_unusual
from accord.workflows.verdict import evaluation_verdict
from accord.workflows.wording import count

Floats = NDArray[np.float64]

_MINIMUM_ROWS = 10
_CHUNK = 16_384


def evaluate_table(
    model: str | Path | TableModel,
    table: str | Path | pd.DataFrame,
    *,
    coverage: float = 0.95,
    by_name: bool = False,
    encoding: str = "utf-8",
    progress: Progress | None = None,
) -> EvaluateResult:
    """Compare a model's predictions with the target column of a table, and state the drift."""
    start = time.perf_counter()
    progress = progress or Silent()
    progress.plan(1.0)
    progress.stage("Reading", weight=0.2)
    model = model if isinstance(model, TableModel) else load_model(model)
    schema, card = model.schema, model.card
    source = read_table(table, encoding=encoding)
    y = _observed(source, schema.target)
    check_columns(source.data.column_names, schema, source=source.name, by_name=by_name)
    X, surprises, _ = conform(source.data, schema, source=source.name)
    rows = np.flatnonzero(~np.isnan(y))
    X, y = X.iloc[rows].reset_index(drop=True), y[rows]
    progress.stage("Predicting", weight=0.8)
    found, score = _judged(model, X, y, rows + 1, coverage, progress)
    unusual = score < model.trust.threshold_
    drift = measure_drift(
        X,
        model.profile,
        y,
        model.target_profile,
        unusual=unusual,
        unusual_expected=float(model.trust.false_alarm_rate),
    )
    notes = []
    if source.sha256 == card.sha256:
        notes.append("The model was trained on this very table: these figures are too good.")
    if left_out := source.data.num_rows - len(rows):
        notes.append(f"{count(left_out, 'row')} without a target value left out.")
    return EvaluateResult(
        card=card,
        source=source.name,
        verdict=evaluation_verdict(found, target=schema.target, drifted=drift.any),
        found=found,
        drift=drift,
        unusual_rows=most_unusual(found, X, strangeness=-score, usual=model.profile),
        unusual=unusual,
        warnings=(*notes, *surprises.sentences()),
        seconds=time.perf_counter() - start,
    )


def _judged(
    model: TableModel,
    X: pd.DataFrame,
    y: Floats,
    rows: NDArray[np.intp],
    coverage: float,
    progress: Progress,
) -> tuple[Assessment, Floats]:
    """Predictions beside the truth, and how far each can be trusted, chunk by chunk."""
    parts, scores = [], []
    for begin in range(0, len(X), _CHUNK):
        piece = slice(begin, begin + _CHUNK)
        features = model.features(X.iloc[piece])
        score = model.trust.score_samples(features)
        dist = model.distribution(features, unusual=score < model.trust.threshold_)
        parts.append(Assessment.of(dist, y[piece], rows=rows[piece], coverage=coverage))
        scores.append(score)
        progress.advance((begin + _CHUNK) / len(X))
    return Assessment.join(parts), np.concatenate(scores)


def _observed(source: Table, target: str) -> Floats:
    names = source.data.column_names
    if target not in names:
        raise absent_column(target, names, role="target", source=source.name)
    y = number_column(source, "target", target)
    known = int((~np.isnan(y)).sum())
    if known < _MINIMUM_ROWS:
        raise TableError(
            f"evaluation needs at least {_MINIMUM_ROWS} rows with a target, got {known} in "
            f"{quoted(source.name)}. Add rows."
        )
    return y
