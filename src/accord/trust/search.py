"""The nearest of some rows, found by products in single precision and exact nevertheless.

‖a − x‖² − ‖x‖² = ‖a‖² − 2 a·x: one matrix product gives it for a block of new rows x and many
references a, up to a rounding error with a known bound. References are looked at in groups. Their
least values, and those of few coarse groups, take one pass over the products; the k-th least of the
coarse ones is the value of a reference, and k − 1 others are no farther. So whatever is farther
than that by more than the rounding error is none of the k nearest. What is left, hardly more than k
references, is measured again by differences in double precision. Where it is enough to know that a
row is near, the k least of the coarse values tell, and nothing is measured.

References are in cells, each in a box: those of different kinds, such as categories, lie apart, and
many of one kind are halved. A row is compared with those of its own cell first, which is enough for
most that are near, and then with cells whose box is not too far away.
"""

from functools import cached_property
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from accord._processes import threads_for
from accord._types import Bools, Floats, Indices

Singles = NDArray[np.float32]

_GROUP = 8
_COARSE_GROUPS = 20
# Products that are held at a time: 2 MB, which the processor reads again sooner than memory.
_PRODUCTS = 2**19
_MOST_ROWS = 512
# Rows whose candidates are measured together: calls cost more than the work on a few.
_TOGETHER = 2**14
# Differences, or distances pair by pair, that are held at a time.
_CELLS = 2**20
# Of rows farther out than so many times the farthest reference, single precision says little.
_FAR = 1e3
# Rounding errors of products, of the squares that they are made of, that can be allowed for.
_IMPRECISE = 0.15
# Larger than any product, and what fills up the last group.
_LARGEST, _NONE = 1e36, 1e38
# A cell has at least so many references, and the gap to the next one is at least as wide as a
# typical distance to this neighbour, that of so many references: else both would be searched.
_CELL_ROWS = 256
# Cells with more references are halved: most near rows are seen to be near from their own half.
_MOST_CELL_ROWS = 2_000
# So few rows are sooner compared with all references than sorted by their cells.
_WORTH_CELLS = 512
_TYPICAL_NEIGHBOR, _TYPICAL_ROWS = 5, 16


