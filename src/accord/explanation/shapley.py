"""By how much each column makes a row's noise and disagreement larger than those of other rows.

With v(S) the variance of the row whose columns S are its own and whose others are a training row's,
the Shapley value of a column is what it adds to v when columns are taken over one by one, averaged
over their orders and over training rows. Orders are drawn at random, each used forwards and
backwards with the same training row, which cancels much of the spread; the standard error comes
from the spread of these pairs. The values of all columns and the training rows' mean add up to the
row's own variance for every single order, and so exactly for their mean.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from accord._types import Bools, Floats, Indices
from accord.distributions import Distribution
from accord.explanation.receipts import Attribution

Answer = Callable[[Floats], Distribution]

# Cells of mixed rows that are made at a time.
_CELLS = 2**22


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
