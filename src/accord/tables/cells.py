"""What a column's cells mean, and their conversion: decided in training, kept afterwards."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from accord._types import Floats
from accord._wording import quoted

CellKind = Literal["number", "boolean", "time", "date", "category"]
NumberFormat = Literal["plain", "thousands", "comma", "spaced", "spaced comma", "clock"]
DecimalMark = Literal[".", ","]

# The usual ways of writing "missing"; compared after outer spaces are removed.
MISSING_TOKENS = (
    *("", "NA", "N/A", "n/a", "na", "#N/A", "NaN", "nan", "-nan", "-NaN", "NULL", "null", "Null"),
    *("<NA>", "NaT"),
)
# These are missing among numbers and dates; among texts they can be a category ("no garage").
NOTHING_WORDS = (
    *("None", "none", "NONE", "-", "--", "–", "—", ".", "?", "*"),
    *("#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!", "0000-00-00"),
)
# What is no word in a column of a kind; in the other kinds, values have digits.
_VALUES: dict[CellKind, str] = {
    "number": r"(?i)\d|^[+-]?inf(inity)?$",
    "boolean": r"(?i)^(true|false|1|0)$",
}
SPACE = "[ \u00a0\u202f'’]"
# A group of thousands does not begin with a zero: 0,500 is a half.
THOUSANDS = r"^[+-]?[1-9]\d{0,2}(,\d{2,3})*,\d{3}(\.\d+)?$|^[+-]?\d+(\.\d+)?$"
COMMA = r"^[+-]?([1-9]\d{0,2}(\.\d{3})+|\d+)(,\d+)?([eE][+-]?\d+)?$"
NUMBERS: dict[NumberFormat, str | None] = {
    "plain": None,
    "thousands": THOUSANDS,
    "comma": COMMA,
    "spaced": rf"^[+-]?\d{{1,3}}({SPACE}\d{{3}})*(\.\d+)?$",
    "spaced comma": rf"^[+-]?\d{{1,3}}({SPACE}\d{{3}})*(,\d+)?$",
}
# How people, Python and pandas write durations: 26:30, 1 day, 2:30:00, -1 days +21:30:00.
CLOCK = (
    r"^(?:(?P<d>-?\d+) days?,? \+?)?"
    r"(?P<h>\d{1,4}):(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d(?:\.\d+)?))?$"
)
HALF_DAY = (
    r"(?i)^(?P<clock>(?:0?[1-9]|1[0-2]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?)"
    r" ?(?P<half>[ap])\.?m\.?$"
)
# A limit of detection or of a scale, and the number that it names.
LIMIT = r"^[<>≤≥]=?\s*([+-]?[\d.,])"
# What separates groups of digits, and how a cell that has them otherwise is spoken of.
_GROUPS: dict[NumberFormat, tuple[str, str]] = {
    "thousands": (",", "numbers with commas between thousands"),
    "comma": (r"\.", "numbers with a decimal comma"),
    "spaced": (SPACE, "numbers with spaces between thousands"),
    "spaced comma": (SPACE, "numbers with a decimal comma"),
}

# How dates are written is told by an example, whose parts cannot be taken for each other.
_SOME_DAY = datetime(2024, 1, 31, 16, 5, 9)

# A spreadsheet takes a cell that begins with one of these for a formula, full-width forms included.
_FORMULA_START = "^[=+\\-@\t\r\n＝＋－＠]"
_NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"


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
    may also be written as numbers: 12 and 12.0 are the category "12". With ``limits``, <5 is 5.
    """

    kind: CellKind
    number_format: NumberFormat = "plain"
    unit: str = ""
    date_format: str | None = None
    missing_tokens: tuple[str, ...] = ()
    by_request: bool = False
    limits: bool = False

    def remark(self) -> str:
        """What a person should know about how the cells are read, or nothing."""
        remarks = []
        if self.unit:
            name = "unit" if any(letter.isalpha() for letter in self.unit) else "sign"
            remarks.append(f"numbers without the {name} {self.unit}")
        if self.number_format in ("comma", "spaced comma"):
            remarks.append("the comma is the decimal mark")
        if self.number_format == "thousands":
            remarks.append("the comma separates thousands")
        if self.limits:
            remarks.append("limits like <5 count as the number beside the sign")
        if self.number_format == "clock":
            remarks.append("durations, in seconds")
        if self.date_format is not None:
            remarks.append(f"dates{_written(self)}")
        if words := [quoted(w) for w in self.missing_tokens if w.lower() != "none"]:
            count = "counts" if len(words) == 1 else "count"
            remarks.append(f"{' and '.join(words)} {count} as missing")
        return "; ".join(remarks)


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
        nothing = () if cells.kind == "category" else NOTHING_WORDS
        column = cleaned(column, (*nothing, *cells.missing_tokens))
    return _CONVERSIONS[cells.kind](column, cells)


