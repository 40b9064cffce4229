"""Tables in and out: CSV and Parquet files, whole or in batches, as Arrow tables."""

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from accord._files import STANDARD_STREAM, OptionError, printable, quoted
from accord.tables.cells import DecimalMark, decimal_mark, is_text
from accord.tables.csv_files import TableStream, csv_dialect, csv_stream
from accord.tables.problems import TableError, check_names, reason

FileFormat = Literal["csv", "parquet"]

_FOREIGN = {
    b"PK\x03\x04": "an Excel workbook or a zip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"SQLite format 3": "an SQLite database",
    b"\x89HDF": "an HDF5 file",
    b"ARROW1": "an Arrow IPC file",
}
# A spreadsheet takes a cell that begins with one of these for a formula, full-width forms included.
_FORMULA_START = "^[=+\\-@\t\r\n＝＋－＠]"
_NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"


@dataclass(frozen=True)
class Table:
    """A table in memory, the name to call it by, and the fingerprint of what it came from.

    ``decimal`` is its decimal mark as far as it is known, ``notes`` what was found out about the
    file.
    """

    name: str
    data: pa.Table
    sha256: str
    decimal: DecimalMark | None = None
    notes: tuple[str, ...] = ()


# --- reading -----------------------------------------------------------------------------------


def read_table(
    source: str | Path | pd.DataFrame,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    decimal: DecimalMark | None = None,
) -> Table:
    """A whole CSV or Parquet file, or a DataFrame, as a :class:`Table`.

    CSV columns come as text, cell by cell as in the file; Parquet and DataFrame columns keep
    their types. What is not given about a CSV file is found out.

    >>> read_table(pd.DataFrame({"a": [1, 2]})).data.column_names
    ['a']
    """
    if decimal not in (None, ".", ","):
        raise OptionError(f"decimal must be '.' or ',', got {quoted(decimal)}. Use one of them.")
    if isinstance(source, pd.DataFrame):
        return _from_frame(source, decimal)
    with (
        _regular_file(Path(source)) as path,
        open_table(path, encoding=encoding, delimiter=delimiter) as stream,
    ):
        batches = list(stream.batches)
        data = pa.concat_tables(batches) if batches else pa.table({})
        table = Table(
            name=stream.name,
            data=data,
            sha256=file_sha256(path),
            decimal=decimal or decimal_mark(data),
            notes=stream.notes,
        )
    _check_rows(table)
    return table


@contextmanager
def open_table(
    path: str | Path,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    batch_rows: int = 32_768,
    columns: list[str] | None = None,
) -> Iterator[TableStream]:
    """A CSV or Parquet file as a stream of batches, for files larger than memory.

    ``-`` is standard input. ``columns`` limits what is read of a Parquet file, names that it
    lacks aside.
    """
    with _regular_file(Path(path)) as file:
        if file_format(file) == "parquet":
            opened = _parquet_stream(file, batch_rows=batch_rows, columns=columns)
        else:
            opened = csv_stream(file, encoding=encoding, delimiter=delimiter, batch_rows=batch_rows)
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


def read_header(
    path: str | Path, *, encoding: str | None = None, delimiter: str | None = None
) -> list[str]:
    """The column names alone."""
    path = Path(path)
    if file_format(path) == "csv":
        return csv_dialect(path, encoding=encoding, delimiter=delimiter).names
    try:
        return [str(name) for name in pq.read_schema(path).names]
    except (pa.ArrowException, OSError) as error:
        raise _broken_parquet(path, error) from error


def file_format(path: Path) -> FileFormat:
    """What a file holds, by its first bytes: a suffix can lie."""
    shown = printable(path, limit=300)
    if not path.exists():
        raise OptionError(f"{shown} does not exist. Check the path.")
    if path.is_dir():
        raise OptionError(f"{shown} is a folder. Give a CSV or Parquet file.")
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
    """The fingerprint of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _from_frame(frame: pd.DataFrame, decimal: DecimalMark | None) -> Table:
    names = [str(name) for name in frame.columns]
    check_names("the DataFrame", names)
    data = pa.Table.from_pandas(frame.set_axis(names, axis=1), preserve_index=False)
    digest = hashlib.sha256()
    for batch in data.to_batches():
        for buffer in (b for column in batch.columns for b in column.buffers() if b is not None):
            digest.update(buffer)
    data = data.replace_schema_metadata(None)
    table = Table("the DataFrame", data, digest.hexdigest(), decimal or decimal_mark(data))
    _check_rows(table)
    return table


def _check_rows(table: Table) -> None:
    if not table.data.num_rows:
        raise TableError(
            f"{table.name} has column names but no rows. Add the data rows, or check that the "
            "right file was given."
        )


@contextmanager
def _parquet_stream(
    path: Path, *, batch_rows: int, columns: list[str] | None
) -> Iterator[TableStream]:
    """A Parquet file's batches, its columns with their own types."""
    try:
        # Without pre-buffering, pages are read as they are needed and a row group of millions of
        # rows is never held at once.
        file = pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
    except (pa.ArrowException, OSError) as error:
        raise _broken_parquet(path, error) from error
    with file:
        names = [str(name) for name in file.schema_arrow.names]
        check_names(printable(path.name), names)
        wanted = None if columns is None else [name for name in names if name in set(columns)]
        done = 0

        def counted() -> Iterator[pa.Table]:
            nonlocal done
            for batch in _parquet_batches(path, file, batch_rows, wanted):
                done += batch.num_rows
                yield batch

        yield TableStream(
            name=printable(path.name),
            columns=tuple(names),
            batches=counted(),
            position=lambda: done / max(1, file.metadata.num_rows),
        )


def _parquet_batches(
    path: Path, file: pq.ParquetFile, batch_rows: int, columns: list[str] | None
) -> Iterator[pa.Table]:
    try:
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
            return pq.ParquetWriter(self._sink, schema)
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


def guard_formulas(table: pa.Table) -> pa.Table:
    """The table with an apostrophe before every text cell and name that looks like a formula.

    >>> guard_formulas(pa.table({"=a": ["=1+1", "-2", "x"]})).to_pydict()
    {"'=a": ["'=1+1", '-2', 'x']}
    """
    columns = [_guarded(column) if is_text(column.type) else column for column in table.columns]
    return pa.Table.from_arrays(columns, names=[guard_name(name) for name in table.column_names])


def guard_name(name: str) -> str:
    """A column name that no spreadsheet takes for a formula."""
    return _guarded(pa.array([name])).to_pylist()[0]  # type: ignore[no-any-return]


def _guarded(column: Any) -> Any:
    text = pc.cast(column, pa.string())
    formula = pc.and_not(
        pc.match_substring_regex(text, _FORMULA_START), pc.match_substring_regex(text, _NUMBER)
    )
    return pc.if_else(formula, pc.binary_join_element_wise("'", text, ""), text)


def refuse_unknown_suffix(path: str | Path) -> Path:
    """Tables are written as CSV or Parquet, and as CSV to standard output."""
    path = Path(path)
    if path != STANDARD_STREAM and path.suffix.lower() not in (".csv", ".parquet"):
        raise OptionError(
            f"the output file must end in .csv or .parquet, got {quoted(path.name)}. "
            "Give such a name, or - for standard output."
        )
    return path
