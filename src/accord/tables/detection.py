"""What a training column holds, found out from its cells, and whether a model can use it."""

import re
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from accord._wording import listed, quoted
from accord.tables.cells import (
    CLOCK,
    COMMA,
    HALF_DAY,
    LIMIT,
    NOTHING_WORDS,
    NUMBERS,
    SPACE,
    THOUSANDS,
    CellFormat,
    DecimalMark,
    NumberFormat,
    UnreadableCells,
    cleaned,
    convert,
    is_numeric,
    is_text,
    plain_numbers,
    signed,
    without_limits,
)
from accord.tables.schema import Column, as_numbers

# A text column with more distinct values than this share of its rows names rows, not groups.
_IDENTIFIER_SHARE = 0.5
_IDENTIFIER_VALUES = 50
_ROW_NUMBER_NAME = re.compile(
    r"(?i)(unnamed: ?\d+|column 1|index|idx|row([ _]?(number|id|no|index))?|nr|no|#|id|record)\.?"
)
_BOOLEANS = ("true", "false")
_TIME = r"^\d{1,2}:[0-5]\d(:[0-5]\d(\.\d+)?)?$"
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_YEAR = r"(1[89]|20)\d\d"
_DATE = (
    r"(?i)^(\d{1,4}[./ -]\d{1,2}[./ -]\d{1,4}|\d{8}T\d{4,6}|\d{1,2}[a-z]{3}\d{2,4}"
    rf"|{_MONTH}[./ -]+\d{{1,2}}[./ ,-]+\d{{2,4}}|\d{{1,2}}[./ -]+{_MONTH}[./ ,-]+\d{{2,4}}"
    rf"|{_YEAR}[./-]\d{{1,2}}|\d{{1,2}}[./-]{_YEAR}|{_MONTH}[ -]({_YEAR}|\d\d))"
    r"([T ,]+\d{1,2}:\d{2}.*)?$"
)
# Signs that stand before or after a number and are no part of it.
_UNITS = ("$", "€", "£", "¥", "₹", "%", "USD", "EUR", "GBP", "CHF", "JPY")
# Of the signs that a letter makes another one, as in R$ 5 and US$5, this is the whole.
_CURRENCY = r"^[+-]?(?P<unit>[A-Z]{1,3}\$|Rs\.?|kr\.?|Fr\.?|zł)\s?[\d.,]"
_UNIT_PATTERN = f"(?:{'|'.join(map(re.escape, _UNITS))})"
# Any other unit stands after the numbers and is the same for all of them: 12.5 kg, 1 248 cc.
_SIGN = r"[^\d\s.,'’()+-]"
_UNIT = rf"{_SIGN}[^\d\s()]{{0,9}}|{_SIGN}{{0,9}}m[23]"
_WITH_UNIT = rf"^[+-]?\d(?:[\d.,]|{SPACE})*?{SPACE}?(?P<unit>{_UNIT})$"
# A text column is a number column with odd entries if at least this share reads as numbers and
# the rest is a handful of distinct words ("?", "unknown").
_NUMERIC_SHARE = 0.9
_ODD_ENTRIES = 5
# More distinct numbers than this are quantities, however often a word stands in their place.
_QUANTITIES = 20
_SAMPLE = 50
_FIELD = re.compile("%[a-zA-Z]")


