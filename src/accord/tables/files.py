"""Tables in and out: CSV and Parquet files, whole or in batches, as Arrow tables."""

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from accord._files import STANDARD_STREAM, OptionError
from accord._types import ArrowFrame
from accord._wording import listed, printable, quoted
from accord.tables.cells import DecimalMark, guard_formulas
from accord.tables.csv_files import TableStream, csv_dialect, csv_stream
from accord.tables.detection import decimal_mark
from accord.tables.frames import arrow_of
from accord.tables.sampling import sample_note, sampled
from accord.tables.schema import TableError, check_names, reason

FileFormat = Literal["csv", "parquet"]

_FOREIGN = {
    b"PK\x03\x04": "an Excel workbook or a zip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"SQLite format 3": "an SQLite database",
    b"\x89HDF": "an HDF5 file",
    b"ARROW1": "an Arrow IPC file",
}


@final
@dataclass(frozen=True)
class TableFile:
    """A file and how it is written: what is not known of a CSV file is found out.

    ``path`` may be a folder of Parquet files, or ``-`` for standard input; ``decimal`` is the
    decimal mark.
    """

    path: str | Path
    encoding: str | None = None
    delimiter: str | None = None
    decimal: DecimalMark | None = None


TableSource: TypeAlias = str | Path | pd.DataFrame | TableFile


@dataclass(frozen=True)
class Origin:
    """The file that a sample was drawn from, and how many rows it has."""

    file: TableFile
    n_rows: int


@dataclass(frozen=True)
class Table:
    """A table in memory, the name to call it by, and the fingerprint of what it came from.

    ``decimal`` is its decimal mark as far as it is known, ``notes`` what was found out about the
    file. ``numbers`` are the rows' numbers in the file, from 1; None if all rows are there.
    ``origin`` is known of a sample of a file that can be read again.
    """

    name: str
    data: pa.Table
    sha256: str
    decimal: DecimalMark | None = None
    notes: tuple[str, ...] = ()
    numbers: NDArray[np.int64] | None = None
    origin: Origin | None = None

    def numbers_of(self, places: NDArray[np.intp]) -> NDArray[np.int64]:
        """The numbers in the file of rows of this table, given by their places in it."""
        return places + 1 if self.numbers is None else self.numbers[places]

    def without_cells(self) -> "Table":
        """What is known of the table, when its cells are no longer needed in memory."""
        return replace(self, data=self.data.schema.empty_table())


# --- reading -----------------------------------------------------------------------------------


def read_table(source: TableSource | ArrowFrame, *, max_rows: int | None = None) -> Table:
    """A CSV or Parquet file, a folder of Parquet files, or a frame, as a :class:`Table`.

    CSV columns come as text, cell by cell as in the file; columns of Parquet files and of frames
    (pandas, polars, pyarrow) keep their types. Of a file with more than ``max_rows`` rows a random
    sample of so many is read, always the same, in the file's order: no more than these are ever in
    memory.

    >>> read_table(pd.DataFrame({"a": [1, 2]})).data.column_names
    ['a']
    """
    if isinstance(source, ArrowFrame):
        return _from_frame(source)
    file = as_file(source)
    if file.decimal not in (None, ".", ","):
        raise OptionError(
            f"decimal must be '.' or ',', got {quoted(file.decimal)}. Use one of them."
        )
    with (
        _regular_file(Path(file.path)) as path,
        open_table(replace(file, path=path)) as stream,
    ):
        data, numbers, total = sampled(stream.batches, max_rows)
        origin = None
        if numbers is not None and path == Path(file.path):  # what came through a pipe is gone
            origin = Origin(replace(file, path=path.absolute()), total)
        table = Table(
            name=stream.name,
            data=data,
            sha256=file_sha256(path),
            decimal=file.decimal or decimal_mark(data),
            notes=(*stream.notes, *sample_note(total, numbers)),
            numbers=numbers,
            origin=origin,
        )
    _check_rows(table)
    return table


def give_back_memory() -> None:
    """Return to the system what Arrow has freed but keeps for itself: more than a table takes."""
    pa.default_memory_pool().release_unused()


