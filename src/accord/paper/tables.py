"""Tables of our results beside the published ones, as Markdown and CSV."""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from accord.datasets import info
from accord.paper.results import MeanOverSplits, Results, Written, of_first, standard_errors_apart
from accord.paper.study import SMOOTHED, Figure, PrintedTable, Source, published, published_datasets

_FAR = 2.0  # combined standard errors
_MANY = 6  # columns beside which there is no room for the sizes of the datasets
_SCORES = {"nll": "NLL", "nll_exact": "NLL of the mixture", "rmse": "RMSE"}  # less is better
_MEASURES = {**_SCORES, "coverage95": "inside 95 %", "width95": "width 95 %"}
LEGEND = (
    "Ours, mean ± standard error over splits; in italics below it, what the paper prints. Bold: "
    "the lowest of ours in a row, and of the paper's. † more than two combined standard errors "
    "from the published number of that method. N rows, d features."
)
OURS_LEGEND = "Mean ± standard error over splits. Bold: the lowest of a row."
GAUSSIAN = (
    "Scored density: the Gaussian with the ensemble's mean and variance, the likeliest reading of "
    "the paper."
)
BOTH_DENSITIES = (
    "Scored densities: NLL is of the Gaussian with the ensemble's mean and variance, the likeliest "
    "reading of the paper, and so are the 95 % intervals; the column beside it is of the mixture "
    "itself, which the estimators predict. Bold: the lowest of a column."
)
INTERVALS = (
    "Errors by jackknife over splits. Scored: intervals of the Gaussian with the ensemble's mean "
    "and variance."
)
OF_THE_MEAN = "Scored is the ensemble's mean; no density is."
MIXTURE = (
    "Scored density: the mixture of the members itself, which the estimators predict and the paper "
    "does not print."
)
COSINE_IN_WORDS = (
    "The cosine recipe is ours: Adam from 1e-2 to 0 along a cosine, standardised targets, an "
    "identity mean and a softplus variance; settled on held-out parts of training rows."
)


class ShownNumber(NamedTuple):
    """A number of ours as it is shown, and the published one below it, if any."""

    text: str
    is_best: bool
    published: str = ""
    is_best_published: bool = False

    def to_markdown(self) -> str:
        shown = f"**{self.text}**" if self.is_best else self.text
        stars = "***" if self.is_best_published else "*"
        return f"{shown}<br>{stars}{self.published}{stars}" if self.published else shown


@dataclass(frozen=True)
class Entry:
    """One number of a table: ours, and the published one if there is one to compare with."""

    dataset: str
    measure: str
    source: Source
    ours: MeanOverSplits | None
    printed: Figure | None

    @property
    def standard_errors_apart(self) -> float:
        """How many combined standard errors ours lies above the published one; NaN if unknown."""
        if self.ours is None or self.printed is None:
            return math.nan
        return standard_errors_apart(self.ours, self.printed)

    def rounded(self, decimals: int) -> float:
        """Ours as it is shown; NaN for a blank."""
        return math.nan if self.ours is None else round(self.ours.value, decimals)

    @property
    def decimals(self) -> int:
        """As many as the paper prints, and four for small numbers of ours."""
        return max(
            self.printed.decimals if self.printed else 2, _decimals(self.ours) if self.ours else 2
        )

    def text(self, decimals: int) -> str:
        far = "†" if abs(self.standard_errors_apart) > _FAR else ""
        return formatted(self.ours, decimals) + far


@dataclass(frozen=True)
class ResultColumn:
    """A heading and one entry per row; ``beside`` shows the published numbers in the same cells.

    ``is_score`` says that lower is better.
    """

    heading: str
    entries: tuple[Entry, ...]
    beside: bool = False
    is_score: bool = True

    def printed(self, place: int) -> Figure | None:
        """The published number that is shown in a row; none beside what the paper does not do."""
        entry = self.entries[place]
        return entry.printed if self.beside and entry.source.predictive != SMOOTHED.name else None


@dataclass(frozen=True)
class ResultTable:
    """Datasets (or methods) down, methods (or measures) across.

    ``facts`` are further columns of text, such as the sizes of datasets. The lowest number of each
    row, or column of scores, is marked (``best_of``), separately among the paper's and ours.
    """

    name: str
    title: str
    note: str
    row_heading: str
    rows: tuple[str, ...]
    columns: tuple[ResultColumn, ...]
    facts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    best_of: Literal["rows", "columns"] | None = None

    @property
    def head(self) -> list[str]:
        """All headings."""
        return [self.row_heading, *self.facts, *(column.heading for column in self.columns)]

    def cells(self) -> list[tuple[list[str], list[ShownNumber]]]:
        """Each row's name and facts, and its numbers."""
        places = range(len(self.rows))
        shown = [[self._shown(place, column) for column in self.columns] for place in places]
        facts = [[values[place] for values in self.facts.values()] for place in places]
        return [([self.rows[n], *facts[n]], shown[n]) for n in places]

    def _shown(self, place: int, column: ResultColumn) -> ShownNumber:
        entry, figure = column.entries[place], column.printed(place)
        rivals = self._rivals(place, column)
        decimals = max(rival.decimals for rival, _ in rivals)
        marked = self.best_of == "rows" or (self.best_of == "columns" and column.is_score)
        best = _lowest([rival.rounded(decimals) for rival, _ in rivals])
        best_printed = _lowest([other.value for _, other in rivals if other is not None])
        return ShownNumber(
            entry.text(decimals),
            marked and entry.rounded(decimals) == best,
            formatted(figure) if figure else "",
            marked and figure is not None and figure.value == best_printed,
        )

    def _rivals(self, place: int, column: ResultColumn) -> list[tuple[Entry, Figure | None]]:
        """The numbers that one is compared with, itself among them, as ours and published."""
        if self.best_of == "rows":
            return [(c.entries[place], c.printed(place)) for c in self.columns]
        return [(column.entries[n], column.printed(n)) for n in range(len(self.rows))]

    def to_markdown(self) -> str:
        """A table for people."""
        body = [[*words, *(cell.to_markdown() for cell in cells)] for words, cells in self.cells()]
        lines = markdown_table(self.head, body, numbers=True)
        return "\n".join([f"### {self.title}", "", lines, "", self.note, ""])

    def numbers(self) -> dict[Written, MeanOverSplits]:
        """The numbers as :func:`numbers_in` reads them from the CSV."""
        return numbers_in(self.to_csv())

    def to_csv(self) -> str:
        """One line per number, for machines."""
        return csv_text(_FIELDS, (_fields(e) for column in self.columns for e in column.entries))


