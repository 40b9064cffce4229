"""How receipts are made: the parts of each row's uncertainty, by column and by neighbour.

By how much a column makes a row's noise and disagreement larger than those of other rows is its
Shapley value. With v(S) the variance of the row whose columns S are its own and whose others are a
training row's, that is what the column adds to v when columns are taken over one by one, averaged
over their orders and over training rows. Orders are drawn at random, each used forwards and
backwards with the same training row, which cancels much of the spread; the standard error comes
from the spread of these pairs. The values of all columns and the training rows' mean add up to the
row's own variance for every single order, and so exactly for their mean.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd

from accord._checks import check_count, check_probability
from accord._types import Bools, Floats, Indices
from accord._wording import percent
from accord.distributions import PARTS, Distribution
from accord.trust.proximity import Proximity
from accord.trust.receipts import Attribution, Parts, Receipts, rounded, unlike_number

Answer = Callable[[Floats], Distribution]

# Cells of mixed rows that are made at a time.
_CELLS = 2**22
# Columns named as unlike: at most so many, each with this share of the distance, where distance is
# this share of the variance.
_NAMED, _WORTH_NAMING, _WORTH_A_WORD = 3, 0.15, 0.01
# A way to narrow an interval by less than this share is none.
_WORTH_DOING = 0.1
# A missing value is filled in from up to so many of the nearest training rows that know it.
_FILLED, _SOUGHT = 10, 100

Gaps = dict[int, dict[int, float]]


@dataclass(frozen=True)
class Columns:
    """Names of c columns, and for each of d features the column that it comes from.

    **Shape**: owner (d,).
    """

    names: tuple[str, ...]
    owner: Indices

    @staticmethod
    def of(sources: list[str]) -> "Columns":
        """Columns from the name of each feature's source, in order of appearance.

        >>> Columns.of(["age", "town", "town"]).owner
        array([0, 1, 1])
        """
        names = tuple(dict.fromkeys(sources))
        place = {name: number for number, name in enumerate(names)}
        return Columns(names, np.array([place[source] for source in sources], dtype=np.intp))

    def __len__(self) -> int:
        return len(self.names)

    def features(self, column: int) -> Bools:
        """Which features come from a column, (d,)."""
        return np.asarray(self.owner == column)

    def summed(self, by_feature: Floats) -> Floats:
        """Sums over each column's features.

        **Shape**: (n, d) → (n, c).
        """
        found = np.zeros((len(by_feature), len(self)))
        for feature, column in enumerate(self.owner):
            found[:, column] += by_feature[:, feature]
        return found


def shapley_values(
    answer: Answer,
    x: Floats,
    background: Floats,
    columns: Columns,
    *,
    permutations: int,
    seed: int,
) -> tuple[Attribution, Attribution]:
    """Attributions of noise² and disagreement².

    **Shape**: x (n, d), background (b, d) → values (n, c).
    """
    random = np.random.default_rng(seed)
    pairs = max(2, (permutations + 1) // 2)
    baseline, values, error = _empty(x, columns), _empty(x, columns), _empty(x, columns)
    for row, own in enumerate(x):
        added, start = [], []
        for orders, others in _draws(random, pairs, background, columns):
            variances = _along(answer, own, others, orders, columns)
            start.append(variances[:, :, 0])
            added.append(_by_column(np.diff(variances, axis=2), orders))
        one = np.concatenate(added, axis=1)
        one = one.reshape(2, -1, 2, len(columns)).mean(axis=2)  # the two orders of a pair
        values[:, row] = one.mean(axis=1)
        error[:, row] = one.std(axis=1, ddof=1) / np.sqrt(pairs)
        baseline[:, row, 0] = np.concatenate(start, axis=1).mean(axis=1)
    noise, disagreement = (
        Attribution(base[:, 0], each, spread)
        for base, each, spread in zip(baseline, values, error, strict=True)
    )
    return noise, disagreement


def _empty(x: Floats, columns: Columns) -> Floats:
    return np.zeros((2, len(x), len(columns)))


def _draws(
    random: np.random.Generator, pairs: int, background: Floats, columns: Columns
) -> list[tuple[Indices, Floats]]:
    """Orders of the columns (2p, c) and training rows (2p, d), in blocks that memory holds."""
    block = max(1, _CELLS // (2 * (len(columns) + 1) * background.shape[1]))
    found = []
    for first in range(0, pairs, block):
        size = min(block, pairs - first)
        orders = np.array([random.permutation(len(columns)) for _ in range(size)])
        both = np.stack([orders, orders[:, ::-1]], axis=1).reshape(2 * size, -1)
        others = background[random.integers(len(background), size=size)]
        found.append((both, np.repeat(others, 2, axis=0)))
    return found


def _along(
    answer: Answer, own: Floats, others: Floats, orders: Indices, columns: Columns
) -> Floats:
    """noise² and disagreement² as the columns of ``own`` are taken over, in these orders.

    **Shape**: own (d,), others (p, d), orders (p, c) → (2, p, c + 1).
    """
    rank = np.argsort(orders, axis=1)[:, columns.owner]
    taken = rank[:, None, :] < np.arange(len(columns) + 1)[None, :, None]
    mixed = np.where(taken, own, others[:, None, :])
    dist = answer(mixed.reshape(-1, len(own)))
    parts = np.stack([np.square(dist.noise), np.square(dist.disagreement)])
    return np.asarray(parts.reshape(2, len(orders), -1))


def _by_column(added: Floats, orders: Indices) -> Floats:
    """What each step added, in the order of the columns; (2, p, c)."""
    rank = np.argsort(orders, axis=1)
    return np.take_along_axis(added, np.broadcast_to(rank, added.shape), axis=2)


class Unknown(NamedTuple):
    """What cells add that say nothing to the model: a new category, or a gap where none was.

    **Shape**: distance (n,), the part of the deviation without them; share (n, c), by column, of
    the variance that they add; a row of zeros where there are none.
    """

    distance: Floats
    share: Floats


class Cells(Protocol):
    """What is known about the cells of the rows that are explained.

    Attributes:
        missing: Cells without a value, (n, c).
        new: Cells that hold what no training row held, however near the row is, (n, c).
    """

    missing: Bools
    new: Bools

    def known(self, column: int) -> Bools:
        """Which reference rows know the column's value, (R,)."""

    def unlike(self, row: int, column: int, near: Indices) -> str:
        """A few words about a cell; ``near`` are places of the row's nearest references."""


