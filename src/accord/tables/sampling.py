"""Rows in a random order: a sample of them in memory, or all of them shuffled on disk.

Both go by a hash of the rows' numbers. So neither depends on how a file is cut, nor on its format,
and each part of the copy on disk is a random sample of all rows: a file that is sorted is as good
as any. Only one part is in memory at a time.
"""

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from accord._types import Floats

Records = NDArray[Any]

# While a sample is drawn, so many times its size are held before they are thinned.
_TOO_MANY = 1.5
_STEP = np.uint64(0x9E3779B97F4A7C15)
# Parts have at most about so many bytes, and are at least so many.
_PART_BYTES = 16 * 2**20
_FEWEST_PARTS = 64
# Bytes of rows that wait in memory to be written.
_WAITING_BYTES = 64 * 2**20
_WHOLE = "whole"


def sample_note(total: int, numbers: NDArray[np.int64] | None) -> tuple[str, ...]:
    """What is to be said of a sample; nothing where all rows were read.

    >>> sample_note(5_000, np.arange(1, 401))
    ('Of 5,000 rows, a random sample of 400 is used.',)
    """
    if numbers is None:
        return ()
    return (f"Of {total:,} rows, a random sample of {len(numbers):,} is used.",)


def sampled(
    batches: Iterator[pa.Table], most: int | None
) -> tuple[pa.Table, NDArray[np.int64] | None, int]:
    """All rows, or those with the ``most`` smallest marks; their numbers, if some; how many."""
    kept: list[pa.Table] = []
    marks, numbers = np.empty(0), np.empty(0, np.int64)
    total, bound = 0, np.inf
    for batch in batches:
        own = np.arange(total + 1, total + 1 + batch.num_rows)
        total += batch.num_rows
        if most is None:
            kept.append(batch)
            continue
        mark = marks_of(own)
        below = mark < bound
        kept.append(batch if below.all() else batch.filter(pa.array(below)))
        marks, numbers = np.append(marks, mark[below]), np.append(numbers, own[below])
        if len(marks) > _TOO_MANY * most:  # thinned now and then, so that memory stays bounded
            kept, marks, numbers, bound = _smallest(kept, marks, numbers, most)
    if most is not None and len(marks) > most:
        kept, marks, numbers, _ = _smallest(kept, marks, numbers, most)
    whole = pa.concat_tables(kept) if kept else pa.table({})
    return whole, None if most is None or total <= most else numbers, total


def _smallest(
    kept: list[pa.Table], marks: Floats, numbers: NDArray[np.int64], most: int
) -> tuple[list[pa.Table], Floats, NDArray[np.int64], float]:
    bound = float(np.partition(marks, most)[most])
    below = marks < bound
    whole = pa.concat_tables(kept).filter(pa.array(below))
    return [whole], marks[below], numbers[below], bound


def marks_of(numbers: NDArray[np.int64], seed: int = 0) -> Floats:
    """A number in [0, 1) for each row number, for a seed always the same: the splitmix64 hash.

    Rows are chosen by their numbers, so that the choice does not depend on how a file is cut.
    """
    with np.errstate(over="ignore"):
        z = (numbers.astype(np.uint64) + (np.uint64(seed) << np.uint64(40))) * _STEP
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((z ^ (z >> np.uint64(31))) >> np.uint64(11), dtype=np.float64) / 2**53


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
