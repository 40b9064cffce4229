"""Parquet files as streams of batches."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from accord.tables.problems import TableError
from accord.tables.stream import TableStream, check_names, reason


@contextmanager
def parquet_stream(
    path: Path, *, batch_rows: int, columns: list[str] | None
) -> Iterator[TableStream]:
    """A Parquet file's batches, its columns with their own types."""
    try:
        # Without pre-buffering, pages are read as they are needed and a row group of millions of
        # rows is never held at once.
        file = pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
    except (pa.ArrowException, OSError) as error:
        raise _broken(path, error) from error
    with file:
        names = [str(name) for name in file.schema_arrow.names]
        check_names(path.name, names)
        wanted = None if columns is None else [name for name in names if name in set(columns)]
        done = 0

        def counted() -> Iterator[pa.Table]:
            nonlocal done
            for batch in _batches(path, file, batch_rows, wanted):
                done += batch.num_rows
                yield batch

        yield TableStream(
            name=path.name,
            columns=tuple(names),
            batches=counted(),
            position=lambda: done / max(1, file.metadata.num_rows),
        )


def parquet_header(path: Path) -> list[str]:
    """A Parquet file's column names."""
    try:
        return [str(name) for name in pq.read_schema(path).names]
    except (pa.ArrowException, OSError) as error:
        raise _broken(path, error) from error


def _batches(
    path: Path, file: pq.ParquetFile, batch_rows: int, columns: list[str] | None
) -> Iterator[pa.Table]:
    try:
        for batch in file.iter_batches(batch_size=batch_rows, columns=columns):
            yield pa.Table.from_batches([batch])
    except (pa.ArrowException, OSError) as error:
        raise _broken(path, error) from error


def _broken(path: Path, error: Exception) -> TableError:
    return TableError(
        f"{path.name} cannot be read as Parquet ({reason(error)}). It may be cut short: write or "
        "download it again."
    )
