"""Which columns of a training table are used, and what a person should know about each."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from accord._files import OptionError, quoted
from accord._wording import count
from accord.tables.cells import CellFormat
from accord.tables.detection import detect
from accord.tables.files import Table
from accord.tables.problems import TableError, listed
from accord.tables.schema import Column, Inferred, Schema, counts_rows, infer_column


class Decision(NamedTuple):
    """What is done with a column, and why."""

    column: str
    used: bool
    reason: str


class Features(NamedTuple):
    X: pd.DataFrame
    schema: Schema
    notes: list[str]
    decisions: list[Decision]


def choose_features(
    table: Table,
    data: pa.Table,
    rows: NDArray[np.int64],
    given: dict[str, str],
    ignore: Sequence[str],
    use: Sequence[str],
    category: Sequence[str],
) -> Features:
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
    target_cells = detect(table.data.column(given["target"]), decimal=table.decimal)
    schema = Schema(given["target"], tuple(columns), ignored, aside, target_cells)
    notes = [*by_remark({c.name: remark_on(c.cells, values[c.name]) for c in columns}), *notes]
    return Features(pd.DataFrame(values), schema, _shortened(notes), decisions)


def _shortened(notes: list[str], *, limit: int = 20) -> list[str]:
    if len(notes) <= limit:
        return notes
    return [*notes[:limit], f"{len(notes) - limit} further notes on columns are not shown."]


def _reason(column: Column, values: NDArray[Any]) -> str:
    """Why a column is used as it is, in a few words."""
    if column.kind == "category":
        return count(len(column.categories), "category", "categories")
    kinds = {"number": "numbers", "boolean": "true or false", "time": "times of day"}
    what = kinds.get(column.kind, "dates")
    remark = remark_on(column.cells, values)
    order = "they grow from row to row" if counts_rows(values) else ""
    return "; ".join(part for part in (what, remark, order) if part)


def _column_notes(name: str, found: Inferred, rows: NDArray[np.int64]) -> list[str]:
    """What a person should know about how a column is used, or why it is not."""
    shown, notes = quoted(name), []
    if found.column is None:
        switch = " Pass --use to use it all the same." if found.can_be_used else ""
        return [f"Column {shown} is not used: {found.reason}.{switch}"]
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


def remark_on(cells: CellFormat, values: NDArray[Any]) -> str:
    """How cells are read, where that makes a difference to these values."""
    small = values.dtype.kind == "f" and not np.any(np.abs(values) >= 1_000)
    if cells.number_format == "comma" and small and not np.any(values % 1 > 0):
        cells = replace(cells, number_format="plain")
    return cells.remark()


def by_remark(remarks: dict[str, str]) -> list[str]:
    """One sentence for all columns that are read in the same way."""
    found: dict[str, list[str]] = {}
    for name, remark in remarks.items():
        if remark:
            found.setdefault(remark, []).append(name)
    return [f"In {listed(names)}: {remark}." for remark, names in found.items()]
