"""The nearest rows by products in single precision: the same as by all distances."""

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from accord.trust.search import NearestRows

Rows = NDArray[np.float64]
RNG = np.random.default_rng(0)


def outlying(n: int, d: int) -> Rows:
    """One row in twenty lies a thousand times as far out as the others."""
    return RNG.normal(size=(n, d)) * np.where(np.arange(n) % 20 == 0, 1e3, 1.0)[:, None]


def with_kinds(n: int, d: int) -> Rows:
    """Numbers beside three switches, which no number outweighs."""
    return np.hstack([RNG.normal(size=(n, d)), 9.0 * RNG.integers(0, 2, size=(n, 3))])


def beside_dense(n: int) -> tuple[Rows, Rows, int]:
    """Rows in the box of few references that lie far off, and beside many that lie close by."""
    sparse, dense = 100 * RNG.normal(size=(300, 6)), RNG.normal(size=(1800, 6))
    sparse[:, 0], dense[:, 0] = 0.0, 9.0
    return np.vstack([sparse, dense]), np.hstack([np.zeros((n, 1)), RNG.normal(size=(n, 5))]), 5


CASES: dict[str, Callable[[], tuple[Rows, Rows, int]]] = {
    "plain": lambda: (RNG.normal(size=(3000, 10)), RNG.normal(size=(700, 10)), 5),
    "halved": lambda: (RNG.normal(size=(9000, 3)), RNG.normal(size=(700, 3)), 5),
    "one feature": lambda: (RNG.normal(size=(2000, 1)), RNG.normal(size=(300, 1)), 6),
    "many features": lambda: (RNG.normal(size=(700, 300)), RNG.normal(size=(90, 300)), 5),
    "two references": lambda: (RNG.normal(size=(2, 8)), RNG.normal(size=(20, 8)), 2),
    "fewer than groups": lambda: (RNG.normal(size=(30, 8)), RNG.normal(size=(20, 8)), 7),
    "all of them": lambda: (RNG.normal(size=(30, 8)), RNG.normal(size=(20, 8)), 30),
    "more than groups": lambda: (RNG.normal(size=(200, 8)), RNG.normal(size=(20, 8)), 60),
    "outlying references": lambda: (outlying(900, 6), RNG.normal(size=(100, 6)), 5),
    "far away": lambda: (RNG.normal(size=(900, 6)), 1e5 * RNG.normal(size=(100, 6)), 5),
    "some far away": lambda: (RNG.normal(size=(900, 6)), 1e3 * outlying(100, 6), 5),
    "a dense kind beside a sparse one": lambda: beside_dense(600),
    "kinds": lambda: (with_kinds(4000, 6), with_kinds(600, 6), 5),
    "rows between kinds": lambda: (with_kinds(4000, 6), 0.5 * with_kinds(600, 6), 5),
    "rows beyond kinds": lambda: (with_kinds(4000, 2), 20 * RNG.normal(size=(600, 5)), 5),
    # single precision cannot tell any of these apart
    "crowded": lambda: (
        500 + 1e-5 * RNG.normal(size=(900, 6)),
        500 + 1e-5 * RNG.normal(size=(100, 6)),
        5,
    ),
    "tiny": lambda: (1e-30 * RNG.normal(size=(900, 6)), 1e-30 * RNG.normal(size=(100, 6)), 5),
    "huge": lambda: (1e30 * RNG.normal(size=(900, 6)), 1e30 * RNG.normal(size=(100, 6)), 5),
    "all at 0": lambda: (np.zeros((900, 6)), RNG.normal(size=(100, 6)), 5),
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_as_by_all_distances(name: str) -> None:
    references, rows, k = CASES[name]()
    distances, found = NearestRows(references).query(rows, k)
    pairs = cdist(rows, references)
    np.testing.assert_allclose(distances, np.sort(pairs, axis=1)[:, :k], rtol=1e-12)
    np.testing.assert_allclose(np.take_along_axis(pairs, found, 1), distances, rtol=1e-12)
    assert all(len(set(row)) == k for row in found)


def test_of_equal_rows_the_first_are_found() -> None:
    references = np.repeat(RNG.normal(size=(7, 4)), 100, axis=0)[RNG.permutation(700)]
    distances, found = NearestRows(references).query(references[:50], 5)
    same = np.all(references[:50, None] == references[None], axis=2)
    np.testing.assert_array_equal(found, [np.flatnonzero(row)[:5] for row in same])
    assert np.all(distances == 0)


def test_of_rows_as_near_of_several_kinds_the_first_are_found() -> None:
    kind = RNG.integers(0, 2, 3000)
    references = np.stack([np.where(kind, 9.0, -9.0), RNG.integers(0, 4, 3000)], axis=1)
    distances, found = NearestRows(references).query(np.tile([0.0, 2.0], (600, 1)), 6)
    first = np.flatnonzero(references[:, 1] == 2)[:6]
    np.testing.assert_array_equal(found, np.tile(first, (600, 1)))
    assert len(set(kind[found[0]])) == 2
    assert np.all(distances == 9)


def test_infinitely_far_is_as_near_to_any_row() -> None:
    distances, found = NearestRows(RNG.normal(size=(60, 3))).query(np.full((2, 3), 1e200), 4)
    assert np.all(np.isinf(distances))
    assert np.all((found >= 0) & (found < 60))


def test_no_rows_are_answered_by_none() -> None:
    distances, found = NearestRows(RNG.normal(size=(60, 3))).query(np.zeros((0, 3)), 4)
    assert distances.shape == found.shape == (0, 4)


def test_products_of_lower_precision_only_leave_more_to_measure() -> None:
    references, rows, k = CASES["plain"]()
    expected = NearestRows(references).query(rows, k)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        found = NearestRows(references).query(rows, k)
    finally:
        torch.set_float32_matmul_precision(before)
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)


@pytest.mark.parametrize("name", ["plain", "many features", "outlying references", "kinds"])
def test_rows_surely_near_are_not_measured(name: str) -> None:
    references, rows, k = CASES[name]()
    exact, _ = NearestRows(references).query(rows, k)
    near = float(np.median(exact.mean(axis=1)))
    distances, found = NearestRows(references).query(rows, k, near=near)
    spared = found[:, 0] < 0
    assert np.all(exact[spared].mean(axis=1) < near)
    assert np.all(distances[spared] == near)
    np.testing.assert_array_equal(distances[~spared], exact[~spared])
    assert spared.mean() > 0.25  # half of the rows are near, and nearly all of them easily seen


def test_no_row_that_is_not_near_is_called_near() -> None:
    """Single precision cannot tell any of these apart."""
    references, rows, k = CASES["crowded"]()
    exact, _ = NearestRows(references).query(rows, k)
    distances, found = NearestRows(references).query(rows, k, near=float(exact.mean(axis=1).min()))
    assert np.all(found >= 0)
    np.testing.assert_array_equal(distances, exact)


def test_what_is_looked_at_does_not_grow_with_the_references_beside_a_row() -> None:
    references, rows, k = beside_dense(8192)
    search = NearestRows(references)
    search.query(rows, k)
    tracemalloc.start()
    try:
        search.query(rows, k)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 8 * len(rows) * 500  # a number for each of its 1,800 would be more than that
