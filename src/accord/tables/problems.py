"""What can be wrong with a table, in words that name the columns and the remedy."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from accord._files import OptionError, printable, quoted
from accord._types import Floats
from accord._wording import count, listed, near_matches
from accord.tables.cells import is_text

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