class Converted(NamedTuple):
    """A column's values, and the words among them, which count as missing, by their place."""

    values: NDArray[Any]
    words: dict[int, str]


def convert_among_words(column: pa.ChunkedArray, cells: CellFormat) -> Converted:
    """:func:`convert`, where a word without any digit, such as "unknown", counts as missing.

    What has digits is written otherwise than in training, and must not be lost unseen.

    >>> convert_among_words(pa.chunked_array([["1.5", "broken"]]), CellFormat("number"))
    Converted(values=array([1.5, nan]), words={1: 'broken'})
    """
    try:
        return Converted(convert(column, cells), {})
    except UnreadableCells:
        if not is_text(column.type):
            raise
    text = cleaned(column, (*NOTHING_WORDS, *cells.missing_tokens))
    is_word = pc.invert(pc.match_substring_regex(text, _VALUES.get(cells.kind, r"\d")))
    places = np.flatnonzero(pc.fill_null(is_word, False).to_numpy())
    others = pc.if_else(is_word, pa.scalar(None, pa.string()), text)
    words = pc.filter(text, is_word).to_pylist()
    return Converted(convert(others, cells), dict(zip(places.tolist(), words, strict=True)))


def cleaned(column: pa.ChunkedArray, also_missing: tuple[str, ...] = ()) -> pa.ChunkedArray:
    """Text cells without outer spaces; those that then say "missing" are nulls."""
    text = pc.utf8_trim_whitespace(pc.cast(column, pa.string()))
    missing = pc.is_in(text, value_set=pa.array((*MISSING_TOKENS, *also_missing)))
    return pc.if_else(missing, pa.scalar(None, pa.string()), text)