def as_file(source: str | Path | TableFile) -> TableFile:
    """A file of which nothing more may be known than where it is."""
    return source if isinstance(source, TableFile) else TableFile(source)


@contextmanager
def read_again(sample: Table, *, columns: list[str] | None = None) -> Iterator[Iterator[Table]]:
    """All rows of the file that a sample was drawn from, in batches with the rows' numbers."""
    origin = sample.origin
    if origin is None:
        raise ValueError(f"only a sample of a file can be read again, got {sample.name}.")
    with open_table(origin.file, columns=columns) as stream:
        yield _numbered(stream, sample)


def _numbered(stream: TableStream, sample: Table) -> Iterator[Table]:
    first = 1
    for batch in stream.batches:
        numbers = np.arange(first, first + batch.num_rows)
        first += batch.num_rows
        yield Table(sample.name, batch, sample.sha256, sample.decimal, numbers=numbers)


@contextmanager
def open_table(
    source: str | Path | TableFile,
    *,
    batch_rows: int = 32_768,
    columns: list[str] | None = None,
) -> Iterator[TableStream]:
    """A CSV or Parquet file, or a folder of Parquet files, as a stream of batches.

    For files larger than memory. ``-`` is standard input. ``columns`` limits what is read of a
    Parquet file, names that it lacks aside.
    """
    file = as_file(source)
    with _regular_file(Path(file.path)) as path:
        if file_format(path) == "parquet":
            opened = _parquet_stream(path, batch_rows=batch_rows, columns=columns)
        else:
            opened = csv_stream(
                path, encoding=file.encoding, delimiter=file.delimiter, batch_rows=batch_rows
            )
        with opened as stream:
            yield stream


@contextmanager
def _regular_file(path: Path) -> Iterator[Path]:
    """The file itself, or a copy of what comes through a pipe: a table is looked at twice."""
    piped = path == STANDARD_STREAM or path.is_fifo() or path.is_char_device()
    if not piped:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "standard input"
        with copy.open("wb") as file:
            if path == STANDARD_STREAM:
                shutil.copyfileobj(sys.stdin.buffer, file)
            else:
                with path.open("rb") as source:
                    shutil.copyfileobj(source, file)
        yield copy


def read_header(source: str | Path | TableFile) -> list[str]:
    """The column names alone."""
    file = as_file(source)
    path = Path(file.path)
    if file_format(path) == "csv":
        return csv_dialect(path, encoding=file.encoding, delimiter=file.delimiter).names
    return _column_names(_parquet_files(path)[0])


def file_format(path: Path) -> FileFormat:
    """What a file holds, by its first bytes: a suffix can lie. A folder must hold Parquet files."""
    shown = printable(path, limit=300)
    if not path.exists():
        raise OptionError(f"{shown} does not exist. Check the path.")
    if path.is_dir():
        if not _parquet_files(path):
            raise OptionError(
                f"{shown} is a folder without Parquet files. Give a CSV or Parquet file, or a "
                "folder of Parquet files."
            )
        return "parquet"
    with path.open("rb") as file:
        head = file.read(16)
    name = printable(path.name)
    if not head:
        raise TableError(f"{name} is empty. Give a file with a header line and data rows.")
    for magic, what in _FOREIGN.items():
        if head.startswith(magic):
            raise TableError(f"{name} is {what}. Save the table as CSV or Parquet first.")
    return "parquet" if head.startswith(b"PAR1") or path.suffix.lower() == ".parquet" else "csv"


