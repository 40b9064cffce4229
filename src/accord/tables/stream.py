"""What a file gives when it is read batch by batch, and what is checked about any file."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from accord.tables.problems import TableError, listed, quoted


@dataclass(frozen=True)
class TableStream:
    """A file that is read batch by batch.

    ``batches`` may be iterated once; ``position`` is the share of the file read so far.
    """

    name: str
    columns: tuple[str, ...]
    batches: Iterator[pa.Table]
    position: Callable[[], float]
    delimiter: str = ","


def check_names(source: str, names: list[str]) -> None:
    """Refuse a table without columns or with two of the same name."""
    if not names:
        raise TableError(f"{source} has no columns. Give a file with a header line and data rows.")
    if len(set(names)) < len(names):
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        raise TableError(
            f"column names must be unique, but {source} has {listed(twice)} more than once. "
            "Rename or remove the copies."
        )


def reason(error: Exception) -> str:
    """The first line of a reader's complaint, fit to stand in brackets."""
    lines = str(error).strip().splitlines()
    return quoted(lines[0], limit=160)[1:-1].rstrip(".") if lines else type(error).__name__
