"""Which columns a model uses, and what they mean."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from accord._files import quoted
from accord._types import Floats
from accord._wording import listed
from accord.tables.cells import (
    CellFormat,
    CellKind,
    DecimalMark,
    convert,
)
from accord.tables.detection import detect

# A text column with more distinct values than this share of its rows names rows, not groups.
_IDENTIFIER_SHARE = 0.5
_IDENTIFIER_VALUES = 50
# A value this many ranges of the training values away from them is no measurement.
_ABSURD_RANGES = 100.0
_ROW_NUMBER_NAME = re.compile(
    r"(?i)(unnamed: ?\d+|column 1|index|idx|row([ _]?(number|id|no|index))?|nr|no|#|id|record)\.?"
)


@dataclass(frozen=True)
class Column:
    """A column that the model uses: its name, how its cells are written, its training values.

    ``categories`` are those of training; ``low`` and ``high`` the smallest and the largest number
    (of dates: seconds since 1970).
    """

    name: str
    cells: CellFormat
    categories: tuple[str, ...] = ()
    low: float = -np.inf
    high: float = np.inf

    @property
    def kind(self) -> CellKind:
        return self.cells.kind

    def described(self) -> str:
        """Kind, how it is read, and the categories, in a line."""
        remark = self.cells.remark()
        names = listed(self.categories) if self.categories else ""
        more = "; ".join(part for part in (remark, names) if part)
        return f"{self.kind} ({more})" if more else self.kind

    @property
    def limits(self) -> tuple[float, float]:
        """Beyond these a value is absurd, and counts as lying just there."""
        away = _ABSURD_RANGES * max(self.high - self.low, abs(self.high) * 1e-6)
        return self.low - away, self.high + away


@dataclass(frozen=True)
class Schema:
    """The columns of a training table.

    ``columns`` are used, in the file's order; ``ignored`` maps the others to the reason;
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


# --- from a training column to what is known about it ------------------------------------------


class Inferred(NamedTuple):
    """A column to use with its values, or None with the reason why not.

    ``can_be_used`` says whether a user may insist on it; ``infinite`` are the places of infinite
    values, which count as missing.
    """

    column: Column | None
    reason: str
    values: NDArray[Any]
    can_be_used: bool = False
    infinite: tuple[int, ...] = ()


def infer_column(
    name: str,
    cells: pa.ChunkedArray,
    *,
    decimal: DecimalMark | None = None,
    insist: bool = False,
    category: bool = False,
) -> Inferred:
    """What a training column holds, and whether the model uses it.

    ``insist`` uses a column that would be left out as a row number or as a name of each row;
    ``category`` takes its values for names, whatever they look like.
    """
    nothing: NDArray[Any] = np.empty(0)
    if cells.null_count == len(cells):
        return Inferred(None, "every value is missing", nothing)
    found = detect(cells, decimal=decimal, gaps=True)
    if category:
        insist, found = True, CellFormat("category", by_request=True)
    if found is None:
        return Inferred(None, f"a column of type {cells.type} cannot be used", nothing)
    values = convert(cells, found)
    infinite: tuple[int, ...] = ()
    if values.dtype.kind == "f":
        infinite = tuple(np.flatnonzero(np.isinf(values)).tolist())
    if infinite:
        values = np.where(np.isinf(values), np.nan, values)
    missing = pd.isna(values)
    if missing.all():
        return Inferred(None, "every value is missing", nothing)
    distinct = pd.unique(values[~missing])
    if len(distinct) == 1 and not missing.any():
        shown = quoted(_cell(distinct[0]), limit=30)
        if len(pc.unique(cells)) > 1 and found.kind == "number" and abs(distinct[0]) > 2**53:
            return Inferred(None, "its numbers differ only beyond 15 digits", nothing)
        return Inferred(None, f"constant ({shown} in every row)", nothing)
    if not insist and found.kind == "number" and _is_row_number(name, values):
        return Inferred(None, "it only counts the rows", values, can_be_used=True)
    if found.kind != "category":
        numbers = as_numbers(values)
        low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
        return Inferred(Column(name, found, (), low, high), "", values, infinite=infinite)
    if not insist and len(distinct) > max(_IDENTIFIER_VALUES, _IDENTIFIER_SHARE * len(values)):
        reason = f"{len(distinct):,} distinct texts in {len(values):,} rows"
        return Inferred(None, reason, values, can_be_used=True)
    categories = tuple(sorted(str(value) for value in distinct))
    return Inferred(Column(name, found, categories), "", values)


def _cell(value: Any) -> Any:
    """A value as people write it: 7, not 7.0."""
    return f"{value:.10g}" if isinstance(value, float) else value


def counts_rows(values: NDArray[Any]) -> bool:
    """Whole numbers that grow from row to row: an index, or a time."""
    if len(values) < 3 or values.dtype.kind != "f" or np.isnan(values).any():
        return False
    return bool(np.all(values == np.round(values)) and np.all(np.diff(values) > 0))


def _is_row_number(name: str, values: NDArray[Any]) -> bool:
    """Growing whole numbers alone may be a time; only under the name of an index are they none."""
    return _ROW_NUMBER_NAME.fullmatch(name.strip()) is not None and counts_rows(values)


def as_numbers(values: NDArray[Any]) -> Floats:
    """Numbers as they are, dates in seconds since 1970."""
    if values.dtype.kind != "M":
        return np.asarray(values, dtype=np.float64)
    seconds = values.astype("datetime64[us]").astype(np.int64) / 1e6
    return np.where(np.isnat(values), np.nan, seconds)
