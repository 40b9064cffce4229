"""What a column's cells mean, and the conversion to it: decided in training, kept afterwards."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from accord.tables.problems import quoted

Kind = Literal["number", "boolean", "time", "date", "category"]
NumberFormat = Literal["plain", "thousands", "comma"]

_BOOLEANS = ("true", "false")
_TIME = r"^\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?$"
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DATE = (
    r"(?i)^(\d{1,4}[./ -]\d{1,2}[./ -]\d{1,4}"
    rf"|{_MONTH}[./ -]+\d{{1,2}}[./ ,-]+\d{{2,4}}|\d{{1,2}}[./ -]+{_MONTH}[./ ,-]+\d{{2,4}})"
    r"([T ,]+\d{1,2}:\d{2}.*)?$"
)
_THOUSANDS = r"^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$|^[+-]?\d+(\.\d+)?$"
_COMMA = r"^[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?([eE][+-]?\d+)?$"
# A text column is a number column with odd entries if at least this share reads as numbers and
# the rest is a handful of distinct words ("?", "unknown").
_NUMERIC_SHARE = 0.9
_ODD_ENTRIES = 5


class UnreadableCells(ValueError):
    """Cells that do not have the meaning that their column had in training.

    ``row`` counts from 0 in the batch at hand, None where no single cell is to blame.
    """

    def __init__(self, rule: str, *, row: int | None = None, more: int = 0) -> None:
        super().__init__(rule)
        self.rule, self.row, self.more = rule, row, more

    def sentence(self, first_row: int = 1) -> str:
        """The rule and the place, rows counted from ``first_row``."""
        if self.row is None:
            return self.rule
        more = f" and {self.more} more" if self.more else ""
        return f"{self.rule} in row {first_row + self.row:,}{more}"


@dataclass(frozen=True)
class Reading:
    """How a column's cells are read. ``date_format`` None means ISO 8601."""

    kind: Kind
    number_format: NumberFormat = "plain"
    date_format: str | None = None
    missing_tokens: tuple[str, ...] = ()


def detect(column: pa.ChunkedArray, *, delimiter: str = ",") -> Reading | None:
    """The meaning that fits every cell of a column; None for types that no model can use.

    >>> detect(pa.chunked_array([["1", "2.5", None]])).kind
    'number'
    >>> detect(pa.chunked_array([["31/12/2020", "01/02/2021"]])).date_format
    '%d/%m/%Y'
    """
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_boolean(kind):
        return Reading("boolean")
    if _is_numeric(kind) or pa.types.is_duration(kind):
        return Reading("number")
    if pa.types.is_time(kind):
        return Reading("time")
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return Reading("date")
    return _detect_text(_text(column), delimiter) if is_text(kind) else None


def convert(column: pa.ChunkedArray, reading: Reading) -> npt.NDArray[Any]:
    """The column's values: float64 for numbers, booleans and times, datetimes, or text objects.

    Missing and infinite numbers are NaN, missing dates NaT, missing categories None.

    >>> convert(pa.chunked_array([["1,5", None]]), Reading("number", "comma"))
    array([1.5, nan])
    """
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if pa.types.is_null(column.type):
        column = pc.cast(column, pa.string())
    values = _CONVERSIONS[reading.kind](column, reading)
    if reading.kind in ("number", "boolean", "time"):
        values = np.where(np.isfinite(values), values, np.nan)
    return values


def count_infinite(column: pa.ChunkedArray) -> int:
    """How many entries of a floating-point column are infinite."""
    if not pa.types.is_floating(column.type):
        return 0
    return int(pc.sum(pc.is_inf(column)).as_py() or 0)


# --- detection of text -------------------------------------------------------------------------


def _detect_text(text: pa.ChunkedArray, delimiter: str) -> Reading:
    text = text.drop_null()
    if _all(pc.is_in(pc.utf8_lower(text), value_set=pa.array(_BOOLEANS))):
        return Reading("boolean")
    formats: tuple[NumberFormat, ...] = ("plain", "thousands", "comma")
    if delimiter == ";":  # where semicolons separate cells, the comma is the decimal mark
        formats = ("plain", "comma", "thousands")
    for number_format in formats:
        if _reads_as_number(text, number_format):
            return Reading("number", number_format)
    if _all(pc.match_substring_regex(text, _TIME)):
        return Reading("time")
    if _all(pc.match_substring_regex(text, _DATE)):
        found, date_format = _date_format(text)
        if found:
            return Reading("date", date_format=date_format)
    odd = _odd_entries(text)
    return Reading("number", missing_tokens=odd) if odd else Reading("category")


