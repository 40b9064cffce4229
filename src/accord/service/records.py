"""Rows as JSON records: types made from a model's schema, and examples from its training rows."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Annotated, Any, Literal, NotRequired, final

import numpy as np
import pyarrow as pa
from pydantic import Field, Strict, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict  # pydantic wants this one before Python 3.12

from accord._files import quoted
from accord._wording import number
from accord.tables import CellKind, Column, Schema, TableError, listed
from accord.tabular import TableProfile

Record = dict[str, Any]

_TYPES: dict[CellKind, Any] = {
    "number": Annotated[float, Strict()],
    "boolean": Annotated[bool, Strict()],
    "time": Annotated[str, Strict()],
    "date": Annotated[str, Strict()],
    "category": Annotated[str, Strict()],
}
_ARROW: dict[CellKind, pa.DataType] = {
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "time": pa.string(),
    "date": pa.string(),
    "category": pa.string(),
}
_WORDS: dict[CellKind, str] = {
    "number": "a number",
    "boolean": "true or false",
    "time": "a time of day as text",
    "date": "a date as text",
    "category": "text",
}
_SHOWN_PROBLEMS = 5
_SHOWN_CATEGORIES = 8
# Places in the training values, by column, from which example rows are made.
_EXAMPLES = (50, 25, 75)
_EPOCH = datetime(1970, 1, 1)
_DAY = 86_400


@final
class Records:
    """Reads JSON records with a schema's columns.

    Every column must be there; null is a gap. Columns that training set aside (target, ignored,
    roles) may be there or not; ``by_name`` ignores any other column, too.
    """

    def __init__(self, schema: Schema, profile: TableProfile) -> None:
        self.schema, self._profile = schema, profile
        self._kinds = {column.name: column.kind for column in schema.columns}
        self._exact = _reader(schema, profile, extra="forbid")

    @cached_property
    def _by_name(self) -> TypeAdapter[list[Record]]:
        return _reader(self.schema, self._profile, extra="ignore")

    def read(self, text: bytes, *, by_name: bool = False) -> list[Record]:
        """The rows of a JSON text; a problem is said with its column and row."""
        adapter = self._by_name if by_name else self._exact
        try:
            rows: list[Record] = adapter.validate_json(text)
        except ValidationError as error:
            raise TableError(self._problem(error)) from None
        return rows

    def table(self, rows: Sequence[Record]) -> pa.Table:
        """The rows as a table with the schema's columns."""
        return pa.table(
            {
                name: pa.array([row[name] for row in rows], _ARROW[kind])
                for name, kind in self._kinds.items()
            }
        )

    def examples(self) -> list[Record]:
        """Rows that could have been in training: typical values of each column."""
        return [
            {column.name: _example(column, self._profile, place) for column in self.schema.columns}
            for place in _EXAMPLES
        ]

    def json_schema(self, *, template: str) -> dict[str, Any]:
        """What JSON Schema says of the rows; ``template`` refers to the definitions."""
        return self._exact.json_schema(ref_template=template)

    def _problem(self, error: ValidationError) -> str:
        found = error.errors(include_url=False, include_context=False)
        problems = list(dict.fromkeys(map(self._in_words, found)))
        hidden = len(problems) - _SHOWN_PROBLEMS
        more = f"; and {hidden} more" if hidden > 0 else ""
        return f"the body does not fit the model: {'; '.join(problems[:_SHOWN_PROBLEMS])}{more}."

    def _in_words(self, problem: Any) -> str:
        """One of pydantic's problems as the command would say it."""
        kind, place, value = problem["type"], problem["loc"], problem["input"]
        if kind == "json_invalid":
            return f"it must be JSON ({problem['msg'].removeprefix('Invalid JSON: ')})"
        if not place:
            return f"it must be a list of records such as [{{…}}, {{…}}], got {_shown(value)}"
        row = f"in row {place[0] + 1:,}"
        if len(place) == 1:
            return f"a row must be a record with column names, got {_shown(value)} {row}"
        column = str(place[1])
        if kind == "missing":
            return f"column {quoted(column)} is missing {row} (write null for a gap)"
        if kind == "extra_forbidden":
            return (
                f"column {quoted(column)} is not known to the model {row} (by_name=true ignores it)"
            )
        rule = _WORDS.get(self._kinds.get(column, "category"), "a value")
        return f"column {quoted(column)} must hold {rule} or null, got {_shown(value)} {row}"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a record"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return quoted(value, limit=40)


def _reader(
    schema: Schema, profile: TableProfile, *, extra: Literal["forbid", "ignore"]
) -> TypeAdapter[list[Record]]:
    """Reads lists of records with these columns; others that are known may be left out."""
    fields: dict[str, Any] = {
        column.name: Annotated[
            _TYPES[column.kind] | None,
            Field(description=_about(column), examples=[_example(column, profile, 50)]),
        ]
        for column in schema.columns
    }
    others = {schema.target, *schema.ignored, *schema.aside} - fields.keys()
    fields |= {name: NotRequired[Annotated[Any, Field(description="not used")]] for name in others}
    # any text can be a column's name, which only this way of writing the type allows
    make: Any = TypedDict
    rows: Any = list[with_config({"extra": extra})(make("Row", fields))]  # type: ignore[misc]
    return TypeAdapter(rows)


def _about(column: Column) -> str:
    if column.kind == "category":
        known = len(column.categories)
        shown = listed(column.categories, limit=_SHOWN_CATEGORIES)
        return f"text, {known} in training: {shown}; null is a gap" if known else "text"
    if column.kind == "number":
        return f"number, in training {number(column.low)} to {number(column.high)}; null is a gap"
    if column.kind == "date":
        style = column.cells.date_format or "ISO 8601"
        return f"date written {style.replace('%', '')}; null is a gap"
    return f"{_WORDS[column.kind]}; null is a gap"


def _example(column: Column, profile: TableProfile, place: int) -> Any:
    """A value of the column that is typical for training rows."""
    if column.kind == "category":
        known = list(profile.shares.get(column.name, {})) or list(column.categories)
        return known[_EXAMPLES.index(place) % len(known)] if known else None
    value = float(profile.quantiles[profile.names.index(column.name), place])
    if not np.isfinite(value):
        return None
    if column.kind == "boolean":
        return value >= 0.5
    if column.kind == "number":
        return float(f"{value:.5g}")
    if column.kind == "time":
        return f"{_EPOCH + timedelta(seconds=round(value)):%H:%M:%S}"
    moment = _EPOCH + timedelta(seconds=round(value / 1e6))  # the profile has microseconds
    if style := column.cells.date_format:
        return moment.strftime(style)
    whole_days = column.low % _DAY == 0 and column.high % _DAY == 0
    return str(moment.date()) if whole_days else moment.isoformat()