def explain(
    answer: Answer,
    proximity: Proximity,
    x: Floats,
    *,
    columns: Columns,
    cells: Cells,
    reference_numbers: Indices,
    coverage: float,
    permutations: int,
    seed: int,
    index: pd.Index | None = None,
    among: Bools | None = None,
    unknown: Unknown | None = None,
) -> Receipts:
    """The receipts of rows with features ``x``.

    ``among`` says which reference rows may be nearest ones, all unless given. What is ``unknown``
    counts as distance, in the columns that it is unknown in.

    The parts, their split by column and the neighbours take about as long as the predictions. With
    ``permutations``, Shapley values and what missing values cost are estimated as well, which takes
    about ``permutations`` × (columns + 1) predictions per row.

    **Shape**: x (n, d); reference_numbers (R,), what the reference rows are called; among (R,).
    """
    check_probability("coverage", coverage, strict=True, remedy="Write 0.95 for 95 %.")
    check_count("permutations", permutations, minimum=0)
    dist, near = answer(x), proximity.neighbors(x, among=among)
    parts = Parts(*(np.asarray(getattr(dist, name)) for name in PARTS))
    by_column = columns.summed(near.by_feature)
    total = by_column.sum(axis=1, keepdims=True)
    share = by_column / np.where(total > 0, total, 1.0)
    distance_by_column = share * np.square(parts.distance)[:, None]
    added = np.zeros_like(share)
    if unknown is not None:
        known = np.minimum(np.square(unknown.distance), np.square(parts.distance))[:, None]
        is_new = unknown.share.any(axis=1, keepdims=True)
        added = (np.square(parts.distance)[:, None] - known) * unknown.share
        distance_by_column = np.where(is_new, share * known + added, distance_by_column)
    by_noise = by_disagreement = None
    gaps: Gaps = {}
    if permutations:
        references = proximity.references()
        by_noise, by_disagreement = shapley_values(
            answer, x, references, columns, permutations=permutations, seed=seed
        )
        gaps = _gaps(answer, proximity, x, references, columns, cells)
    peculiar = _unlike(parts, share, near.rows, columns, cells)
    return Receipts(
        names=columns.names,
        coverage=coverage,
        dist=dist,
        mean=np.asarray(dist.mean),
        parts=parts,
        distance_by_column=distance_by_column,
        neighbors=reference_numbers[near.rows],
        unlike=peculiar,
        narrow=_narrow(parts, gaps, np.where(cells.missing, added, 0.0), columns, peculiar),
        by_noise=by_noise,
        by_disagreement=by_disagreement,
        index=index,
    )


