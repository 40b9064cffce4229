"""Columns with a role of their own: target, weight, tolerance, bounds, time; all hold numbers."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from accord._types import Floats
from accord._wording import quoted
from accord.tables.cells import LIMIT, CellFormat, UnreadableCells, cleaned, convert, is_text
from accord.tables.detection import detect
from accord.tables.features import remark_on
from accord.tables.files import Table
from accord.tables.schema import TableError, as_numbers

# So many cells are looked at to find one that is no number.
_MOST_CELLS = 20_000


def number_column(
    table: Table, role: str, name: str, *, written: CellFormat | None = None, infinite: bool = False
) -> Floats:
    """A column that must hold numbers for its role; missing and infinite ones are NaN.

    Cells that can be read as they were ``written`` before are; others are found out anew.
    Where ``infinite`` values mean something, as ends of intervals, they stay.
    """
    if written is not None:
        try:
            values = convert(table.data.column(name), written)
            return values if infinite else np.where(np.isfinite(values), values, np.nan)
        except UnreadableCells:
            pass
    column = table.data.column(name)
    if is_text(column.type):
        column = cleaned(column)
    if column.null_count == len(column):
        raise TableError(
            f"{role} column {quoted(name)} is empty in every row. Name another column."
        )
    cells = detect(column, decimal=table.decimal)
    limits = cells is not None and (cells.limits or any(map(_is_limit, cells.missing_tokens)))
    if cells is None or limits or cells.kind not in ("number", "boolean", "time"):
        sample = _least_like_a_number(column.drop_null())
        what = "lists and the like" if cells is None else "text"
        what = "dates" if cells and cells.kind == "date" else what
        raise TableError(
            f"{role} column {quoted(name)} must hold numbers, got {what} such as "
            f"{quoted(sample, limit=40)}. {_remedy(sample)}"
        )
    values = convert(column, cells)
    return values if infinite else np.where(np.isfinite(values), values, np.nan)


def time_column(table: Table, name: str, *, sample: Table | None = None) -> Floats:
    """A column that orders the rows: numbers, or dates in seconds since 1970; NaN for gaps.

    The cells of a batch are read as those of the ``sample``.
    """
    column, known = table.data.column(name), sample or table
    cells = detect(known.data.column(name), decimal=known.decimal)
    if cells is None or cells.kind == "category":
        raise TableError(
            f"time column {quoted(name)} must hold numbers or dates, got text such as "
            f"{quoted(column[0].as_py(), limit=40)}. Name another column."
        )
    return as_numbers(convert(column, cells))


def _least_like_a_number(column: pa.ChunkedArray) -> Any:
    """A cell that by itself is no number; the first, where it takes all of them together."""
    cells = column.slice(0, _MOST_CELLS).to_pylist()
    for cell in dict.fromkeys(cells) if is_text(column.type) else ():
        alone = detect(pa.chunked_array([[cell]]))
        if alone is None or alone.kind != "number":
            return cell
    return cells[0]


def _remedy(cell: Any) -> str:
    """What to do about a cell that is no number."""
    if _is_limit(cell):
        side = "upper" if cell[0] in "<≤" else "lower"
        return (
            f"Write such limits into a column of their own, and name it as {side} bound "
            f"(--{side}-column)."
        )
    return "Name a numeric column, or remove units and remarks from its cells."


def _is_limit(cell: Any) -> bool:
    return isinstance(cell, str) and re.match(LIMIT, cell) is not None


def cells_of(table: Table, name: str) -> CellFormat:
    cells = detect(table.data.column(name), decimal=table.decimal)
    assert cells is not None, "number_column has read it before"
    return cells


def remark_on_role(table: Table, name: str) -> str:
    """How a column with a role is read; times of day are quantities there."""
    cells = cells_of(table, name)
    if cells.kind == "time":
        cells = replace(cells, number_format="clock")
    return remark_on(cells, with_infinite(table, name))


def with_infinite(table: Table, name: str) -> Floats:
    """A number column with its infinite values."""
    cells = cells_of(table, name)
    return np.asarray(convert(table.data.column(name), cells), dtype=np.float64)
