"""CSV files as streams of text batches: separator, encoding and compression are found out.

Cells are read as text: what they mean is decided once, when a model is fitted
(:mod:`accord.tables.schema`), and not again for each file by the values that happen to be in it.
"""

import codecs
import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from accord._files import OptionError
from accord.tables.problems import TableError, quoted
from accord.tables.stream import TableStream, check_names, reason

# Empty cells and the usual ways of writing "missing"; compared after outer spaces are removed.
MISSING_TOKENS = (
    *("", "NA", "N/A", "n/a", "na", "#N/A", "NaN", "nan", "-nan", "-NaN", "NULL", "null", "Null"),
    *("None", "none", "NONE", "<NA>", "NaT"),
)
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_BLOCK_BYTES = 8 << 20
# A row wider than a block cannot be parsed, so a block grows with the number of columns.
_BLOCK_BYTES_PER_COLUMN = 8 << 10
_SAMPLE_BYTES = 4 << 20


@dataclass(frozen=True)
class CsvDialect:
    """How a CSV file is written, and its header (``skip`` lines that end with it)."""

    delimiter: str
    encoding: str
    compression: str | None
    names: list[str]
    skip: int


@contextmanager
def csv_stream(path: Path, *, encoding: str, batch_rows: int) -> Iterator[TableStream]:
    """A CSV file's batches, every column as text with missing cells as nulls."""
    dialect = csv_dialect(path, encoding=encoding)
    check_names(path.name, dialect.names)
    size = max(1, path.stat().st_size)
    with pa.OSFile(str(path)) as raw:
        try:
            reader = _reader(_decompressed(raw, dialect.compression), dialect)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _broken(path, dialect, error) from error
        yield TableStream(
            name=path.name,
            columns=tuple(dialect.names),
            batches=_batches(path, reader, dialect, batch_rows),
            position=lambda: min(1.0, raw.tell() / size),
            delimiter=dialect.delimiter,
        )


def csv_dialect(path: Path, *, encoding: str) -> CsvDialect:
    """Separator, encoding, compression and header of a CSV file, from its beginning."""
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise OptionError(
            f"encoding must be a known text encoding, got {quoted(encoding)}. Use utf-8, latin-1 "
            "or cp1252."
        ) from None
    compression = _COMPRESSIONS.get(path.suffix.lower())
    try:
        with pa.input_stream(str(path), compression=compression) as stream:
            sample: bytes = stream.read(_SAMPLE_BYTES)
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{path.name} cannot be decompressed ({reason(error)}).") from error
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    text = _decoded(path, sample, encoding).lstrip("\ufeff")
    delimiter = _delimiter([line for line in text.splitlines()[:50] if line.strip()][:20])
    names, skip = _header(text, delimiter)
    return CsvDialect(delimiter, encoding, compression, names, skip)


def _decoded(path: Path, sample: bytes, encoding: str) -> str:
    try:
        # An incremental decoder forgives a character cut in two at the end of the sample.
        text: str = codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError as error:
        raise _wrong_encoding(path, encoding) from error
    if "\0" in text:
        raise TableError(f"{path.name} is not text. Give a CSV or Parquet file.")
    return text


def _delimiter(lines: list[str]) -> str:
    """The separator that occurs in every line, and most often in the header."""
    if not lines:
        return ","
    counts = {mark: [line.count(mark) for line in lines] for mark in ",;\t|"}
    best = max(counts, key=lambda mark: (min(counts[mark]) > 0, counts[mark][0]))
    return best if counts[best][0] else ","


def _header(text: str, delimiter: str) -> tuple[list[str], int]:
    """Column names, outer spaces aside (a nameless one is called by its place), and rows used."""
    for skip, row in enumerate(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), 1):
        if any(cell.strip() for cell in row):
            names = [cell.strip() for cell in row]
            return [name or f"column {place}" for place, name in enumerate(names, 1)], skip
    return [], 0


def _decompressed(raw: Any, compression: str | None) -> Any:
    return raw if compression is None else pa.CompressedInputStream(raw, compression)


def _reader(raw: Any, dialect: CsvDialect) -> Any:
    return pacsv.open_csv(
        raw,
        read_options=pacsv.ReadOptions(
            encoding=dialect.encoding,
            block_size=_BLOCK_BYTES + _BLOCK_BYTES_PER_COLUMN * len(dialect.names),
            column_names=dialect.names,
            skip_rows_after_names=dialect.skip,
        ),
        parse_options=pacsv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
        convert_options=pacsv.ConvertOptions(
            column_types=dict.fromkeys(dialect.names, pa.string()), strings_can_be_null=False
        ),
    )


def _batches(path: Path, reader: Any, dialect: CsvDialect, batch_rows: int) -> Iterator[pa.Table]:
    try:
        for block in reader:
            table = pa.Table.from_batches([block])
            for start in range(0, table.num_rows, batch_rows):
                yield _with_nulls(table.slice(start, batch_rows))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _broken(path, dialect, error) from error


def _with_nulls(table: pa.Table) -> pa.Table:
    """Cells without outer spaces; those that then say "missing" become nulls."""
    tokens = pa.array(MISSING_TOKENS)
    columns = []
    for column in table.columns:
        text = pc.utf8_trim_whitespace(column)
        missing = pc.is_in(text, value_set=tokens)
        columns.append(pc.if_else(missing, pa.scalar(None, pa.string()), text))
    return pa.Table.from_arrays(columns, names=table.column_names)


def _broken(path: Path, dialect: CsvDialect, error: Exception) -> TableError:
    message = reason(error)
    if any(sign in message for sign in ("UTF8", "UTF-8", "codec can't decode")):
        return _wrong_encoding(path, dialect.encoding)
    return TableError(
        f"{path.name} cannot be read as a table ({message}). Check that every line has the same "
        f"number of cells, separated by {dialect.delimiter!r}."
    )


def _wrong_encoding(path: Path, encoding: str) -> TableError:
    other = "latin-1" if encoding.lower().replace("-", "") == "utf8" else "utf-8"
    return TableError(
        f"{path.name} is not {encoding} text. Pass --encoding {other} (or the encoding it was "
        "written in), or save it as UTF-8."
    )
