"""The nearest of some rows, found by products in single precision and exact nevertheless.

‖a − x‖² − ‖x‖² = ‖a‖² − 2 a·x: one matrix product gives it for a block of new rows x and all
references a, up to a rounding error with a known bound. References are looked at in groups. Their
least values, and those of few coarse groups, take one pass over the products; the k-th least of the
coarse ones is the value of a reference, and k − 1 others are no farther. So whatever is farther
than that by more than the rounding error is none of the k nearest. What is left, hardly more than k
references, is measured again by differences in double precision.
"""

from typing import final

import numpy as np
import torch
from scipy.spatial.distance import cdist

from accord._processes import threads_for
from accord._types import Bools, Floats, Indices

_GROUP = 16
_COARSE_GROUPS = 40
# Products that are held at a time: 4 MB.
_PRODUCTS = 2**20
_MOST_ROWS = 256
# Differences, or distances pair by pair, that are held at a time.
_CELLS = 2**20
# Of rows farther out than so many times the farthest reference, single precision says little.
_FAR = 1e3
# Larger than any product, and what fills up the last group.
_LARGEST, _NONE = 1e36, 1e38


@final
class NearestRows:
    """The rows of a matrix, to be searched for those nearest to others.

    **Shape**: references (R, d).

    >>> near = NearestRows(np.arange(10.0)[:, None])
    >>> near.query(np.array([[3.2]]), 2)[1]
    array([[3, 4]])
    """

    def __init__(self, references: Floats) -> None:
        n, d = references.shape
        self._references = references
        self._groups = _COARSE_GROUPS * max(1, -(-n // (_GROUP * _COARSE_GROUPS)))
        lengths = np.square(references).sum(axis=1)
        self._farthest = float(np.sqrt(lengths.max()))
        table = np.zeros((_GROUP * self._groups, d + 1), np.float32)
        table[n:, d] = _NONE
        self._searchable = self._farthest < 1e15
        if self._searchable:
            table[:n, :d], table[:n, d] = -2 * references, lengths
        self._table = torch.from_numpy(table)

    def query(self, rows: Floats, k: int) -> tuple[Floats, Indices]:
        """Distances to the k nearest references, in ascending order, and which these are.

        **Shape**: rows (n, d) → (n, k) each; k ≤ R.
        """
        with np.errstate(over="ignore"):
            lengths = np.sqrt(np.einsum("nd,nd->n", rows, rows))
        usable = self._searchable and k <= _COARSE_GROUPS
        near = (lengths <= _FAR * self._farthest) & usable
        distances, found = np.empty((len(rows), k)), np.empty((len(rows), k), np.intp)
        step = int(np.clip(_PRODUCTS // len(self._table) // 16 * 16, 16, _MOST_ROWS))
        own = np.flatnonzero(near)
        # the same memory for every block: fresh pages take as long as the products
        space = torch.empty(len(self._table) * min(step, len(own)))
        with threads_for(self._table.numel() * step):
            for start in range(0, len(own), step):
                part = own[start : start + step]
                block = rows[part], lengths[part], space[: len(self._table) * len(part)]
                distances[part], found[part] = self._by_products(*block, k)
        far = np.flatnonzero(~near)
        step = max(1, _CELLS // len(self._references))
        for start in range(0, len(far), step):
            part = far[start : start + step]
            distances[part], found[part] = self._by_pairs(rows[part], k)
        return distances, found

    def _by_pairs(self, rows: Floats, k: int) -> tuple[Floats, Indices]:
        with np.errstate(over="ignore"):  # infinitely far is far enough
            distances = cdist(rows, self._references)
        order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(distances, order, axis=1), order

    def _by_products(
        self, rows: Floats, lengths: Floats, space: torch.Tensor, k: int
    ) -> tuple[Floats, Indices]:
        n, d = rows.shape
        columns = np.ones((d + 1, n), np.float32)
        columns[:d] = rows.T
        out = space.view(len(self._table), n)
        products = torch.mm(self._table, torch.from_numpy(columns), out=out).numpy()
        least = np.minimum.reduce(products.reshape(_GROUP, self._groups, n), axis=0)
        coarse = np.minimum.reduce(least.reshape(-1, _COARSE_GROUPS, n), axis=0)
        bound = np.partition(coarse.T, k - 1, axis=1)[:, k - 1].astype(np.float64)
        limit = self._limit(bound, lengths, d)
        which, row = self._up_to(products, least <= limit, limit)
        return self._sorted(rows, row, which, k)

    def _limit(self, bound: Floats, lengths: Floats, d: int) -> Floats:
        """The largest product that one of the k nearest can have where one has this ``bound``.

        A sum of d + 1 products in single precision, of rounded factors, is off by at most
        (d + 4) u (‖a‖² + 2 ‖a‖ ‖x‖). Neither the nearest references nor those behind the bound
        are longer than ‖x‖ + r, r their distance. Twice that error, and as much again for the
        error of r itself.
        """
        r = np.sqrt(np.maximum(bound + np.square(lengths), 0.0))
        error = (d + 4) * _unit() * (lengths + r) * (3 * lengths + r)
        limit = np.minimum(bound + 4 * error, _LARGEST).astype(np.float32)
        return np.nextafter(limit, np.float32(np.inf))

    def _up_to(self, products: Floats, groups: Bools, limit: Floats) -> tuple[Indices, Indices]:
        """References with products up to their row's limit, which some groups have, and the rows.

        **Shape**: products (R', n), groups (G, n), limit (n,) → (C,) each.
        """
        n = len(limit)
        hit = np.flatnonzero(groups)
        steps = self._groups * n * np.arange(_GROUP)
        places = steps[:, None] + hit
        inside = np.flatnonzero(products.take(places) <= limit[hit % n])
        which, row = np.divmod(places.ravel()[inside], n)
        return which, row

    def _sorted(self, rows: Floats, row: Indices, which: Indices, k: int) -> tuple[Floats, Indices]:
        """The k nearest of every row's candidates, by differences."""
        # which is ascending: of references at the same distance, the first come first
        order = np.argsort(row.astype(np.int16), kind="stable")
        row, which = row[order], which[order]
        count = np.bincount(row, minlength=len(rows))
        start = np.cumsum(count) - count
        place = np.arange(len(row)) - start[row]
        table = np.full((len(rows), count.max()), np.inf)
        squares = self._squares(rows, row, which)
        table[row, place] = squares
        best = start[:, None] + np.argsort(table, axis=1, kind="stable")[:, :k]
        return np.sqrt(squares[best]), which[best]

    def _squares(self, rows: Floats, row: Indices, which: Indices) -> Floats:
        """‖a − x‖² of pairs of a row and a reference, (C,)."""
        squares = np.empty(len(row))
        step = max(1, _CELLS // rows.shape[1])
        for begin in range(0, len(row), step):
            own = slice(begin, begin + step)
            apart = self._references.take(which[own], axis=0) - rows.take(row[own], axis=0)
            squares[own] = np.einsum("nd,nd->n", apart, apart)
        return squares


def _unit() -> float:
    """Rounding of a product: that of float32, unless torch was told to be quicker."""
    return 2.0**-24 if torch.get_float32_matmul_precision() == "highest" else 2.0**-8
