"""One small file per result: written in one piece, found again only by the very same question.

A record answers a :class:`Cell`: which study, dataset, method, variant and split, and every setting
that decides the answer. The file's name carries a digest of all of it, so a changed setting asks
for another file; the file appears under its name only when complete, so a run that is killed at
any moment leaves whole records, and at most a stray ``.part`` that the next run sweeps away.
"""

import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Cell", "Record", "RecordStore", "write_whole"]


@dataclass(frozen=True)
class Cell:
    """One question: study, dataset, method, variant, split, and all that decides the answer."""

    study: str
    dataset: str
    method: str
    variant: str
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

    ``networks`` counts those trained for this record; variants that read the same networks in
    another way have 0. ``seconds`` is its share of the processor time of the stack it was
    trained in.
    """

    study: str
    dataset: str
    method: str
    variant: str
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
        >>> cell = Cell("table1", "boston", "BVM", "model", 0, {"epochs": 40})
        >>> store.get(cell) is None
        True
        >>> store.put(cell, Record("table1", "boston", "BVM", "model", 0, {"nll": 2.5}))
        >>> store.get(cell).measures
        {'nll': 2.5}
        >>> store.get(Cell("table1", "boston", "BVM", "model", 0, {"epochs": 41})) is None
        True
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, cell: Cell) -> Record | None:
        """The answer to exactly this question, or None."""
        try:
            stored = json.loads(self._path(cell).read_text(encoding="utf-8"))
            return Record(**stored["record"]) if stored["key"] == cell.key else None
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None  # absent, or not written by put: to be made (again)

    def put(self, cell: Cell, record: Record) -> None:
        """Store an answer; it appears in one piece or not at all."""
        content = {"key": cell.key, "settings": dict(cell.settings), "record": asdict(record)}
        write_whole(self._path(cell), json.dumps(content, indent=1, default=_plain))

    def paths(self) -> Iterator[Path]:
        """All record files."""
        return self.folder.glob("*/*/*.json")

    def sweep(self, *, older_than: float = 3600.0) -> None:
        """Remove what killed runs left half written; another run may be at work on younger ones."""
        for part in self.folder.glob("*/*/*.part"):
            if time.time() - part.stat().st_mtime > older_than:
                part.unlink(missing_ok=True)

    def _path(self, cell: Cell) -> Path:
        name = f"{_slug(cell.method)}-{_slug(cell.variant)}-{cell.split:02d}-{cell.key}.json"
        return self.folder / _slug(cell.study) / _slug(cell.dataset) / name


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that its name shows the old content or the new, never a part.

    The content goes to a temporary file in the same folder, to the disk, and then to its name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)  # mkstemp's is private
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-") or "plain"


def _plain(value: Any) -> Any:
    """numpy's numbers and arrays as Python's, for JSON."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"records hold numbers, strings and lists of them, got {type(value).__name__}.")
