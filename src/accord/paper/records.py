"""One small file per result: written in one piece, found again only by the very same question.

A record answers a :class:`Cell`: which study, dataset, method, recipe, predictive and split, and
every setting that decides the answer. The file's name carries a digest of all of it, so a changed
setting asks for another file; the file appears under its name only when complete, so a run that is
killed at any moment leaves whole records, and at most a stray ``.part`` until the record is made. A
file that is no record all the same is set aside under another name, and made again.

A record may be used again only if the same code would make it again. That code is every module of
accord that can be reached by imports from the one that makes records; comments, docstrings and
layout do not count (:func:`accord._code.code_digest`).
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from accord._files import write_whole
from accord.paper.study import Source


@dataclass(frozen=True)
class Cell:
    """One question: whose numbers, on which dataset and split, and all that decides the answer."""

    source: Source
    dataset: str
    split: int
    settings: Mapping[str, Any] = field(hash=False)

    @property
    def key(self) -> str:
        """Digest of everything in the cell; the order of the settings does not matter."""
        canonical = json.dumps(asdict(self), sort_keys=True, default=_plain)
        return hashlib.sha256(canonical.encode()).hexdigest()[:20]


@dataclass(frozen=True)
class Record:
    """An answer: the measures, curves for the figures, and what it cost.

    ``networks`` counts those trained for this record; the other records of the same stack have 0.
    ``seconds`` is its share of the processor time of the stack it was trained in.
    """

    source: Source
    dataset: str
    split: int
    measures: dict[str, float]
    curves: dict[str, list[float]] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    networks: int = 0
    seconds: float = 0.0


class RecordStore:
    """Records in a folder.

    Example:
        >>> import tempfile
        >>> store = RecordStore(Path(tempfile.mkdtemp()))
        >>> source = Source("table1", "BVM", "printed", "smoothed")
        >>> cell = Cell(source, "boston", 0, {"epochs": 40})
        >>> store.get(cell) is None
        True
        >>> store.put(cell, Record(source, "boston", 0, {"nll": 2.5}))
        >>> store.get(cell).measures
        {'nll': 2.5}
        >>> store.get(Cell(source, "boston", 0, {"epochs": 41})) is None
        True
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, cell: Cell) -> Record | None:
        """The answer to exactly this question, or None where there is none or no whole one."""
        try:
            return _read(self._path(cell), cell)
        except (FileNotFoundError, _Malformed):
            return None

    def set_aside(self, cell: Cell) -> Path | None:
        """Rename a malformed file at the place of a record, so that it is made again.

        Returns the file's new name, or None where the record is good or absent.
        """
        path = self._path(cell)
        try:
            _read(path, cell)
        except FileNotFoundError:
            return None
        except _Malformed:
            aside = path.with_suffix(".malformed")
            os.replace(path, aside)
            return aside
        return None

    def put(self, cell: Cell, record: Record) -> None:
        """Store an answer; it appears in one piece or not at all."""
        content = {"key": cell.key, "settings": dict(cell.settings), "record": asdict(record)}
        write_whole(self._path(cell), json.dumps(content, indent=1, default=_plain))

    def paths(self) -> Iterator[Path]:
        """All record files."""
        return (path for path in self.folder.glob("*/*/*.json") if not path.name.startswith("."))

    def _path(self, cell: Cell) -> Path:
        source = cell.source
        words = (_slug(part) for part in (source.method, source.recipe, source.predictive))
        name = f"{'-'.join(words)}-{cell.split:02d}-{cell.key}.json"
        return self.folder / _slug(source.study) / _slug(cell.dataset) / name


class _Malformed(ValueError):
    """A file that is no record of the cell that its name says."""


def _read(path: Path, cell: Cell) -> Record:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        fields = dict(stored["record"])
        record = Record(**{**fields, "source": Source(**fields["source"])})
        found = stored["key"]
        numbers = [*record.measures.values(), record.networks, record.seconds]
        lines = [value for line in record.curves.values() for value in line]
    except FileNotFoundError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise _Malformed(f"{path} must hold a record, got {error}.") from error
    if found != cell.key or not all(isinstance(value, int | float) for value in numbers + lines):
        raise _Malformed(f"{path} must answer {cell.key} with numbers, got {found!r}.")
    return record


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-") or "plain"


def _plain(value: Any) -> Any:
    """numpy's numbers and arrays as Python's, for JSON."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"records hold numbers, strings and lists of them, got {type(value).__name__}.")
