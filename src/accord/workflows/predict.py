"""A prediction for each row of a file, read and written batch by batch."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from accord import persistence
from accord._files import OptionError, atomic_output, check_inputs, check_output
from accord._progress import Progress, silent
from accord._types import Bools
from accord._wording import listed, quoted
from accord.distributions import PARTS, Distribution
from accord.tables import (
    Schema,
    Surprises,
    TableError,
    TableFile,
    TableStream,
    TableWriter,
    as_file,
    check_columns,
    check_present,
    conform_rows,
    open_table,
    refuse_unknown_suffix,
)
from accord.tabular import TableRegressor
from accord.work import Workers, workers_of

if TYPE_CHECKING:
    from distributed import Client

_BATCH_ROWS = 16_384
# Wide tables get shorter batches: about this many cells at a time.
_BATCH_CELLS = 2**21
# Orders of columns that a receipt in words draws: standard errors of a few hundredths.
_PERMUTATIONS = 64


@dataclass(frozen=True)
class PredictResult:
    """Where predictions were written, how many, and what was odd about the input."""

    path: Path
    n_rows: int
    n_unusual: int
    columns: tuple[str, ...]
    warnings: tuple[str, ...]
    seconds: float
    receipt: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "output": str(self.path),
            "rows": self.n_rows,
            "unusual": self.n_unusual,
            "columns": list(self.columns),
            "warnings": list(self.warnings),
            "seconds": round(self.seconds, 2),
            **({} if self.receipt is None else {"receipt": self.receipt.splitlines()}),
        }


def load_model(model: str | Path | TableRegressor) -> TableRegressor:
    """Load what :meth:`TableRegressor.save` wrote, unless it is loaded; refuse any other file."""
    if isinstance(model, TableRegressor):
        return model
    path = Path(model)
    check_inputs([path])
    loaded = persistence.load(path, object)
    if not isinstance(loaded, TableRegressor):
        raise OptionError(
            f"model file {quoted(path.name)} must come from 'accord fit', got a "
            f"{type(loaded).__name__}. Load it with accord.load in Python."
        )
    return loaded


def predict_table(
    model: str | Path | TableRegressor,
    table: str | Path | TableFile,
    *,
    output: str | Path,
    coverages: Sequence[float] = (),
    id_column: str | Sequence[str] | None = None,
    by_name: bool = False,
    strict: bool = False,
    explain: bool = False,
    explain_row: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
    client: "Client | None" = None,
) -> PredictResult:
    """Predict every row of a CSV or Parquet file, in order, into a CSV or Parquet file.

    Columns: the ids that are named, mean, std, a lower and an upper bound per coverage (by default
    the model's), noise, disagreement, distance, unusual. The output appears whole or not at all.
    Memory does not grow with the file.

    Args:
        model: A fitted model, or its file.
        table: The file to predict; ``-`` is standard input.
        output: The file to write; ``-`` is standard output.
        coverages: Shares of the values that intervals should contain; the model's own unless given.
        id_column: A column that is copied to the output, or several.
        by_name: Find columns by name: in any order, unexpected ones ignored. Else both are refused.
        strict: Infinite and extreme values, words among numbers and unknown categories are refused;
            they are flagged otherwise.
        explain: Adds columns that say where the width of each row comes from (those of
            :meth:`accord.trust.Receipts.to_frame`).
        explain_row: A row number from 1, whose receipt is put into the result, in words.
        force: Replace an output that exists.
        progress: Called with the share of the work that is done.
        client: A Dask client, whose workers predict the batches, which are read and written here.
    """
    start = time.perf_counter()
    progress = progress or silent
    path = as_file(table).path
    files = [path] if isinstance(model, TableRegressor) else [model, path]
    check_inputs(files)
    output = check_output(refuse_unknown_suffix(output), inputs=files, force=force)
    model = load_model(model)
    schema, shares = model.schema_, tuple(coverages) or (model.coverage,)
    explained = _explanation_columns(model) if explain else []
    ids = (id_column,) if isinstance(id_column, str) else tuple(id_column or ())
    names = _output_columns(shares, ids, explained)
    needed = [*schema.names, *(name for name in ids if name not in schema.names)]
    rows, unusual, surprises = 0, 0, Surprises()
    receipt: str | None = None
    opened = open_table(
        table,
        batch_rows=max(64, min(_BATCH_ROWS, _BATCH_CELLS // max(1, len(needed)))),
        columns=needed,
    )
    with (
        opened as stream,
        atomic_output(output, inputs=files, force=force) as part,
        TableWriter(part) as writer,
    ):
        _check_stream(stream, schema, ids, by_name)
        progress(0.0, "Predicting")
        asked = _Asked(schema, stream.name, shares, tuple(explained), explain_row, strict)
        for batch, answered in _answers(model, asked, stream.batches, workers_of(client)):
            answer = answered.columns
            for place, name in enumerate(ids):
                answer = answer.add_column(place, name, batch.column(name))
            writer.write(answer)
            rows, unusual = rows + batch.num_rows, unusual + answered.n_unusual
            surprises, receipt = surprises + answered.odd, receipt or answered.receipt
            progress(stream.position(), "Predicting")
        if not rows:
            raise TableError(f"{stream.name} has column names but no rows. Nothing to predict.")
        surprises.check(source=stream.name)
        if explain_row is not None and receipt is None:
            raise OptionError(
                f"the row to explain must be one of 1 to {rows:,}, got {explain_row:,}. "
                "Rows are counted from 1, without the line of names."
            )
    return PredictResult(
        path=output,
        n_rows=rows,
        n_unusual=unusual,
        columns=tuple(names),
        warnings=(*stream.notes, *surprises.sentences()),
        seconds=time.perf_counter() - start,
        receipt=receipt,
    )


@dataclass(frozen=True)
class _Asked:
    """What is asked about every batch."""

    schema: Schema
    source: str
    coverages: tuple[float, ...]
    explained: tuple[str, ...]
    explain_row: int | None
    strict: bool


@dataclass(frozen=True)
class _Answered:
    """What is said of one batch."""

    columns: pa.Table
    n_unusual: int
    odd: Surprises
    receipt: str | None


def _answers(
    model: TableRegressor, asked: _Asked, batches: Iterable[pa.Table], workers: Workers
) -> Iterator[tuple[pa.Table, _Answered]]:
    """Batches with their answers, in the order of the file."""
    shared = workers.share((model, asked))
    waiting: dict[int, pa.Table] = {}
    done: dict[int, _Answered] = {}
    following = 0

    def calls() -> Iterator[tuple[Any, ...]]:
        first_row = 1
        for number, batch in enumerate(batches):
            waiting[number] = batch
            yield shared, batch, first_row
            first_row += batch.num_rows

    for number, answered, error in workers.run(_answer, calls(), ahead=2 * workers.count):
        if error is not None:
            raise error
        done[number] = answered
        while following in done:
            yield waiting.pop(following), done.pop(following)
            following += 1


def _answer(shared: tuple[TableRegressor, _Asked], batch: pa.Table, first_row: int) -> _Answered:
    """The predictions for one batch, whose first row has this number."""
    model, asked = shared
    rows = conform_rows(
        batch, asked.schema, source=asked.source, first_row=first_row, strict=asked.strict
    )
    X, odd = rows.X, rows.surprises(first_row=first_row)
    answer, flagged = _predict_batch(model, X, asked.coverages, rows.unlike)
    for name, values in _explained(model, X, asked.explained).items():
        answer = answer.append_column(name, pa.array(values))
    place = -1 if asked.explain_row is None else asked.explain_row - first_row
    receipt = None
    if 0 <= place < batch.num_rows:
        receipt = _receipt(model, X, place, asked.coverages[-1])
    return _Answered(answer, flagged, odd, receipt)


def _explanation_columns(model: TableRegressor) -> list[str]:
    """Names of what ``explain`` adds; what predictions have already is not written twice."""
    columns = dict.fromkeys(model.encoder_.feature_names())
    shares = [f"{name}_share" for name in PARTS]
    return [*shares, *(f"distance_from_{name}" for name in columns), "nearest", "unlike", "narrow"]


def _explained(model: TableRegressor, X: pd.DataFrame, names: Sequence[str]) -> dict[str, Any]:
    if not names:
        return {}
    frame = model.explain_conformed(X).to_frame(interval=False)
    return {name: frame[name].to_numpy() for name in names}


def _receipt(model: TableRegressor, X: pd.DataFrame, place: int, coverage: float) -> str:
    one = X.iloc[place : place + 1]
    receipts = model.explain_conformed(one, coverage=coverage, permutations=_PERMUTATIONS)
    return receipts.text(0)


def _check_stream(stream: TableStream, schema: Schema, ids: Sequence[str], by_name: bool) -> None:
    present = list(stream.columns)
    check_present([("id", name) for name in ids], present, source=stream.name)
    others = [name for name in present if name not in ids or name in schema.names]
    check_columns(others, schema, source=stream.name, by_name=by_name)


def _predict_batch(
    model: TableRegressor, X: pd.DataFrame, coverages: Sequence[float], unlike: Bools
) -> tuple[pa.Table, int]:
    """Predictions for a batch, and how many of its rows are unusual.

    ``unlike`` are rows that hold what no training row held, wherever their numbers lie.
    """
    dist, unusual = model.answer(model.transform(X))
    unusual = unusual | unlike
    return pa.table(prediction_columns(dist, unusual, coverages)), int(unusual.sum())


def prediction_columns(
    dist: Distribution, unusual: Bools, coverages: Sequence[float]
) -> dict[str, NDArray[Any]]:
    """What is said of each row: mean, std, interval ends, the parts of std, and the flag.

    **Shape**: (n,) each.
    """
    deviations = {name: np.asarray(values) for name, values in dist.deviations().items()}
    columns = {"mean": np.asarray(dist.mean), "std": deviations.pop("std")}
    for coverage in coverages:
        ends = np.asarray(dist.interval(coverage))
        names = interval_names(coverage, alone=len(coverages) == 1)
        columns |= dict(zip(names, ends.T, strict=True))
    return {**columns, **deviations, "unusual": unusual}


def _output_columns(
    coverages: Sequence[float], ids: Sequence[str], explained: Sequence[str]
) -> list[str]:
    bounds = [name for c in coverages for name in interval_names(c, alone=len(coverages) == 1)]
    if len(set(bounds)) < len(bounds):
        raise OptionError(
            f"coverages must differ, got {listed(f'{c:g}' for c in coverages)}. Name each once."
        )
    names = ["mean", "std", *bounds, *PARTS, "unusual", *explained]
    if taken := [name for name in ids if name in names]:
        raise OptionError(
            f"the id column must not be called like a prediction, got '{taken[0]}'. Rename it."
        )
    if len(set(ids)) < len(ids):
        raise OptionError(f"id columns must differ, got {listed(ids)}. Name each once.")
    return [*ids, *names]


def interval_names(coverage: float, *, alone: bool) -> tuple[str, str]:
    """Names of an interval's columns: plain if there is one interval, else with the percentage.

    >>> interval_names(0.95, alone=True), interval_names(0.999, alone=False)
    (('lower', 'upper'), ('lower_99.9', 'upper_99.9'))
    """
    if alone:
        return "lower", "upper"
    return f"lower_{100 * coverage:g}", f"upper_{100 * coverage:g}"
