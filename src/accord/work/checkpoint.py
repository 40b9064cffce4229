"""What a long run has finished, in files of its own: a run that was stopped goes on from them.

A file is found only by the key of the very same unit: a digest of its data, its settings and the
code. It appears whole or not at all, so that a run may be killed at any moment; one that is damaged
all the same counts as absent. Like model files, these hold numbers and text, and no code.
"""

import hashlib
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, final

import numpy as np

from accord import persistence
from accord._files import quoted

_ENDING = ".unit"
_FILES = ".files"
Value = TypeVar("Value")


@final
class Checkpoint:
    """Finished units in a folder, which is made when the first one is kept.

    Attributes:
        folder: Where the files are.
        found: How many units of an earlier run were used again.

    Example:
        >>> import tempfile
        >>> kept = Checkpoint(Path(tempfile.mkdtemp()) / "unfinished")
        >>> kept.put(digest("a", 1), {"loss": 0.5})
        >>> kept.get(digest("a", 1), dict), kept.get(digest("a", 2), dict)
        ({'loss': 0.5}, None)
        >>> kept.clear()
        >>> kept.folder.exists()
        False
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.found = 0
        self._writable = True
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(
                f"checkpoint must be a folder, got the file {quoted(self.folder)}. Give another "
                "name."
            )

    def get(self, key: str, kind: type[Value]) -> Value | None:
        """The value of a unit that was finished; None if there is no whole one."""
        try:
            value = persistence.load(self._path(key), dict)["value"]
        except (OSError, ValueError, LookupError, TypeError):
            return None
        if not isinstance(value, kind):
            return None
        self.found += 1
        return value

    def put(self, key: str, value: Any) -> None:
        """Keep a value. Where there is no room for it, the run goes on without."""
        if not self._writable:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            persistence.save({"value": value}, self._path(key))
        except OSError as error:
            self._writable = False
            warnings.warn(
                f"what this run has finished cannot be kept in {quoted(self.folder, limit=200)} "
                f"({error.strerror}): if it is stopped, it begins anew.",
                RuntimeWarning,
                stacklevel=2,
            )

    def place(self, key: str) -> Path:
        """A folder for files of the run's own, which are removed with what was kept."""
        return self.folder / f"{key}{_FILES}"

    def clear(self) -> None:
        """Remove what was kept, and the folder if nothing else is in it."""
        for path in self.folder.glob(f"*{_ENDING}"):  # also what a kill left half written
            path.unlink(missing_ok=True)
        for path in self.folder.glob(f"*{_FILES}"):
            shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):  # not there, or it holds something that is not ours
            self.folder.rmdir()

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_ENDING}"


@contextmanager
def kept_in(place: "str | Path | Checkpoint | None") -> Iterator[Checkpoint | None]:
    """A checkpoint that is cleared when the work is done; one that is given is its owner's."""
    if place is None or isinstance(place, Checkpoint):
        yield place
        return
    checkpoint = Checkpoint(place)
    yield checkpoint
    checkpoint.clear()


def digest(*values: Any) -> str:
    """A name for values: numbers, text, arrays, and lists, dictionaries and dataclasses of them.

    >>> digest(np.arange(3), "a") == digest(np.arange(3), "a")
    True
    >>> digest(np.arange(3)) == digest(np.arange(3.0))
    False
    """
    total = hashlib.sha256()
    for part in _described(values):
        total.update(f"{len(part)}:".encode())
        total.update(part)
    return total.hexdigest()[:40]


def _described(value: Any) -> Iterator[bytes | memoryview]:
    """The value as bytes that no other value has."""
    if isinstance(value, np.ndarray):
        yield f"array {value.dtype.str} {value.shape}".encode()
        yield np.ascontiguousarray(value).data.cast("B") if value.size else b""
    elif is_dataclass(value) and not isinstance(value, type):
        yield f"object {type(value).__name__}".encode()
        for field in fields(value):
            yield field.name.encode()
            yield from _described(getattr(value, field.name))
    elif isinstance(value, list | tuple | dict):
        items = list(value.items()) if isinstance(value, dict) else value
        yield f"{type(value).__name__} {len(items)}".encode()
        for item in items:
            yield from _described(item)
    elif value is None or isinstance(value, str | int | float):
        yield f"{type(value).__name__} {value!r}".encode()
    else:
        raise TypeError(
            f"a unit of work must be described by numbers, text and arrays, got a "
            f"{type(value).__name__}. Pass what it was made of."
        )
