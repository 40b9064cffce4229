"""Which columns a model uses and what they mean; and what can be wrong with a table, in words."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from accord._files import OptionError
from accord._types import Bools, Floats
from accord._wording import count, listed, near_matches, printable, quoted
from accord.tables.cells import (
    CellFormat,
    CellKind,
    is_text,
)

# A value this many ranges of the training values away from them is no measurement.
_ABSURD_RANGES = 100.0
# Numbers that differ by a smaller share are the same, written with other digits.
_SAME = 1e-9


@dataclass(frozen=True)
class Column:
    """A column that the model knows: its name, how its cells are written, its training values.

    ``categories`` are those of training; ``low`` and ``high`` the smallest and the largest number
    (of dates: seconds since 1970). One that is ``constant``, the same in every training row, is
    not predicted from, but watched.
    """

    name: str
    cells: CellFormat
    categories: tuple[str, ...] = ()
    low: float = -np.inf
    high: float = np.inf
    constant: bool = False

    @property
    def kind(self) -> CellKind:
        return self.cells.kind

    @property
    def watched(self) -> bool:
        """Whether training had one value, so that nothing is known of what another one does.

        Dates and times are never watched: they go on by themselves.
        """
        if self.kind == "category":
            return self.constant
        return self.kind in ("number", "boolean") and self.low == self.high

    def others(self, values: NDArray[Any]) -> Bools:
        """Which values of a watched column are not the one of training, nor missing; (n,).

        >>> Column("machine", CellFormat("number"), (), 7.0, 7.0).others(np.array([7.0, 9, np.nan]))
        array([False,  True, False])
        """
        if self.kind == "category":
            return np.asarray(~pd.isna(values) & ~pd.Series(values).isin(self.categories))
        low, high = self.known
        return np.asarray((values < low) | (values > high))

    def described(self) -> str:
        """Kind, how it is read, and the categories, in a line."""
        if self.constant:
            return f"{self.kind}, only watched ({self.only} in every row)"
        remark = self.cells.remark()
        names = listed(self.categories) if self.categories else ""
        more = "; ".join(part for part in (remark, names) if part)
        return f"{self.kind} ({more})" if more else self.kind

    @property
    def only(self) -> str:
        """The one value of training, as people write it."""
        if self.kind == "category":
            return quoted(self.categories[0], limit=30)
        return str(bool(self.low)).lower() if self.kind == "boolean" else f"{self.low:.10g}"

    @property
    def known(self) -> tuple[float, float]:
        """Beyond these a value is unlike those of training by itself."""
        room = _SAME * abs(self.low)
        return (self.low - room, self.high + room) if self.watched else self.limits

    @property
    def limits(self) -> tuple[float, float]:
        """Beyond these a value is absurd, and counts as lying just there.

        Of a watched column, all others than the one of training are alike.
        """
        if self.watched:
            return -np.inf, np.inf
        away = _ABSURD_RANGES * max(self.high - self.low, abs(self.high) * 1e-6)
        return self.low - away, self.high + away


@dataclass(frozen=True)
class Schema:
    """The columns of a training table.

    ``columns`` are used or watched, in the file's order; ``ignored`` maps the others to the reason;
    ``aside`` are those with another role (tolerance, bounds, identifier); ``target_cells`` says how
    the target is written.
    """

    target: str
    columns: tuple[Column, ...]
    ignored: dict[str, str]
    aside: tuple[str, ...] = ()
    target_cells: CellFormat | None = None

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def varying(self) -> list[str]:
        """The columns that are not the same in every training row."""
        return [column.name for column in self.columns if not column.constant]

    def __str__(self) -> str:
        """A line for each column: what is in it, or why it is not used.

        >>> town = Column("town", CellFormat("category"), ("Bonn", "Ulm"))
        >>> print(Schema("price", (town,), {"id": "it only counts the rows"}))
        price: the target
        town: category ('Bonn' and 'Ulm')
        id: not used, it only counts the rows
        """
        used = [f"{column.name}: {column.described()}" for column in self.columns]
        ignored = [f"{name}: not used, {reason}" for name, reason in self.ignored.items()]
        return "\n".join([f"{self.target}: the target", *used, *ignored])

    def to_dict(self) -> dict[str, Any]:
        """A form that JSON and a model file can hold."""
        return asdict(self)

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> "Schema":
        columns = tuple(
            Column(
                name=column["name"],
                cells=_cell_format(column["cells"]),
                categories=tuple(column["categories"]),
                low=column["low"],
                high=column["high"],
                constant=column["constant"],
            )
            for column in state["columns"]
        )
        target_cells = state.get("target_cells")
        return cls(
            state["target"],
            columns,
            dict(state["ignored"]),
            tuple(state["aside"]),
            None if target_cells is None else _cell_format(target_cells),
        )


def _cell_format(state: Mapping[str, Any]) -> CellFormat:
    return CellFormat(**{**state, "missing_tokens": tuple(state["missing_tokens"])})


def as_numbers(values: NDArray[Any]) -> Floats:
    """Numbers as they are, dates in seconds since 1970."""
    if values.dtype.kind != "M":
        return np.asarray(values, dtype=np.float64)
    seconds = values.astype("datetime64[us]").astype(np.int64) / 1e6
    return np.where(np.isnat(values), np.nan, seconds)


# Numbers that are often written for a value that is not known, with either sign.
_STAND_INS = (99, 999, 9999, 99999, 999999)


class TableError(ValueError):
    """The table's content cannot be used."""


