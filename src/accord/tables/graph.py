"""A table's columns in an exported graph: from numbers and codes to the features of a model.

Numbers are as they stand in the table, booleans 0 or 1, times seconds since midnight, dates
seconds since 1970; a missing one is NaN. A category is its place in the column's code book, −1
where it is missing, and any other number where it is not known.
"""

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from accord._types import Bools
from accord.export import Array, Graph, Value, joined, states
from accord.tables.cells import convert
from accord.tables.encoder import DAY, FARTHEST, WEEK, Block, TableEncoder
from accord.tables.schema import Column, Schema, as_numbers

NUMBERS, CATEGORIES = "numbers", "categories"
MISSING_CODE = -1


@dataclass(frozen=True)
class TableInputs:
    """The inputs of a table's graph: columns of numbers and of categories, None without any."""

    numbers: Value | None
    categories: Value | None

    @staticmethod
    def of(graph: Graph, schema: Schema) -> "TableInputs":
        numeric, texts = _split(schema)
        return TableInputs(
            graph.input(NUMBERS, np.float64, width=len(numeric)) if numeric else None,
            graph.input(CATEGORIES, np.int64, width=len(texts)) if texts else None,
        )


def _split(schema: Schema) -> tuple[list[Column], list[Column]]:
    """Columns of numbers and of categories, each in the schema's order."""
    numeric = [column for column in schema.columns if column.kind != "category"]
    return numeric, [column for column in schema.columns if column.kind == "category"]


def input_arrays(table: pa.Table, schema: Schema) -> dict[str, Array]:
    """A table's columns as the inputs of its graph."""
    numeric, texts = _split(schema)
    arrays: dict[str, Array] = {}
    if numeric:
        columns = [as_numbers(convert(table.column(c.name), c.cells)) for c in numeric]
        arrays[NUMBERS] = np.column_stack(columns)
    if texts:
        codes = [_codes(convert(table.column(c.name), c.cells), c) for c in texts]
        arrays[CATEGORIES] = np.column_stack(codes)
    return arrays


def _codes(values: Array, column: Column) -> Array:
    codes = pd.Categorical(values, categories=list(column.categories)).codes.astype(np.int64)
    unknown = (codes < 0) & ~np.asarray(pd.isna(values))
    return np.where(unknown, len(column.categories), codes)


def described_inputs(schema: Schema) -> dict[str, list[dict[str, Any]]]:
    """What each column of the inputs holds, for the metadata of a file."""
    numeric, texts = _split(schema)
    meaning = {"time": "seconds since midnight", "date": "seconds since 1970-01-01"}
    return {
        NUMBERS: [
            {
                "name": column.name,
                "kind": column.kind,
                "unit": column.cells.unit or meaning.get(column.kind, ""),
                "missing": "NaN",
            }
            for column in numeric
        ],
        CATEGORIES: [
            {
                "name": column.name,
                "codes": {name: code for code, name in enumerate(column.categories)},
                "missing": MISSING_CODE,
                "unknown": len(column.categories),
            }
            for column in texts
        ],
    }


def state_unlike(inputs: TableInputs, schema: Schema) -> Value | None:
    """Rows unlike the training rows by a single look, as ``conform`` finds them; (N, 1)."""
    found: list[Value] = []
    numeric, texts = _split(schema)
    if inputs.numbers is not None:
        low, high = np.array([column.limits for column in numeric]).T
        beyond = (inputs.numbers < low[None]) | (inputs.numbers > high[None])
        found.append(beyond.any(1).wider(1))
    if inputs.categories is not None:
        codes = inputs.categories.cast(np.float64)
        size = np.array([[float(len(column.categories)) for column in texts]])
        known = (codes >= 0.0) & (codes < size)
        is_gap = (codes >= float(MISSING_CODE)) & (codes <= float(MISSING_CODE))
        several = np.flatnonzero([not column.watched for column in texts])
        if len(several):
            none_known = ~known.take(several, 1).any(1)
            unseen = (~(known | is_gap)).take(several, 1).any(1)
            found.append((none_known & unseen).wider(1))
    return reduce(Value.__or__, found) if found else None


@states(TableEncoder)
def state_encoder(encoder: TableEncoder, inputs: TableInputs) -> Value:
    """The features of rows, (N, features)."""
    numeric, texts = _split(encoder.schema)
    places = {c.name: place for columns in (numeric, texts) for place, c in enumerate(columns)}
    parts = []
    for block, (kind, columns) in zip(encoder.blocks_, encoder.groups, strict=True):
        own = [places[column.name] for column in columns]
        if kind == "watched":
            parts += _watched(inputs, columns, own)
        elif kind in ("one-hot", "target"):
            if inputs.categories is None:
                raise RuntimeError("a graph lacks its categories. Report this as a bug.")
            parts.append(_looked_up(encoder, columns[0], inputs.categories.column(own[0])))
        else:
            if inputs.numbers is None:
                raise RuntimeError("a graph lacks its numbers. Report this as a bug.")
            values = _within_limits(inputs.numbers.take(own, 1), columns)
            parts.append(_PARTS[kind](block, values))
    return joined(parts, 1).take(encoder.kept_, 1)


