"""More rows than fit in memory, in a random order: a shuffled copy on disk, read part by part.

Every row goes to the part that the hash of its number names, so that each part is a random sample
of all rows, whatever the order of the file: one that is sorted is as good as any. What is in a part
does not depend on how the file is cut, nor on its format. Only one part is in memory at a time.
"""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.tables.sampling import marks_of

Records = NDArray[Any]

# Parts have at most about so many bytes, and are at least so many.
_PART_BYTES = 16 * 2**20
_FEWEST_PARTS = 64
# Bytes of rows that wait in memory to be written.
_WAITING_BYTES = 64 * 2**20
_WHOLE = "whole"


def part_count(n_rows: int, dtype: np.dtype[Any]) -> int:
    """Parts of a table with so many rows of a kind.

    >>> part_count(1_000, np.dtype("f8")), part_count(50_000_000, np.dtype("92V"))
    (64, 275)
    """
    return max(_FEWEST_PARTS, -(-n_rows * dtype.itemsize // _PART_BYTES))


@final
@dataclass(frozen=True)
class ShuffledRows:
    """A table of records in ``n_parts`` files of a folder, each a random sample of all rows."""

    folder: Path
    dtype: np.dtype[Any]
    n_parts: int

    def part(self, number: int) -> Records:
        """The records of a part, in the order of their file."""
        path = self._path(number)
        return np.fromfile(path, self.dtype) if path.exists() else np.empty(0, self.dtype)

    @property
    def n_rows(self) -> int:
        paths = [self._path(number) for number in range(self.n_parts)]
        return sum(path.stat().st_size for path in paths if path.exists()) // self.dtype.itemsize

    @property
    def is_whole(self) -> bool:
        """Whether all rows have been written, and are still there."""
        mark = self.folder / _WHOLE
        return mark.exists() and mark.read_text() == str(self.n_rows)

    def write(self, blocks: Iterable[tuple[NDArray[np.int64], Records]], *, seed: int) -> None:
        """Distribute records, given in blocks with the numbers of their rows.

        What an earlier run left unfinished is removed first.
        """
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        waiting: list[tuple[NDArray[np.intp], Records]] = []
        n_waiting = 0
        for numbers, records in blocks:
            # not the hash that a sample was drawn by, or all of that would be in the first parts
            place = (marks_of(numbers, seed + 1) * self.n_parts).astype(np.intp)
            waiting.append((place, records))
            n_waiting += records.nbytes
            if n_waiting >= _WAITING_BYTES:
                self._append(waiting)
                waiting, n_waiting = [], 0
        self._append(waiting)
        (self.folder / _WHOLE).write_text(str(self.n_rows))

    def _append(self, waiting: list[tuple[NDArray[np.intp], Records]]) -> None:
        if not waiting:
            return
        places = np.concatenate([place for place, _ in waiting])
        order = np.argsort(places, kind="stable")
        records = np.concatenate([own for _, own in waiting])[order]
        ends = np.cumsum(np.bincount(places, minlength=self.n_parts))
        for number, own in enumerate(np.split(records, ends[:-1])):
            if len(own):
                with self._path(number).open("ab") as file:
                    own.tofile(file)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number}.rows"
