"""Rows chosen at random by the hash of their numbers: always the same, however a file is cut."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from accord._types import Floats

# While a sample is drawn, so many times its size are held before they are thinned.
_TOO_MANY = 1.5
_STEP = np.uint64(0x9E3779B97F4A7C15)


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
