"""What a column's cells mean, and their conversion: decided in training, kept afterwards."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from accord._files import quoted
from accord._types import Floats

CellKind = Literal["number", "boolean", "time", "date", "category"]
NumberFormat = Literal["plain", "thousands", "comma", "spaced", "spaced comma", "clock"]
DecimalMark = Literal[".", ","]

# The usual ways of writing "missing"; compared after outer spaces are removed.
MISSING_TOKENS = (
    *("", "NA", "N/A", "n/a", "na", "#N/A", "NaN", "nan", "-nan", "-NaN", "NULL", "null", "Null"),
    *("<NA>", "NaT"),
)
# These are missing among numbers and dates; among texts they can be a category ("no garage").
NOTHING_WORDS = ("None", "none", "NONE")

_BOOLEANS = ("true", "false")
_TIME = r"^\d{1,2}:[0-5]\d(:[0-5]\d(\.\d+)?)?$"
_CLOCK = r"^\d{1,4}:[0-5]\d(:[0-5]\d(\.\d+)?)?$"
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DATE = (
    r"(?i)^(\d{1,4}[./ -]\d{1,2}[./ -]\d{1,4}"
    rf"|{_MONTH}[./ -]+\d{{1,2}}[./ ,-]+\d{{2,4}}|\d{{1,2}}[./ -]+{_MONTH}[./ ,-]+\d{{2,4}})"
    r"([T ,]+\d{1,2}:\d{2}.*)?$"
)
# A group of thousands does not begin with a zero: 0,500 is a half.
_THOUSANDS = r"^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?$|^[+-]?\d+(\.\d+)?$"
_COMMA = r"^[+-]?([1-9]\d{0,2}(\.\d{3})+|\d+)(,\d+)?([eE][+-]?\d+)?$"
_SPACE = "[ \u00a0\u202f'’]"
_NUMBERS: dict[NumberFormat, str | None] = {
    "plain": None,
    "thousands": _THOUSANDS,
    "comma": _COMMA,
    "spaced": rf"^[+-]?\d{{1,3}}({_SPACE}\d{{3}})*(\.\d+)?$",
    "spaced comma": rf"^[+-]?\d{{1,3}}({_SPACE}\d{{3}})*(,\d+)?$",
}
# Signs that stand before or after a number and are no part of it.
_UNITS = ("$", "€", "£", "¥", "₹", "%", "USD", "EUR", "GBP", "CHF", "JPY")
_UNIT_PATTERN = r"(?:[$€£¥₹%]|USD|EUR|GBP|CHF|JPY)"
# A text column is a number column with odd entries if at least this share reads as numbers and
# the rest is a handful of distinct words ("?", "unknown").
_NUMERIC_SHARE = 0.9
_ODD_ENTRIES = 5
_SAMPLE = 50


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
class CellFormat:
    """How a column's cells are written.

    ``unit`` is a sign that stands beside the numbers, ``date_format`` None means ISO 8601, and
    ``missing_tokens`` are words that mean "missing" in this column only. ``by_request`` categories
    may also be written as numbers: 12 and 12.0 are the category "12".
    """

    kind: CellKind
    number_format: NumberFormat = "plain"
    unit: str = ""
    date_format: str | None = None
    missing_tokens: tuple[str, ...] = ()
    by_request: bool = False

    def remark(self) -> str:
        """What a person should know about how the cells are read, or nothing."""
        remarks = []
        if self.unit:
            remarks.append(f"numbers without the sign {self.unit}")
        if self.number_format in ("comma", "spaced comma"):
            remarks.append("the comma is the decimal mark")
        if self.number_format == "thousands":
            remarks.append("the comma separates thousands")
        if self.number_format == "clock":
            remarks.append("durations, in seconds")
        if self.date_format is not None:
            remarks.append(f"dates written {self.date_format.replace('%', '')}")
        if words := [quoted(word) for word in self.missing_tokens if word not in NOTHING_WORDS]:
            remarks.append(f"{' and '.join(words)} counts as missing")
        return "; ".join(remarks)


def detect(column: pa.ChunkedArray, *, decimal: DecimalMark | None = None) -> CellFormat | None:
    """The meaning that fits every cell of a column; None for types that no model can use.

    ``decimal`` is the table's decimal mark, for columns that could be read either way.

    >>> detect(pa.chunked_array([["1", "2.5", "NA"]])).kind
    'number'
    >>> detect(pa.chunked_array([["$1,234.50", "$7"]])).remark()
    'numbers without the sign $; the comma separates thousands'
    >>> detect(pa.chunked_array([["31/12/2020", "01/02/2021"]])).date_format
    '%d/%m/%Y'
    """
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_boolean(kind):
        return CellFormat("boolean")
    if _is_numeric(kind) or pa.types.is_duration(kind):
        return CellFormat("number")
    if pa.types.is_time(kind):
        return CellFormat("time")
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return CellFormat("date")
    return _detect_text(cleaned(column).drop_null(), decimal) if is_text(kind) else None


def convert(column: pa.ChunkedArray, cells: CellFormat) -> NDArray[Any]:
    """The column's values: float64 for numbers, booleans and times, datetimes, or text objects.

    Missing numbers are NaN, missing dates NaT, missing categories None.

    >>> convert(pa.chunked_array([["1,5", None]]), CellFormat("number", "comma"))
    array([1.5, nan])
    """
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if pa.types.is_null(column.type):
        column = pc.cast(column, pa.string())
    if is_text(column.type):
        column = cleaned(column, cells.missing_tokens)
    return _CONVERSIONS[cells.kind](column, cells)


def cleaned(column: pa.ChunkedArray, also_missing: tuple[str, ...] = ()) -> pa.ChunkedArray:
    """Text cells without outer spaces; those that then say "missing" are nulls."""
    text = pc.utf8_trim_whitespace(pc.cast(column, pa.string()))
    missing = pc.is_in(text, value_set=pa.array((*MISSING_TOKENS, *also_missing)))
    return pc.if_else(missing, pa.scalar(None, pa.string()), text)


def decimal_mark(table: pa.Table) -> DecimalMark | None:
    """The decimal mark that some column shows beyond doubt and none contradicts.

    >>> decimal_mark(pa.table({"a": ["0,5", "1,25"], "b": ["1,250", "2,500"]}))
    ','
    """
    commas = points = False
    for column in table.columns:
        if not is_text(column.type):
            continue
        text = _without_unit(cleaned(column).drop_null().slice(0, 10_000))
        if _all(pc.match_substring_regex(text, r"^[+-]?\d+\.\d{1,2}$")):
            points = True
        elif _all(pc.match_substring_regex(text, _COMMA)):
            commas |= not _all(pc.match_substring_regex(text, _THOUSANDS))
    if commas == points:
        return None
    return "," if commas else "."


# --- detection of text -------------------------------------------------------------------------


def _detect_text(text: pa.ChunkedArray, decimal: DecimalMark | None) -> CellFormat:
    words = pc.is_in(text, value_set=pa.array(NOTHING_WORDS))
    nothing = tuple(sorted(set(text.filter(words).to_pylist())))
    others = text.filter(pc.invert(words))
    found = _detect_values(others, decimal) if len(others) else None
    if found is None:
        return CellFormat("category")
    return CellFormat(
        found.kind,
        found.number_format,
        found.unit,
        found.date_format,
        tuple(sorted({*found.missing_tokens, *nothing})),
    )


def _detect_values(text: pa.ChunkedArray, decimal: DecimalMark | None) -> CellFormat | None:
    if _all(pc.is_in(pc.utf8_lower(text), value_set=pa.array(_BOOLEANS))):
        return CellFormat("boolean")
    if number := _number_format(text, decimal):
        return CellFormat("number", number)
    if unit := _unit(text):
        bare = _plain(text, CellFormat("number", unit=unit))
        if number := _number_format(bare, decimal):
            return CellFormat("number", number, unit)
    if _all(pc.match_substring_regex(text, _TIME)) and _all(
        pc.match_substring_regex(text, r"^([01]?\d|2[0-3]):")
    ):
        return CellFormat("time")
    if _all(pc.match_substring_regex(text, _CLOCK)):
        return CellFormat("number", "clock")
    if _all(pc.match_substring_regex(text, _DATE)):
        found, date_format = _date_format(text, day_first=decimal == ",")
        if found:
            return CellFormat("date", date_format=date_format)
    odd = _odd_entries(text)
    return CellFormat("number", missing_tokens=odd) if odd else None


def _number_format(text: pa.ChunkedArray, decimal: DecimalMark | None) -> NumberFormat | None:
    order: tuple[NumberFormat, ...] = ("plain", "thousands", "comma", "spaced", "spaced comma")
    if decimal == ",":
        order = ("comma", "spaced comma", "plain", "thousands", "spaced")
    return next((number for number in order if _reads_as_number(text, number)), None)


def _reads_as_number(text: pa.ChunkedArray, number_format: NumberFormat) -> bool:
    pattern = _NUMBERS[number_format]
    if pattern and not _all(pc.match_substring_regex(text, pattern)):
        return False
    try:
        pc.cast(_plain(text, CellFormat("number", number_format)), pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _unit(text: pa.ChunkedArray) -> str:
    """The one sign that stands beside numbers in this column, or nothing."""
    if not _all(pc.match_substring_regex(text, r"\d")):
        return ""
    found = [unit for unit in _UNITS if pc.any(pc.match_substring(text, unit)).as_py()]
    return found[0] if len(found) == 1 else ""


def _odd_entries(text: pa.ChunkedArray) -> tuple[str, ...]:
    """The few words among numbers, or nothing if there are too many of them."""
    beginning = pd.to_numeric(text.slice(0, 20 * _SAMPLE).to_pandas(), errors="coerce")
    if beginning.notna().mean() < 0.5:
        return ()
    series = text.to_pandas()
    odd = series[pd.to_numeric(series, errors="coerce").isna()]
    words = odd.unique()
    if len(odd) > (1 - _NUMERIC_SHARE) * len(series) or len(words) > _ODD_ENTRIES:
        return ()
    return tuple(sorted(str(word) for word in words))


def _date_format(text: pa.ChunkedArray, *, day_first: bool) -> tuple[bool, str | None]:
    """Whether the text is dates, and in which format (None: ISO 8601)."""
    if _reads_as_dates(text, None):
        return True, None
    sample = text.slice(0, _SAMPLE)
    # A point between numbers is the custom of countries that write the day first.
    day_first = day_first or "." in str(text[0])
    for date_format in _date_formats(day_first):
        if _reads_as_dates(sample, date_format) and _reads_as_dates(text, date_format):
            return True, date_format
    return False, None


def _date_formats(day_first: bool) -> list[str]:
    orders = ["%d{0}%m{0}%Y", "%m{0}%d{0}%Y"] if day_first else ["%m{0}%d{0}%Y", "%d{0}%m{0}%Y"]
    orders += [order.replace("%Y", "%y") for order in orders] + ["%Y{0}%m{0}%d"]
    days = [order.format(mark) for order in orders for mark in "./- "]
    days += [f"%d{mark}%{month}{mark}%{year}" for mark in " -" for month in "bB" for year in "Yy"]
    days += [f"%{month} %d{mark}%Y" for month in "bB" for mark in (", ", " ")]
    times = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
    return [day + time for time in times for day in days]


def _reads_as_dates(text: pa.ChunkedArray, date_format: str | None) -> bool:
    try:
        convert(text, CellFormat("date", date_format=date_format))
    except UnreadableCells:
        return False
    return True


def _all(mask: pa.ChunkedArray) -> bool:
    return bool(pc.all(mask).as_py()) if len(mask) else False


# --- conversion --------------------------------------------------------------------------------


def _number(column: pa.ChunkedArray, cells: CellFormat) -> NDArray[Any]:
    if _is_numeric(column.type) or pa.types.is_boolean(column.type):
        return _float64(pc.cast(column, pa.float64(), safe=False))
    if pa.types.is_duration(column.type):
        return _seconds(pc.cast(column, pa.duration("us"), safe=False))
    if not is_text(column.type):
        raise UnreadableCells(f"must hold numbers, not {column.type}")
    if cells.number_format == "clock":
        return _durations(column)
    try:
        return _float64(pc.cast(_plain(column, cells), pa.float64()))
    except pa.ArrowInvalid:
        plain = _plain(column, cells).to_pandas()
        raise _unreadable(column, pd.to_numeric(plain, errors="coerce"), "numbers") from None


def _durations(text: pa.ChunkedArray) -> Floats:
    """Seconds of hours:minutes:seconds."""
    parts = pc.extract_regex(text, r"^(?P<h>\d{1,4}):(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d(?:\.\d+)?))?$")
    if parts.null_count > text.null_count:
        raise _unreadable(text, parts.to_pandas(), "durations like 26:30:00")
    hours, minutes, seconds = (pc.struct_field(parts, name) for name in "hms")
    total = 3600 * _float64(pc.cast(hours, pa.float64()))
    total += 60 * _float64(pc.cast(minutes, pa.float64()))
    no_seconds = pc.equal(seconds, "")
    seconds = pc.if_else(no_seconds, "0", seconds)
    return total + _float64(pc.cast(seconds, pa.float64()))


def _boolean(column: pa.ChunkedArray, cells: CellFormat) -> NDArray[Any]:
    if not is_text(column.type):
        return _number(column, cells)
    text = pc.utf8_lower(column)
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


def _time(column: pa.ChunkedArray, cells: CellFormat) -> NDArray[Any]:
    """Seconds since midnight."""
    if pa.types.is_time(column.type):
        return _seconds(pc.cast(column, pa.time64("us"), safe=False))
    if not is_text(column.type):
        raise UnreadableCells(f"must hold times of day, not {column.type}")
    try:
        seconds = _durations(column)
    except UnreadableCells as error:
        rule = error.rule.replace("durations like 26:30:00", "times of day")
        raise UnreadableCells(rule, row=error.row, more=error.more) from None
    if np.nanmax(seconds, initial=0.0) >= 86_400:
        late = pd.Series(np.where(seconds < 86_400, seconds, np.nan))
        raise _unreadable(column, late, "times of day")
    return seconds


def _date(column: pa.ChunkedArray, cells: CellFormat) -> NDArray[Any]:
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        return _datetime64(column)
    if not is_text(column.type):
        raise UnreadableCells(f"must hold dates, not {column.type}")
    if cells.date_format is None:
        for kind in (pa.timestamp("us"), pa.timestamp("us", tz="UTC")):
            try:
                return _datetime64(pc.cast(column, kind))
            except pa.ArrowInvalid:
                continue
    pattern = cells.date_format or "ISO8601"
    moments = pd.to_datetime(column.to_pandas(), format=pattern, errors="coerce", utc=True)
    if moments.isna().sum() > column.null_count:
        raise _unreadable(column, moments, "dates")
    return np.asarray(moments.dt.tz_localize(None), dtype="datetime64[us]")


def _as_names(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whole numbers without a decimal point, everything else as it is written."""
    if pa.types.is_floating(column.type):
        whole = pc.equal(column, pc.round(column))
        column = pc.if_else(pc.is_finite(column), column, pa.scalar(None, column.type))
        if pc.all(whole).as_py():
            column = pc.cast(column, pa.int64(), safe=False)
    return pc.cast(column, pa.string())


