"""CSV files as streams of text batches: separator, encoding and compression are found out.

Cells are read as text, exactly as they stand in the file: what they mean is decided once, when a
model is fitted (:mod:`accord.tables.schema`), and not again for each file by the values that
happen to be in it.
"""

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from accord._files import OptionError
from accord._wording import count, printable, quoted
from accord.tables.schema import TableError, check_names, reason

_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_BLOCK_BYTES = 8 << 20
# A row wider than a block cannot be parsed, so a block grows with the number of columns.
_BLOCK_BYTES_PER_COLUMN = 8 << 10
_SAMPLE_BYTES = 4 << 20
_DELIMITERS = ",;\t|^"
# Spreadsheets write and heed such a first line.
_STATED_DELIMITER = re.compile(r"(?i)\"?sep=(.)\"?")
_BREAK = re.compile(r"\s*[\r\n]\s*")
# A cell in single quotation marks.
_SINGLY_QUOTED = re.compile(r"(?<![^,;\t|^\r\n])'((?:[^']|'')*)'(?![^,;\t|^\r\n])")
_DELIMITER_NAMES = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}
_SPOKEN = {"\t": "tabs", " ": "spaces", ",": "commas", ";": "semicolons"}


@dataclass(frozen=True)
class TableStream:
    """A file that is read batch by batch.

    ``batches`` may be iterated once; ``position`` is the share of the file read so far; ``notes``
    say in plain sentences what was found out about the file.
    """

    name: str
    columns: tuple[str, ...]
    batches: Iterator[pa.Table]
    position: Callable[[], float]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class CsvDialect:
    """How a CSV file is written, and its header (``skip`` lines that end with it)."""

    delimiter: str
    encoding: str
    compression: str | None
    names: list[str]
    skip: int
    notes: tuple[str, ...] = ()
    quote: str = '"'


@contextmanager
def csv_stream(
    path: Path, *, encoding: str | None, delimiter: str | None, batch_rows: int
) -> Iterator[TableStream]:
    """A CSV file's batches, every column as text."""
    dialect = csv_dialect(path, encoding=encoding, delimiter=delimiter)
    check_names(printable(path.name), dialect.names)
    size = max(1, path.stat().st_size)
    with pa.OSFile(str(path)) as raw:
        try:
            reader = _reader(_content(raw, dialect), dialect)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _broken(printable(path.name), dialect, error) from error
        yield TableStream(
            name=printable(path.name),
            columns=tuple(dialect.names),
            batches=_batches(path, reader, dialect, batch_rows),
            position=lambda: min(1.0, raw.tell() / size),
            notes=dialect.notes,
        )


def parse_csv(content: bytes, *, name: str) -> pa.Table:
    """A CSV file's content as a table of text; ``name`` is what messages call it.

    >>> parse_csv(b"a;b\\n1,5;x\\n", name="the body").to_pydict()
    {'a': ['1,5'], 'b': ['x']}
    """
    dialect = _dialect(name, content[:_SAMPLE_BYTES], None, None, None)
    check_names(name, dialect.names)
    try:
        return _reader(_content(pa.BufferReader(content), dialect), dialect).read_all()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _broken(name, dialect, error) from error


def csv_dialect(
    path: Path, *, encoding: str | None = None, delimiter: str | None = None
) -> CsvDialect:
    """Separator, encoding, compression and header of a CSV file, from its beginning."""
    name = printable(path.name)
    compression = _COMPRESSIONS.get(path.suffix.lower())
    try:
        with pa.input_stream(str(path), compression=compression) as stream:
            sample: bytes = stream.read(_SAMPLE_BYTES)
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{name} cannot be decompressed ({reason(error)}).") from error
    return _dialect(name, sample, compression, encoding, delimiter)


def _dialect(
    name: str,
    sample: bytes,
    compression: str | None,
    encoding: str | None,
    delimiter: str | None,
) -> CsvDialect:
    text, taken = _decoded(name, sample, encoding)
    if singly := _is_singly_quoted(text):
        text = _SINGLY_QUOTED.sub(r'"\1"', text)
    lines = [line for line in text.splitlines()[:50] if line.strip()][:20]
    stated = _STATED_DELIMITER.fullmatch(lines[0].strip("\r\n")) if lines else None
    if stated is not None:
        delimiter, lines = delimiter or stated[1], lines[1:]
    mark = _delimiter(lines) if delimiter is None else _named_delimiter(delimiter)
    before, width = _layout(lines, mark)
    try:
        names, skip = _header(text, mark, after=before + (stated is not None))
    except csv.Error as error:
        raise TableError(f"the header of {name} cannot be read ({reason(error)}).") from error
    notes = []
    if before:
        notes.append(
            f"{name} begins with {count(before, 'line')} above the names of the columns, left out: "
            f"{quoted(lines[0], limit=60)}."
        )
    if names and len(names) == width - 1:
        names = _full_names(names, lines[before + 1 :], mark)
    elif width and len(names) == width + 1:
        names = names[:-1]
    if encoding is None and not taken.startswith("utf"):
        notes.append(
            f"{name} is not UTF-8 text and was read as {taken}. If letters look wrong, give "
            "its encoding (--encoding)."
        )
    if delimiter is None and mark in " ^":
        notes.append(
            f"{name} was read as cells separated by {_spoken(mark)}. If that is wrong, give "
            "its delimiter (--delimiter)."
        )
    if singly:
        notes.append(f"{name} has cells in single quotation marks, which were left out.")
    quote = "'" if singly else '"'
    return CsvDialect(mark, taken, compression, names, skip, tuple(notes), quote)


