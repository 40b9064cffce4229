"""Tables of our results beside the published ones, as Markdown and CSV."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from accord.datasets import info
from accord.paper import published
from accord.paper.published import Figure
from accord.paper.results import MeanOverSplits, Results, standard_errors_apart
from accord.paper.study import Source

__all__ = [
    "COSINE_IN_WORDS",
    "GAUSSIAN",
    "LEGEND",
    "MIXTURE",
    "Entry",
    "ResultColumn",
    "ResultTable",
    "ShownNumber",
    "by_dataset",
    "by_source",
    "formatted",
    "ours",
    "printed",
    "sizes_of",
]

_FAR = 2.0  # combined standard errors
LEGEND = (
    "Mean ± standard error over splits. Bold: the lowest of the paper's columns, and of ours. "
    "† more than two combined standard errors from the published number."
)
GAUSSIAN = "Scored density: the Gaussian with the ensemble's mean and variance, as in the paper."
MIXTURE = (
    "Scored density: the predictive distribution itself, a mixture of the members, which is what "
    "the estimators predict and the paper does not print."
)
COSINE_IN_WORDS = (
    "The cosine recipe is ours: Adam from 1e-2 to 0 along a cosine, standardised targets, an "
    "identity mean and a softplus variance; settled on held-out parts of training rows."
)


class ShownNumber(NamedTuple):
    """A number as it is shown."""

    text: str
    is_best: bool
    is_printed: bool


@dataclass(frozen=True)
class Entry:
    """One number of a table: ours, the published one, or both to be compared.

    ``source`` is None for a column that only repeats what the paper prints.
    """

    dataset: str
    measure: str
    source: Source | None
    ours: MeanOverSplits | None
    printed: Figure | None

    @property
    def apart(self) -> float:
        """How many combined standard errors ours lies above the published one; NaN if unknown."""
        if self.ours is None or self.printed is None:
            return math.nan
        return standard_errors_apart(self.ours, self.printed)

    @property
    def value(self) -> float:
        """What the column shows, rounded as it is shown; NaN for a blank."""
        shown = self.printed if self.source is None else self.ours
        return math.nan if shown is None else round(shown.value, self.decimals)

    @property
    def decimals(self) -> int:
        """As many as the paper prints, and four for small numbers of ours."""
        if self.source is None and self.printed is not None:
            return self.printed.decimals
        return max(
            self.printed.decimals if self.printed else 2, _decimals(self.ours) if self.ours else 2
        )

    def text(self) -> str:
        if self.source is None:
            return formatted(self.printed)
        far = "†" if abs(self.apart) > _FAR else ""
        return formatted(self.ours, self.decimals) + far


@dataclass(frozen=True)
class ResultColumn:
    """A heading and one entry per row."""

    heading: str
    entries: tuple[Entry, ...]

    @property
    def is_printed(self) -> bool:
        return all(entry.source is None for entry in self.entries)


@dataclass(frozen=True)
class ResultTable:
    """Datasets (or methods) down, methods (or measures) across.

    ``facts`` are further columns of text, such as the sizes of datasets. With ``mark_best`` the
    lowest number of each row is marked, separately among the paper's columns and among ours.
    """

    name: str
    title: str
    note: str
    row_heading: str
    rows: tuple[str, ...]
    columns: tuple[ResultColumn, ...]
    facts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    mark_best: bool = False

    @property
    def head(self) -> list[str]:
        """All headings."""
        return [self.row_heading, *self.facts, *(column.heading for column in self.columns)]

    def cells(self) -> list[tuple[list[str], list[ShownNumber]]]:
        """Each row's name and facts, and its numbers."""
        lines = []
        for place, row in enumerate(self.rows):
            entries = [column.entries[place] for column in self.columns]
            best = {side: _lowest(entries, side) for side in (True, False)}
            cells = [
                ShownNumber(
                    entry.text(),
                    self.mark_best and entry.value == best[column.is_printed],
                    column.is_printed,
                )
                for column, entry in zip(self.columns, entries, strict=True)
            ]
            lines.append(([row, *(values[place] for values in self.facts.values())], cells))
        return lines

    def to_markdown(self) -> str:
        """A table for people."""
        rule = ["---", *("---:" for _ in self.head[1:])]
        body = [
            [*words, *(f"**{c.text}**" if c.is_best else c.text for c in cells)]
            for words, cells in self.cells()
        ]
        lines = ["| " + " | ".join(line) + " |" for line in (self.head, rule, *body)]
        return "\n".join([f"### {self.title}", "", *lines, "", self.note, ""])

    def to_csv(self) -> str:
        """One line per number, for machines."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(_FIELDS)
        for column in self.columns:
            writer.writerows(_fields(e, e.source) for e in column.entries if e.source is not None)
        return stream.getvalue()


_FIELDS = (
    "dataset",
    "measure",
    "method",
    "recipe",
    "predictive",
    "value",
    "standard_error",
    "splits",
    "published",
    "published_standard_error",
    "standard_errors_apart",
)


def _fields(entry: Entry, source: Source) -> list[object]:
    ours, printed = entry.ours, entry.printed
    return [
        entry.dataset,
        entry.measure,
        source.method,
        source.recipe,
        source.predictive,
        *((_number(ours.value), _number(ours.error), ours.n) if ours else ("", "", 0)),
        printed.value if printed else "",
        printed.error if printed and printed.error is not None else "",
        _number(entry.apart),
    ]


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"


def _lowest(entries: Sequence[Entry], is_printed: bool) -> float:
    values = [e.value for e in entries if (e.source is None) == is_printed]
    return min((v for v in values if not math.isnan(v)), default=math.nan)


def formatted(number: MeanOverSplits | Figure | None, decimals: int | None = None) -> str:
    """A number with its standard error, as the paper prints them.

    Example:
        >>> formatted(MeanOverSplits(2.4567, 0.0612, 20)), formatted(Figure(5.13, None, 2))
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


