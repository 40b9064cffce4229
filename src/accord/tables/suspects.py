"""Columns that could make a table's own held-out rows too easy: groups and time."""

import re
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from accord._files import quoted
from accord._types import Indices
from accord.tables.schema import Schema, as_numbers

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
_MOST_ROWS = 20_000
_FEWEST_GROUPS = 5
_ROWS_PER_GROUP = 2.0
# So many other columns that do not change within a value of this one make it a group.
_CONSTANT_COLUMNS = 2


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
    codes = {name: pd.factorize(X[name])[0] for name in schema.names}
    found = []
    for column in schema.columns:
        own = codes[column.name]
        if column.kind == "time":  # of day, which begins anew every day and orders no rows
            continue
        if column.kind == "date" or _is_time(column.name, X[column.name]):
            found.append(_time(column.name))
        elif _can_be_code(X[column.name]) and _is_group(column.name, own, codes):
            found.append(_group(column.name, int(own.max()) + 1))
    return tuple(found)


def _is_time(name: str, values: "pd.Series[float]") -> bool:
    """Numbers that never fall from row to row, or that a time's name says so."""
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
    count = int(own.max()) + 1 if len(own) else 0
    if count < 3 or len(own) < _ROWS_PER_GROUP * count:
        return False
    if _GROUP_NAME.search(name):
        return True
    if count < _FEWEST_GROUPS or len(own) > 50 * count:
        return False
    others = [other for key, other in codes.items() if key != name]
    constant = sum(_constant_within(own, other, count) for other in others[:100])
    return constant >= _CONSTANT_COLUMNS


def _constant_within(own: Indices, other: Indices, count: int) -> bool:
    """Whether a column that varies has one value for each value of ``own``."""
    if other.max() < 1 or other.max() + 1 >= count:
        return False
    pairs = len(np.unique(own.astype(np.int64) * (int(other.max()) + 2) + other))
    return pairs == len(np.unique(own))


def _group(name: str, count: int) -> Suspect:
    return Suspect(
        name,
        "group",
        f"{quoted(name)} looks like a group ({count:,} values, each in several rows). If new rows "
        "will come from new groups, pass --group: groups are then held out whole.",
    )


def _time(name: str) -> Suspect:
    return Suspect(
        name,
        "time",
        f"{quoted(name)} looks like a time. If new rows will be later than these, pass --time: "
        "blocks of time are then held out.",
    )
