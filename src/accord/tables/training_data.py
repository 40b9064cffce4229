"""From a table to what a model is trained on: features, target, and the rows' own tolerances."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from accord._files import OptionError, quoted
from accord._types import Bools, Floats
from accord.tables.cells import CellFormat, cleaned, convert, is_text
from accord.tables.detection import detect
from accord.tables.files import Table
from accord.tables.problems import TableError, absent_column, counted, listed
from accord.tables.schema import Column, Inferred, Schema, counts_rows, infer_column

MINIMUM_ROWS = 20
# Beyond this correlation with the target a column is more likely its copy than its cause.
_COPY_CORRELATION = 0.9999
_COPY_ROWS = 10_000
# Squares of targets outside these sizes leave the range of floats.
_LARGEST_TARGET = 1e150
_SMALLEST_SPREAD = 1e-150
# A target this many times the middle half's width away from the middle is likely a typo.
_FAR_TARGET = 50.0


class Decision(NamedTuple):
    """What is done with a column, and why."""

    column: str
    used: bool
    reason: str


@dataclass(frozen=True)
class TrainingData:
    """Rows with a target (or bounds on it), ready for preprocessing.

    ``notes`` says in plain sentences what was left out or changed, ``decisions`` what is done with
    each column. ``rows`` are the rows' numbers in the file, from 1, and ``places`` their indices in
    the table. ``exact`` marks rows whose
    target is a measured value; for the others, known only by ``lower`` and ``upper``, ``y`` holds a
    stand-in inside the bounds.

    **Shape**: ``X`` (N, columns), all else (N,).
    """

    X: pd.DataFrame
    y: Floats
    schema: Schema
    notes: tuple[str, ...]
    rows: NDArray[np.int64]
    places: NDArray[np.intp]
    exact: Bools
    tolerance: Floats | None = None
    lower: Floats | None = None
    upper: Floats | None = None
    decisions: tuple[Decision, ...] = ()


def prepare_training(
    table: Table,
    *,
    target: str,
    tolerance_column: str | None = None,
    lower_column: str | None = None,
    upper_column: str | None = None,
    ignore: Sequence[str] = (),
    use: Sequence[str] = (),
    category: Sequence[str] = (),
) -> TrainingData:
    """Find column types, set unusable columns and rows aside, and say so.

    ``ignore``, ``use`` and ``category`` overrule what is decided about a column.
    """
    roles = {
        "target": target,
        "tolerance": tolerance_column,
        "lower bound": lower_column,
        "upper bound": upper_column,
    }
    given = {role: name for role, name in roles.items() if name is not None}
    _check_roles(table, given, ignore, [*use, *category])
    numbers = {role: number_column(table, role, name) for role, name in given.items()}
    return _assemble(table, given, numbers, ignore, use, category)


def _check_roles(
    table: Table, given: dict[str, str], ignore: Sequence[str], use: Sequence[str]
) -> None:
    """Every column that is named must be there and have one role."""
    names = table.data.column_names
    asked = [("ignored", name) for name in ignore] + [("used", name) for name in use]
    for role, name in [*given.items(), *asked]:
        if name not in names:
            raise absent_column(name, names, role=role, source=table.name)
    if both := [name for name in use if name in {*ignore, *given.values()}]:
        raise OptionError(
            f"a column has one role, got {listed(both)} to use and for something else. "
            "Name it once."
        )
    if len(set(given.values())) < len(given):
        raise OptionError(
            f"each role needs a column of its own, got {listed(given.values())} for "
            f"{listed(given)}. Name different columns."
        )


def _assemble(
    table: Table,
    given: dict[str, str],
    numbers: dict[str, Floats],
    ignore: Sequence[str],
    use: Sequence[str],
    category: Sequence[str],
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
    rows = table.numbers_of(kept)
    _check_target(table, given["target"], y[kept], exact[kept], rows)
    data = table.data if len(kept) == table.data.num_rows else table.data.take(pa.array(kept))
    found = _features(table, data, rows, given, ignore, use, category)
    notes = [*table.notes, *_remarks(table, given.values())]
    notes += [*_rows_left_out(table, given["target"], usable, y), *found.notes]
    notes += _far_targets(y[kept], exact[kept], rows, given["target"])
    notes += _copies(found.X, y[kept], given["target"])
    return TrainingData(
        X=found.X,
        y=y[kept],
        schema=found.schema,
        notes=tuple(notes),
        rows=rows,
        places=kept,
        exact=exact[kept],
        tolerance=None if tolerance is None else tolerance[kept],
        lower=None if lower is None else lower[kept],
        upper=None if upper is None else upper[kept],
        decisions=tuple(found.decisions),
    )


def _rows_left_out(table: Table, target: str, usable: Bools, y: Floats) -> list[str]:
    notes = []
    if left_out := int((~usable).sum()):
        notes.append(f"{counted(left_out, 'row')} without a target value left out.")
    raw = _numbers(table, target)
    infinite = table.numbers_of(np.flatnonzero(np.isinf(raw) & ~usable))
    if len(infinite):
        values = "infinite value" if len(infinite) == 1 else "infinite values"
        notes.append(
            f"{len(infinite):,} {values} in {quoted(target)} (first in row {infinite[0]:,}): "
            "left out as missing."
        )
    return notes


def _far_targets(y: Floats, exact: Bools, rows: NDArray[np.int64], target: str) -> list[str]:
    """Targets that look like typing errors, by row and value."""
    low, middle, high = np.quantile(y[exact], [0.25, 0.5, 0.75])
    far = np.flatnonzero(exact & (np.abs(y - middle) > _FAR_TARGET * (high - low)))
    if high == low or not 0 < len(far) <= max(3, 0.005 * len(y)):
        return []
    places = ", ".join(f"{y[place]:,.10g} in row {rows[place]:,}" for place in far[:3])
    return [
        f"{quoted(target)} is {places}, far from all others (half of them lie between {low:,.6g} "
        f"and {high:,.6g}). Correct it if that is a mistake."
    ]


def _targets(
    table: Table, given: dict[str, str], numbers: dict[str, Floats]
) -> tuple[Floats, Bools, Floats | None, Floats | None]:
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
            f"lower bounds must not exceed upper bounds, but row {table.numbers_of(crossed)[0]} of "
            f"{table.name} has {lower[crossed[0]]:g} and {upper[crossed[0]]:g}. Correct the "
            "columns."
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
    """A column that must hold numbers for its role; missing and infinite ones are NaN."""
    column = table.data.column(name)
    if is_text(column.type):
        column = cleaned(column)
    if column.null_count == len(column):
        raise TableError(
            f"{role} column {quoted(name)} is empty in every row. Name another column."
        )
    cells = detect(column, decimal=table.decimal)
    if cells is None or cells.kind not in ("number", "boolean", "time"):
        sample = quoted(column.drop_null()[0].as_py(), limit=40)
        what = "dates" if cells and cells.kind == "date" else "text"
        raise TableError(
            f"{role} column {quoted(name)} must hold numbers, got {what} such as {sample}. "
            "Name a numeric column, or remove units and remarks from its cells."
        )
    values = convert(column, cells)
    return np.where(np.isfinite(values), values, np.nan)


def _cells(table: Table, name: str) -> CellFormat:
    cells = detect(table.data.column(name), decimal=table.decimal)
    assert cells is not None, "number_column has read it before"
    return cells


def _remarks(table: Table, names: Iterable[str]) -> list[str]:
    """What a person should know about how the target, bounds and tolerances are read."""
    known = {name: _cells(table, name).remark() for name in names}
    return [f"In {quoted(name)}: {remark}." for name, remark in known.items() if remark]


def _numbers(table: Table, name: str) -> Floats:
    """A number column with its infinite values."""
    cells = _cells(table, name)
    return np.asarray(convert(table.data.column(name), cells), dtype=np.float64)


def _check_target(
    table: Table, name: str, y: Floats, exact: Bools, rows: NDArray[np.int64]
) -> None:
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
    largest = int(np.argmax(np.abs(y)))
    if abs(y[largest]) > _LARGEST_TARGET:
        raise TableError(
            f"target column {quoted(name)} must lie within ±{_LARGEST_TARGET:g}, got "
            f"{y[largest]:g} in row {rows[largest]:,}. Correct it, or change the unit."
        )
    if np.ptp(y[exact]) == 0:
        raise TableError(
            f"target column {quoted(name)} is constant ({y[exact][0]:g} in every row): there is "
            "nothing to learn. Name another column."
        )
    if np.ptp(y[exact]) < _SMALLEST_SPREAD:
        raise TableError(
            f"target column {quoted(name)} must vary by more than {_SMALLEST_SPREAD:g}, got values "
            f"like {y[largest]:g} in row {rows[largest]:,}. Change the unit."
        )


class _Features(NamedTuple):
    X: pd.DataFrame
    schema: Schema
    notes: list[str]
    decisions: list[Decision]


def _features(
    table: Table,
    data: pa.Table,
    rows: NDArray[np.int64],
    given: dict[str, str],
    ignore: Sequence[str],
    use: Sequence[str],
    category: Sequence[str],
) -> _Features:
    values: dict[str, NDArray[Any]] = {}
    columns: list[Column] = []
    decisions: list[Decision] = []
    notes: list[str] = []
    ignored = dict.fromkeys(ignore, "left out on request")
    for name in data.column_names:
        if name in given.values():
            continue
        if name in ignored:
            decisions.append(Decision(name, False, ignored[name]))
            continue
        found = infer_column(
            name,
            data.column(name),
            decimal=table.decimal,
            insist=name in use,
            category=name in category,
        )
        notes += _column_notes(name, found, rows)
        if found.column is None:
            if name in use or name in category:
                raise OptionError(
                    f"column {quoted(name)} cannot be used: {found.reason}. Leave it out."
                )
            ignored[name] = found.reason
            decisions.append(Decision(name, False, found.reason))
        else:
            columns.append(found.column)
            values[name] = found.values
            decisions.append(Decision(name, True, _reason(found.column, found.values)))
    if not columns:
        reasons = "; ".join(f"{quoted(name)}: {why}" for name, why in list(ignored.items())[:5])
        raise TableError(
            f"no column is left to predict from ({reasons or 'there is only the target'}). Add "
            "columns that vary with the target."
        )
    aside = tuple(name for role, name in given.items() if role != "target")
    schema = Schema(given["target"], tuple(columns), ignored, aside)
    return _Features(pd.DataFrame(values), schema, _shortened(notes), decisions)


def _shortened(notes: list[str], *, limit: int = 20) -> list[str]:
    if len(notes) <= limit:
        return notes
    return [*notes[:limit], f"{len(notes) - limit} further notes on columns are not shown."]


def _reason(column: Column, values: NDArray[Any]) -> str:
    """Why a column is used as it is, in a few words."""
    if column.kind == "category":
        return f"{counted(len(column.categories), 'category')}"
    kinds = {"number": "numbers", "boolean": "true or false", "time": "times of day"}
    what = kinds.get(column.kind, "dates")
    remark = column.cells.remark()
    order = "they grow from row to row" if counts_rows(values) else ""
    return "; ".join(part for part in (what, remark, order) if part)


def _column_notes(name: str, found: Inferred, rows: NDArray[np.int64]) -> list[str]:
    """What a person should know about how a column is used, or why it is not."""
    shown, notes = quoted(name), []
    if found.column is None:
        switch = " Pass --use to use it all the same." if found.can_be_used else ""
        return [f"Column {shown} is not used: {found.reason}.{switch}"]
    if remark := found.column.cells.remark():
        notes.append(f"In {shown}: {remark}.")
    if found.column.kind == "number" and counts_rows(found.values):
        notes.append(
            f"Column {shown} counts up from row to row and is used as a time. If it is only a row "
            "number, pass --ignore."
        )
    if len(found.infinite):
        noun = "infinite value" if len(found.infinite) == 1 else "infinite values"
        notes.append(
            f"{len(found.infinite):,} {noun} in {shown} (first in row "
            f"{rows[found.infinite[0]]:,}): taken as missing."
        )
    return notes


def _copies(X: pd.DataFrame, y: Floats, target: str) -> list[str]:
    """Columns that follow the target so closely that they are unlikely to be known beforehand."""
    some = slice(None, _COPY_ROWS)
    numbers = X.select_dtypes("float64").iloc[some]
    correlation = _correlations(numbers.to_numpy(), y[some])
    copies = [str(name) for name in numbers.columns[np.abs(correlation) > _COPY_CORRELATION]]
    if not copies:
        return []
    follow, it, is_it = (
        ("follows", "it", "it is") if len(copies) == 1 else ("follow", "them", "they are")
    )
    return [
        f"{listed(copies)} {follow} {quoted(target)} almost exactly. If {is_it} not known when you "
        f"predict, leave {it} out with --ignore."
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
