"""CSV and Parquet files, whole or in batches, as Arrow tables."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd
import pyarrow as pa

from accord._files import OptionError
from accord.tables.csv_files import csv_dialect, csv_stream
from accord.tables.parquet_files import parquet_header, parquet_stream
from accord.tables.problems import TableError
from accord.tables.stream import TableStream, check_names

FileFormat = Literal["csv", "parquet"]

_FOREIGN = {
    b"PK\x03\x04": "an Excel workbook or a zip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"SQLite format 3": "an SQLite database",
    b"\x89HDF": "an HDF5 file",
    b"ARROW1": "an Arrow IPC file",
}


@dataclass(frozen=True)
class Table:
    """A table in memory, the name to call it by, and the fingerprint of what it came from."""

    name: str
    data: pa.Table
    sha256: str
    delimiter: str = ","


def read_table(source: str | Path | pd.DataFrame, *, encoding: str = "utf-8") -> Table:
    """A whole CSV or Parquet file, or a DataFrame, as a :class:`Table`.

    CSV columns come as text, with missing cells as nulls; Parquet and DataFrame columns keep
    their types.

    >>> import pandas as pd
    >>> read_table(pd.DataFrame({"a": [1, 2]})).data.column_names
    ['a']
    """
    if isinstance(source, pd.DataFrame):
        return _from_frame(source)
    path = Path(source)
    with open_table(path, encoding=encoding) as stream:
        batches = list(stream.batches)
        table = Table(
            name=path.name,
            data=pa.concat_tables(batches) if batches else pa.table({}),
            sha256=file_sha256(path),
            delimiter=stream.delimiter,
        )
    _check_rows(table)
    return table


@contextmanager
def open_table(
    path: str | Path,
    *,
    encoding: str = "utf-8",
    batch_rows: int = 32_768,
    columns: list[str] | None = None,
) -> Iterator[TableStream]:
    """A CSV or Parquet file as a stream of batches, for files larger than memory.

    ``columns`` limits what is read of a Parquet file, names that it lacks aside.
    """
    path = Path(path)
    if file_format(path) == "parquet":
        with parquet_stream(path, batch_rows=batch_rows, columns=columns) as stream:
            yield stream
    else:
        with csv_stream(path, encoding=encoding, batch_rows=batch_rows) as stream:
            yield stream


def read_header(path: str | Path, *, encoding: str = "utf-8") -> list[str]:
    """The column names alone."""
    path = Path(path)
    if file_format(path) == "parquet":
        return parquet_header(path)
    return csv_dialect(path, encoding=encoding).names


def file_format(path: Path) -> FileFormat:
    """What a file holds, by its first bytes: a suffix can lie."""
    if not path.exists():
        raise OptionError(f"{path} does not exist. Check the path.")
    if path.is_dir():
        raise OptionError(f"{path} is a folder. Give a CSV or Parquet file.")
    with path.open("rb") as file:
        head = file.read(16)
    if not head:
        raise TableError(f"{path.name} is empty. Give a file with a header line and data rows.")
    for magic, what in _FOREIGN.items():
        if head.startswith(magic):
            raise TableError(f"{path.name} is {what}. Save the table as CSV or Parquet first.")
    return "parquet" if head.startswith(b"PAR1") or path.suffix.lower() == ".parquet" else "csv"


def file_sha256(path: Path) -> str:
    """The fingerprint of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _from_frame(frame: pd.DataFrame) -> Table:
    names = [str(name) for name in frame.columns]
    check_names("the DataFrame", names)
    data = pa.Table.from_pandas(frame.set_axis(names, axis=1), preserve_index=False)
    digest = hashlib.sha256()
    for batch in data.to_batches():
        for buffer in (b for column in batch.columns for b in column.buffers() if b is not None):
            digest.update(buffer)
    table = Table("the DataFrame", data.replace_schema_metadata(None), digest.hexdigest())
    _check_rows(table)
    return table


def _check_rows(table: Table) -> None:
    if not table.data.num_rows:
        raise TableError(
            f"{table.name} has column names but no rows. Add the data rows, or check that the "
            "right file was given."
        )