def markdown_table(
    head: Sequence[str], body: Iterable[Sequence[str]], *, numbers: bool = False
) -> str:
    """Lines of a table; all but the first column to the right if they are numbers."""
    rule = ["---", *(["---:" if numbers else "---"] * (len(head) - 1))]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *body))


def csv_text(head: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A table as the text of a CSV file."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
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


def _fields(entry: Entry) -> list[object]:
    ours, printed, source = entry.ours, entry.printed, entry.source
    return [
        entry.dataset,
        entry.measure,
        source.method,
        source.recipe,
        source.predictive,
        *((_number(ours.value), _number(ours.error), ours.n) if ours else ("", "", 0)),
        printed.value if printed else "",
        printed.error if printed and printed.error is not None else "",
        _number(entry.standard_errors_apart),
    ]


def numbers_in(text: str) -> dict[Written, MeanOverSplits]:
    """What :meth:`ResultTable.to_csv` wrote, where there is a number."""
    found = {}
    for row in csv.DictReader(io.StringIO(text)):
        if row["value"]:
            key = (row["dataset"], row["measure"], row["method"], row["recipe"], row["predictive"])
            error = float(row["standard_error"]) if row["standard_error"] else math.nan
            found[key] = MeanOverSplits(float(row["value"]), error, int(row["splits"]))
    return found


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"


def _lowest(values: Sequence[float]) -> float:
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
    value = f"{number.value:z.{decimals}f}".replace("-", "−")  # z: no minus before a zero
    if number.error is None or math.isnan(number.error):
        return value
    return f"{value} ± {number.error:.{decimals}f}"


def _decimals(number: MeanOverSplits) -> int:
    """Two, as the paper prints most; four for small numbers."""
    return 2 if not math.isfinite(number.value) or abs(number.value) >= 0.1 else 4


def entry(
    results: Results,
    dataset: str,
    measure: str,
    source: Source,
    table: PrintedTable | None = None,
) -> Entry:
    """Our number, beside what a published table prints of that method."""
    figure = published(table, dataset, measure, source.method) if table else None
    return Entry(dataset, measure, source, results.estimate(dataset, source, measure), figure)


def ours(
    heading: str,
    results: Results,
    table: PrintedTable,
    measure: str,
    source: Source,
) -> ResultColumn:
    """Ours, one number per dataset of a published table, beside what it prints of that method."""
    entries = (entry(results, d, measure, source, table) for d in published_datasets(table))
    return ResultColumn(heading, tuple(entries), beside=True)


def deep_and_bvm(
    results: Results, table: PrintedTable, measure: str, sources: Sequence[Source]
) -> list[ResultColumn]:
    """Deep Ensembles, BVM as printed and BVM smoothed, the first two beside what is published."""
    headings = ("Deep Ensembles", "BVM as printed", "BVM smoothed")
    return [
        ours(heading, results, table, measure, source)
        for heading, source in zip(headings, sources, strict=True)
    ]


def by_dataset(
    name: str, title: str, note: str, columns: Sequence[ResultColumn], *, sizes: bool = True
) -> ResultTable:
    """A table with a row per dataset, their sizes beside their names."""
    names = [entry.dataset for entry in columns[0].entries]
    rows = tuple(info(dataset).title for dataset in names)
    facts = sizes_of(names) if sizes else {}
    return ResultTable(name, title, note, "dataset", rows, tuple(columns), facts, best_of="rows")


def of_sources(
    name: str,
    title: str,
    note: str,
    results: Results,
    datasets: Sequence[str],
    sources: Mapping[str, Source],
    measure: str = "nll",
    *,
    first: int | None = None,
) -> ResultTable:
    """A table of our numbers alone, with a column for each source; no wider than a page.

    ``first`` counts the splits that all sources have, where some have more.
    """
    shown = measure if first is None else of_first(measure, first)
    columns = [
        ResultColumn(
            heading,
            tuple(
                Entry(d, shown, source, results.estimate(d, source, measure, first=first), None)
                for d in datasets
            ),
        )
        for heading, source in sources.items()
    ]
    note = f"{OURS_LEGEND} {note}"
    return by_dataset(name, title, note, columns, sizes=len(columns) < _MANY)


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
    results: Results,
    table: PrintedTable | None = None,
) -> ResultTable:
    """A table of one dataset with a row per method and a column per measure."""
    columns = []
    for measure, heading in _MEASURES.items():
        entries = [entry(results, dataset, measure, source, table) for source in rows.values()]
        is_score = measure in _SCORES
        columns.append(ResultColumn(heading, tuple(entries), table is not None, is_score))
    names = tuple(rows)
    return ResultTable(name, title, note, "method", names, tuple(columns), best_of="columns")
