"""A prediction for each row of a file, read and written piece by piece."""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from accord.tables import (
    OptionError,
    Schema,
    Surprises,
    TableError,
    TableStream,
    TableWriter,
    absent_column,
    atomic_output,
    check_columns,
    check_output,
    conform,
    listed,
    open_table,
    refuse_unknown_suffix,
)
from accord.workflows.model import TableModel, load_model
from accord.workflows.progress import Progress, Silent
from accord.workflows.results import PredictResult

_BATCH_ROWS = 16_384
# Wide tables get shorter batches: about this many cells at a time.
_BATCH_CELLS = 2**21


def predict_table(
    model: str | Path | TableModel,
    table: str | Path,
    *,
    output: str | Path,
    coverages: Sequence[float] = (0.95,),
    id_column: str | None = None,
    by_name: bool = False,
    encoding: str = "utf-8",
    force: bool = False,
    progress: Progress | None = None,
) -> PredictResult:
    """Predict every row of a CSV or Parquet file, in order, into a CSV or Parquet file.

    Columns: the id if one is named, mean, std, a lower and an upper bound per coverage, aleatoric,
    epistemic, unusual. The output appears whole or not at all. Memory does not grow with the file.
    """
    start = time.perf_counter()
    progress = progress or Silent()
    output = check_output(refuse_unknown_suffix(output), force=force)
    model = model if isinstance(model, TableModel) else load_model(model)
    schema = model.schema
    names = _output_columns(coverages, id_column)
    needed = schema.names + ([id_column] if id_column else [])
    rows, unusual, surprises = 0, 0, Surprises()
    batch_rows = max(64, min(_BATCH_ROWS, _BATCH_CELLS // max(1, len(needed))))
    with (
        open_table(table, encoding=encoding, batch_rows=batch_rows, columns=needed) as stream,
        atomic_output(output, force=force) as part,
        TableWriter(part) as writer,
    ):
        _check_stream(stream, schema, id_column, by_name)
        progress.plan(1.0)
        progress.stage("Predicting", weight=1.0)
        for batch in stream.batches:
            X, odd, _ = conform(batch, schema, source=stream.name, first_row=rows + 1)
            answer, flagged = _predict_batch(model, X, coverages)
            if id_column is not None:
                answer = answer.add_column(0, id_column, batch.column(id_column))
            writer.write(answer)
            rows, unusual, surprises = rows + batch.num_rows, unusual + flagged, surprises + odd
            progress.advance(stream.position())
        if not rows:
            raise TableError(f"{stream.name} has column names but no rows. Nothing to predict.")
    return PredictResult(
        path=output,
        n_rows=rows,
        n_unusual=unusual,
        columns=tuple(names),
        warnings=tuple(surprises.sentences()),
        seconds=time.perf_counter() - start,
    )


def _check_stream(
    stream: TableStream, schema: Schema, id_column: str | None, by_name: bool
) -> None:
    present = list(stream.columns)
    if id_column is not None and id_column not in present:
        raise absent_column(id_column, present, role="id", source=stream.name)
    others = [name for name in present if name != id_column or name in schema.names]
    check_columns(others, schema, source=stream.name, by_name=by_name)


def _predict_batch(
    model: TableModel, X: pd.DataFrame, coverages: Sequence[float]
) -> tuple[pa.Table, int]:
    """Predictions for a batch, and how many of its rows are unusual."""
    features = model.features(X)
    unusual = model.trust.is_unusual(features)
    dist = model.distribution(features, unusual=unusual)
    columns = {"mean": np.asarray(dist.mean), "std": np.asarray(dist.std)}
    for coverage in coverages:
        lower, upper = interval_names(coverage, alone=len(coverages) == 1)
        ends = np.asarray(dist.interval(coverage))
        columns |= {lower: ends[:, 0], upper: ends[:, 1]}
    columns |= {
        "aleatoric": np.asarray(dist.aleatoric),
        "epistemic": np.asarray(dist.epistemic),
        "unusual": unusual,
    }
    return pa.table(columns), int(unusual.sum())


def _output_columns(coverages: Sequence[float], id_column: str | None) -> list[str]:
    bounds = [name for c in coverages for name in interval_names(c, alone=len(coverages) == 1)]
    if len(set(bounds)) < len(bounds):
        raise OptionError(
            f"coverages must differ, got {listed(f'{c:g}' for c in coverages)}. Name each once."
        )
    names = ["mean", "std", *bounds, "aleatoric", "epistemic", "unusual"]
    if id_column in names:
        raise OptionError(
            f"the id column must not be called like a prediction, got '{id_column}'. Rename it."
        )
    return ([id_column] if id_column else []) + names


def interval_names(coverage: float, *, alone: bool) -> tuple[str, str]:
    """Names of an interval's columns: plain if there is one interval, else with the percentage.

    >>> interval_names(0.95, alone=True), interval_names(0.999, alone=False)
    (('lower', 'upper'), ('lower_99.9', 'upper_99.9'))
    """
    if alone:
        return "lower", "upper"
    return f"lower_{100 * coverage:g}", f"upper_{100 * coverage:g}"