def check_present(
    roles: Iterable[tuple[str, str | None]], names: Sequence[str], *, source: str
) -> None:
    """Refuse a column that was named for a role and is not in the table; None names none."""
    for role, name in roles:
        if name is None or name in names:
            continue
        near = near_matches(name, names)
        remedy = (
            f"Did you mean {' or '.join(map(quoted, near))}?"
            if near
            else f"Its columns are {listed(names, limit=8)}."
        )
        if 2 * sum(map(_is_number, names)) >= len(names) and not near:
            remedy += " If these are values, add a line with names above them."
        raise OptionError(f"{role} column {quoted(name)} is not in {source}. {remedy}")


def names_in_doubt(data: pa.Table) -> list[str]:
    """That a file may have no line of names, where they look like cells.

    These are numbers that do not count columns, beside texts that their own column repeats.

    >>> names_in_doubt(pa.table({"1.5": ["2.5"], "red": ["red"], "3": ["4"]}))[0][:54]
    "The names of the columns look like values ('1.5', 'red"
    """
    names = data.column_names
    counted = [str(place) for place in range(len(names) + 1)]
    if names in (counted[:-1], counted[1:]) or not any(map(_is_number, names)):
        return []
    for name in names:
        cells = data.column(name)
        repeats = is_text(cells.type) and pc.index(cells, name).as_py() >= 0
        if not (_is_number(name) or repeats):
            return []
    return [
        f"The names of the columns look like values ({listed(names, limit=3)}). If they are the "
        "first row, add a line with names above it."
    ]


def stand_ins(name: str, values: Floats) -> list[str]:
    """That a number may stand for a missing value: −999 in several rows, far from all others.

    >>> stand_ins("wind", np.array([3.5, -999.0, 4.1, 2.2, -999.0]))[0][:44]
    "'wind' is -999 in 2 rows, far from all other"
    >>> stand_ins("age", np.array([99.0, 99.0, 84.0, 21.0]))
    []
    """
    known = values[np.isfinite(values)]
    for code in np.unique(known)[[0, -1]] if len(known) else ():
        others = known[known != code]
        rows = len(known) - len(others)
        if abs(code) not in _STAND_INS or rows < 2 or not len(others):
            continue
        if np.abs(others - code).min() > np.ptp(others):
            return [
                f"{quoted(name)} is {code:g} in {count(rows, 'row')}, far from all others. If that "
                "stands for a missing value, leave these cells empty."
            ]
    return []


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def check_names(source: str, names: list[str]) -> None:
    """Refuse a table without columns or with two of the same name."""
    if not names:
        raise TableError(f"{source} has no columns. Give a file with a header line and data rows.")
    if len(set(names)) < len(names):
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        raise TableError(
            f"column names must be unique, but {source} has {listed(twice)} more than once. "
            "Rename or remove the copies."
        )


def reason(error: Exception) -> str:
    """The first line of a reader's complaint, fit to stand in brackets."""
    lines = str(error).strip().splitlines()
    return printable(lines[0], limit=160).rstrip(".") if lines else type(error).__name__