def _decimals(number: MeanOverSplits) -> int:
    """Two, as the paper prints most; four for small numbers."""
    return 2 if not math.isfinite(number.value) or abs(number.value) >= 0.1 else 4


def printed(
    heading: str, table: published.PrintedTable, measure: str, method: str | None = None
) -> ResultColumn:
    """What the paper prints, one number per dataset."""
    return ResultColumn(
        heading,
        tuple(
            Entry(d, measure, None, None, published.figure(table, d, measure, method))
            for d in published.datasets(table)
        ),
    )


def ours(
    heading: str,
    results: Results,
    table: published.PrintedTable,
    measure: str,
    source: Source,
    *,
    compared: bool = True,
) -> ResultColumn:
    """Ours, one number per dataset of a published table.

    ``compared`` ones are held against the published number of the same method.
    """
    return ResultColumn(
        heading,
        tuple(
            Entry(
                d,
                measure,
                source,
                results.estimate(d, source, measure),
                published.figure(table, d, measure, source.method) if compared else None,
            )
            for d in published.datasets(table)
        ),
    )


def by_dataset(
    name: str, title: str, note: str, columns: Sequence[ResultColumn], *, sizes: bool = True
) -> ResultTable:
    """A table with a row per dataset, their sizes beside their names."""
    names = [entry.dataset for entry in columns[0].entries]
    rows = tuple(info(dataset).title for dataset in names)
    facts = sizes_of(names) if sizes else {}
    return ResultTable(name, title, note, "dataset", rows, tuple(columns), facts, mark_best=True)


def sizes_of(datasets: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Rows and features of datasets."""
    return {
        "N": tuple(f"{info(name).n:,}" for name in datasets),
        "d": tuple(str(info(name).d) for name in datasets),
    }


def by_source(
    name: str,
    title: str,
    note: str,
    dataset: str,
    rows: Mapping[str, Source],
    measures: Mapping[str, str],
    results: Results,
    table: published.PrintedTable | None = None,
) -> ResultTable:
    """A table of one dataset with a row per method and a column per measure."""
    columns = []
    for measure, heading in measures.items():
        entries = [
            Entry(
                dataset,
                measure,
                source,
                results.estimate(dataset, source, measure),
                published.figure(table, dataset, measure, source.method) if table else None,
            )
            for source in rows.values()
        ]
        if any(entry.printed for entry in entries):
            paper = [Entry(e.dataset, e.measure, None, None, e.printed) for e in entries]
            columns.append(ResultColumn(f"{heading}, paper", tuple(paper)))
        columns.append(ResultColumn(heading, tuple(entries)))
    return ResultTable(name, title, note, "method", tuple(rows), tuple(columns))
