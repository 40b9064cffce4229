"""Which columns of a training table are used, and what a person should know about each.

Columns that look like groups or like time could make the table's own held-out rows too easy.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from accord._files import OptionError
from accord._types import Floats, Indices
from accord._wording import count, listed, quoted
from accord.tables.cells import CellFormat
from accord.tables.detection import Inferred, counts_rows, detect, infer_column, other_order
from accord.tables.files import Table
from accord.tables.schema import Column, Schema, TableError, as_numbers, stand_ins

Role = Literal["group", "time"]

_GROUP_NAME = re.compile(
    r"(?i)(^|[ _.-])(id|person|patient|subject|customer|client|user|player|student|school|store|"
    r"shop|site|device|machine|unit|batch|lot|firm|company|household|family|country|group)"
    r"([ _.-]?(id|no|nr|number|code|name))?s?$"
)
_TIME_NAME = re.compile(
    r"(?i)(^|[ _.-])(t|time|date|day|week|month|quarter|year|yr|step|tick|timestamp|epoch|period)s?"
    r"([ _.-]?(no|nr|number|index|of sale))?$"
)
_MOST_NOTES = 20
# Beyond this correlation with the target a column is more likely its copy than its cause …
_COPY_CORRELATION = 0.9999
# … in the first so many rows, of which so many know the column.
_COPY_ROWS, _FEWEST_KNOWN = 10_000, 20
_MOST_ROWS = 20_000
_FEWEST_GROUPS = 5
_ROWS_PER_GROUP = 2.0
# So many other columns that do not change within a value of this one make it a group.
_CONSTANT_COLUMNS = 2


class Decision(NamedTuple):
    """Whether a column is predicted from, and why."""

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
    unused: dict[str, list[str]] = {}
    watched: dict[str, str] = {}
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
        notes += [*_column_notes(name, found, rows), *_date_notes(data.column(name), found)]
        if found.reason and (name in use or name in category):
            raise OptionError(
                f"column {quoted(name)} cannot be used: {found.reason}. Leave it out."
            )
        if found.column is None:
            ignored[name] = found.reason
            unused.setdefault(_why_unused(found), []).append(name)
            decisions.append(Decision(name, False, found.reason))
            continue
        columns.append(found.column)
        values[name] = found.values
        if found.column.constant:
            watched[name] = found.reason
            decisions.append(Decision(name, False, found.reason))
        else:
            decisions.append(Decision(name, True, _reason(found.column, found.values)))
    if len(columns) == len(watched):
        why_not = list({**ignored, **watched}.items())
        reasons = "; ".join(f"{quoted(name)}: {why}" for name, why in why_not[:5])
        raise TableError(
            f"no column is left to predict from ({reasons or 'there is only the target'}). Add "
            "columns that vary with the target."
        )
    aside = tuple(name for role, name in given.items() if role != "target")
    target_cells = detect(table.data.column(given["target"]), decimal=table.decimal)
    schema = Schema(given["target"], tuple(columns), ignored, aside, target_cells)
    read = by_remark({c.name: remark_on(c.cells, values[c.name]) for c in columns})
    left = [_not_used(names, why) for why, names in unused.items()]
    notes = [*read, *left, *_only_watched(list(watched)), *notes]
    return Features(pd.DataFrame(values), schema, _shortened(notes), decisions)


def _shortened(notes: list[str]) -> list[str]:
    if len(notes) <= _MOST_NOTES:
        return notes
    more = len(notes) - _MOST_NOTES
    are = "is" if more == 1 else "are"
    return [*notes[:_MOST_NOTES], f"{count(more, 'further note')} on columns {are} not shown."]


def _not_used(names: list[str], why: str) -> str:
    """That columns are not used, for one and the same reason."""
    if len(names) > 1:
        return f"Columns {listed(names)} are not used: {why}"
    return f"Column {quoted(names[0])} is not used: {why}"


def _only_watched(names: list[str]) -> list[str]:
    """What becomes of columns that are the same in every row."""
    if not names:
        return []
    one = len(names) == 1
    are, them = ("Column {} is", "it does") if one else ("Columns {} are", "they do")
    return [
        f"{are.format(listed(names))} the same in every row: nothing can be learnt of other "
        f"values, and rows with one will be less certain. If {them} not matter, list "
        f"{'it' if one else 'them'} in ignore (--ignore)."
    ]


def _why_unused(found: Inferred) -> str:
    """Why a column is not used, and what can be done about it."""
    if found.doubt:
        return f"{found.reason}. If it is a quantity, write its cells alike: {found.doubt}."
    switch = " What is listed in use (--use) is used all the same." if found.can_be_used else ""
    return f"{found.reason}.{switch}"


def _reason(column: Column, values: NDArray[Any]) -> str:
    """Why a column is used as it is, in a few words."""
    if column.kind == "category":
        return count(len(column.categories), "category", "categories")
    kinds = {"number": "numbers", "boolean": "true or false", "time": "times of day"}
    what = kinds.get(column.kind, "dates")
    remark = remark_on(column.cells, values)
    order = "they grow from row to row" if counts_rows(values) else ""
    what = "" if remark.startswith(what) else what  # "dates; dates written like …"
    return "; ".join(part for part in (what, remark, order) if part)


def _column_notes(name: str, found: Inferred, rows: NDArray[np.int64]) -> list[str]:
    """What a person should know about how a column is used."""
    shown, notes = quoted(name), []
    if found.column is None:
        return []
    if found.doubt:
        notes.append(
            f"Column {shown} is read as {_reason(found.column, found.values)}. If it is a "
            f"quantity, write its cells alike: {found.doubt}."
        )
    if found.column.kind == "number" and counts_rows(found.values):
        notes.append(
            f"Column {shown} counts up from row to row and is used as a time. If it is only a row "
            "number, list it in ignore (--ignore)."
        )
    if found.column.kind == "number":
        notes += stand_ins(name, found.values)
    if len(found.infinite):
        noun = "infinite value" if len(found.infinite) == 1 else "infinite values"
        notes.append(
            f"{len(found.infinite):,} {noun} in {shown} (first in row "
            f"{rows[found.infinite[0]]:,}): taken as missing."
        )
    return notes


def _date_notes(cells: pa.ChunkedArray, found: Inferred) -> list[str]:
    """That the order of day and month is a guess, where it is one."""
    column = found.column
    if column is None or column.kind != "date" or not (other := other_order(cells, column.cells)):
        return []
    first, second = ("day", "month") if "%m" in str(other.date_format)[:3] else ("month", "day")
    return [
        f"Dates in {quoted(column.name)} are read with the {first} before the {second}; no value "
        "tells the order. If it is the other one, write the dates as year-month-day."
    ]


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


def copies_of(X: pd.DataFrame, y: Floats, target: str) -> list[str]:
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
        f"predict, list {it} in ignore (--ignore)."
    ]


def _correlations(columns: Floats, y: Floats) -> Floats:
    """Correlation of each column with ``y`` over the rows where it is known; 0 for too few."""
    known = ~np.isnan(columns)
    count = np.maximum(known.sum(axis=0), 1)
    x = np.where(known, columns, 0.0)
    x = np.where(known, x - x.sum(axis=0) / count, 0.0)
    centred = np.where(known, y[:, None], 0.0)
    centred = np.where(known, centred - centred.sum(axis=0) / count, 0.0)
    x, centred = (part / np.maximum(np.abs(part).max(axis=0), 1e-300) for part in (x, centred))
    scale = np.sqrt((x**2).sum(axis=0) * (centred**2).sum(axis=0))
    product = (x * centred).sum(axis=0)
    enough = (known.sum(axis=0) >= _FEWEST_KNOWN) & (scale > 0)
    return np.where(enough, product / np.where(enough, scale, 1.0), 0.0)


# --- groups and time ---------------------------------------------------------------------------


class Suspect(NamedTuple):
    """A column that held-out parts should respect, and the sentence that says why."""

    column: str
    role: Role
    sentence: str


def suspects(X: pd.DataFrame, schema: Schema) -> tuple[Suspect, ...]:
    """Columns that look like groups or like time.

    Rows of one group, or of neighbouring times, are alike: held out at random, they are predicted
    from their own kind and flatter the model. Named to ``--group`` or ``--time``, they are held
    out together.

    >>> from accord.tables.cells import CellFormat
    >>> from accord.tables.schema import Column
    >>> X = pd.DataFrame({"patient": [1.0, 1.0, 2.0, 2.0, 3.0, 3.0] * 5, "x": np.arange(30.0) % 7})
    >>> columns = tuple(Column(name, CellFormat("number")) for name in X)
    >>> [(s.column, s.role) for s in suspects(X, Schema("y", columns, {}))]
    [('patient', 'group')]
    """
    X = X.iloc[:_MOST_ROWS]
    codes = {name: pd.factorize(X[name])[0] for name in schema.varying}
    found = []
    for column in schema.columns:
        # a time of day begins anew every day and orders no rows
        if column.constant or column.kind == "time":
            continue
        own = codes[column.name]
        if column.kind == "date" or _is_time(column.name, X[column.name]):
            found.append(_time(column.name))
        elif _can_be_code(X[column.name]) and _is_group(column.name, own, codes):
            found.append(_group(column.name, int(own.max()) + 1))
    return tuple(found)


def _is_time(name: str, values: "pd.Series[float]") -> bool:
    """Numbers that never fall from row to row, or whole numbers whose name is that of a time."""
    if values.dtype.kind != "f":
        return False
    numbers = as_numbers(values.to_numpy())
    known = numbers[~np.isnan(numbers)]
    distinct = len(np.unique(known))
    if distinct < _FEWEST_GROUPS:
        return False
    rises = bool(np.all(np.diff(known) >= 0))
    return rises or (_TIME_NAME.search(name) is not None and bool(np.all(known == np.round(known))))


def _can_be_code(values: "pd.Series[float]") -> bool:
    """Text or whole numbers."""
    if values.dtype.kind != "f":
        return values.dtype.kind == "O"
    known = values.dropna()
    return bool((known == known.round()).all())


def _is_group(name: str, own: Indices, codes: dict[str, Indices]) -> bool:
    n_groups = int(own.max()) + 1 if len(own) else 0
    if n_groups < 3 or len(own) < _ROWS_PER_GROUP * n_groups:
        return False
    if _GROUP_NAME.search(name):
        return True
    if n_groups < _FEWEST_GROUPS or len(own) > 50 * n_groups:
        return False
    others = [other for key, other in codes.items() if key != name]
    constant = sum(_constant_within(own, other, n_groups) for other in others[:100])
    return constant >= _CONSTANT_COLUMNS


def _constant_within(own: Indices, other: Indices, n_groups: int) -> bool:
    """Whether a column that varies has one value for each value of ``own``."""
    if other.max() < 1 or other.max() + 1 >= n_groups:
        return False
    pairs = len(np.unique(own.astype(np.int64) * (int(other.max()) + 2) + other))
    return pairs == len(np.unique(own))


def _group(name: str, n_groups: int) -> Suspect:
    return Suspect(
        name,
        "group",
        f"{quoted(name)} looks like a group ({n_groups:,} values, each in several rows). If new "
        "rows will come from new groups, name it as group (--group): groups are then held out "
        "whole.",
    )


def _time(name: str) -> Suspect:
    return Suspect(
        name,
        "time",
        f"{quoted(name)} looks like a time. If new rows will be later than these, name it as time "
        "(--time): blocks of time are then held out.",
    )
