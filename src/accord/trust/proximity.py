"""How far a row lies from the training data, and how a local tolerance grows with that."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import KDTree
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from accord._types import Floats, Indices

# Measured with 20,000 references: a k-d tree visits nearly every row beyond about ten features,
# where a matrix product over all pairs is quicker.
_TREE_FEATURES = 10
_CHUNK = 16_384
# ε₁: how fast the tolerance grows where nothing can be tested, as a fraction of the targets' range.
BEYOND_EVIDENCE = 0.02
_GROWTH_CAP = 20.0


class Proximity(BaseEstimator):  # type: ignore[misc]
    """Mean distance to the k nearest training rows, in standardised features.

    With features standardised by the training rows' mean and deviation,
    r(x) = k⁻¹ Σ_j ‖x − x₍ⱼ₎‖ over the k nearest training rows x₍₁₎ … x₍ₖ₎. A training row is not
    its own neighbour (leave-one-out), so that distances of training rows and of new rows from the
    same density are alike. Features that are constant in training carry no scale and are ignored.

    Args:
        n_neighbors: k; lowered to the number of other rows if there are fewer.
        max_references: Above this many rows, neighbours are sought in a random subset of that size.
            All distances then refer to the subset, and grow alike for training and new rows.
        random_state: Draws the subset.

    Attributes:
        references_: (R, d') rows among which neighbours are sought, standardised.
        training_distances_: (N,) leave-one-out distances of the training rows.

    Example:
        >>> import numpy as np
        >>> near = Proximity(n_neighbors=2).fit(np.arange(5.0)[:, None])
        >>> near.distance([[2.0], [10.0]]).round(3)
        array([0.354, 4.596])
        >>> near.distance_leave_one_out().round(3)
        array([1.061, 0.707, 0.707, 0.707, 1.061])
    """

    def __init__(
        self,
        *,
        n_neighbors: int = 5,
        max_references: int = 20_000,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.max_references = max_references
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, feature_weight: ArrayLike | None = None) -> Self:
        """Learn the scale of the features and the training rows' own distances.

        ``feature_weight`` says how much a deviation in each feature counts, 1 unless given.

        **Shape:** X (N, d) with N ≥ 2; feature_weight (d,), positive; y is ignored.
        """
        X = validate_data(self, X, dtype=np.float64)
        if self.n_neighbors < 1:
            raise ValueError(f"n_neighbors must be at least 1, got {self.n_neighbors}.")
        if self.max_references < 2:
            raise ValueError(f"max_references must be at least 2, got {self.max_references}.")
        if len(X) < 2:
            raise ValueError(
                f"Distances between training rows need at least 2 rows, got n_samples = {len(X)}."
            )
        self.center_ = X.mean(axis=0)
        deviation = X.std(axis=0)
        # A constant column's deviation is rounding error of its mean, not always exactly zero.
        varies = deviation > 10 * np.finfo(np.float64).eps * np.abs(X).max(axis=0)
        self.varying_ = np.flatnonzero(varies)
        weight = np.ones(X.shape[1]) if feature_weight is None else np.asarray(feature_weight)
        self.scale_ = deviation[varies] / weight[varies]
        Z = self._standardise(X)
        chosen = self._choose_references(len(Z))
        self.references_ = Z[chosen]
        self.n_neighbors_ = min(self.n_neighbors, len(chosen) - 1)
        self.training_distances_ = self._training_distances(Z, chosen)
        return self

    def distance(self, X: Any) -> Floats:
        """Mean distance of each row to the nearest training rows.

        **Shape:** X (n, d) → (n,)
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        distances: Floats = self._nearest(self._standardise(X), self.n_neighbors_).mean(axis=1)
        return distances

    def distance_leave_one_out(self) -> Floats:
        """Distance of each training row to the other training rows, in the order of ``fit``.

        **Shape:** → (N,)
        """
        check_is_fitted(self)
        return self.training_distances_.copy()

    def quantile(self, level: ArrayLike) -> Floats:
        """Quantiles of the training rows' leave-one-out distances.

        **Shape:** level () or (K,) → the same shape

        Example:
            >>> near = Proximity(n_neighbors=1).fit([[0.0], [1.0], [2.0], [5.0]])
            >>> near.quantile([0.5, 1.0]).round(3)
            array([0.535, 1.604])
        """
        check_is_fitted(self)
        return np.asarray(
            np.quantile(self.training_distances_, np.asarray(level, dtype=np.float64))
        )

    def _standardise(self, X: Floats) -> Floats:
        Z: Floats = (X[:, self.varying_] - self.center_[self.varying_]) / self.scale_
        return Z

    def _choose_references(self, n: int) -> Indices:
        if n <= self.max_references:
            return np.arange(n)
        random = check_random_state(self.random_state)
        return np.sort(random.choice(n, self.max_references, replace=False))

    def _training_distances(self, Z: Floats, chosen: Indices) -> Floats:
        """References find themselves at distance 0 and leave that one out."""
        nearest = self._nearest(Z, self.n_neighbors_ + 1)
        distances: Floats = nearest[:, :-1].mean(axis=1)
        distances[chosen] = nearest[chosen, 1:].mean(axis=1)
        return distances

    def _nearest(self, Z: Floats, k: int) -> Floats:
        """Distances to the k nearest references, in ascending order.

        **Shape:** Z (n, d') → (n, k)
        """
        if Z.shape[1] == 0:
            return np.zeros((len(Z), k))
        if Z.shape[1] <= _TREE_FEATURES:
            distances: Floats = self._search.query(Z, k=np.arange(1, k + 1))[0]
            return distances
        return np.concatenate([self._nearest_by_product(chunk, k) for chunk in _chunks(Z)])

    @cached_property
    def _search(self) -> Any:
        """The search structure, built once; a saved model holds the rows only."""
        if self.references_.shape[1] <= _TREE_FEATURES:
            return KDTree(self.references_)
        return NearestNeighbors(algorithm="brute").fit(self.references_)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_search"}

    def _nearest_by_product(self, Z: Floats, k: int) -> Floats:
        """Matrix products show which rows are nearest; their distances, to 1e-8 only.

        Hence the distances are taken again by differences: a training row is exactly 0 from itself.
        """
        rows = self._search.kneighbors(Z, n_neighbors=k, return_distance=False)
        distances = np.linalg.norm(self.references_[rows] - Z[:, None, :], axis=2)
        return np.sort(distances, axis=1)


def _chunks(Z: Floats) -> list[Floats]:
    return [Z[start : start + _CHUNK] for start in range(0, len(Z), _CHUNK)]


@final
class Growth:
    """g(x): 0 for rows as usual as the training rows' nearer half, 1 at their 95 % quantile.

    Attributes:
        proximity_: The distance to the training rows.
        start_, width_: r₅₀ and r₉₅ − r₅₀.
        farthest_: G, the largest value of a training row.
        extent_: The distance between two training rows at random (root mean square), in widths.
    """

    def fit(
        self, x: Floats, *, feature_weight: Floats | None = None, max_references: int = 20_000
    ) -> Self:
        """**Shape**: x (N, d), feature_weight (d,)."""
        proximity = Proximity(max_references=max_references, random_state=0)
        self.proximity_ = proximity.fit(x, feature_weight=feature_weight)
        distances = self.proximity_.distance_leave_one_out()
        self.start_, high = np.quantile(distances, [0.5, 0.95])
        # rows all alike: any distance at all is unusual, and the cap bounds what follows
        self.width_ = max(high - self.start_, 1e-3 * max(high, 1e-12))
        self.farthest_ = (distances.max() - self.start_) / self.width_
        spread = self.proximity_.references_.var(axis=0).sum()
        self.extent_ = float(np.sqrt(2 * spread)) / self.width_
        return self

    def __call__(self, x: Floats) -> Floats:
        """g before it is cut off at 0.

        **Shape**: x (N, d) → (N,).
        """
        return self._of_distance(self.proximity_.distance(x))

    def leave_one_out(self) -> Floats:
        """g of each training row, among the other training rows; before it is cut off at 0."""
        return self._of_distance(self.proximity_.distance_leave_one_out())

    def _of_distance(self, distance: Floats) -> Floats:
        return np.asarray((distance - self.start_) / self.width_)

    def half_width(self, values: Floats, *, unit: Floats, target_range: Floats) -> Floats:
        """ε(x) where the growth has these values and ``unit`` is ε₀ + κ s(x) in target units.

        **Shape**: values (N,); unit (N, T) or (T,); target_range (T,) → (N, T).
        """
        growth = values[:, None]
        beyond = BEYOND_EVIDENCE * (growth - self.farthest_).clip(min=0.0)
        half_width = growth.clip(0.0, _GROWTH_CAP) * unit + beyond * target_range
        return np.asarray(np.minimum(half_width, target_range))
