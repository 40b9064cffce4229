"""Bodies of requests and of answers: JSON records, CSV, or Arrow streams."""

import io
import json
import struct
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray
from pydantic_core import to_json

from accord.service.limits import Refused, too_many_rows
from accord.service.records import Record, Records
from accord.tables import Surprises, TableError, check_columns, check_names, parse_csv

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


# --- rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BodyRows:
    """Rows of a request: records, or a table of whatever types the client sent."""

    content: list[Record] | pa.Table

    def __len__(self) -> int:
        return len(self.content)

    def pieces(self, size: int) -> "list[BodyRows]":
        """The rows in order, at most ``size`` at a time."""
        return [BodyRows(self.content[start : start + size]) for start in range(0, len(self), size)]


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
    rows = BodyRows(_content(body, kind, records, by_name=by_name, most=most))
    if not len(rows):
        raise TableError(f"{BODY} has no rows. Nothing to predict.")
    if len(rows) > most:
        raise too_many_rows(most, len(rows))
    return rows


def _content(
    body: bytes, kind: BodyFormat, records: Records, *, by_name: bool, most: int
) -> list[Record] | pa.Table:
    if not body:
        raise TableError(f"{BODY} is empty. Send rows.")
    if kind == "json":
        return records.read(body, by_name=by_name)
    table = parse_csv(body, name=BODY) if kind == "csv" else read_stream(body, most=most)
    check_columns(table.column_names, records.schema, source=BODY, by_name=by_name)
    return table.select(records.schema.names)


# --- Arrow streams from strangers: limited before they take memory, checked before use -----------


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