@final
class NearestRows:
    """The rows of a matrix, to be searched for those nearest to others.

    **Shape**: references (R, d).

    >>> near = NearestRows(np.arange(10.0)[:, None])
    >>> near.query(np.array([[3.2]]), 2)[1]
    array([[3, 4]])
    """

    def __init__(self, references: Floats) -> None:
        self._references = references
        self._farthest = float(np.sqrt(np.square(references).sum(axis=1).max()))
        self._searchable = self._farthest < 1e15
        self._whole = _Cells(references, [np.arange(len(references))])

    @cached_property
    def _parted(self) -> "_Cells":
        return _Cells(self._references, _apart(self._references))

    def query(self, rows: Floats, k: int, *, near: float = 0.0) -> tuple[Floats, Indices]:
        """Distances to the k nearest references, in ascending order, and which these are.

        Where their mean is easily seen to be below ``near``, they are said to be ``near``, and the
        references to be −1.

        **Shape**: rows (n, d) → (n, k) each; k ≤ R.
        """
        with np.errstate(over="ignore"):
            lengths = np.sqrt(np.einsum("nd,nd->n", rows, rows))
        precise = (rows.shape[1] + 4) * _unit() <= _IMPRECISE
        usable = self._searchable and precise and k <= _COARSE_GROUPS
        inside = (lengths <= _FAR * self._farthest) & usable
        distances, found = np.full((len(rows), k), near), np.full((len(rows), k), -1)
        own = np.flatnonzero(inside)
        cells = self._parted if len(own) >= _WORTH_CELLS else self._whole
        for start in range(0, len(own), _TOGETHER):
            part = own[start : start + _TOGETHER]
            which, row = cells.candidates(rows[part], lengths[part], k, near)
            seen = part[np.bincount(row, minlength=len(part)) > 0]
            distances[seen], found[seen] = self._sorted(rows[part], which, row, k)
        far = np.flatnonzero(~inside)
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

    def _sorted(self, rows: Floats, which: Indices, row: Indices, k: int) -> tuple[Floats, Indices]:
        """The k nearest of the candidates of every row that has any, by differences."""
        # of references at the same distance, the first come first
        key = row * len(self._references) + which
        key.sort()
        row, which = np.divmod(key, len(self._references))
        squares = self._squares(rows, row, which)
        count = np.bincount(row)
        count = count[count > 0]
        start = np.cumsum(count) - count
        number = np.repeat(np.arange(len(count)), count)
        place = np.arange(len(row)) - start[number]
        most = int(count.max(initial=1))
        best = np.empty((len(count), k), np.intp)
        step = max(1, _CELLS // most)
        for begin in range(0, len(count), step):
            own = slice(begin, begin + step)
            table = np.full((len(best[own]), most), np.inf)
            inside = slice(start[begin], start[begin] + int(count[own].sum()))
            table[number[inside] - begin, place[inside]] = squares[inside]
            best[own] = start[own, None] + np.argsort(table, axis=1, kind="stable")[:, :k]
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


@final
class _Cell:
    """Some of the references, as the factor of a product."""

    def __init__(self, references: Floats, places: Indices) -> None:
        n, d = references.shape
        self._places = places
        self._groups = _COARSE_GROUPS * max(1, -(-n // (_GROUP * _COARSE_GROUPS)))
        table = np.zeros((_GROUP * self._groups, d + 1), np.float32)
        table[n:, d] = _NONE
        with np.errstate(over="ignore"):  # then it is not searched
            table[:n, :d], table[:n, d] = -2 * references, np.square(references).sum(axis=1)
        self._table = torch.from_numpy(table)

    def search(
        self, columns: Singles, lengths: Floats, limit: Singles, k: int, near: float
    ) -> tuple[Indices, Indices, Singles]:
        """Candidates, their rows, and the largest product that any of the k nearest can have.

        ``limit`` is what is known of the latter before. Rows that are surely ``near`` have none.

        **Shape**: columns (d + 1, n), lengths and limit (n,) → (C,), (C,) and (n,).
        """
        n = columns.shape[1]
        step = int(np.clip(_PRODUCTS // len(self._table) // 16 * 16, 16, _MOST_ROWS))
        limit, found = limit.copy(), []
        # the same memory for every block: fresh pages take as long as the products
        space = torch.empty(len(self._table) * min(step, n))
        with threads_for(self._table.numel() * step):
            for start in range(0, n, step):
                own = slice(start, min(n, start + step))
                block = torch.from_numpy(columns[:, own])
                out = space[: len(self._table) * block.shape[1]].view(len(self._table), -1)
                products = torch.mm(self._table, block, out=out).numpy()
                which, row = self._up_to(products, lengths[own], limit[own], k, near)
                found.append((which, row + start))
        which, row = (np.concatenate(part) for part in zip(*found, strict=True))
        return self._places[which], row, limit

    def _up_to(
        self, products: Singles, lengths: Floats, limit: Singles, k: int, near: float
    ) -> tuple[Indices, Indices]:
        """Places of products up to their row's limit, which is lowered to what is found here.

        **Shape**: products (R', n), lengths and limit (n,) → (C,) each.
        """
        d, n = self._table.shape[1] - 1, len(limit)
        least = np.minimum.reduce(products.reshape(_GROUP, self._groups, n), axis=0)
        coarse = np.minimum.reduce(least.reshape(-1, _COARSE_GROUPS, n), axis=0)
        bounds = np.partition(coarse, k - 1, axis=0)[:k]
        own = np.square(lengths)
        squares = _largest_squares(bounds, own, d)
        np.minimum(limit, squares[-1] - own, out=limit, casting="same_kind")
        if near > 0:
            limit[np.sqrt(squares).sum(axis=0) < k * near] = -np.inf
        hit = np.flatnonzero(least <= limit)
        places = (self._groups * n * np.arange(_GROUP))[:, None] + hit
        inside = np.flatnonzero(products.take(places) <= limit[hit % n])
        which, row = np.divmod(places.ravel()[inside], n)
        return which, row


def _largest_squares(bounds: Singles, own: Floats, d: int) -> Floats:
    """The largest squares of distances to references with such products, and of nearer ones.

    A sum of d + 1 products in single precision, of rounded factors, is off by at most
    c (‖a‖² + 2 ‖a‖ ‖x‖), c = (d + 4) u. With ‖a‖ ≤ ‖x‖ + r, r the distance, that is less than
    4.3 c (‖x‖² + r²). So for c ≤ 0.15 a reference with the product b, and one that is nearer, have
    products and squares that exceed b and b + ‖x‖² by less than 24 c (b + 2 ‖x‖²), the rounding of
    a limit included.

    **Shape**: bounds (k, n), ``own``, which is ‖x‖², (n,) → (k, n).
    """
    error = 24 * (d + 4) * _unit()
    return (1 + error) * bounds.astype(np.float64) + (1 + 2 * error) * own


def _unit() -> float:
    """Rounding of a product: that of float32, unless torch was told to be quicker."""
    return 2.0**-24 if torch.get_float32_matmul_precision() == "highest" else 2.0**-8


# --- cells -------------------------------------------------------------------------------------


@final
class _Cells:
    """References in parts, each in a box."""

    def __init__(self, references: Floats, places: list[Indices]) -> None:
        self._cells = [_Cell(references[own], own) for own in places]
        self._low = np.array([references[own].min(axis=0) for own in places])
        self._high = np.array([references[own].max(axis=0) for own in places])
        # features in which some boxes lie apart
        self._telling = np.flatnonzero((self._low[:, None] > self._high).any(axis=(0, 1)))

    def candidates(
        self, rows: Floats, lengths: Floats, k: int, near: float
    ) -> tuple[Indices, Indices]:
        """References that may be among the k nearest, and the rows that they may be near to.

        None for rows that are surely ``near`` to references of their own cell.

        **Shape**: → (C,) each.
        """
        n, d = rows.shape
        columns = np.ones((d + 1, n), np.float32)
        columns[:d] = rows.T
        apart = self._squares(rows)
        home = apart.argmin(axis=0)
        apart -= np.square(lengths)  # as products are
        limit = np.full(n, _LARGEST, np.float32)
        found = []
        for at_home in (True, False):
            for number, cell in enumerate(self._cells):
                own = np.flatnonzero(((home == number) == at_home) & (apart[number] <= limit))
                if not len(own):
                    continue
                which, row, limit[own] = cell.search(
                    columns[:, own], lengths[own], limit[own], k, near if at_home else 0.0
                )
                found.append((which, own[row]))
        which, row = (np.concatenate(part) for part in zip(*found, strict=True))
        return which, row

    def _squares(self, rows: Floats) -> Floats:
        """The least square of a row's distance to any place in each box.

        **Shape**: rows (n, d) → (cells, n).
        """
        found = np.zeros((len(self._cells), len(rows)))
        for feature in self._telling:
            x = rows[:, feature]
            for cell, (low, high) in enumerate(
                zip(self._low[:, feature], self._high[:, feature], strict=True)
            ):
                found[cell] += np.square(np.maximum(np.maximum(low - x, x - high), 0.0))
        return found


def _apart(references: Floats) -> list[Indices]:
    """Places of the references, in parts: first between wide gaps in some feature, then halves."""
    if len(references) < 2 * _CELL_ROWS:
        return [np.arange(len(references))]
    few = references[:: -(-len(references) // _TYPICAL_ROWS)]
    apart = np.partition(cdist(few, references), _TYPICAL_NEIGHBOR, axis=1)
    wide = float(np.median(apart[:, _TYPICAL_NEIGHBOR]))
    waiting, found = [np.arange(len(references))], []
    while waiting:
        own = waiting.pop()
        left = _left_of_gap(references[own], wide)
        if left is None and len(own) > _MOST_CELL_ROWS:
            left = _lower_half(references[own])
        if left is None:
            found.append(own)
        else:
            waiting += [own[left], own[~left]]
    return found


def _left_of_gap(rows: Floats, wide: float) -> Bools | None:
    """Which rows lie on one side of the gap that parts them most evenly; None without a gap."""
    n = len(rows)
    if n < 2 * _CELL_ROWS:
        return None
    ranked = np.sort(rows, axis=0)
    gaps = np.diff(ranked, axis=0)[_CELL_ROWS - 1 : n - _CELL_ROWS]
    at, feature = np.nonzero(gaps >= max(wide, np.finfo(np.float64).tiny))
    if not len(at):
        return None
    best = np.abs(at + _CELL_ROWS - n / 2).argmin()
    return np.asarray(rows[:, feature[best]] <= ranked[at[best] + _CELL_ROWS - 1, feature[best]])


def _lower_half(rows: Floats) -> Bools:
    """Which rows lie in the lower half of the feature in which they differ most."""
    order = np.argsort(rows[:, rows.var(axis=0).argmax()], kind="stable")
    lower = np.zeros(len(rows), bool)
    lower[order[: len(rows) // 2]] = True
    return lower