# --- encoding ----------------------------------------------------------------------------------


def _decoded(name: str, sample: bytes, encoding: str | None) -> tuple[str, str]:
    """The beginning of a file as text, and the encoding that it was taken for."""
    candidates = [_marked(sample) or "utf-8", "cp1252", "latin-1"]
    if encoding is not None:
        candidates = [_marked(sample) or _known(encoding)]
    elif candidates[0] != "utf-8":
        candidates = candidates[:1]
    for taken in candidates:
        try:
            # An incremental decoder forgives a character cut in two at the end of the sample.
            text: str = codecs.getincrementaldecoder(taken)().decode(sample)
        except UnicodeDecodeError:
            continue
        if "\0" in text:
            raise TableError(f"{name} is not text. Give a CSV or Parquet file.")
        return text.lstrip("\ufeff"), taken
    raise _wrong_encoding(name, candidates[0])


def _marked(sample: bytes) -> str | None:
    """UTF-16, by its mark at the beginning or by the zero in every second byte of Latin text."""
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    head = sample[:1000]
    if len(head) >= 4 and head[1::2].count(0) > 0.4 * len(head) and not head[::2].count(0):
        return "utf-16-le"
    if len(head) >= 4 and head[::2].count(0) > 0.4 * len(head) and not head[1::2].count(0):
        return "utf-16-be"
    return None


def _known(encoding: str) -> str:
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise OptionError(
            f"encoding must be a known text encoding, got {quoted(encoding)}. Use utf-8, latin-1 "
            "or cp1252."
        ) from None
    return encoding


def _wrong_encoding(name: str, encoding: str) -> TableError:
    other = "latin-1" if encoding.lower().replace("-", "") == "utf8" else "utf-8"
    return TableError(
        f"{name} is not {encoding} text. Give the encoding {other} (or that which it was written "
        "in), or save it as UTF-8."
    )


# --- separator ---------------------------------------------------------------------------------


def _named_delimiter(delimiter: str) -> str:
    mark = _DELIMITER_NAMES.get(delimiter.lower(), delimiter)
    if len(mark) != 1 or mark in "\"'\r\n" or not mark.isascii():
        raise OptionError(
            f"delimiter must be one character, got {quoted(delimiter)}. Use , ; | ^, tab or space."
        )
    return mark


def _delimiter(lines: list[str]) -> str:
    """The separator that cuts every line into equally many cells, the most of them.

    >>> _delimiter(["a;b", "1,5;2,5"]), _delimiter(["a  b", "1 2"]), _delimiter(["a", "x y"])
    (';', ' ', ',')
    """
    best, rank = ",", (0, 1)
    for mark in _DELIMITERS:
        widths = _widths(lines, mark)
        even = len(set(widths)) == 1
        width = _layout(lines, mark)[1]
        found = (2 * even + (not even and width > 0), width or widths[0])
        if widths[-1] > 1 and found > rank:
            best, rank = mark, found
    if rank[1] > 1 or len(lines) < 2:
        return best
    widths = _widths(lines, " ")
    return " " if len(set(widths)) == 1 and widths[0] > 1 else best


def _widths(lines: list[str], mark: str) -> list[int]:
    """How many cells each line has; one, where cells would be longer than any cell is."""
    try:
        rows = csv.reader(map(_squeezed, lines) if mark == " " else lines, delimiter=mark)
        return [len(row) for row in rows] or [1]
    except csv.Error:
        return [1]


def _layout(lines: list[str], mark: str) -> tuple[int, int]:
    """How many lines stand above the header, and how many cells a row has; 0 for it if unclear.

    Instruments write remarks there, with fewer cells than rows have. A header without numbers is
    told from them by its place: at the head of lines of one width, or just before, one cell short
    (R names no column for the names of rows) or one too long.

    >>> _layout(["# rig 7", "a,b,c", "1,2,3", "4,5,6"], ",")
    (1, 3)
    >>> _layout(["a,b", "x,2,3", "y,5,6"], ",")
    (0, 3)
    """
    widths = _widths(lines, mark)
    width = widths[-1]
    first = next((k for k in range(len(widths), 0, -1) if widths[k - 1] != width), 0)
    if first == 0:
        return 0, width
    if width < 2 or len(widths) - first < 2 or len(widths) != len(lines):
        return 0, 0
    if first == 1 and widths[0] == width + 1 and lines[0].rstrip().endswith(mark):
        return 0, width
    if max(widths[:first]) < width:
        if not _has_number(lines[first].split(mark)):
            return first, width
        short = widths[first - 1] == width - 1 and not _has_number(lines[first - 1].split(mark))
        if short and _full_names([], lines[first:], mark):
            return first - 1, width
    return 0, 0


