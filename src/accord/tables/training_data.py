"""From a table to what a model is trained on: features, target, and the rows' own tolerances."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from accord._checks import LARGEST_TARGET
from accord._files import OptionError
from accord._types import Bools, Floats
from accord._wording import count, listed, quoted
from accord.tables.cells import UnreadableCells, convert
from accord.tables.conforming import Surprises, conform_rows
from accord.tables.features import Decision, by_remark, choose_features, copies_of
from accord.tables.files import Table
from accord.tables.roles import cells_of, number_column, remark_on_role, with_infinite
from accord.tables.schema import (
    Schema,
    TableError,
    check_present,
    names_in_doubt,
    stand_ins,
)

MINIMUM_ROWS = 20
# Cells among which one that is no number is sought.
_SHOWN_ROWS = 10_000
# Squares of smaller spreads leave the range of floats.
_SMALLEST_SPREAD = 1e-150
# Roles whose numbers must not be negative, and what they are called.
_NON_NEGATIVE = {"weight": "weights", "tolerance": "tolerances"}
_BOUNDS = {"lower": "lower bound", "upper": "upper bound"}
# A target this many times the middle half's width away from the middle is likely a typo.
_FAR_TARGET = 50.0


@dataclass(frozen=True)
class TrainingData:
    """Rows with a target (or bounds on it), ready for preprocessing.

    ``notes`` says in plain sentences what was left out or changed, ``decisions`` what is done with
    each column. ``rows`` are the rows' numbers in the file, from 1, and ``places`` their indices in
    the table. ``exact`` marks rows whose target is a measured value; for the others, known only by
    ``lower`` and ``upper``, ``y`` holds a stand-in inside the bounds.

    **Shape**: ``X`` (N, columns), all else (N,).
    """

    X: pd.DataFrame
    y: Floats
    schema: Schema
    notes: tuple[str, ...]
    rows: NDArray[np.int64]
    places: NDArray[np.intp]
    exact: Bools
    weight: Floats | None = None
    tolerance: Floats | None = None
    lower: Floats | None = None
    upper: Floats | None = None
    decisions: tuple[Decision, ...] = ()


def prepare_training(
    table: Table,
    *,
    target: str,
    weight: str | None = None,
    tolerance: str | None = None,
    lower: str | None = None,
    upper: str | None = None,
    ignore: Sequence[str] = (),
    use: Sequence[str] = (),
    category: Sequence[str] = (),
) -> TrainingData:
    """Find column types, set unusable columns and rows aside, and say so.

    ``target`` and the next four name columns: of weights, of tolerances, of bounds of the target.
    ``ignore``, ``use`` and ``category`` overrule what is decided about a column.
    """
    roles = {"target": target, "weight": weight, "tolerance": tolerance}
    given = _given(roles | {"lower": lower, "upper": upper})
    _check_roles(table, given, ignore, [*use, *category])
    numbers = {role: number_column(table, role, name) for role, name in given.items()}
    return _assemble(table, given, numbers, ignore, use, category)


@final
class FurtherTraining:
    """Reads further rows of a table as a sample of it was read."""

    def __init__(self, sample: Table, data: TrainingData, roles: Mapping[str, str]) -> None:
        """``roles`` are the columns as :func:`prepare_training` was told of them."""
        self._schema = data.schema
        self._given = _given(roles)
        self._written = {name: cells_of(sample, name) for name in self._given.values()}
        self._surprises = Surprises()

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return [*self._schema.names, *self._written]

    @property
    def notes(self) -> list[str]:
        """What was found in the batches so far that the sample did not have."""
        words = self._surprises.words
        return [found.sentence(name, flagged=False) for name, found in words.items()]

    def __call__(self, batch: Table) -> TrainingData:
        """The rows of a batch that have a target, or bounds on it."""
        numbers = {role: self._numbers(batch, role) for role in self._given}
        known = _known(batch, self._given, numbers)
        kept = np.flatnonzero(known.usable & (np.abs(known.y) <= LARGEST_TARGET))
        first = int(batch.numbers_of(np.zeros(1, np.intp))[0])
        conformed = conform_rows(batch.data, self._schema, source=batch.name, first_row=first)
        self._surprises += conformed.surprises(first_row=first)
        X = conformed.X if len(kept) == len(known.y) else conformed.X.iloc[kept]
        return TrainingData(X=X, schema=self._schema, notes=(), **known.of(batch, kept))

    def _numbers(self, batch: Table, role: str) -> Floats:
        name = self._given[role]
        try:
            values = convert(batch.data.column(name), self._written[name])
        except UnreadableCells as error:
            first = int(batch.numbers_of(np.zeros(1, np.intp))[0])
            raise TableError(
                f"{role} column {quoted(name)} {error.sentence(first)}. Correct it."
            ) from error
        return np.where(np.isfinite(values), values, np.nan)


def _check_roles(
    table: Table, given: dict[str, str], ignore: Sequence[str], use: Sequence[str]
) -> None:
    """Every column that is named must be there and have one role."""
    asked = [("ignored", name) for name in ignore] + [("used", name) for name in use]
    check_present([*given.items(), *asked], table.data.column_names, source=table.name)
    if both := [name for name in use if name in {*ignore, *given.values()}]:
        raise OptionError(
            f"a column has one role, got {listed(both)} to use and for something else. "
            "Name it once."
        )
    if given["target"] in ignore:
        raise OptionError(
            f"the target must not be ignored or name groups, got {quoted(given['target'])}. "
            "Name another column."
        )
    if len(set(given.values())) < len(given):
        raise OptionError(
            f"each role needs a column of its own, got {listed(given.values())} for "
            f"{listed(given)}. Name different columns."
        )


def _assemble(
    table: Table,
    given: dict[str, str],
    numbers: dict[str, Floats],
    ignore: Sequence[str],
    use: Sequence[str],
    category: Sequence[str],
) -> TrainingData:
    known = _known(table, given, numbers)
    y, exact, usable = known.y, known.exact, known.usable
    if "weight" in given and not np.any(numbers["weight"] > 0):
        raise TableError(
            f"some weights must be positive, but {quoted(given['weight'])} holds only 0. "
            "Name another column."
        )
    kept = np.flatnonzero(usable)
    rows = table.numbers_of(kept)
    _check_target(table, given["target"], y[kept], exact[kept], rows)
    data = table.data if len(kept) == table.data.num_rows else table.data.take(pa.array(kept))
    found = choose_features(table, data, rows, given, ignore, use, category)
    read = {name: remark_on_role(table, name) for name in given.values()}
    notes = [*table.notes, *names_in_doubt(table.data), *by_remark(read)]
    notes += [*_rows_left_out(table, given, usable), *found.notes]
    if bounded := int((~exact[kept]).sum()):
        targets = count(bounded, "target is only", "targets are only")
        notes.append(
            f"{targets} known by bounds: models learn from them, figures count the others."
        )
    notes += stand_ins(given["target"], y[usable & exact]) or _far_targets(
        y[kept], exact[kept], rows, given["target"]
    )
    notes += copies_of(found.X, y[kept], given["target"])
    return TrainingData(
        X=found.X,
        schema=found.schema,
        notes=tuple(notes),
        decisions=tuple(found.decisions),
        **known.of(table, kept),
    )


class _Known(NamedTuple):
    """What is known of the target of each row, and which rows can be used, (N,) each."""

    y: Floats
    exact: Bools
    usable: Bools
    optional: dict[str, Floats | None]

    def of(self, table: Table, kept: NDArray[np.intp]) -> dict[str, Any]:
        """Of the rows that are kept, as :class:`TrainingData` has it."""
        optional = {k: None if v is None else v[kept] for k, v in self.optional.items()}
        rows = {"rows": table.numbers_of(kept), "places": kept}
        return {"y": self.y[kept], "exact": self.exact[kept], **rows, **optional}


def _known(table: Table, given: dict[str, str], numbers: dict[str, Floats]) -> _Known:
    """Usable are rows with a target, or bounds on it, and all that counts them; not of weight 0."""
    y, exact, lower, upper = _targets(table, given, numbers)
    usable = exact | np.isfinite(y)
    for role, plural in _NON_NEGATIVE.items():
        if role in given:
            usable &= _stated(numbers[role], plural, given[role])
    if "weight" in given:
        usable &= numbers["weight"] > 0
    optional = {role: numbers.get(role) for role in _NON_NEGATIVE}
    return _Known(y, exact, usable, {**optional, "lower": lower, "upper": upper})


def _given(roles: Mapping[str, str | None]) -> dict[str, str]:
    """The columns that have a role, by what messages call it."""
    return {_BOUNDS.get(role, role): name for role, name in roles.items() if name is not None}


def _stated(values: Floats, plural: str, column: str) -> Bools:
    """Which rows state a weight or a tolerance; none may be negative."""
    stated = ~np.isnan(values)
    if np.any(values[stated] < 0):
        raise TableError(
            f"{plural} must be non-negative, but {quoted(column)} holds {np.nanmin(values):g}. "
            "Correct the column."
        )
    return stated


def _rows_left_out(table: Table, given: dict[str, str], usable: Bools) -> list[str]:
    notes, target = [], given["target"]
    if left_out := int((~usable).sum()):
        needed = {"weight": " or a positive weight", "tolerance": " or a finite tolerance"}
        others = "".join(words for role, words in needed.items() if role in given)
        notes.append(f"{count(left_out, 'row')} without a target value{others} left out.")
    raw = with_infinite(table, target)
    infinite = table.numbers_of(np.flatnonzero(np.isinf(raw) & ~usable))
    if len(infinite):
        values = "infinite value" if len(infinite) == 1 else "infinite values"
        notes.append(
            f"{len(infinite):,} {values} in {quoted(target)} (first in row {infinite[0]:,}): "
            "left out as missing."
        )
    return notes


def _far_targets(y: Floats, exact: Bools, rows: NDArray[np.int64], target: str) -> list[str]:
    """Targets that look like typing errors, by row and value."""
    low, middle, high = np.quantile(y[exact], [0.25, 0.5, 0.75])
    far = np.flatnonzero(exact & (np.abs(y - middle) > _FAR_TARGET * (high - low)))
    if high == low or not 0 < len(far) <= max(3, 0.005 * len(y)):
        return []
    places = ", ".join(f"{y[place]:,.10g} in row {rows[place]:,}" for place in far[:3])
    return [
        f"{quoted(target)} is {places}, far from all others (half of them lie between {low:,.6g} "
        f"and {high:,.6g}). Correct it if that is a mistake."
    ]


def _targets(
    table: Table, given: dict[str, str], numbers: dict[str, Floats]
) -> tuple[Floats, Bools, Floats | None, Floats | None]:
    """Target, which rows have it exactly, and the bounds of the others.

    A row with a bound is censored: what stands in its target cell is not used. One bound alone
    leaves the other side open.
    """
    y = numbers["target"]
    if "lower bound" not in given and "upper bound" not in given:
        return y, ~np.isnan(y), None, None
    nothing = np.full(len(y), np.nan)
    lower, upper = numbers.get("lower bound", nothing), numbers.get("upper bound", nothing)
    censored = ~np.isnan(lower) | ~np.isnan(upper)
    crossed = np.flatnonzero(lower > upper)
    if len(crossed):
        raise TableError(
            f"lower bounds must not exceed upper bounds, but row {table.numbers_of(crossed)[0]} of "
            f"{table.name} has {lower[crossed[0]]:g} and {upper[crossed[0]]:g}. Correct the "
            "columns."
        )
    # A pair of equal bounds is a measured value.
    measured = censored & (lower == upper)
    y = np.where(measured, lower, y)
    censored &= ~measured
    low = np.where(censored, np.where(np.isnan(lower), -np.inf, lower), np.nan)
    high = np.where(censored, np.where(np.isnan(upper), np.inf, upper), np.nan)
    with np.errstate(invalid="ignore"):
        middle = np.where(np.isinf(low), high, np.where(np.isinf(high), low, (low + high) / 2))
    return np.where(censored, middle, y), ~censored & ~np.isnan(y), low, high


def _check_target(
    table: Table, name: str, y: Floats, exact: Bools, rows: NDArray[np.int64]
) -> None:
    if len(y) < MINIMUM_ROWS:
        raise TableError(
            f"training needs at least {MINIMUM_ROWS} rows with a target, got {len(y)} in "
            f"{table.name}. Add rows."
        )
    if exact.sum() < MINIMUM_ROWS:
        raise TableError(
            f"training needs at least {MINIMUM_ROWS} rows with a measured target, got "
            f"{int(exact.sum())} beside {int((~exact).sum())} censored ones. Add measured rows."
        )
    largest = int(np.argmax(np.abs(y)))
    if abs(y[largest]) > LARGEST_TARGET:
        raise TableError(
            f"target column {quoted(name)} must lie within ±{LARGEST_TARGET:g}, got "
            f"{y[largest]:g} in row {rows[largest]:,}. Correct it, or change the unit."
        )
    if np.ptp(y[exact]) == 0:
        raise TableError(
            f"target column {quoted(name)} is constant ({y[exact][0]:g} in every row): there is "
            "nothing to learn. Name another column."
        )
    if np.ptp(y[exact]) < _SMALLEST_SPREAD:
        raise TableError(
            f"target column {quoted(name)} must vary by more than {_SMALLEST_SPREAD:g}, got values "
            f"like {y[largest]:g} in row {rows[largest]:,}. Change the unit."
        )