def _reads_as_number(text: pa.ChunkedArray, number_format: NumberFormat) -> bool:
    pattern = {"plain": None, "thousands": _THOUSANDS, "comma": _COMMA}[number_format]
    if pattern and not _all(pc.match_substring_regex(text, pattern)):
        return False
    try:
        pc.cast(_plain(text, number_format), pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _odd_entries(text: pa.ChunkedArray) -> tuple[str, ...]:
    """The few words among numbers, or nothing if there are too many of them."""
    series = text.to_pandas()
    odd = series[pd.to_numeric(series, errors="coerce").isna()]
    words = odd.unique()
    if len(odd) > (1 - _NUMERIC_SHARE) * len(series) or len(words) > _ODD_ENTRIES:
        return ()
    return tuple(sorted(str(word) for word in words))


def _date_format(text: pa.ChunkedArray) -> tuple[bool, str | None]:
    """Whether the text is dates, and in which format (None: ISO 8601)."""
    if _reads_as_dates(text, None):
        return True, None
    # skrub weighs day-first against month-first by what fits the whole column.
    from skrub import ToDatetime

    try:
        encoder = ToDatetime().fit(pd.Series(text.to_pylist(), name="date", dtype=object))
    except ValueError:  # skrub's RejectColumn: not dates
        return False, None
    found = encoder.format_ is not None and _reads_as_dates(text, encoder.format_)
    return found, encoder.format_ if found else None


def _reads_as_dates(text: pa.ChunkedArray, date_format: str | None) -> bool:
    try:
        convert(text, Reading("date", date_format=date_format))
    except UnreadableCells:
        return False
    return True


def _all(mask: pa.ChunkedArray) -> bool:
    return bool(pc.all(mask).as_py())


# --- conversion --------------------------------------------------------------------------------


def _number(column: pa.ChunkedArray, reading: Reading) -> npt.NDArray[Any]:
    if _is_numeric(column.type) or pa.types.is_boolean(column.type):
        return _float64(pc.cast(column, pa.float64(), safe=False))
    if pa.types.is_duration(column.type):
        return _seconds(pc.cast(column, pa.duration("us"), safe=False))
    if not is_text(column.type):
        raise UnreadableCells(f"must hold numbers, not {column.type}")
    text = _without_tokens(_text(column), reading.missing_tokens)
    try:
        return _float64(pc.cast(_plain(text, reading.number_format), pa.float64()))
    except pa.ArrowInvalid:
        plain = _plain(text, reading.number_format).to_pandas()
        raise _unreadable(text, pd.to_numeric(plain, errors="coerce"), "numbers") from None


def _boolean(column: pa.ChunkedArray, reading: Reading) -> npt.NDArray[Any]:
    if not is_text(column.type):
        return _number(column, reading)
    text = pc.utf8_lower(_text(column))
    values = pc.case_when(
        pc.make_struct(
            pc.is_in(text, pa.array(["true", "1"])), pc.is_in(text, pa.array(["false", "0"]))
        ),
        pa.scalar(1.0),
        pa.scalar(0.0),
    )
    if values.null_count > text.null_count:
        raise _unreadable(column, values.to_pandas(), "true or false")
    return _float64(values)


def _time(column: pa.ChunkedArray, reading: Reading) -> npt.NDArray[Any]:
    """Seconds since midnight."""
    if pa.types.is_time(column.type):
        return _seconds(pc.cast(column, pa.time64("us"), safe=False))
    if not is_text(column.type):
        raise UnreadableCells(f"must hold times of day, not {column.type}")
    text = _text(column)
    padded = pc.replace_substring_regex(text, r"^(\d):", r"0\1:")
    moments = pd.to_datetime("1970-01-01 " + padded.to_pandas(), format="ISO8601", errors="coerce")
    if moments.isna().sum() > text.null_count:
        raise _unreadable(text, moments, "times of day")
    return np.asarray((moments - pd.Timestamp(0)).dt.total_seconds(), dtype=np.float64)


def _date(column: pa.ChunkedArray, reading: Reading) -> npt.NDArray[Any]:
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        return _datetime64(column)
    if not is_text(column.type):
        raise UnreadableCells(f"must hold dates, not {column.type}")
    text = _text(column)
    if reading.date_format is None:
        for kind in (pa.timestamp("us"), pa.timestamp("us", tz="UTC")):
            try:
                return _datetime64(pc.cast(text, kind))
            except pa.ArrowInvalid:
                continue
    pattern = reading.date_format or "ISO8601"
    moments = pd.to_datetime(text.to_pandas(), format=pattern, errors="coerce", utc=True)
    if moments.isna().sum() > text.null_count:
        raise _unreadable(text, moments, "dates")
    return np.asarray(moments.dt.tz_localize(None), dtype="datetime64[us]")


def _category(column: pa.ChunkedArray, reading: Reading) -> npt.NDArray[Any]:
    if not is_text(column.type):
        raise UnreadableCells(f"must hold text, not {column.type}")
    return np.asarray(_text(column).to_pandas().to_numpy(dtype=object))


_CONVERSIONS: dict[Kind, Callable[[pa.ChunkedArray, Reading], npt.NDArray[Any]]] = {
    "number": _number,
    "boolean": _boolean,
    "time": _time,
    "date": _date,
    "category": _category,
}


def _unreadable(text: pa.ChunkedArray, values: "pd.Series[Any]", what: str) -> UnreadableCells:
    """Names the first cell that is there in the text and not in the values made of it."""
    bad = np.flatnonzero(values.isna().to_numpy() & text.is_valid().to_numpy())
    first = int(bad[0])
    rule = f"must hold {what}, got {quoted(text[first].as_py(), limit=40)}"
    return UnreadableCells(rule, row=first, more=len(bad) - 1)


def _plain(text: pa.ChunkedArray, number_format: NumberFormat) -> pa.ChunkedArray:
    if number_format == "thousands":
        return pc.replace_substring(text, ",", "")
    if number_format == "comma":
        return pc.replace_substring(pc.replace_substring(text, ".", ""), ",", ".")
    return text


def _without_tokens(text: pa.ChunkedArray, tokens: tuple[str, ...]) -> pa.ChunkedArray:
    if not tokens:
        return text
    odd = pc.is_in(text, value_set=pa.array(tokens))
    return pc.if_else(odd, pa.scalar(None, pa.string()), text)


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.cast(column, pa.string())


def _float64(column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _seconds(microseconds: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    return _float64(pc.cast(pc.cast(microseconds, pa.int64()), pa.float64(), safe=False)) / 1e6


def _datetime64(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    naive = pc.cast(column, pa.timestamp("us"), safe=False)
    return np.asarray(naive.to_numpy(zero_copy_only=False), dtype="datetime64[us]")


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def is_text(kind: pa.DataType) -> bool:
    """Whether a column type is text, dictionary-encoded or not."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )
