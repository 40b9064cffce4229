"""Bodies of requests and of answers: JSON records, CSV, or Arrow streams.

Types of records are made from a model's schema, and examples of them from its training rows.
"""

import io
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, reduce
from operator import add
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray
from pydantic import Field, Strict, TypeAdapter, ValidationError, with_config
from pydantic_core import to_json
from typing_extensions import TypedDict  # pydantic wants this one before Python 3.12

from accord._wording import listed, number, quoted
from accord.service.limits import Refused, too_many_rows
from accord.tables import (
    CellKind,
    Column,
    Schema,
    Surprises,
    TableError,
    check_columns,
    check_names,
    parse_csv,
)
from accord.tabular import TableProfile

Record = dict[str, Any]
# Rows of a request: records, or a table of whatever types the client sent.
BodyRows: TypeAlias = list[Record] | pa.Table

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
BodyFormat = Literal["json", "csv", "arrow"]

MEDIA: dict[BodyFormat, str] = {
    "json": "application/json",
    "csv": "text/csv",
    "arrow": "application/vnd.apache.arrow.stream",
}
_FORMATS = {media: name for name, media in MEDIA.items()}
BODY = "the body"
_BROKEN = "the body cannot be read as an Arrow stream ({}). Write it with pyarrow.ipc.new_stream."
# A header must stay short: further remarks are left out.
_HEADER_CHARACTERS = 2_000


# --- rows as JSON records ------------------------------------------------------------------------


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
    moment = _EPOCH + timedelta(seconds=round(value))
    if column.kind == "time":
        return f"{moment:%H:%M:%S}"
    if style := column.cells.date_format:
        return moment.strftime(style)
    whole_days = column.low % _DAY == 0 and column.high % _DAY == 0
    return str(moment.date()) if whole_days else moment.isoformat()


# --- rows in any form ----------------------------------------------------------------------------


def body_format(content_type: str) -> BodyFormat:
    """What a body is, by its declared type; without one it is taken for JSON."""
    media = content_type.partition(";")[0].strip().lower() or MEDIA["json"]
    if media not in _FORMATS:
        raise Refused(
            415, f"the body must be one of {', '.join(_FORMATS)}, got {media[:80]!r}. Convert it."
        )
    return _FORMATS[media]


def answer_format(accept: str, given: BodyFormat) -> BodyFormat:
    """In which form to answer: what the client accepts, by default that of its body."""
    wanted = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    return next((_FORMATS[media] for media in wanted if media in _FORMATS), given)


def read_rows(
    body: bytes, kind: BodyFormat, records: Records, *, by_name: bool, most: int
) -> BodyRows:
    """The rows of a body, its columns checked by name."""
    rows = _content(body, kind, records, by_name=by_name, most=most)
    if not len(rows):
        raise TableError(f"{BODY} has no rows. Nothing to predict.")
    if len(rows) > most:
        raise too_many_rows(most, len(rows))
    return rows


def _content(
    body: bytes, kind: BodyFormat, records: Records, *, by_name: bool, most: int
) -> BodyRows:
    if not body:
        raise TableError(f"{BODY} is empty. Send rows.")
    if kind == "json":
        return records.read(body, by_name=by_name)
    table = parse_csv(body, name=BODY) if kind == "csv" else read_stream(body, most=most)
    check_columns(table.column_names, records.schema, source=BODY, by_name=by_name)
    return table.select(records.schema.names)


# --- Arrow streams of any client: limited before they take memory, checked before use ------------


def read_stream(body: bytes, *, most: int) -> pa.Table:
    """The table of an Arrow IPC stream with at most ``most`` rows.

    Compressed streams are refused: a few bytes could stand for gigabytes.
    """
    try:
        _refuse_compressed(body)
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            check_names("the body", [str(name) for name in reader.schema.names])
            batches, rows = [], 0
            for batch in reader:
                rows += batch.num_rows
                if rows > most:
                    raise too_many_rows(most, rows)
                batches.append(batch)
            table = pa.Table.from_batches(batches, schema=reader.schema)
        # lengths and offsets are the client's word, which nothing has checked yet
        table.validate(full=True)
    except (pa.ArrowException, OSError, struct.error, UnicodeDecodeError) as error:
        first = str(error).strip().partition("\n")[0][:120]
        raise TableError(_BROKEN.format(first.rstrip("."))) from None
    return table


def _refuse_compressed(body: bytes) -> None:
    reader = pa.ipc.MessageReader.open_stream(pa.py_buffer(body))
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        if message.type in ("record batch", "dictionary") and _is_compressed(
            message.metadata.to_pybytes(), nested=message.type == "dictionary"
        ):
            raise Refused(
                415, "an Arrow stream must not be compressed, got one. Write it uncompressed."
            )


def _is_compressed(metadata: bytes, *, nested: bool) -> bool:
    """Whether a message names a compression: field 3 of its record batch (format/Message.fbs).

    The metadata is a flatbuffer: a table begins with the distance back to a list of where its
    fields lie, 0 for a field that is not there.
    """
    place = struct.unpack_from("<I", metadata, 0)[0]
    place = _field(metadata, place, 2)  # the header of the message
    if nested:
        place = _field(metadata, place, 1)  # the record batch of a dictionary
    return _field(metadata, place, 3) != 0


def _field(metadata: bytes, table: int, number: int) -> int:
    """Where the table lies that a field refers to, 0 if the field is absent."""
    if table == 0:
        return 0
    fields = table - struct.unpack_from("<i", metadata, table)[0]
    size = struct.unpack_from("<H", metadata, fields)[0]
    if 4 + 2 * number + 2 > size:
        return 0
    offset: int = struct.unpack_from("<H", metadata, fields + 4 + 2 * number)[0]
    if not offset:
        return 0
    distance: int = struct.unpack_from("<I", metadata, table + offset)[0]
    return table + offset + distance


# --- answers -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Predicted:
    """What is said of rows that were predicted together, column by column."""

    columns: dict[str, NDArray[Any]]

    @cached_property
    def records(self) -> list[Record]:
        """The same row by row: made once, for all the requests of a batch."""
        names = list(self.columns)
        values = zip(*(column.tolist() for column in self.columns.values()), strict=True)
        return [dict(zip(names, row, strict=True)) for row in values]


@dataclass(frozen=True)
class ServiceAnswer:
    """What is said of the rows of a request, and what was odd about them."""

    predicted: Predicted
    rows: slice
    surprises: Surprises

    @staticmethod
    def joined(parts: "list[ServiceAnswer]") -> "ServiceAnswer":
        """The answers to the pieces of a request, in their order."""
        if len(parts) == 1:
            return parts[0]
        columns = {
            name: np.concatenate([part.columns[name] for part in parts])
            for name in parts[0].predicted.columns
        }
        surprises = reduce(add, (part.surprises for part in parts))
        return ServiceAnswer(Predicted(columns), slice(None), surprises)

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        return {name: values[self.rows] for name, values in self.predicted.columns.items()}

    @property
    def records(self) -> list[Record]:
        return self.predicted.records[self.rows]

    @property
    def warnings(self) -> list[str]:
        return self.surprises.sentences()

    @property
    def n_unusual(self) -> int:
        return int(np.count_nonzero(self.predicted.columns["unusual"][self.rows]))


def encode(answer: ServiceAnswer, kind: BodyFormat, coverages: tuple[float, ...]) -> bytes:
    """The body of an answer."""
    if kind == "json":
        document = {"predictions": answer.records, "coverage": coverages}
        return compact_json({**document, "warnings": answer.warnings})
    table = pa.table(answer.columns)
    sink = io.BytesIO()
    if kind == "csv":
        pacsv.write_csv(table, sink)
    else:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue()


def warning_header(answer: ServiceAnswer) -> dict[str, str]:
    """Warnings where the body has no place for them, as a list in JSON with ASCII letters only."""
    kept: list[str] = []
    for warning in answer.warnings:
        if len(json.dumps([*kept, warning])) > _HEADER_CHARACTERS:
            break
        kept.append(warning)
    return {"Accord-Warnings": json.dumps(kept)} if answer.warnings else {}


def compact_json(document: Any) -> bytes:
    """A document in JSON; what is not a finite number is null."""
    return to_json(document, inf_nan_mode="null")
