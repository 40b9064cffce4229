"""From a table to what a model is trained on: features, target, and the rows' own tolerances."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from accord._files import OptionError
from accord.tables.cells import UnreadableCells, convert, detect
from accord.tables.problems import TableError, absent_column, listed, quoted
from accord.tables.reading import Table
from accord.tables.schema import Column, Schema, infer_column

Floats = npt.NDArray[np.float64]

MINIMUM_ROWS = 20
# Beyond this correlation with the target a column is more likely its copy than its cause.
_COPY_CORRELATION = 0.9999
_COPY_ROWS = 10_000


@dataclass(frozen=True)
class TrainingData:
    """Rows with a target (or bounds on it), ready for preprocessing.

    ``notes`` says in plain sentences what was left out or changed. ``rows`` are the rows'
    numbers in the file, from 1. ``exact`` marks rows whose target is a measured value;
    for the others, known only by ``lower`` and ``upper``, ``y`` holds a stand-in inside the bounds.

    **Shape**: ``X`` (N, columns), all else (N,).
    """

    X: pd.DataFrame
    y: Floats
    schema: Schema
    notes: tuple[str, ...]
    rows: npt.NDArray[np.int64]
    exact: npt.NDArray[np.bool_]
    tolerance: Floats | None = None
    lower: Floats | None = None
    upper: Floats | None = None


def prepare_training(
    table: Table,
    *,
    target: str,
    tolerance_column: str | None = None,
    lower_column: str | None = None,
    upper_column: str | None = None,
    ignore: Sequence[str] = (),
) -> TrainingData:
    """Find column types, set unusable columns and rows aside, and say so."""
    names = table.data.column_names
    roles = {
        "target": target,
        "tolerance": tolerance_column,
        "lower bound": lower_column,
        "upper bound": upper_column,
    }
    given = {role: name for role, name in roles.items() if name is not None}
    for role, name in [*given.items(), *(("ignored", name) for name in ignore)]:
        if name not in names:
            raise absent_column(name, names, role=role, source=table.name)
    if len(set(given.values())) < len(given):
        raise OptionError(
            f"each role needs a column of its own, got {listed(given.values())} for "
            f"{listed(given)}. Name different columns."
        )
    numbers = {role: number_column(table, role, name) for role, name in given.items()}
    return _assemble(table, given, numbers, ignore)


def _assemble(
    table: Table, given: dict[str, str], numbers: dict[str, Floats], ignore: Sequence[str]
) -> TrainingData:
    y, exact, lower, upper = _targets(table, given, numbers)
    tolerance = numbers.get("tolerance")
    if tolerance is not None and not np.all(tolerance[~np.isnan(tolerance)] >= 0):
        raise TableError(
            f"tolerances must be non-negative, but {quoted(given['tolerance'])} holds "
            f"{np.nanmin(tolerance):g}. Correct the column."
        )
    usable = exact | np.isfinite(y)
    if tolerance is not None:
        usable &= ~np.isnan(tolerance)
    kept = np.flatnonzero(usable)
    _check_target(table, given["target"], y[kept], exact[kept])
    data = table.data if len(kept) == table.data.num_rows else table.data.take(pa.array(kept))
    X, schema, notes = _features(data, table.delimiter, given, ignore)
    if left_out := len(usable) - len(kept):
        notes.insert(0, f"{_rows(left_out)} without a target value left out.")
    notes += _copies(X, y[kept], given["target"])
    return TrainingData(
        X=X,
        y=y[kept],
        schema=schema,
        notes=tuple(notes),
        rows=kept + 1,
        exact=exact[kept],
        tolerance=None if tolerance is None else tolerance[kept],
        lower=None if lower is None else lower[kept],
        upper=None if upper is None else upper[kept],
    )


def _targets(
    table: Table, given: dict[str, str], numbers: dict[str, Floats]
) -> tuple[Floats, npt.NDArray[np.bool_], Floats | None, Floats | None]:
    """Target, which rows have it exactly, and the bounds of the others.

    A row with a bound is censored: what stands in its target cell is not used. One bound alone
    leaves the other side open.
    """
    y = numbers["target"]
    if "lower bound" not in given and "upper bound" not in given:
        return y, ~np.isnan(y), None, None
    nothing = np.full(len(y), np.nan)
    lower, upper = numbers.get("lower bound", nothing), numbers.get("upper bound", nothing)
    censored = ~np.isnan(lower) | ~np.isnan(upper)
    crossed = np.flatnonzero(lower > upper)
    if len(crossed):
        raise TableError(
            f"lower bounds must not exceed upper bounds, but row {crossed[0] + 1} of {table.name} "
            f"has {lower[crossed[0]]:g} and {upper[crossed[0]]:g}. Correct the columns."
        )
    # A pair of equal bounds is a measured value.
    measured = censored & (lower == upper)
    y = np.where(measured, lower, y)
    censored &= ~measured
    low = np.where(censored, np.where(np.isnan(lower), -np.inf, lower), np.nan)
    high = np.where(censored, np.where(np.isnan(upper), np.inf, upper), np.nan)
    with np.errstate(invalid="ignore"):
        middle = np.where(np.isinf(low), high, np.where(np.isinf(high), low, (low + high) / 2))
    return np.where(censored, middle, y), ~censored & ~np.isnan(y), low, high


def number_column(table: Table, role: str, name: str) -> Floats:
    """A column that must hold numbers for its role; missing ones are NaN."""
    column = table.data.column(name)
    if column.null_count == len(column):
        raise TableError(
            f"{role} column {quoted(name)} is empty in every row. Name another column."
        )
    reading = detect(column, delimiter=table.delimiter)
    if reading is None or reading.kind not in ("number", "boolean", "time"):
        sample = quoted(column.drop_null()[0].as_py(), limit=40)
        what = "dates" if reading and reading.kind == "date" else "text"
        raise TableError(
            f"{role} column {quoted(name)} must hold numbers, got {what} such as {sample}. "
            "Name a numeric column, or remove units and remarks from its cells."
        )
    try:
        return convert(column, reading)
    except UnreadableCells as error:  # cannot happen for a reading that was just detected
        raise TableError(f"{role} column {quoted(name)} {error.sentence()}.") from error


def _check_target(table: Table, name: str, y: Floats, exact: npt.NDArray[np.bool_]) -> None:
    if len(y) < MINIMUM_ROWS:
        raise TableError(
            f"training needs at least {MINIMUM_ROWS} rows with a target, got {len(y)} in "
            f"{table.name}. Add rows."
        )
    if exact.sum() < MINIMUM_ROWS:
        raise TableError(
            f"training needs at least {MINIMUM_ROWS} rows with a measured target, got "
            f"{int(exact.sum())} beside {int((~exact).sum())} censored ones. Add measured rows."
        )
    if np.ptp(y[exact]) == 0:
        raise TableError(
            f"target column {quoted(name)} is constant ({y[exact][0]:g} in every row): there is "
            "nothing to learn. Name another column."
        )


def _features(
    data: pa.Table, delimiter: str, given: dict[str, str], ignore: Sequence[str]
) -> tuple[pd.DataFrame, Schema, list[str]]:
    values: dict[str, npt.NDArray[Any]] = {}
    columns: list[Column] = []
    ignored = dict.fromkeys(ignore, "left out on request")
    aside = [name for role, name in given.items() if role != "target"]
    for name in data.column_names:
        if name in ignored or name in given.values():
            continue
        column, why, converted = infer_column(name, data.column(name), delimiter=delimiter)
        if column is None:
            ignored[name] = why
        else:
            columns.append(column)
            values[name] = converted
    if not columns:
        raise TableError(
            "no column is left to predict from: "
            + "; ".join(f"{quoted(name)}: {why}" for name, why in list(ignored.items())[:5])
            + ". Add columns that vary with the target."
        )
    schema = Schema(given["target"], tuple(columns), ignored, tuple(aside))
    return pd.DataFrame(values), schema, _notes(columns, ignored)


def _notes(columns: list[Column], ignored: dict[str, str]) -> list[str]:
    notes = [
        f"Column {quoted(name)} is not used: {why}." for name, why in list(ignored.items())[:10]
    ]
    if len(ignored) > 10:
        notes.append(f"{len(ignored) - 10} further columns are not used.")
    for column in columns:
        if column.reading.missing_tokens:
            tokens = listed(column.reading.missing_tokens)
            notes.append(f"In {quoted(column.name)}, {tokens} is not a number: taken as missing.")
        if column.reading.date_format is not None:
            how = column.reading.date_format.replace("%", "")
            notes.append(f"Dates in {quoted(column.name)} are read as {how}.")
    return notes


def _copies(X: pd.DataFrame, y: Floats, target: str) -> list[str]:
    """Columns that follow the target so closely that they are unlikely to be known beforehand."""
    some = slice(None, _COPY_ROWS)
    numbers = X.select_dtypes("float64").iloc[some]
    correlation = _correlations(numbers.to_numpy(), y[some])
    copies = [str(name) for name in numbers.columns[np.abs(correlation) > _COPY_CORRELATION]]
    if not copies:
        return []
    return [
        f"{listed(copies)} follows {quoted(target)} almost exactly. If it is not known when you "
        "predict, leave it out with --ignore."
    ]


def _correlations(columns: Floats, y: Floats) -> Floats:
    """Correlation of each column with ``y`` over the rows where it is known; 0 for too few."""
    known = ~np.isnan(columns)
    count = np.maximum(known.sum(axis=0), 1)
    x = np.where(known, columns, 0.0)
    x = np.where(known, x - x.sum(axis=0) / count, 0.0)
    centred = np.where(known, y[:, None], 0.0)
    centred = np.where(known, centred - centred.sum(axis=0) / count, 0.0)
    scale = np.sqrt((x**2).sum(axis=0) * (centred**2).sum(axis=0))
    product = (x * centred).sum(axis=0)
    enough = (known.sum(axis=0) >= MINIMUM_ROWS) & (scale > 0)
    return np.where(enough, product / np.where(enough, scale, 1.0), 0.0)


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