def with_gaps(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Names as they are, but for texts that say "missing": they are nulls.

    >>> with_gaps(pa.chunked_array([["p1", " p1 ", "", "NA"]])).to_pylist()
    ['p1', 'p1', None, None]
    """
    return cleaned(column) if is_text(column.type) else column


# --- conversion --------------------------------------------------------------------------------


def _number(column: pa.ChunkedArray, cells: CellFormat) -> NDArray[Any]:
    if is_numeric(column.type) or pa.types.is_boolean(column.type):
        return _float64(pc.cast(column, pa.float64(), safe=False))
    if pa.types.is_duration(column.type):
        return _seconds(pc.cast(column, pa.duration("us"), safe=False))
    if not is_text(column.type):
        raise UnreadableCells(f"must hold numbers, not {column.type}")
    if cells.number_format == "clock":
        return _durations(column)
    if cells.limits:
        column = without_limits(column)
    for text in (column, signed(column)):
        try:
            return _float64(pc.cast(plain_numbers(text, cells), pa.float64()))
        except pa.ArrowInvalid:
            plain = plain_numbers(text, cells).to_pandas()
    what = _GROUPS.get(cells.number_format, ("", "numbers"))[1]
    raise _unreadable(column, pd.to_numeric(plain, errors="coerce"), what)


def _durations(text: pa.ChunkedArray) -> Floats:
    """Seconds of hours:minutes:seconds, days before them or not."""
    parts = pc.extract_regex(text, CLOCK)
    if parts.null_count > text.null_count:
        raise _unreadable(text, parts.to_pandas(), "durations like 26:30:00")
    total = np.zeros(len(text))
    for part, unit in {"d": 86_400, "h": 3_600, "m": 60, "s": 1}.items():
        number = pc.struct_field(parts, part)
        number = pc.if_else(pc.equal(number, ""), "0", number)
        total += unit * _float64(pc.cast(number, pa.float64()))
    return total


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
    halves = pc.extract_regex(column, HALF_DAY)
    if halves.null_count == column.null_count:
        afternoon = pc.equal(pc.utf8_lower(pc.struct_field(halves, "half")), "p")
        clock = _durations(pc.struct_field(halves, "clock"))
        return clock % 43_200 + 43_200 * _float64(pc.cast(afternoon, pa.float64()))
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
        raise _unreadable(column, moments, f"dates{_written(cells)}")
    return np.asarray(moments.dt.tz_localize(None), dtype="datetime64[us]")


def _written(cells: CellFormat) -> str:
    return f" written like {_SOME_DAY.strftime(cells.date_format)}" if cells.date_format else ""


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


def signed(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Negative numbers with a minus before them: (5), 5- and the long minus sign are others' ways.

    A spreadsheet's formula that only holds a text, ="5", is that text.

    >>> signed(pa.chunked_array([["(1.5)", "2-", "−3", "($4)", '="5"']])).to_pylist()
    ['-1.5', '-2', '-3', '-$4', '5']
    """
    text = pc.replace_substring(text, "\u2212", "-")
    text = pc.replace_substring_regex(text, '^="(.*)"$', r"\1")
    text = pc.replace_substring_regex(text, r"^\(([^()]*\d[^()]*)\)$", r"-\1")
    return pc.replace_substring_regex(text, r"^([^-]*\d)\s*-$", r"-\1")


def without_limits(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """The numbers that limits name.

    >>> without_limits(pa.chunked_array([["<0.5", ">= 9", "7"]])).to_pylist()
    ['0.5', '9', '7']
    """
    return pc.replace_substring_regex(text, LIMIT, r"\1")


def plain_numbers(text: pa.ChunkedArray, cells: CellFormat) -> pa.ChunkedArray:
    """Numbers as a computer writes them."""
    if cells.unit:
        text = pc.utf8_trim_whitespace(
            pc.replace_substring(text, cells.unit, "", max_replacements=1)
        )
        text = pc.replace_substring_regex(text, r"^([+-])\s+", r"\1")
    text = _well_grouped(text, cells.number_format)
    if cells.number_format in ("spaced", "spaced comma"):
        text = pc.replace_substring_regex(text, SPACE, "")
    if cells.number_format == "thousands":
        return pc.replace_substring(text, ",", "")
    if cells.number_format == "comma":
        text = pc.replace_substring(text, ".", "")
    if cells.number_format in ("comma", "spaced comma"):
        return pc.replace_substring(text, ",", ".")
    return text


def _well_grouped(text: pa.ChunkedArray, number_format: NumberFormat) -> pa.ChunkedArray:
    """The cells, no number in place of one whose marks stand elsewhere than between thousands.

    Where the comma is the decimal mark, 1.5 must not become 15.
    """
    if number_format not in _GROUPS:
        return text
    grouped = pc.match_substring_regex(text, _GROUPS[number_format][0])
    if not pc.any(grouped).as_py():
        return text
    well = pc.match_substring_regex(text, NUMBERS[number_format])
    return pc.if_else(pc.and_not(grouped, well), "no number", text)


def _float64(column: pa.ChunkedArray) -> Floats:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _seconds(microseconds: pa.ChunkedArray) -> Floats:
    return _float64(pc.cast(pc.cast(microseconds, pa.int64()), pa.float64(), safe=False)) / 1e6


def _datetime64(column: pa.ChunkedArray) -> NDArray[Any]:
    naive = pc.cast(column, pa.timestamp("us"), safe=False)
    return np.asarray(naive.to_numpy(zero_copy_only=False), dtype="datetime64[us]")


def is_numeric(kind: pa.DataType) -> bool:
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


def guard_formulas(table: pa.Table) -> pa.Table:
    """The table with an apostrophe before every text cell and name that looks like a formula.

    >>> guard_formulas(pa.table({"=a": ["=1+1", "-2", "x"]})).to_pydict()
    {"'=a": ["'=1+1", '-2', 'x']}
    """
    columns = [_guarded(column) if is_text(column.type) else column for column in table.columns]
    names = _guarded(pa.array(table.column_names, pa.string())).to_pylist()
    return pa.Table.from_arrays(columns, names=names)


def _guarded(column: Any) -> Any:
    text = pc.cast(column, pa.string())
    formula = pc.and_not(
        pc.match_substring_regex(text, _FORMULA_START), pc.match_substring_regex(text, _NUMBER)
    )
    return pc.if_else(formula, pc.binary_join_element_wise("'", text, ""), text)
