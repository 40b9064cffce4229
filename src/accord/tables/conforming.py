"""A new table, brought into the form of the training table; what does not fit is said."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from accord._types import Bools
from accord._wording import count, listed, near_matches, quoted
from accord.tables.cells import CellKind, UnreadableCells, convert_among_words
from accord.tables.schema import Column, Schema, TableError, as_numbers

# What the cells of a column are, one and several; numbers where nothing else is said.
_NUMBERS = ("number", "numbers")
_KINDS: dict[CellKind, tuple[str, str]] = {
    "boolean": ("true or false", "true or false"),
    "time": ("time of day", "times of day"),
    "date": ("date", "dates"),
}
# Columns with words that are named one by one.
_MOST_SENTENCES = 5


@dataclass(frozen=True)
class Words:
    """Cells of a column that are words where training had numbers, dates or truth values.

    ``word`` is the first, in ``row``.
    """

    kind: CellKind
    count: int
    word: str
    row: int

    def __add__(self, other: "Words") -> "Words":
        first = min(self, other, key=lambda words: words.row)
        return replace(first, count=self.count + other.count)

    def problem(self, name: str) -> str:
        """Why they are refused, where they are."""
        kind = _KINDS.get(self.kind, _NUMBERS)[1]
        more = f" and {self.count - 1} more" if self.count > 1 else ""
        word = quoted(self.word, limit=40)
        return f"column {quoted(name)} must hold {kind}, got {word} in row {self.row:,}{more}"

    def sentence(self, name: str, *, flagged: bool = True) -> str:
        """What is done about them; in training no row is flagged."""
        one, several = _KINDS.get(self.kind, _NUMBERS)
        what = f"is no {one}" if self.count == 1 else f"are no {several}"
        first = "" if self.count == 1 else "first "
        rows = f", and {'its row' if self.count == 1 else 'the rows'} as unusual"
        return (
            f"{count(self.count, 'value')} in {quoted(name)} {what} ({first}"
            f"{quoted(self.word, limit=40)} in row {self.row:,}): taken as missing"
            f"{rows if flagged else ''}."
        )


@dataclass(frozen=True)
class Surprises:
    """Cells of a new table that can be predicted from, but deserve a word: counts by column.

    ``rows`` is the number of rows that were looked at.
    """

    missing: dict[str, int] = field(default_factory=dict)
    infinite: dict[str, int] = field(default_factory=dict)
    absurd: dict[str, int] = field(default_factory=dict)
    unseen: dict[str, int] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    words: dict[str, Words] = field(default_factory=dict)
    rows: int = field(default=0, compare=False)

    def __add__(self, other: "Surprises") -> "Surprises":
        words = dict(self.words)
        for name, more in other.words.items():
            words[name] = words[name] + more if name in words else more
        return Surprises(
            _added(self.missing, other.missing),
            _added(self.infinite, other.infinite),
            _added(self.absurd, other.absurd),
            _added(self.unseen, other.unseen),
            _added(self.changed, other.changed),
            words,
            self.rows + other.rows,
        )

    def check(self, *, source: str) -> "Surprises":
        """Refuse columns that hold nothing but words: they are not those of training."""
        problems = [
            words.problem(name)
            for name, words in self.words.items()
            if words.count + self.missing.get(name, 0) == self.rows
        ]
        if problems:
            raise _does_not_fit(source, problems)
        return self

    def sentences(self) -> list[str]:
        """One plain sentence per sort of surprise.

        >>> Surprises(missing={"age": 3}).sentences()
        ["3 missing values in 'age': predicted from the other columns."]
        """
        beyond, unseen = "far beyond all in training", "not seen in training"
        sorts = (
            (self.missing, "missing value", "missing values", "predicted from the other columns"),
            (
                self.infinite,
                "infinite value",
                "infinite values",
                "taken as missing, and the rows as unusual",
            ),
            (self.absurd, f"value {beyond}", f"values {beyond}", "the rows count as unusual"),
            (
                self.unseen,
                f"category {unseen}",
                f"categories {unseen}",
                "predicted from the other columns",
            ),
            (
                self.changed,
                "value other than the one of training",
                "values other than the one of training",
                "nothing was learnt of such values",
            ),
        )
        said = [
            f"{count(sum(counts.values()), one, several)} in {listed(counts)}: {answer}."
            for counts, one, several, answer in sorts
            if counts
        ]
        said += [words.sentence(name) for name, words in list(self.words.items())[:_MOST_SENTENCES]]
        if (more := len(self.words) - _MOST_SENTENCES) > 0:
            said.append(f"Words in {count(more, 'further column')} are taken as missing, too.")
        return said


def _added(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    return {name: a.get(name, 0) + b.get(name, 0) for name in {**a, **b}}


@dataclass(frozen=True)
class ConformedRows:
    """A batch in the model's form, with what is out of the ordinary kept by row.

    ``unlike`` marks rows that are unlike the training rows by a single look: an infinite or an
    absurd cell, a word among numbers, or categories of which the model knows none.

    **Shape**: X (n, columns), unlike (n,).
    """

    X: pd.DataFrame
    unlike: Bools
    marks: "tuple[_Marks, ...]"

    def surprises(self, rows: slice = slice(None), *, first_row: int = 1) -> Surprises:
        """Counts by column, of all rows or of some, the first of which has this number."""
        start, end, _ = rows.indices(len(self.X))
        counts: dict[str, Any] = {
            sort: {mark.column.name: n for mark in self.marks if (n := mark.marked(sort, rows))}
            for sort in ("missing", "infinite", "absurd", "unseen", "changed")
        }
        words = {
            mark.column.name: found
            for mark in self.marks
            if (found := mark.found_words(range(start, end), first_row))
        }
        return Surprises(**counts, words=words, rows=end - start)


def conform(
    table: pa.Table,
    schema: Schema,
    *,
    source: str,
    by_name: bool = True,
    strict: bool = False,
) -> ConformedRows:
    """A whole table in the model's form; one with other columns, or words in all rows, is refused.

    See :func:`check_columns` for ``by_name`` and :func:`conform_rows` for ``strict``.
    """
    check_columns(table.column_names, schema, source=source, by_name=by_name)
    rows = conform_rows(table, schema, source=source, strict=strict)
    if any(mark.words for mark in rows.marks):  # nothing else is refused
        rows.surprises().check(source=source)
    return rows


def conform_rows(
    table: pa.Table, schema: Schema, *, source: str, first_row: int = 1, strict: bool = False
) -> ConformedRows:
    """A batch in the model's form, and what in it is out of the ordinary, by row.

    Every unreadable column is named, not only the first; ``first_row`` is the batch's place in its
    file. ``strict`` refuses infinite and absurd cells, words among numbers, unseen categories and
    other values in columns that had only one, by column and row.
    """
    values: dict[str, NDArray[Any]] = {}
    marks: list[_Marks] = []
    problems = []
    for column in schema.columns:
        try:
            converted, words = convert_among_words(table.column(column.name), column.cells)
        except UnreadableCells as error:
            problems.append(f"column {quoted(column.name)} {error.sentence(first_row)}")
            continue
        values[column.name], found = _marked(column, converted, words)
        marks.append(found)
        if strict and (problem := found.problem(first_row)):
            problems.append(problem)
    if problems:
        raise _does_not_fit(source, problems)
    return ConformedRows(pd.DataFrame(values), _unlike(marks, table.num_rows), tuple(marks))


def _does_not_fit(source: str, problems: list[str]) -> TableError:
    shown = "; ".join(problems[:5]) + (f"; and {len(problems) - 5} more" * (len(problems) > 5))
    return TableError(f"{source} does not fit the model: {shown}. Correct these columns.")


class _Marks(NamedTuple):
    """Which cells of a column are out of the ordinary; None where none can be.

    ``words`` are those among numbers, by their place.

    **Shape**: (n,) each.
    """

    column: Column
    missing: Bools
    infinite: Bools | None = None
    absurd: Bools | None = None
    unseen: Bools | None = None
    changed: Bools | None = None
    words: dict[int, str] = {}  # noqa: RUF012  no tuple changes it

    def marked(self, sort: str, rows: slice) -> int:
        mask: Bools | None = getattr(self, sort)
        return 0 if mask is None else int(np.count_nonzero(mask[rows]))

    def found_words(self, rows: range, first_row: int) -> Words | None:
        """The words of some rows, the first of which has this number."""
        places = [place for place in self.words if place in rows]
        if not places:
            return None
        row, word = first_row + places[0] - rows.start, self.words[places[0]]
        return Words(self.column.kind, len(places), word, row)

    def problem(self, first_row: int) -> str:
        if words := self.found_words(range(len(self.missing)), first_row):
            return words.problem(self.column.name)
        sorts = (
            (self.infinite, "must be finite"),
            (self.absurd, f"must lie near {self.column.low:g} to {self.column.high:g}"),
            (self.unseen, "must hold categories that the model knows"),
            (self.changed, "must hold the one value of training"),
        )
        for mask, rule in sorts:
            if mask is not None and mask.any():
                rows = np.flatnonzero(mask)
                more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
                return (
                    f"column {quoted(self.column.name)} {rule}: row {first_row + rows[0]:,}{more}"
                )
        return ""


def _marked(
    column: Column, values: NDArray[Any], words: dict[int, str]
) -> tuple[NDArray[Any], _Marks]:
    if column.kind == "category":
        missing: Bools = pd.isna(values)
        if column.watched:
            return values, _Marks(column, missing, changed=column.others(values))
        known = pd.Series(values).isin(column.categories).to_numpy()
        return values, _Marks(column, missing, unseen=~known & ~missing)
    numbers = as_numbers(values)
    low, high = column.known
    if len(numbers) and low <= numbers.min() and numbers.max() <= high:  # so that none is NaN
        return values, _Marks(column, np.zeros(len(numbers), bool))
    missing = pd.isna(values)
    missing[list(words)] = False  # a word is told by itself
    infinite = np.isinf(numbers)
    beyond = ((numbers < low) | (numbers > high)) & ~infinite
    sort = "changed" if column.watched else "absurd"
    if values.dtype.kind == "f":  # an infinite value is missing, as in training
        values = np.where(infinite, np.nan, np.clip(values, *column.limits))
    marks = {"infinite": infinite, sort: beyond}
    return values, _Marks(column, missing, words=words, **marks)


def _unlike(marks: list[_Marks], n_rows: int) -> Bools:
    unlike = np.zeros(n_rows, dtype=bool)
    all_unseen, any_unseen = np.ones(n_rows, dtype=bool), np.zeros(n_rows, dtype=bool)
    for mark in marks:
        for mask in (mark.infinite, mark.absurd):
            if mask is not None:
                unlike |= mask
        unlike[list(mark.words)] = True
        if mark.unseen is not None:
            all_unseen &= mark.unseen | mark.missing
            any_unseen |= mark.unseen
    return unlike | (all_unseen & any_unseen)


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
        remedy = "" if missing else " Pass by_name (--by-name) to match by names alone."
        remedy = remedy or " Correct the header, or add the columns."
        raise TableError(f"{source} does not fit the model: {'; '.join(problems)}.{remedy}")


def _missing(missing: list[str], candidates: list[str]) -> str:
    hints = [near[0] for name in missing[:3] if (near := near_matches(name, candidates, limit=1))]
    hint = f" (the table has {listed(hints)})" if hints else ""
    return f"{listed(missing)} {'is' if len(missing) == 1 else 'are'} missing{hint}"
