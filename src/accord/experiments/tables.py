"""Tables of our results beside the published ones, as Markdown and CSV."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

from accord.datasets import info
from accord.experiments.estimates import Estimate, standard_errors_apart
from accord.experiments.published import Figure

__all__ = ["Column", "Entry", "Table", "formatted"]


@dataclass(frozen=True)
class Entry:
    """One number of a table: ours, the published one, or both to be compared.

    ``variant`` is empty for a column that only repeats what the paper prints.
    """

    dataset: str
    measure: str
    method: str
    variant: str
    ours: Estimate | None
    printed: Figure | None

    @property
    def apart(self) -> float:
        """How many combined standard errors ours lies above the published one; NaN if unknown."""
        if self.ours is None or self.printed is None:
            return math.nan
        return standard_errors_apart(self.ours, self.printed)


@dataclass(frozen=True)
class Column:
    """A heading and one entry per row."""

    heading: str
    entries: tuple[Entry, ...]
    is_printed: bool = False


@dataclass(frozen=True)
class Table:
    """Datasets (or methods) down, methods (or measures) across."""

    name: str
    title: str
    note: str
    row_heading: str
    rows: tuple[str, ...]
    columns: tuple[Column, ...]

    def cells(self) -> list[list[str]]:
        """Each row's name and numbers; in parentheses, standard errors from the published value."""
        return [
            [row, *(_cell(column, place) for column in self.columns)]
            for place, row in enumerate(self.rows)
        ]

    def to_markdown(self) -> str:
        """A table for people."""
        head = [self.row_heading, *(column.heading for column in self.columns)]
        rule = ["---", *("---:" for _ in self.columns)]
        lines = ["| " + " | ".join(line) + " |" for line in (head, rule, *self.cells())]
        return "\n".join([f"### {self.title}", "", *lines, "", self.note, ""])

    def to_csv(self) -> str:
        """One line per number, for machines."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(_FIELDS)
        for column in self.columns:
            if not column.is_printed:
                writer.writerows(_fields(entry) for entry in column.entries)
        return stream.getvalue()


_FIELDS = (
    "dataset",
    "measure",
    "method",
    "variant",
    "value",
    "standard_error",
    "splits",
    "published",
    "published_standard_error",
    "standard_errors_apart",
)


def _fields(entry: Entry) -> list[object]:
    ours, printed = entry.ours, entry.printed
    return [
        entry.dataset,
        entry.measure,
        entry.method,
        entry.variant,
        *((_number(ours.value), _number(ours.error), ours.n) if ours else ("", "", 0)),
        printed.value if printed else "",
        printed.error if printed and printed.error is not None else "",
        _number(entry.apart),
    ]


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"


def _cell(column: Column, place: int) -> str:
    entry = column.entries[place]
    if column.is_printed:
        return formatted(entry.printed)
    text = formatted(entry.ours)
    return text if math.isnan(entry.apart) else f"{text} ({entry.apart:+.1f})"


def formatted(number: Estimate | Figure | None, decimals: int | None = None) -> str:
    """A number with its standard error, as the paper prints them.

    Example:
        >>> formatted(Estimate(2.4567, 0.0612, 20)), formatted(Figure(5.13, None, 2))
        ('2.46 ± 0.06', '5.13')
    """
    if number is None:
        return "–"
    if decimals is None:
        decimals = number.decimals if isinstance(number, Figure) else _decimals(number)
    value = f"{number.value:.{decimals}f}".replace("-", "−")
    if number.error is None or math.isnan(number.error):
        return value
    return f"{value} ± {number.error:.{decimals}f}"


def _decimals(number: Estimate) -> int:
    """Two, as the paper prints most; four for small numbers."""
    return 2 if not math.isfinite(number.value) or abs(number.value) >= 0.1 else 4


def titles(names: Sequence[str]) -> tuple[str, ...]:
    """The datasets' names as the paper writes them."""
    return tuple(info(name).title for name in names)
