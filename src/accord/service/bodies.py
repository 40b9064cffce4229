"""From the body of a request to rows: JSON records, CSV, or an Arrow stream."""

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from accord.service.arrow import read_stream
from accord.service.limits import Refused, too_many_rows
from accord.service.records import Record, Records
from accord.tables import TableError, check_columns, parse_csv

BodyFormat = Literal["json", "csv", "arrow"]

MEDIA: dict[BodyFormat, str] = {
    "json": "application/json",
    "csv": "text/csv",
    "arrow": "application/vnd.apache.arrow.stream",
}
_FORMATS = {media: name for name, media in MEDIA.items()}
BODY = "the body"


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
