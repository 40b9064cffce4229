"""Tables written batch by batch, with nothing in them that a spreadsheet would run."""

from pathlib import Path
from types import TracebackType
from typing import Any, Self, final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from accord._files import STANDARD_STREAM, OptionError, quoted
from accord.tables.cells import is_text

# A spreadsheet takes a cell that begins with one of these for a formula, full-width forms included.
_FORMULA_START = "^[=+\\-@\t\r\n＝＋－＠]"
_NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"


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
    if path == STANDARD_STREAM:
        return path
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise OptionError(
            f"the output file must end in .csv or .parquet, got {quoted(path.name)}. "
            "Give such a name, or - for standard output."
        )
    return path
