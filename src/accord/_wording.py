"""Numbers and names as people read them, and documents as machines do."""

import json
import math
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Literal


def number(value: float, digits: int = 3) -> str:
    """A value with a few significant digits, without exponents where that stays readable.

    >>> number(1234567.0), number(12.3456), number(0.00012345), number(-3.0), number(2e-7)
    ('1,230,000', '12.3', '0.000123', '-3', '2e-07')
    """
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "–"
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if not -5 <= magnitude <= 12:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{exponent}"
    rounded = round(value, digits - 1 - magnitude)
    decimals = max(0, digits - 1 - magnitude)
    text = f"{rounded:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def to_scale(value: float, spread: float) -> str:
    """A value with the digits that matter beside a spread: to about a hundredth of it.

    Values with the same spread get the same decimals, as the cells of a column should.

    >>> to_scale(25.2938, 16.9), to_scale(44.0, 16.9), to_scale(266_812.0, 31_240.0)
    ('25.3', '44.0', '266,800')
    """
    if not (math.isfinite(value) and math.isfinite(spread) and spread > 0):
        return number(value, 4)
    places = 2 - math.floor(math.log10(spread))
    if not -12 <= places <= 6:
        return number(value, 4)
    rounded = round(value, places) or 0.0  # not "-0.0"
    return f"{rounded:,.{max(0, places)}f}"


def with_error(value: float, error: float, *, typical: float | None = None) -> str:
    """A value and its standard error, both to the second digit of the error.

    In a column, the ``typical`` error decides, so that all cells have the same decimals.

    >>> with_error(14.7391, 0.0016), with_error(266_812.0, 31_240.0), with_error(1.5, math.nan)
    ('14.7391 ± 0.0016', '267,000 ± 31,000', '1.5')
    >>> with_error(14.7391, 0.0016, typical=0.12)
    '14.74 ± 0.00'
    """
    if not (math.isfinite(value) and math.isfinite(error) and error > 0):
        return number(value)
    places = 1 - math.floor(math.log10(typical or error))
    if not -12 <= places <= 6:
        return f"{number(value)} ± {number(error, 2)}"
    shown = [f"{round(part, places):,.{max(0, places)}f}" for part in (value, error)]
    return f"{shown[0]} ± {shown[1]}"


def percent(share: float, decimals: int | None = None) -> str:
    """A share of one, with a decimal where it matters.

    >>> percent(0.946), percent(0.95), percent(0.9123, 0), percent(1.0), percent(-0.001, 0)
    ('94.6 %', '95 %', '91 %', '100 %', '0 %')
    """
    if not math.isfinite(share):
        return "–"
    if decimals is None:
        text = f"{100 * share:.1f}".removesuffix(".0")
    else:
        text = f"{100 * share:.{decimals}f}"
    # A share just below zero, as R² may be, would be written "-0".
    return f"{text.removeprefix('-') if float(text) == 0 else text} %"


def unit_of(name: str) -> str:
    """The unit that a column's name states in brackets; "" if it states none.

    >>> unit_of("strength [MPa]"), unit_of("weight (kg)"), unit_of("price"), unit_of("sales (2019)")
    ('MPa', 'kg', '', '')
    """
    found = re.search(r"[\[(]([^\[\]()\d\s]{1,10})[\])]\s*$", name)
    return found.group(1) if found else ""


def units_of(name: str) -> str:
    """In what a column is measured, after "in".

    >>> units_of("strength [MPa]"), units_of("price")
    ('MPa', 'units of price')
    """
    return unit_of(name) or f"units of {name}"


def written(value: float, format: Literal["number", "percent", "count"]) -> str:
    """A figure of merit in the format that its catalogue names.

    >>> written(0.946, "percent"), written(12.3456, "number"), written(1200, "count")
    ('94.6 %', '12.3', '1,200')
    """
    if format == "percent":
        return percent(value)
    return f"{value:,.0f}" if format == "count" else number(value)


def count(n: int, what: str, several: str = "") -> str:
    """A number of things.

    >>> count(1, "row"), count(1200, "row"), count(2, "category", "categories")
    ('1 row', '1,200 rows', '2 categories')
    """
    return f"{n:,} {what if n == 1 else several or what + 's'}"


def printable(name: object, *, limit: int = 60) -> str:
    """A name without line ends and terminal escapes, cut to a length."""
    text = str(name)
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def quoted(name: object, *, limit: int = 60) -> str:
    r"""A name as it can be shown in one line of text.

    >>> quoted("price"), quoted("a\nb")
    ("'price'", "'a\\nb'")
    """
    return f"'{printable(name, limit=limit)}'"


def listed_plainly(names: Sequence[str]) -> str:
    """Names in a row.

    >>> listed_plainly(["a"]), listed_plainly(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def listed(names: Iterable[object], *, limit: int = 5) -> str:
    """Quoted names in a row, the surplus counted.

    >>> listed(["a", "b", "c"]), listed(range(9), limit=2)
    ("'a', 'b' and 'c'", "'0', '1' and 7 more")
    """
    shown = [quoted(name) for name in names]
    if len(shown) > limit:
        shown = [*shown[:limit], f"{len(shown) - limit} more"]
    return listed_plainly(shown)


def near_matches(name: str, names: Sequence[str], *, limit: int = 3) -> list[str]:
    """The names most like ``name``, letter case and outer spaces aside.

    >>> near_matches("Prize", ["id", "price", "area"])
    ['price']
    """
    plain: dict[str, str] = {}
    for candidate in names:
        plain.setdefault(candidate.strip().casefold(), candidate)
    found = get_close_matches(name.strip().casefold(), list(plain), n=limit, cutoff=0.7)
    return [plain[match] for match in found]


def byte_size(n_bytes: int) -> str:
    """How much room something takes.

    >>> byte_size(2_000), byte_size(32 << 20), byte_size(1_500_000_000)
    ('2,000 bytes', '32 MB', '1.4 GB')
    """
    for power, unit in ((30, "GB"), (20, "MB")):
        if n_bytes >= 1 << power:
            return f"{number(n_bytes / (1 << power))} {unit}"
    return count(n_bytes, "byte")


def duration(seconds: float) -> str:
    """A time for people.

    >>> duration(4.23), duration(42.3), duration(192), duration(7380)
    ('4.2 s', '42 s', '3 min 12 s', '2 h 3 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min" + (f" {rest} s" if rest else "")
    return f"{minutes // 60} h {minutes % 60} min"


def json_text(document: Any) -> str:
    """A JSON document of numbers, texts, lists and mappings; what is not a number is null.

    >>> json_text({"a": float("nan"), "b": (1, 2)}).split()
    ['{', '"a":', 'null,', '"b":', '[', '1,', '2', ']', '}']
    """
    return json.dumps(_plain(document), indent=2, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