def detect(
    column: pa.ChunkedArray, *, decimal: DecimalMark | None = None, gaps: bool = False
) -> CellFormat | None:
    """The meaning that fits every cell of a column; None for types that no model can use.

    ``decimal`` is the table's decimal mark, for columns that could be read either way. With
    ``gaps``, up to half of the cells of a column of quantities may be a word ("unknown").

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
    if is_numeric(kind) or pa.types.is_duration(kind):
        return CellFormat("number")
    if pa.types.is_time(kind):
        return CellFormat("time")
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return CellFormat("date")
    return _detect_text(cleaned(column).drop_null(), decimal, gaps) if is_text(kind) else None


def other_order(column: pa.ChunkedArray, cells: CellFormat) -> CellFormat | None:
    """The dates of a column with day and month exchanged, where no cell tells which is which.

    >>> column = pa.chunked_array([["01/02/2024", "03/04/2024"]])
    >>> other_order(column, CellFormat("date", date_format="%m/%d/%Y")).date_format
    '%d/%m/%Y'
    """
    if cells.date_format is None or not {"%d", "%m"} <= set(_FIELD.findall(cells.date_format)):
        return None
    if cells.date_format.startswith("%Y"):  # nobody writes year, day, month
        return None
    swapped = _FIELD.sub(lambda f: {"%d": "%m", "%m": "%d"}.get(f[0], f[0]), cells.date_format)
    other = replace(cells, date_format=swapped)
    try:
        either = convert(column, other), convert(column, cells)
    except UnreadableCells:
        return None
    return None if np.array_equal(*either, equal_nan=True) else other


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
        elif _all(pc.match_substring_regex(text, COMMA)):
            commas |= not _all(pc.match_substring_regex(text, THOUSANDS))
    if commas == points:
        return None
    return "," if commas else "."


def _detect_text(text: pa.ChunkedArray, decimal: DecimalMark | None, gaps: bool) -> CellFormat:
    words = pc.is_in(text, value_set=pa.array(NOTHING_WORDS))
    nothing = tuple(sorted(set(text.filter(words).to_pylist())))
    others = text.filter(pc.invert(words))
    found = _detect_values(others, decimal, gaps) if len(others) else None
    if found is None:
        return CellFormat("category")
    return replace(found, missing_tokens=tuple(sorted({*found.missing_tokens, *nothing})))


def _detect_values(
    text: pa.ChunkedArray, decimal: DecimalMark | None, gaps: bool
) -> CellFormat | None:
    if _all(pc.is_in(pc.utf8_lower(text), value_set=pa.array(_BOOLEANS))):
        return CellFormat("boolean")
    return (
        _detect_numbers(text, decimal)
        or _detect_moments(text, decimal)
        or _with_words(text, decimal, gaps)
    )


def _detect_numbers(text: pa.ChunkedArray, decimal: DecimalMark | None) -> CellFormat | None:
    if number := _number_format(text, decimal):
        return CellFormat("number", number)
    text = signed(text)
    if number := _number_format(text, decimal):
        return CellFormat("number", number)
    if unit := _unit(text):
        bare = plain_numbers(text, CellFormat("number", unit=unit))
        if number := _number_format(bare, decimal):
            return CellFormat("number", number, unit)
    return _detect_limits(text, decimal)


def _detect_limits(text: pa.ChunkedArray, decimal: DecimalMark | None) -> CellFormat | None:
    """Quantities with limits among them, such as <5; not classes, such as <18 and 18-25."""
    is_limit = pc.match_substring_regex(text, LIMIT)
    if not pc.any(is_limit).as_py():
        return None
    if len(pc.unique(text.filter(pc.invert(is_limit)))) <= _QUANTITIES:
        return None
    found = _detect_numbers(without_limits(text), decimal)
    return found and replace(found, limits=True)


def _detect_moments(text: pa.ChunkedArray, decimal: DecimalMark | None) -> CellFormat | None:
    if _all(pc.match_substring_regex(text, _TIME)) and _all(
        pc.match_substring_regex(text, r"^([01]?\d|2[0-3]):")
    ):
        return CellFormat("time")
    if _all(pc.match_substring_regex(text, HALF_DAY)):
        return CellFormat("time")
    if _all(pc.match_substring_regex(text, CLOCK)):
        return CellFormat("number", "clock")
    if _all(pc.match_substring_regex(text, _DATE)):
        found, date_format = _date_format(text, day_first=decimal == ",")
        if found:
            return CellFormat("date", date_format=date_format)
    return None


def _with_words(
    text: pa.ChunkedArray, decimal: DecimalMark | None, gaps: bool
) -> CellFormat | None:
    """Numbers, dates or times with a few words among them ("unknown"), which mean "missing"."""
    is_word = pc.invert(pc.match_substring_regex(text, r"\d"))
    words = pc.unique(text.filter(is_word)).to_pylist()
    others = text.filter(pc.invert(is_word))
    quantities = gaps and len(pc.unique(others)) > _QUANTITIES
    most = (0.5 if quantities else 1 - _NUMERIC_SHARE) * len(text)
    few = 0 < pc.sum(is_word).as_py() <= most and len(words) <= _ODD_ENTRIES
    if few and (found := _detect_numbers(others, decimal) or _detect_moments(others, decimal)):
        return replace(found, missing_tokens=tuple(sorted(words)))
    odd = _odd_entries(text)
    return CellFormat("number", missing_tokens=odd) if odd else None


def _number_format(text: pa.ChunkedArray, decimal: DecimalMark | None) -> NumberFormat | None:
    order: tuple[NumberFormat, ...] = ("plain", "thousands", "comma", "spaced", "spaced comma")
    if decimal == ",":
        order = ("comma", "spaced comma", "plain", "thousands", "spaced")
    return next((number for number in order if _reads_as_number(text, number)), None)


def _reads_as_number(text: pa.ChunkedArray, number_format: NumberFormat) -> bool:
    pattern = NUMBERS[number_format]
    if pattern and not _all(pc.match_substring_regex(text, pattern)):
        return False
    try:
        pc.cast(plain_numbers(text, CellFormat("number", number_format)), pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _unit(text: pa.ChunkedArray) -> str:
    """The one sign that stands beside numbers in this column, or nothing."""
    if not _all(pc.match_substring_regex(text, r"\d")):
        return ""
    for pattern in (_CURRENCY, _WITH_UNIT):
        if units := _units(text, pattern):
            return units[0] if len(units) == 1 else ""
    found = [unit for unit in _UNITS if pc.any(pc.match_substring(text, unit)).as_py()]
    return found[0] if len(found) == 1 else ""


def _units(text: pa.ChunkedArray, pattern: str) -> list[str]:
    """The units of cells that all have one, the most frequent first; none if some have none."""
    found = pc.extract_regex(text, pattern)
    if found.null_count:
        return []
    counts = pc.value_counts(pc.struct_field(found, "unit")).to_pylist()
    return [str(unit["values"]) for unit in sorted(counts, key=lambda unit: -unit["counts"])]


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
    days += [f"%d{mark}%{m}{mark}%{y}" for mark in (" ", "-", "") for m in "bB" for y in "Yy"]
    days += [f"%{month} %d{mark}%Y" for month in "bB" for mark in (", ", " ")]
    months = [order.format(mark) for order in ("%Y{}%m", "%m{}%Y") for mark in "-/."]
    months += [f"%{m}{mark}%{y}" for m in "bB" for mark in " -" for y in "Yy"]
    clocks = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p")
    times = ["", *(mark + clock for mark in (" ", ", ") for clock in clocks)]
    return [day + time for time in times for day in days] + months


def _reads_as_dates(text: pa.ChunkedArray, date_format: str | None) -> bool:
    try:
        convert(text, CellFormat("date", date_format=date_format))
    except UnreadableCells:
        return False
    return True


def _all(mask: pa.ChunkedArray) -> bool:
    return bool(pc.all(mask).as_py()) if len(mask) else False


def _without_unit(text: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.replace_substring_regex(text, rf"^{_UNIT_PATTERN}\s*|\s*{_UNIT_PATTERN}$", "")


# --- from a training column to what is known about it ------------------------------------------


class Inferred(NamedTuple):
    """A column with its values, or None; and the reason why it is not used, if it is not.

    A column with a reason is the same in all rows, and only watched. ``can_be_used`` says whether a
    user may insist on it; ``infinite`` are the places of infinite values, which count as missing;
    ``doubt`` says what kept texts from being read as numbers.
    """

    column: Column | None
    reason: str
    values: NDArray[Any]
    can_be_used: bool = False
    infinite: tuple[int, ...] = ()
    doubt: str = ""


def infer_column(
    name: str,
    cells: pa.ChunkedArray,
    *,
    decimal: DecimalMark | None = None,
    insist: bool = False,
    category: bool = False,
) -> Inferred:
    """What a training column holds, and whether the model uses or watches it.

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
        reason = f"constant ({shown} in every row)"
        if found.kind in ("date", "time"):  # these go on by themselves
            return Inferred(None, reason, nothing)
        if found.kind == "category":
            return Inferred(Column(name, found, (str(distinct[0]),), constant=True), reason, values)
        number = float(distinct[0])
        return Inferred(Column(name, found, (), number, number, True), reason, values)
    if not insist and found.kind == "number" and _is_row_number(name, values):
        return Inferred(None, "it only counts the rows", values, can_be_used=True)
    if found.kind != "category":
        numbers = as_numbers(values)
        low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
        return Inferred(Column(name, found, (), low, high), "", values, infinite=infinite)
    doubt = "" if category or not is_text(cells.type) else _doubt(cleaned(cells).drop_null())
    if not insist and len(distinct) > max(_IDENTIFIER_VALUES, _IDENTIFIER_SHARE * len(values)):
        reason = f"{len(distinct):,} distinct texts in {len(values):,} rows"
        return Inferred(None, reason, values, can_be_used=True, doubt=doubt)
    categories = tuple(sorted(str(value) for value in distinct))
    return Inferred(Column(name, found, categories), "", values, doubt=doubt)


def _doubt(text: pa.ChunkedArray) -> str:
    """What keeps a column from being one of numbers, if it looks like quantities; or nothing.

    >>> cells = [f"{size} {'lb' if size % 9 else 'kg'}" for size in range(50)]
    >>> _doubt(pa.chunked_array([cells]))
    "its numbers have more than one unit ('lb' and 'kg')"
    """
    beginning = text.slice(0, 20 * _SAMPLE)
    units = _units(beginning, _WITH_UNIT)
    if 1 < len(units) <= _ODD_ENTRIES and len(pc.unique(beginning)) > _QUANTITIES:
        return f"its numbers have more than one unit ({listed(units)})"
    numbers = pd.to_numeric(beginning.to_pandas(), errors="coerce")
    if numbers.notna().mean() < 0.3 or numbers.nunique() <= _QUANTITIES:
        return ""
    first = beginning[int(np.flatnonzero(numbers.isna())[0])].as_py()
    return f"many of its cells are numbers, but not {quoted(first, limit=30)}"


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
