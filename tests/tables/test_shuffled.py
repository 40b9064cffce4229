"""A shuffled copy on disk: every row once, in parts that are alike, whatever the file's order."""

import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from accord.tables import Records, ShuffledRows, part_count
from accord.tables.sampling import marks_of, sampled

DTYPE = np.dtype([("x", np.float32, (2,)), ("number", np.int64)])
N = 20_000


def blocks(size: int, n: int = N) -> Iterator[tuple[np.ndarray, Records]]:
    for first in range(1, n + 1, size):
        numbers = np.arange(first, min(first + size, n + 1))
        records = np.zeros(len(numbers), DTYPE)
        records["number"], records["x"] = numbers, numbers[:, None] / N
        yield numbers, records


def written(folder: Path, size: int = 1_000, seed: int = 0) -> ShuffledRows:
    rows = ShuffledRows(folder, DTYPE, 16)
    rows.write(blocks(size), seed=seed)
    return rows


def test_every_row_is_in_one_part(tmp_path: Path) -> None:
    rows = written(tmp_path / "rows")
    numbers = np.concatenate([rows.part(k)["number"] for k in range(16)])
    np.testing.assert_array_equal(np.sort(numbers), np.arange(1, N + 1))
    assert rows.n_rows == N
    np.testing.assert_allclose(rows.part(3)["x"][:, 1], rows.part(3)["number"] / N, rtol=1e-6)


def test_parts_are_alike_although_the_file_is_sorted(tmp_path: Path) -> None:
    rows = written(tmp_path / "rows")
    expected, share = N / 16, 1 / 16
    for k in range(16):
        numbers = rows.part(k)["number"]
        assert abs(len(numbers) - expected) < 5 * np.sqrt(N * share * (1 - share))
        # the mean of so many draws from 1 … N
        assert abs(numbers.mean() - N / 2) < 5 * N / np.sqrt(12 * len(numbers))


def test_a_sample_is_spread_over_all_parts(tmp_path: Path) -> None:
    _, numbers, _ = sampled(iter([pa.table({"a": np.arange(N)})]), 2_000)
    assert numbers is not None
    rows = written(tmp_path / "rows")
    found = [np.isin(rows.part(k)["number"], numbers).sum() for k in range(16)]
    assert min(found) > 125 - 5 * np.sqrt(125)


def test_parts_do_not_depend_on_how_rows_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = written(tmp_path / "one")
    monkeypatch.setattr("accord.tables.sampling._WAITING_BYTES", 5_000)
    other = written(tmp_path / "other", size=777)
    for k in range(16):
        np.testing.assert_array_equal(one.part(k), other.part(k))


def test_another_seed_is_another_order() -> None:
    numbers = np.arange(1, 1_001)
    correlation = np.corrcoef(marks_of(numbers, 1), marks_of(numbers, 2))[0, 1]
    assert abs(correlation) < 5 / np.sqrt(1_000)
    np.testing.assert_array_equal(marks_of(numbers), marks_of(numbers, 0))


def test_only_so_many_rows_wait_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit, size = 50_000, 100
    monkeypatch.setattr("accord.tables.sampling._WAITING_BYTES", limit)
    begun: list[weakref.ref[Records]] = []
    most = 0

    def counted() -> Iterator[tuple[np.ndarray, Records]]:
        nonlocal most
        for numbers, records in blocks(size):
            begun.append(weakref.ref(records))
            most = max(most, sum(block() is not None for block in begun))
            yield numbers, records

    ShuffledRows(tmp_path / "rows", DTYPE, 16).write(counted(), seed=0)
    assert len(begun) == N / size
    assert most * size * DTYPE.itemsize <= 1.1 * limit


def test_what_is_unfinished_or_cut_short_is_not_whole(tmp_path: Path) -> None:
    rows = ShuffledRows(tmp_path / "rows", DTYPE, 16)

    def broken() -> Iterator[tuple[np.ndarray, Records]]:
        yield from blocks(1_000)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        rows.write(broken(), seed=0)
    assert not rows.is_whole
    rows.write(blocks(1_000), seed=0)
    assert rows.is_whole
    assert rows.n_rows == N  # nothing is left of the first attempt
    file = next(iter(sorted(rows.folder.glob("*.rows"))))
    file.write_bytes(file.read_bytes()[:-40])
    assert not rows.is_whole


@pytest.mark.parametrize("n", [100, 1_000_000, 100_000_000])
@pytest.mark.parametrize("width", [1, 20, 2_000])
def test_parts_are_many_and_small(n: int, width: int) -> None:
    dtype = np.dtype([("x", np.float32, (width,))])
    parts = part_count(n, dtype)
    assert parts >= 64
    assert n / parts * dtype.itemsize <= 16 * 2**20