def _has_number(cells: list[str]) -> bool:
    return any(re.fullmatch(r"[+-]?[\d.,]*\d", cell.strip(' \t"')) for cell in cells)


def _full_names(names: list[str], rows: list[str], mark: str) -> list[str]:
    """The names of all columns where the header is one cell short; none if it is not known which.

    Rows end in a separator, or begin with a name. Numbers in the first place are none: a decimal
    comma may have made two cells of one.
    """
    if all(row.rstrip().endswith(mark) for row in rows):
        return [*names, f"column {len(names) + 1}"]
    if any(_has_number([row.split(mark)[0]]) or f'{mark} "' in row for row in rows):
        return []
    return ["column 1", *names]


def _is_singly_quoted(text: str) -> bool:
    """Whether single quotation marks stand around cells, and neither they nor others elsewhere.

    >>> _is_singly_quoted("'a','b'\\n1,'x, y'"), _is_singly_quoted("a,b\\n1,it's\\n2,'x'")
    (True, False)
    """
    beginning = "\n".join(text.splitlines()[:50])
    others = _SINGLY_QUOTED.sub("", beginning)
    return len(others) < len(beginning) and "'" not in others and '"' not in beginning


def _squeezed(line: str) -> str:
    return re.sub(r"[ \t]+", " ", line.strip())


def _spoken(mark: str) -> str:
    return _SPOKEN.get(mark, f"'{mark}'")


def _header(text: str, delimiter: str, *, after: int = 0) -> tuple[list[str], int]:
    """Column names, outer spaces aside (a nameless one is called by its place), and rows used.

    A line break within a name becomes a space, since it can hardly be typed. The header is the line
    ``after`` so many others, such as one that names the separator.
    """
    lines = io.StringIO(text, newline="")
    rows = csv.reader(map(_squeezed, lines) if delimiter == " " else lines, delimiter=delimiter)
    for skip, row in enumerate(rows, 1):
        if any(cell.strip() for cell in row):
            if after:
                after -= 1
                continue
            names = [_BREAK.sub(" ", cell.strip()) for cell in row]
            return [name or f"column {place}" for place, name in enumerate(names, 1)], skip
    return [], 0


class _SqueezedFile(io.RawIOBase):
    """Lines of a file with one space where it has several: columns that were aligned by eye."""

    def __init__(self, raw: Any, encoding: str) -> None:
        self._lines = io.TextIOWrapper(_Unclosed(raw), encoding=encoding)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while len(self._rest) < len(buffer) and (line := self._lines.readline()):
            self._rest += (_squeezed(line) + "\n").encode()
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


class _Unclosed(io.BufferedReader):
    """A reader that leaves its file to those who opened it."""

    def close(self) -> None:
        pass


# --- batches -----------------------------------------------------------------------------------


def _content(raw: Any, dialect: CsvDialect) -> Any:
    if dialect.compression is not None:
        raw = pa.CompressedInputStream(raw, dialect.compression)
    if dialect.delimiter != " ":
        return raw
    return pa.PythonFile(_SqueezedFile(raw, dialect.encoding), mode="r")


def _reader(raw: Any, dialect: CsvDialect) -> Any:
    spaced = dialect.delimiter == " "  # such a file is recoded on the way
    return pacsv.open_csv(
        raw,
        read_options=pacsv.ReadOptions(
            encoding="utf-8" if spaced else dialect.encoding,
            block_size=_BLOCK_BYTES + _BLOCK_BYTES_PER_COLUMN * len(dialect.names),
            column_names=dialect.names,
            skip_rows_after_names=dialect.skip,
            use_threads=False,  # with several, errors do not say in which row
        ),
        parse_options=pacsv.ParseOptions(
            delimiter=dialect.delimiter, quote_char=dialect.quote, newlines_in_values=True
        ),
        convert_options=pacsv.ConvertOptions(
            column_types=dict.fromkeys(dialect.names, pa.string()), strings_can_be_null=False
        ),
    )


def _batches(path: Path, reader: Any, dialect: CsvDialect, batch_rows: int) -> Iterator[pa.Table]:
    try:
        for block in reader:
            table = pa.Table.from_batches([block])
            for start in range(0, table.num_rows, batch_rows):
                yield table.slice(start, batch_rows)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _broken(printable(path.name), dialect, error) from error


def _broken(name: str, dialect: CsvDialect, error: Exception) -> TableError:
    message = reason(error)
    if any(sign in message for sign in ("UTF8", "UTF-8", "codec can't decode")):
        return _wrong_encoding(name, dialect.encoding)
    if "straddling" in message:  # Arrow's word for a row whose end it never finds
        return TableError(
            f"{name} has no complete data row: it is a single line, or a quotation "
            "mark is never closed. Give a file with a header line and data rows."
        )
    return TableError(
        f"{name} cannot be read as a table ({message}). Check that every line has "
        f"the same number of cells, separated by {_spoken(dialect.delimiter)}, or give the "
        "delimiter (--delimiter)."
    )