def file_sha256(path: Path) -> str:
    """The fingerprint of a file's bytes; of a folder, that of its Parquet files' fingerprints."""
    if path.is_dir():
        each = "".join(file_sha256(file) for file in _parquet_files(path))
        return hashlib.sha256(each.encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _from_frame(frame: pd.DataFrame | ArrowFrame) -> Table:
    data = arrow_of(frame)
    digest = hashlib.sha256()
    for batch in data.to_batches():
        for buffer in (b for column in batch.columns for b in column.buffers() if b is not None):
            digest.update(buffer)
    data = data.replace_schema_metadata(None)
    table = Table("the DataFrame", data, digest.hexdigest(), decimal_mark(data))
    _check_rows(table)
    return table


def _check_rows(table: Table) -> None:
    if not table.data.num_rows:
        raise TableError(
            f"{table.name} has column names but no rows. Add the data rows, or check that the "
            "right file was given."
        )


def _parquet_files(path: Path) -> list[Path]:
    """The file itself, or a folder's files in the order of their names."""
    return sorted(path.glob("*.parquet")) if path.is_dir() else [path]


def _column_names(file: Path) -> list[str]:
    try:
        return [str(name) for name in pq.read_schema(file).names]
    except (pa.ArrowException, OSError) as error:
        raise _broken_parquet(file, error) from error


@contextmanager
def _parquet_stream(
    path: Path, *, batch_rows: int, columns: list[str] | None
) -> Iterator[TableStream]:
    """The batches of Parquet files of one kind, their columns with their own types."""
    files = _parquet_files(path)
    names = _column_names(files[0])
    check_names(printable(path.name), names)
    for file in files:
        if (found := _column_names(file)) != names:
            raise TableError(
                f"the files of a folder must have the same columns, but {printable(file.name)} has "
                f"{listed(found)} and {printable(files[0].name)} has {listed(names)}. Give tables "
                "of one kind."
            )
    wanted = None if columns is None else [name for name in names if name in set(columns)]
    total, done = sum(pq.read_metadata(file).num_rows for file in files), 0

    def counted() -> Iterator[pa.Table]:
        nonlocal done
        for file in files:
            for batch in _parquet_batches(file, batch_rows, wanted):
                done += batch.num_rows
                yield batch

    yield TableStream(
        name=printable(path.name),
        columns=tuple(names),
        batches=counted(),
        position=lambda: done / max(1, total),
    )


def _parquet_batches(path: Path, batch_rows: int, columns: list[str] | None) -> Iterator[pa.Table]:
    try:
        # Without pre-buffering, pages are read as they are needed and a row group of millions of
        # rows is never held at once.
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
            for batch in file.iter_batches(batch_size=batch_rows, columns=columns):
                yield pa.Table.from_batches([batch])
    except (pa.ArrowException, OSError) as error:
        raise _broken_parquet(path, error) from error


def _broken_parquet(path: Path, error: Exception) -> TableError:
    return TableError(
        f"{printable(path.name)} cannot be read as Parquet ({reason(error)}). It may be cut "
        "short: write or download it again."
    )


# --- writing -----------------------------------------------------------------------------------


@final
class TableWriter:
    """Writes tables one after the other to a CSV or Parquet file, by its suffix.

    In CSV, text that a spreadsheet would take for a formula gets a leading apostrophe.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._sink: Any = None
        self._writer: Any = None

    def write(self, table: pa.Table) -> None:
        if self._path.suffix.lower() != ".parquet":
            table = guard_formulas(table)
        if self._writer is None:
            self._writer = self._open(table.schema)
        self._writer.write_table(table)

    def _open(self, schema: pa.Schema) -> Any:
        self._sink = pa.OSFile(str(self._path), "wb")
        if self._path.suffix.lower() == ".parquet":
            # predictions do not repeat: a dictionary of them takes longer than all else, and room
            repeated = [f.name for f in schema if not pa.types.is_floating(f.type)]
            return pq.ParquetWriter(self._sink, schema, use_dictionary=repeated or False)
        options = pacsv.WriteOptions(quoting_style="needed")
        return pacsv.CSVWriter(self._sink, schema, write_options=options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._writer is None:
            return
        try:
            self._writer.close()
        except OSError:
            # On a full disk closing fails as writing did; the first error is the one to report.
            if error is None:
                raise
        finally:
            self._writer = None
            self._sink.close()


def refuse_unknown_suffix(path: str | Path) -> Path:
    """Tables are written as CSV or Parquet, and as CSV to standard output."""
    path = Path(path)
    if path != STANDARD_STREAM and path.suffix.lower() not in (".csv", ".parquet"):
        raise OptionError(
            f"the output file must end in .csv or .parquet, got {quoted(path.name)}. "
            "Give such a name, or - for standard output."
        )
    return path