def _unlike(
    parts: Parts, share: Floats, near: Indices, columns: Columns, cells: Cells
) -> tuple[str, ...]:
    """Cells that are new to the model in any case, the others where distance matters."""
    far = np.square(parts.distance) > _WORTH_A_WORD * np.square(parts.std)
    found = []
    for row, line in enumerate(share):
        named = np.flatnonzero(cells.new[row]).tolist()
        if far[row]:
            order = np.argsort(-line, kind="stable")[:_NAMED]
            named += [place for place in order.tolist() if line[place] >= _WORTH_NAMING]
        words = {place: cells.unlike(row, place, near[row]) for place in named}
        found.append("; ".join(f"{columns.names[at]} {said}" for at, said in words.items() if said))
    return tuple(found)


def _gaps(
    answer: Answer,
    proximity: Proximity,
    x: Floats,
    references: Floats,
    columns: Columns,
    cells: Cells,
) -> Gaps:
    """For each row and column that is missing, the deviation expected once its value is known.

    That is the root of the mean variance over values of the nearest rows that know it: by the law
    of total variance, what is left of the variance in mean.
    """
    found: Gaps = {}
    for row, column in zip(*np.nonzero(cells.missing), strict=True):
        near = proximity.neighbors(x[row : row + 1], _SOUGHT).rows[0]
        near = near[cells.known(int(column))[near]][:_FILLED]
        if len(near):
            filled = np.where(columns.features(int(column)), references[near], x[row])
            left = np.sqrt(np.mean(np.square(answer(filled).std)))
            found.setdefault(int(row), {})[int(column)] = float(left)
    return found


def _narrow(
    parts: Parts, gaps: Gaps, lacking: Floats, columns: Columns, peculiar: Sequence[str]
) -> tuple[str, ...]:
    """The best way to a narrower interval, and how much narrower it could get.

    Where something is ``peculiar`` about a row, no row has shown how much noise there is: the model
    has learnt it elsewhere. ``lacking`` is the variance that each missing cell is known to add,
    (n, c): no further row with the same gap takes it away.
    """
    std = parts.std
    whole = np.where(std > 0, std, 1.0)
    stays = np.hypot(parts.noise, np.sqrt(lacking.sum(axis=1)))
    known = np.sqrt(np.maximum(np.square(std)[:, None] - lacking, 0.0))
    found = []
    for row, saved_by_rows in enumerate(1 - stays / whole):
        ways = [(float(saved_by_rows), "more training rows like this one: up to {}")]
        left_without = {int(j): float(known[row, j]) for j in np.flatnonzero(lacking[row])}
        for column, left in (left_without | gaps.get(row, {})).items():
            words = f"the missing value of {columns.names[column]}: about {{}}"
            ways.append((1 - left / float(whole[row]), words))
        saved, way = max(ways)
        if saved < _WORTH_DOING:
            unknown = "more training rows like this one: how much noise there is, is not known here"
            found.append(unknown if peculiar[row] else "nothing, it is noise in the data")
        else:
            found.append(way.format(f"{percent(saved, 0)} narrower"))
    return tuple(found)


# --- arrays: every feature is a column and a number -----------------------------------------------


def array_receipts(
    predict_dist: Callable[[Any], Distribution],
    proximity: Proximity,
    X: Any,
    *,
    coverage: float,
    permutations: int,
    seed: int,
) -> Receipts:
    """Receipts of the rows of an array or a frame of numbers."""
    names = [str(name) for name in X.columns] if isinstance(X, pd.DataFrame) else None
    x = np.asarray(X, dtype=np.float64)
    columns = Columns.of(names or [f"x{place}" for place in range(x.shape[1])])

    def answer(rows: Floats) -> Distribution:
        return predict_dist(rows if names is None else pd.DataFrame(rows, columns=X.columns))

    return explain(
        answer,
        proximity,
        x,
        columns=columns,
        cells=_Numbers(proximity, x),
        reference_numbers=proximity.reference_rows_,
        coverage=coverage,
        permutations=permutations,
        seed=seed,
        index=X.index if isinstance(X, pd.DataFrame) else None,
    )


class _Numbers:
    """Numbers, none of them missing."""

    def __init__(self, proximity: Proximity, x: Floats) -> None:
        self.values = x
        self.missing, self.new = np.zeros(x.shape, bool), np.zeros(x.shape, bool)
        self.references = rounded(proximity.references())
        self.ordered = np.sort(self.references, axis=0)
        self.sampled = len(self.references) < len(proximity.training_distances_)

    def known(self, column: int) -> Bools:
        return np.ones(len(self.references), bool)

    def unlike(self, row: int, column: int, near: Indices) -> str:
        return unlike_number(
            float(rounded(self.values[row, column])),
            self.ordered[:, column],
            self.references[near, column],
            sampled=self.sampled,
        )
