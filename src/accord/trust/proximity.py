"""How far a row lies from the training data, and how a local tolerance grows with that."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, Self, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from accord._types import Bools, Floats, Indices
from accord.export import Value, affine, states
from accord.trust.search import NearestRows

# Rows among which a growth seeks neighbours. Measured on tables of 8,000 to 22,000 rows: with
# 20,000, parts that were held out (tails, gaps, clusters) are recognised a little better, by 0.01
# of the area under the curve in mean over 19 of them, and a search takes four times as long; with
# 2,000, worse by 0.02 than with these.
REFERENCES = 5_000
# A row is called unusual if fewer than this share of the training rows lie as far from the others.
UNUSUAL_SHARE = 0.05
# ε₁: how fast the tolerance grows where nothing can be tested, as a fraction of the targets' range.
BEYOND_EVIDENCE = 0.02
_GROWTH_CAP = 20.0
# Cells of a table that are standardised, or differences to neighbours, at a time.
_CELLS = 2**22
# A difference whose square would overflow counts as this large.
_FARTHEST = 1e150


class Neighbors(NamedTuple):
    """The nearest training rows of some rows, and how far each feature sets them apart.

    A length is a sum over features, ‖v‖ = Σ_f v_f² / ‖v‖, and so is a mean of lengths: the columns
    of ``by_feature`` add up to the distance.

    **Shape**: rows and distances (n, k), nearest first; by_feature (n, d).
    """

    rows: Indices
    """Places in ``Proximity.references_``."""
    distances: Floats
    by_feature: Floats


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
        reference_rows_: (R,) their places among the training rows.
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

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        feature_weight: ArrayLike | None = None,
        copies: ArrayLike | None = None,
    ) -> Self:
        """Learn the scale of the features and the training rows' own distances.

        ``feature_weight`` says how much a deviation in each feature counts, 1 unless given. Rows
        with the same number in ``copies`` repeat each other: they are one neighbour, and none of
        their own, or all others would seem far beside them.

        **Shape:** X (N, d) with N ≥ 2; feature_weight (d,), positive; copies (N,); y is ignored.
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
        # A constant column's deviation is rounding error of its mean, which grows with the rows.
        low, high = X.min(axis=0), X.max(axis=0)
        rounding = 10 * np.finfo(np.float64).eps * np.maximum(np.abs(low), np.abs(high))
        varies = high - low > rounding
        self.varying_ = np.flatnonzero(varies)
        weight = np.ones(X.shape[1]) if feature_weight is None else np.asarray(feature_weight)
        self.scale_ = deviation[varies] / weight[varies]
        same = np.arange(len(X)) if copies is None else np.asarray(copies)
        first = np.sort(np.unique(same, return_index=True)[1])
        chosen = first[self._choose_references(len(first))]
        self.references_, self.reference_rows_ = self._standardise(X[chosen]), chosen
        self.n_neighbors_ = min(self.n_neighbors, len(chosen) - 1)
        self.training_distances_ = self._training_distances(X, np.isin(same, same[chosen]))
        return self

    def distance(self, X: Any, *, near: float = 0.0) -> Floats:
        """Mean distance of each row to the nearest training rows.

        One below ``near`` may be given as ``near``, which takes less time.

        **Shape:** X (n, d) → (n,)
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        nearest, rows = self._nearest(self._standardise(X), self.n_neighbors_, near)
        # a mean of the same numbers may differ from them in the last digit
        return np.where(rows[:, 0] < 0, near, nearest.mean(axis=1))

    def neighbors(self, X: Any, n: int | None = None, *, among: Bools | None = None) -> Neighbors:
        """The ``n`` nearest training rows, by default as many as ``distance`` is a mean of.

        ``among`` says which references may be neighbours; it is meant for few rows at a time.

        **Shape:** X (m, d), among (R,) → (m, n) and (m, d)

        Example:
            >>> near = Proximity(n_neighbors=2).fit([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
            >>> found = near.neighbors([[3.0, 0.0]])
            >>> found.rows, bool(np.isclose(found.by_feature.sum(), near.distance([[3.0, 0.0]])[0]))
            (array([[1, 0]]), True)
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        k = min(n or self.n_neighbors_, len(self.references_))
        by_feature = np.zeros(X.shape)
        Z = self._standardise(X)
        distances, rows = self._nearest(Z, k) if among is None else self._few(Z, k, among)
        step = max(1, _CELLS // (k * max(1, Z.shape[1])))
        for start in range(0, len(Z), step):
            own = slice(start, start + step)
            apart = Z[own, None, :] - self.references_[rows[own]]
            by_feature[own, self.varying_] = _lengths_by_feature(apart).mean(axis=1)
        return Neighbors(rows, distances, by_feature)

    def references(self) -> Floats:
        """The reference rows as they were given; features constant in training at their value.

        **Shape:** → (R, d)
        """
        check_is_fitted(self)
        rows = np.tile(self.center_, (len(self.references_), 1))
        rows[:, self.varying_] += self.references_ * self.scale_
        return rows

    def distance_leave_one_out(self) -> Floats:
        """Distance of each training row to the other training rows, in the order of ``fit``.

        **Shape:** → (N,)
        """
        check_is_fitted(self)
        return self.training_distances_.copy()

    def _standardise(self, X: Floats) -> Floats:
        Z: Floats = (X[:, self.varying_] - self.center_[self.varying_]) / self.scale_
        return Z

    def _choose_references(self, n: int) -> Indices:
        if n <= self.max_references:
            return np.arange(n)
        random = check_random_state(self.random_state)
        return np.sort(random.choice(n, self.max_references, replace=False))

    def _training_distances(self, X: Floats, known: Bools) -> Floats:
        """References, and copies of them, find themselves at distance 0 and leave that one out."""
        distances = np.empty(len(X))
        step = max(1, _CELLS // max(1, X.shape[1]))
        for start in range(0, len(X), step):
            own = slice(start, start + step)
            nearest, _ = self._nearest(self._standardise(X[own]), self.n_neighbors_ + 1)
            itself = known[own, None]
            distances[own] = np.where(itself, nearest[:, 1:], nearest[:, :-1]).mean(axis=1)
        return distances

    def _nearest(self, Z: Floats, k: int, near: float = 0.0) -> tuple[Floats, Indices]:
        """Distances to the k nearest references, in ascending order, and these.

        Those of rows whose mean distance is below ``near`` may be given as ``near``.

        **Shape:** Z (n, d') → (n, k) each
        """
        if Z.shape[1] == 0:
            return np.zeros((len(Z), k)), np.tile(np.arange(k), (len(Z), 1))
        return self._search.query(Z, k, near=near)

    def _few(self, Z: Floats, k: int, among: Bools) -> tuple[Floats, Indices]:
        """As ``_nearest``, among some of the references, by all their distances."""
        chosen = np.flatnonzero(among)
        distances = cdist(Z, self.references_[chosen])
        order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(distances, order, axis=1), chosen[order]

    @cached_property
    def _search(self) -> NearestRows:
        """The search structure, built once; a saved model holds the rows only."""
        return NearestRows(self.references_)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_search"}


def _lengths_by_feature(apart: Floats) -> Floats:
    """v_f² / ‖v‖ for each vector v; 0 for v = 0.

    **Shape:** (n, k, d') → the same
    """
    squares = np.square(np.clip(apart, -_FARTHEST, _FARTHEST))
    length = np.sqrt(squares.sum(axis=2, keepdims=True))
    return np.asarray(squares / np.where(length > 0, length, 1.0))


@final
class Growth:
    """g(x): 0 for rows as usual as the training rows' nearer half, 1 at their 95 % quantile.

    Attributes:
        proximity_: The distance to the training rows.
        start_, width_: r₅₀ and r₉₅ − r₅₀.
        farthest_: G, the largest value of a training row.
        threshold_: The value from which on a row is unusual.
        extent_: The distance between two training rows at random (root mean square), in widths.
    """

    def fit(
        self,
        x: Floats,
        *,
        feature_weight: Floats | None = None,
        copies: Indices | None = None,
        max_references: int = REFERENCES,
    ) -> Self:
        """**Shape**: x (N, d), feature_weight (d,), copies (N,)."""
        proximity = Proximity(max_references=max_references, random_state=0)
        self.proximity_ = proximity.fit(x, feature_weight=feature_weight, copies=copies)
        distances = self.proximity_.distance_leave_one_out()
        self.start_, high = np.quantile(distances, [0.5, 0.95])
        # rows all alike: any distance at all is unusual, and the cap bounds what follows
        self.width_ = max(high - self.start_, 1e-3 * max(high, 1e-12))
        self.farthest_ = (distances.max() - self.start_) / self.width_
        self.threshold_ = float(np.quantile(self.leave_one_out(), 1 - UNUSUAL_SHARE))
        spread = self.proximity_.references_.var(axis=0).sum()
        self.extent_ = float(np.sqrt(2 * spread)) / self.width_
        return self

    def __call__(self, x: Floats) -> Floats:
        """g before it is cut off at 0.

        **Shape**: x (N, d) → (N,).
        """
        return self._of_distance(self.proximity_.distance(x))

    def cut_off(self, x: Floats) -> Floats:
        """g: the same, and 0 where that is negative, which takes less time to see.

        **Shape**: x (N, d) → (N,).
        """
        return self._of_distance(self.proximity_.distance(x, near=self.start_)).clip(min=0.0)

    def leave_one_out(self) -> Floats:
        """g of each training row, among the other training rows; before it is cut off at 0."""
        return self._of_distance(self.proximity_.distance_leave_one_out())

    def is_unusual(self, values: Floats) -> Bools:
        """Whether rows with these values lie farther out than all but 5 % of the training rows."""
        return np.asarray(values > self.threshold_)

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

    def half_width_graph(self, values: Value, *, unit: Value, target_range: float) -> Value:
        """``half_width`` of a single target in an exported graph; (N, 1) each."""
        beyond = BEYOND_EVIDENCE * (values - float(self.farthest_)).at_least(0.0)
        half_width = values.at_least(0.0).at_most(_GROWTH_CAP) * unit + beyond * target_range
        return half_width.at_most(target_range)


@states(Proximity)
def state_proximity(near: Proximity, x: Value) -> Value:
    """Mean distance to the nearest references; (N, d) → (N, 1).

    A matrix product shows which are nearest. Their distances are taken again by differences, since
    products lose the digits of small ones.
    """
    rows, k = near.references_, near.n_neighbors_
    if not rows.shape[1]:
        return 0.0 * x.sum(1, keep=True)
    z = affine(x.take(near.varying_, 1), near.center_[near.varying_], near.scale_)
    products = z @ x.graph.constant(rows.T)
    # without the row's own length, which is the same for all references
    nearest = x.graph.top(np.square(rows).sum(axis=1)[None] - 2 * products, k)
    apart = x.graph.constant(rows).take(nearest, 0) - z.wider(1)
    return apart.square().sum(2).sqrt().sum(1, keep=True) / k


@states(Growth)
def state_growth(growth: Growth, x: Value) -> Value:
    """g before it is cut off at 0; (N, d) → (N, 1)."""
    return (state_proximity(growth.proximity_, x) - float(growth.start_)) / float(growth.width_)
