"""Boosted trees: a mean, and a deviation per row learnt from its errors out of fold.

scikit-learn's histogram boosting grows the trees; the fitted trees are kept as plain arrays of
complete binary trees, which vectorised look-ups evaluate as fast as its own code does. The second
booster minimises the gamma deviance of the squared errors, log s² + e²/s² up to constants: that is
twice the Gaussian negative log-likelihood of a deviation s.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, final

import numpy as np
from numpy.typing import NDArray

from accord._types import Floats, Indices
from accord.portfolio.components import Components
from accord.portfolio.encoding import FeatureEncoding
from accord.portfolio.recipes import BoostingRecipe
from accord.portfolio.targets import ScaledRows, trained_on
from accord.training import Listener

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingRegressor

_DEPTH = 5
# Rows whose places in all trees fit in the processor's cache.
_CHUNK = 256
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
        chunks = range(0, max(len(x), 1), _CHUNK)
        return np.concatenate([self._sum(x[start : start + _CHUNK]) for start in chunks])

    def _sum(self, x: Floats) -> Floats:
        n_trees, inner = self.column.shape
        features = np.ascontiguousarray(x.T)
        rows, trees = np.arange(len(x)), np.arange(n_trees)[:, None]
        offset = self.column.ravel().astype(np.intp) * len(x)
        # the first level has one node per tree, nothing to look up
        place = 1 + (features[self.column[:, 0]] > self.threshold[:, :1]).astype(np.intp)
        for _ in range(_DEPTH - 1):
            node = place + inner * trees
            found = _taken(features.ravel(), _taken(offset, node) + rows)
            place *= 2
            place += 1 + (found > _taken(self.threshold.ravel(), node))
        leaf = place - inner + (inner + 1) * trees
        sums: Floats = _taken(self.value.ravel(), leaf).sum(axis=0) + self.start
        return sums


def _taken(values: NDArray[Any], places: NDArray[np.intp]) -> NDArray[Any]:
    """values[places], several times faster: all places are known to exist."""
    return np.take(values, places, mode="clip")


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

    def elsewhere(
        self, rows: ScaledRows, folds: Sequence[Indices], *, seed: int, listener: Listener | None
    ) -> "BoostingModel":
        other = BoostingModel(self.recipe)
        other.encoding_, other.squares_ = self.encoding_, self.squares_
        other.mean_ = other._means(rows, folds, seed)
        other.spread_ = other._spreads(rows, folds, seed)
        return other

    def components(self, x: Floats, fold: int | None = None) -> Components:
        encoded = self.encoding_(x)
        parts = range(len(self.mean_)) if fold is None else [fold]
        return Components.stacked(
            [
                Components.single(
                    self.mean_[own](encoded), np.exp(0.5 * self.spread_[own](encoded))
                )
                for own in parts
            ]
        )

    def _means(self, rows: ScaledRows, folds: Sequence[Indices], seed: int) -> list[Trees]:
        recipe, targets = self.recipe, trained_on(rows.z)
        booster = _booster("squared_error", recipe.trees, recipe.rate, recipe.smallest_leaf, seed)
        return [self._grown(booster, rows, targets, own) for own in folds]

    def _spreads(self, rows: ScaledRows, folds: Sequence[Indices], seed: int) -> list[Trees]:
        booster = _booster("gamma", 60, 0.1, 4 * self.recipe.smallest_leaf, seed)
        return [self._grown(booster, rows, self.squares_, own) for own in folds]

    def _grown(
        self, booster: "HistGradientBoostingRegressor", rows: ScaledRows, y: Floats, own: Indices
    ) -> Trees:
        x = self.encoding_(rows.x[own])
        booster.set_params(max_bins=int(np.clip(_MOST_BINS // x.shape[1], _FEWEST_BINS, 255)))
        return Trees(booster.fit(x, y[own], sample_weight=rows.weight[own]))


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
        n_iter_no_change=15,
        random_state=seed,
    )