def _category(column: pa.ChunkedArray, cells: CellFormat) -> NDArray[Any]:
    if cells.by_request and not is_text(column.type):
        column = _as_names(column)
    if not is_text(column.type):
        raise UnreadableCells(f"must hold text, not {column.type}")
    return np.asarray(column.to_pandas().to_numpy(dtype=object))


_CONVERSIONS: dict[CellKind, Callable[[pa.ChunkedArray, CellFormat], NDArray[Any]]] = {
    "number": _number,
    "boolean": _boolean,
    "time": _time,
    "date": _date,
    "category": _category,
}


def _unreadable(text: pa.ChunkedArray, values: Any, what: str) -> UnreadableCells:
    """Names the first cell that is there in the text and not in the values made of it."""
    bad = np.flatnonzero(np.asarray(values.isna()) & text.is_valid().to_numpy())
    first = int(bad[0])
    rule = f"must hold {what}, got {quoted(text[first].as_py(), limit=40)}"
    return UnreadableCells(rule, row=first, more=len(bad) - 1)


def _plain(text: pa.ChunkedArray, cells: CellFormat) -> pa.ChunkedArray:
    """Numbers as a computer writes them."""
    if cells.unit:
        text = pc.utf8_trim_whitespace(
            pc.replace_substring(text, cells.unit, "", max_replacements=1)
        )
        text = pc.replace_substring_regex(text, r"^([+-])\s+", r"\1")
    if cells.number_format in ("spaced", "spaced comma"):
        text = pc.replace_substring_regex(text, _SPACE, "")
    if cells.number_format == "thousands":
        return pc.replace_substring(text, ",", "")
    if cells.number_format == "comma":
        text = pc.replace_substring(text, ".", "")
    if cells.number_format in ("comma", "spaced comma"):
        return pc.replace_substring(text, ",", ".")
    return text


def _without_unit(text: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.replace_substring_regex(text, rf"^{_UNIT_PATTERN}\s*|\s*{_UNIT_PATTERN}$", "")


def _float64(column: pa.ChunkedArray) -> Floats:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _seconds(microseconds: pa.ChunkedArray) -> Floats:
    return _float64(pc.cast(pc.cast(microseconds, pa.int64()), pa.float64(), safe=False)) / 1e6


def _datetime64(column: pa.ChunkedArray) -> NDArray[Any]:
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
