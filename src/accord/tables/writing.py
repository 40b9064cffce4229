"""Files that appear whole or not at all, and tables written batch by batch."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from accord.tables.cells import is_text
from accord.tables.problems import OptionError, quoted

# A spreadsheet takes a cell that begins with one of these for a formula, full-width forms included.
_FORMULA_START = "^[=+\\-@\t\r\n＝＋－＠]"
_NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"


def check_output(path: str | Path, *, force: bool = False) -> Path:
    """Refuse, before any long work, a file that exists or a folder that cannot be written to."""
    path = Path(path)
    if path.is_dir():
        raise OptionError(f"{path} is a folder. Give the name of a file in it.")
    if path.exists() and not force:
        raise OptionError(f"{path} already exists. Pass --force to replace it, or another name.")
    if not path.parent.is_dir():
        raise OptionError(
            f"the folder {path.parent} does not exist. Create it, or give another path."
        )
    probe = _part(path)
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise OSError(
            error.errno,
            f"cannot write to {path.parent.absolute()} ({error.strerror}). "
            "Give a path in a folder that you can write to.",
        ) from error
    return path


@contextmanager
def atomic_output(path: str | Path, *, force: bool = False) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its place when the block ends well.

    Whatever goes wrong in the block, Ctrl-C included, leaves neither a partial file nor a changed
    old one.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with atomic_output(folder / "a.txt") as part:
    ...     _ = part.write_text("whole")
    >>> [file.name for file in folder.iterdir()]
    ['a.txt']
    """
    path = check_output(path, force=force)
    part = _part(path)
    try:
        yield part
        _flush_to_disk(part)
        _put_in_place(part, path, force=force)
    finally:
        part.unlink(missing_ok=True)


def _part(path: Path) -> Path:
    """A hidden name in the same folder, with the same suffix: some writers go by it."""
    return path.with_name(f".{path.stem}.{secrets.token_hex(6)}.part{path.suffix}")


def _flush_to_disk(part: Path) -> None:
    with part.open("rb+") as file:
        os.fsync(file.fileno())


def _put_in_place(part: Path, path: Path, *, force: bool) -> None:
    if force:
        part.replace(path)
        return
    try:
        os.link(part, path)  # unlike a rename, fails if somebody made the file in the meantime
    except FileExistsError:
        raise OptionError(f"{path} was created meanwhile. Pass --force to replace it.") from None
    except OSError:  # a file system without hard links
        part.replace(path)


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
    """Tables are written as CSV or Parquet; any other suffix is a misunderstanding."""
    path = Path(path)
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise OptionError(
            f"the output file must end in .csv or .parquet, got {quoted(path.name)}. "
            "Give such a name."
        )
    return path
