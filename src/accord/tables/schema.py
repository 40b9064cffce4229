"""Which columns a model uses, what they mean, and how a new table is brought into that form."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from accord.tables.cells import Kind, Reading, UnreadableCells, convert, count_infinite, detect
from accord.tables.problems import TableError, listed, near_matches, quoted

# A text column with more distinct values than this share of its rows names rows, not groups.
_IDENTIFIER_SHARE = 0.5
_IDENTIFIER_VALUES = 50


@dataclass(frozen=True)
class Column:
    """A column that the model uses: its name, how it is read, its categories in training."""

    name: str
    reading: Reading
    categories: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        return self.reading.kind


@dataclass(frozen=True)
class Schema:
    """The columns of a training table.

    ``columns`` are used, in the file's order; ``ignored`` maps the others to the reason;
    ``aside`` are those with another role (tolerance, bounds, identifier).
    """

    target: str
    columns: tuple[Column, ...]
    ignored: dict[str, str]
    aside: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def to_dict(self) -> dict[str, Any]:
        """A form that JSON and a model file can hold."""
        return asdict(self)

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> "Schema":
        columns = tuple(
            Column(
                name=column["name"],
                reading=Reading(
                    **{
                        **column["reading"],
                        "missing_tokens": tuple(column["reading"]["missing_tokens"]),
                    }
                ),
                categories=tuple(column["categories"]),
            )
            for column in state["columns"]
        )
        return cls(state["target"], columns, dict(state["ignored"]), tuple(state["aside"]))


@dataclass(frozen=True)
class Surprises:
    """Cells of a new table that can be predicted from, but deserve a word: counts by column."""

    missing: dict[str, int] = field(default_factory=dict)
    infinite: dict[str, int] = field(default_factory=dict)
    unseen: dict[str, int] = field(default_factory=dict)

    def __add__(self, other: "Surprises") -> "Surprises":
        return Surprises(
            *(
                {name: a.get(name, 0) + b.get(name, 0) for name in {**a, **b}}
                for a, b in (
                    (self.missing, other.missing),
                    (self.infinite, other.infinite),
                    (self.unseen, other.unseen),
                )
            )
        )

    def sentences(self) -> list[str]:
        """One plain sentence per sort of surprise.

        >>> Surprises(missing={"age": 3}).sentences()
        ["3 missing values in 'age': predicted from the other columns."]
        """
        sorts = (
            (self.missing, "missing value", "predicted from the other columns"),
            (self.infinite, "infinite value", "taken as missing"),
            (self.unseen, "category not seen in training", "predicted as a rare one"),
        )
        return [
            f"{_count(sum(counts.values()), what)} in {listed(counts)}: {answer}."
            for counts, what, answer in sorts
            if counts
        ]


def _count(number: int, what: str) -> str:
    if number == 1:
        return f"1 {what}"
    plural = what.replace("category", "categories") if "category" in what else what + "s"
    return f"{number:,} {plural}"


def infer_column(
    name: str, column: pa.ChunkedArray, *, delimiter: str
) -> tuple[Column | None, str, npt.NDArray[Any]]:
    """The column to use and its values, or None and the reason why it cannot be used."""
    nothing: npt.NDArray[Any] = np.empty(0)
    if column.null_count == len(column):
        return None, "every value is missing", nothing
    reading = detect(column, delimiter=delimiter)
    if reading is None:
        return None, f"a column of type {column.type} cannot be used", nothing
    values = convert(column, reading)
    missing = pd.isna(values)
    if missing.all():
        return None, "every value is missing", nothing
    distinct = pd.unique(values[~missing])
    if len(distinct) == 1 and not missing.any():
        return None, f"constant ({quoted(distinct[0], limit=30)} in every row)", nothing
    if reading.kind == "number" and _counts_rows(values):
        return None, "it only counts the rows", nothing
    if reading.kind != "category":
        return Column(name, reading), "", values
    if len(distinct) > max(_IDENTIFIER_VALUES, _IDENTIFIER_SHARE * len(values)):
        return None, f"{len(distinct):,} distinct texts in {len(values):,} rows", nothing
    return Column(name, reading, tuple(sorted(str(value) for value in distinct))), "", values


def _counts_rows(values: npt.NDArray[Any]) -> bool:
    """0, 1, 2, … or 1, 2, 3, …: an index that somebody saved with the table."""
    return (
        len(values) > 2
        and values[0] in (0.0, 1.0)
        and bool(np.array_equal(values, values[0] + np.arange(len(values))))
    )


def conform(
    table: pa.Table, schema: Schema, *, source: str, first_row: int = 1
) -> tuple[pd.DataFrame, Surprises]:
    """A batch in the model's form, and what in it is out of the ordinary.

    Every unreadable column is named, not only the first; ``first_row`` is the batch's place in its
    file.
    """
    values: dict[str, npt.NDArray[Any]] = {}
    missing, infinite, unseen = {}, {}, {}
    problems = []
    for column in schema.columns:
        cells = table.column(column.name)
        try:
            values[column.name] = converted = convert(cells, column.reading)
        except UnreadableCells as error:
            problems.append(f"column {quoted(column.name)} {error.sentence(first_row)}")
            continue
        if endless := count_infinite(cells):
            infinite[column.name] = endless
        if absent := int(pd.isna(converted).sum()) - endless:
            missing[column.name] = absent
        if column.kind == "category" and (new := _count_unseen(cells, column)):
            unseen[column.name] = new
    if problems:
        shown = "; ".join(problems[:5]) + (f"; and {len(problems) - 5} more" * (len(problems) > 5))
        raise TableError(f"{source} does not fit the model: {shown}. Correct these columns.")
    return pd.DataFrame(values), Surprises(missing, infinite, unseen)


def _count_unseen(cells: pa.ChunkedArray, column: Column) -> int:
    known = pc.is_in(pc.cast(cells, pa.string()), value_set=pa.array(column.categories))
    return int(pc.sum(pc.and_not(pc.is_valid(cells), known)).as_py() or 0)


def check_columns(
    present: Sequence[str], schema: Schema, *, source: str, by_name: bool = False
) -> None:
    """Refuse a table whose columns are missing, unexpected or in another order; name them.

    Columns that training set aside (target, ignored, roles) may be there or not. With
    ``by_name`` order does not matter and unexpected columns are ignored.
    """
    needed, here = schema.names, set(present)
    missing = [name for name in needed if name not in here]
    known = {*needed, schema.target, *schema.ignored, *schema.aside}
    extra = [] if by_name else [name for name in present if name not in known]
    problems = [_missing(missing, extra or list(present))] if missing else []
    if extra:
        problems.append(
            f"{listed(extra)} {'is' if len(extra) == 1 else 'are'} not known to the model"
        )
    if not problems and not by_name:
        order = [name for name in present if name in set(needed)]
        moved = [name for name, place in zip(order, needed, strict=True) if name != place]
        if moved:
            problems.append(f"{listed(moved)} stand in another order than in training")
    if problems:
        remedy = "" if missing else " Pass --by-name to match columns by their names alone."
        remedy = remedy or " Correct the header, or add the columns."
        raise TableError(f"{source} does not fit the model: {'; '.join(problems)}.{remedy}")


def _missing(missing: list[str], candidates: list[str]) -> str:
    hints = [
        f"{quoted(near[0])} for {quoted(name)}"
        for name in missing[:3]
        if (near := near_matches(name, candidates, limit=1))
    ]
    hint = f" (is it {', '.join(hints)}?)" if hints else ""
    return f"{listed(missing)} {'is' if len(missing) == 1 else 'are'} missing{hint}"