def _watched(inputs: TableInputs, columns: list[Column], places: list[int]) -> list[Value]:
    """1 where a column with one value has another one, by numbers and by categories; (N, k) each.

    What is missing in a constant column may be any value.
    """
    numeric = [column for column in columns if column.kind != "category"]
    parts = []
    if numeric and inputs.numbers is not None:
        values = _within_limits(inputs.numbers.take(places[: len(numeric)], 1), numeric)
        low, high = np.array([column.known for column in numeric]).T
        constant = values.graph.constant(np.array([[column.constant for column in numeric]]))
        other = (values < low[None]) | (values > high[None]) | (values.is_nan() & constant)
        parts.append(other.cast(np.float64))
    if len(numeric) < len(columns) and inputs.categories is not None:
        codes = inputs.categories.take(places[len(numeric) :], 1).cast(np.float64)
        parts.append((~((codes >= 0.0) & (codes < 1.0))).cast(np.float64))
    return parts


def _within_limits(values: Value, columns: list[Column]) -> Value:
    """Absurd numbers moved to the nearest limit, as ``conform`` does; dates stay as they are.

    Infinite ones are missing.
    """
    if columns[0].kind == "date":
        return values
    low, high = np.array([column.limits for column in columns]).T
    moved = values.at_least(low[None]).at_most(high[None])
    return (values - values).is_nan().where(np.nan, moved)  # ∞ − ∞ is no number, as nothing is


def _looked_up(encoder: TableEncoder, column: Column, codes: Value) -> Value:
    """The features of a category: one row of a table for each code, then missing and unknown."""
    n, graph = len(column.categories), codes.graph
    number = codes.cast(np.float64)
    is_gap = (number >= float(MISSING_CODE)) & (number <= float(MISSING_CODE))
    known = (number >= 0.0) & (number < float(n))
    place = known.where(number, is_gap.where(float(n), float(n + 1))).cast(np.int64)
    return graph.constant(encoder.category_features(column)).take(place, 0)


def _numbers(block: Block, values: Value) -> Value:
    missing = values.is_nan()
    filled = missing.where(block["median"][None], values)
    if len(block["gaps"]):
        filled = joined([filled, missing.cast(np.float64).take(block["gaps"], 1)], 1)
    half = (filled / 2 - block["centre"][None] / 2) / block["scale"][None]
    features: Value = (2 * half).at_least(-FARTHEST).at_most(FARTHEST)
    varies: Bools = block["varies"]
    return features.graph.constant(varies[None]).where(features, 0.0)


def _time(block: Block, values: Value) -> Value:
    return joined([_numbers(block, values), _circular(values / DAY)], 1)


def _date(block: Block, values: Value) -> Value:
    return joined([_numbers(block, values), _circular(_calendar(values))], 1)


_PARTS = {"numbers": _numbers, "time": _time, "date": _date}


def _circular(phase: Value) -> Value:
    """Sine and cosine of a share of a period, zero where it is missing; (N, p) → (N, 2p)."""
    missing = phase.is_nan()
    angle = 2 * np.pi * missing.where(0.0, phase)
    sine, cosine = (phase.graph.add(operation, angle) for operation in ("Sin", "Cos"))
    return joined([missing.where(0.0, sine), missing.where(0.0, cosine)], 1)


def _calendar(seconds: Value) -> Value:
    """How far in its year, month, week and day a moment lies, as shares; (N, 1) → (N, 4)."""
    days = (seconds / DAY).floor()
    year, month = _civil(days)
    turn = month >= 12.0
    next_year, next_month = turn.where(year + 1, year), turn.where(1.0, month + 1)
    one = 0.0 * days + 1.0
    shares = []
    for start, end in (
        (_days(year, one), _days(year + 1, one)),
        (_days(year, month), _days(next_year, next_month)),
    ):
        shares.append((seconds - DAY * start) / (DAY * (end - start)))
    for period in (WEEK, DAY):
        shares.append((seconds - period * (seconds / period).floor()) / period)
    return joined(shares, 1)


def _civil(days: Value) -> tuple[Value, Value]:
    """Year and month of a day since 1970, by the proleptic Gregorian calendar.

    Years are counted from March in eras of 400, so that a leap day ends a year.
    """
    shifted = days + 719_468
    era = (shifted / 146_097).floor()
    of_era = shifted - 146_097 * era
    leap = (of_era / 1_460).floor() - (of_era / 36_524).floor() + (of_era / 146_096).floor()
    year_of_era = ((of_era - leap) / 365).floor()
    of_year = of_era - (365 * year_of_era + (year_of_era / 4).floor() - (year_of_era / 100).floor())
    from_march = ((5 * of_year + 2) / 153).floor()
    early = from_march >= 10.0
    month = early.where(from_march - 9, from_march + 3)
    year = year_of_era + 400 * era
    return early.where(year + 1, year), month


def _days(year: Value, month: Value) -> Value:
    """Days from 1970 to the first of a month."""
    early = month <= 2.0
    from_march = early.where(month + 9, month - 3)
    year = early.where(year - 1, year)
    era = (year / 400).floor()
    of_era = year - 400 * era
    of_year = ((153 * from_march + 2) / 5).floor()
    days = 365 * of_era + (of_era / 4).floor() - (of_era / 100).floor() + of_year
    return 146_097 * era + days - 719_468
