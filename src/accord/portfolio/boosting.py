"""Boosted trees: a mean, and a deviation per row learnt from its errors out of fold.

scikit-learn's histogram boosting grows the trees; the fitted trees are kept as plain arrays of
complete binary trees, which are evaluated for 64 rows at a time, one bit each. The second booster
minimises the gamma deviance of the squared errors, log s² + e²/s² up to constants: that is twice
the Gaussian negative log-likelihood of a deviation s.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, final

import numpy as np
from numpy.typing import NDArray

from accord._types import Floats, Indices
from accord.portfolio.components import Components
from accord.portfolio.encoding import FeatureEncoding, ScaledRows, trained_on
from accord.portfolio.recipes import BoostingRecipe
from accord.training import Listener

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingRegressor

_DEPTH = 5
# Steps without progress after which training stops; counting is done once, and has time for more.
_PATIENCE, _COUNTING_PATIENCE = 15, 30
# A variance takes more rows than a mean.
_SPREAD_LEAF = 32
# Rows whose bits are one word, rows answered at a time, and so few that all trees answer at once.
_WORD, _CHUNK, _FEW_ROWS = 64, 4_096, 128
_SMALLEST_SQUARE = 1e-8
# Bins of all columns together: on wide tables, each column has fewer.
_MOST_BINS, _FEWEST_BINS = 100_000, 16


@final
class Trees:
    """Complete binary trees of one depth, whose values add up.

    **Shape**: column and threshold (T, 2^depth − 1), level by level; value (T, 2^depth).
    """

    def __init__(self, booster: "HistGradientBoostingRegressor") -> None:
        nodes = [tree.nodes for (tree,) in booster._predictors]
        self.start = float(np.ravel(booster._baseline_prediction)[0])
        self.column = np.zeros((len(nodes), 2**_DEPTH - 1), np.int32)
        self.threshold = np.full(self.column.shape, np.inf)
        self.value = np.zeros((len(nodes), 2**_DEPTH))
        for number, tree in enumerate(nodes):
            self._fill(number, tree, node=0, place=0)

    def _fill(self, number: int, tree: Any, *, node: int, place: int) -> None:
        """Copy a subtree; below a leaf every path leads to its value."""
        own, first_leaf = tree[node], 2**_DEPTH - 1
        if place >= first_leaf:
            self.value[number, place - first_leaf] = own["value"]
            return
        children = (node, node)
        if not own["is_leaf"]:
            self.column[number, place] = own["feature_idx"]
            self.threshold[number, place] = own["num_threshold"]
            children = (int(own["left"]), int(own["right"]))
        for side, child in enumerate(children):
            self._fill(number, tree, node=child, place=2 * place + 1 + side)

    def __call__(self, x: Floats) -> Floats:
        """The sum of the trees' values.

        **Shape**: x (N, d) → (N,).
        """
        (total,) = self._forest(x)
        return np.asarray(total)

    @cached_property
    def _forest(self) -> "Forest":
        return Forest([self])

    def __getstate__(self) -> dict[str, Any]:
        return _saved(self)


@final
class Forest:
    """Several sums of trees, evaluated together.

    Whether a row passes a split is one bit, kept in words of 64 rows. From the root down, the bit
    at a row's own node is chosen among those of its level by the bits above: of the left half of
    the level and of the right one, by one operation on words, until one is left.

    **Shape**: edges (thresholds of a column,) per column; levels (nodes of the level, T), each
    node's place among all thresholds; value (T · 2^depth,); first (F,), the first tree of each sum.
    """

    def __init__(self, sums: Sequence[Trees]) -> None:
        column, threshold = (
            np.concatenate(parts)
            for parts in zip(*((trees.column, trees.threshold) for trees in sums), strict=True)
        )
        self.value = np.concatenate([trees.value.ravel() for trees in sums])
        self.start = np.array([[trees.start] for trees in sums])
        self.sizes = [len(trees.value) for trees in sums]
        self.edges, place, n = list[Floats](), np.zeros(column.shape, np.intp), 0
        for number in range(int(column.max(initial=0)) + 1):
            own = column == number
            different, among = np.unique(threshold[own], return_inverse=True)
            self.edges.append(different)
            place[own] = n + among
            n += len(different)
        ends = np.cumsum(2 ** np.arange(_DEPTH))[:-1]
        self.levels = [np.ascontiguousarray(part.T) for part in np.split(place, ends, axis=1)]

    def __call__(self, x: Floats) -> Floats:
        """**Shape**: x (N, d) → (F, N)."""
        chunks = range(0, max(len(x), 1), _CHUNK)
        return np.concatenate([self._sums(x[start : start + _CHUNK]) for start in chunks], axis=1)

    def _sums(self, x: Floats) -> Floats:
        bits, path = _passed(x, self.edges), list[NDArray[np.uint64]]()
        leaf = np.zeros((1, bits.shape[1] * _WORD), np.uint8)
        for nodes in self.levels:
            chosen = np.take(bits, nodes, axis=0, mode="clip")  # (nodes, T, words)
            for right in path:
                half = len(chosen) // 2
                low, high = chosen[:half], chosen[half:]
                chosen = low ^ (right & (low ^ high))
            path.append(chosen)
            leaf = 2 * leaf + np.unpackbits(chosen[0].view(np.uint8), axis=1)
        place = leaf[:, : len(x)] + np.arange(0, self.value.size, 2**_DEPTH)[:, None]
        values = np.take(self.value, place, mode="clip")
        ends = np.cumsum(self.sizes)
        parts = [
            values[end - size : end].sum(axis=0) for end, size in zip(ends, self.sizes, strict=True)
        ]
        return np.asarray(np.stack(parts) + self.start)


def _saved(model: "Trees | BoostingModel") -> dict[str, Any]:
    """What a file holds: not what was made ready from it."""
    return {name: value for name, value in vars(model).items() if name != "_forest"}


def _passed(x: Floats, edges: Sequence[Floats]) -> NDArray[np.uint64]:
    """A bit for each threshold and row: whether the row's value is larger.

    **Shape**: x (N, d), thresholds of each column → (all of them, words of 64 rows).
    """
    features = np.zeros((len(edges), -(-len(x) // _WORD) * _WORD))
    features[:, : len(x)] = x.T[: len(edges)]
    packed = [np.packbits(f > e[:, None], axis=1) for f, e in zip(features, edges, strict=True)]
    return np.concatenate(packed).view(np.uint64)


@final
class BoostingModel:
    """Two boosters per fold: of the mean, and of the squared error.

    Attributes:
        mean_, spread_: Trees per fold; those of the spread give the logarithm of the variance.
        squares_: Squared error of each training row, by a booster that had not seen it, (N,).
    """

    def __init__(self, recipe: BoostingRecipe) -> None:
        self.recipe = recipe

    def fit(
        self, rows: ScaledRows, folds: Sequence[Indices], *, seed: int, listener: Listener | None
    ) -> Self:
        self.encoding_ = FeatureEncoding().fit(rows.x)
        self.mean_ = self._means(rows, folds, seed)
        x, z = self.encoding_(rows.x), trained_on(rows.z)
        squares = np.zeros(len(z))
        for own, trees in zip(folds, self.mean_, strict=True):
            rest = np.setdiff1d(np.arange(len(z)), own)
            squares[rest] = np.square(z[rest] - trees(x[rest]))
        self.squares_ = np.maximum(squares, _SMALLEST_SQUARE)
        self.spread_ = self._spreads(rows, folds, seed)
        return self

    def fit_again(
        self, rows: ScaledRows, folds: Sequence[Indices], *, seed: int, listener: Listener | None
    ) -> "BoostingModel":
        other = BoostingModel(self.recipe)
        other.encoding_, other.squares_ = self.encoding_, self.squares_
        other.mean_ = other._means(rows, folds, seed, steps=len(self.mean_[0].value))
        other.spread_ = other._spreads(rows, folds, seed)
        return other

    def components(self, x: Floats, fold: int | None = None) -> Components:
        encoded = self.encoding_(x)
        if fold is None and len(x) <= _FEW_ROWS:
            sums = self._forest(encoded)
        else:
            own = slice(None) if fold is None else slice(fold, fold + 1)
            sums = np.stack([trees(encoded) for trees in self.mean_[own] + self.spread_[own]])
        mean, log_variance = np.split(sums[..., None], 2)
        return Components(np.ones_like(mean), mean, np.exp(0.5 * log_variance))

    @cached_property
    def _forest(self) -> Forest:
        return Forest([*self.mean_, *self.spread_])

    def __getstate__(self) -> dict[str, Any]:
        return _saved(self)

    def _means(
        self, rows: ScaledRows, folds: Sequence[Indices], seed: int, *, steps: int = 0
    ) -> list[Trees]:
        """Boosters of the mean; where steps are counted, of so many if these are known."""
        recipe, targets = self.recipe, trained_on(rows.z)
        booster = _booster("squared_error", recipe.trees, recipe.rate, recipe.smallest_leaf, seed)
        booster.set_params(max_features=recipe.columns, l2_regularization=recipe.shrinkage)
        if recipe.counted:
            booster.set_params(n_iter_no_change=_COUNTING_PATIENCE)
            steps = steps or len(self._grown(booster, rows, targets, folds[0]).value)
            booster.set_params(early_stopping=False, max_iter=steps)
        return [self._grown(booster, rows, targets, own) for own in folds]

    def _spreads(self, rows: ScaledRows, folds: Sequence[Indices], seed: int) -> list[Trees]:
        booster = _booster("gamma", 60, 0.1, _SPREAD_LEAF, seed)
        return [self._grown(booster, rows, self.squares_, own) for own in folds]

    def _grown(
        self, booster: "HistGradientBoostingRegressor", rows: ScaledRows, y: Floats, own: Indices
    ) -> Trees:
        x, weight = self.encoding_(rows.x[own]), rows.weight[own]
        booster.set_params(max_bins=int(np.clip(_MOST_BINS // x.shape[1], _FEWEST_BINS, 255)))
        # equal weights say nothing, and each bin's edge would take a search of its own with them
        return Trees(booster.fit(x, y[own], sample_weight=weight if np.ptp(weight) else None))


def _booster(
    loss: Literal["squared_error", "gamma"], trees: int, rate: float, leaf: int, seed: int
) -> "HistGradientBoostingRegressor":
    from sklearn.ensemble import HistGradientBoostingRegressor  # only training grows trees

    return HistGradientBoostingRegressor(
        loss=loss,
        max_iter=trees,
        learning_rate=rate,
        max_depth=_DEPTH,
        max_leaf_nodes=None,
        min_samples_leaf=leaf,
        l2_regularization=1.0,
        early_stopping=True,
        validation_fraction=0.15,
        n_iter_no_change=_PATIENCE,
        random_state=seed,
    )
