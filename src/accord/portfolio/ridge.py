"""Bayesian linear models: what a linear table, or one with few rows and many columns, needs.

A target is z = b + w·φ(x) + noise, with w ~ N(0, I/λ) and noise of variance 1/α; α and λ are those
with the largest evidence (MacKay, Bayesian interpolation, 1992). φ are the scaled features, and
with bins also their piecewise linear encoding: one curve per feature, added up. A network finds a
line only roughly, by many steps; this takes milliseconds, and knows how uncertain the weights are.

scikit-learn's BayesianRidge finds the same α, λ and w, but keeps a covariance of d² numbers per
fold; here it stays in the basis of the singular vectors, which are no more than the rows.

Where few of many features count, a ridge spreads their weight over all of them. A sparse line has
the weights of the lasso instead, whose penalty is chosen by cross-validation.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self, final

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from accord._types import Floats, Indices
from accord.portfolio.components import Components
from accord.portfolio.encoding import FeatureEncoding, ScaledRows, trained_on
from accord.portfolio.folds import at_most
from accord.portfolio.recipes import RIDGE_ROWS, RidgeRecipe
from accord.training import Listener

# Features are bounded only far out, and not softly: what is linear stays so, in long tails as well.
_BOUND = 64.0
# A line goes on beyond the training rows by this share of the range of each feature, and of the
# target, and is level from there on.
_BEYOND = 0.5
# The same in the directions of singular vectors. The shortest are easily left when rows are few.
_BEYOND_TOGETHER = 3.0
_ITERATIONS, _CONVERGED = 300, 1e-6
# What keeps α and λ finite where a line is exact or of no use, relative to standardised targets.
_SMALLEST = 1e-10
# A direction with a singular value this much smaller than the largest is one that no row has.
_EMPTY = 1e-9
# The lasso's penalties, and the parts of the rows on which they are compared.
_LASSO_PENALTIES, _LASSO_PARTS, _LASSO_ITERATIONS = 50, 5, 2_000


@dataclass(frozen=True)
class Line:
    """The posterior of the weights, in the basis of the features' singular vectors.

    ``directions`` are these vectors V; weights have the mean ``slope`` and the variance ``along``
    in them, and the variance ``across`` in all others, which no training row has. That is 0 where
    rows are more than features: what no row has is then a category or a number that is unknown,
    which is a matter of distance. The line ends at ``lowest`` and ``highest``: of features that
    nearly always go together, one alone would else be worth any number of them. Many together can
    still lead far from all targets. So it ends at the values ``least`` and ``most``, too, and by as
    much as it would pass them, up to the targets' range, it is not to be believed: that counts as
    deviation.

    **Shape**: center (d,), directions (d, r), all others but the scalars (r,).
    """

    center: Floats
    intercept: float
    directions: Floats
    slope: Floats
    along: Floats
    lowest: Floats
    highest: Floats
    across: float
    noise: float
    least: float
    most: float

    @staticmethod
    def fitted(x: Floats, z: Floats, row_weight: Floats) -> "Line":
        """The line with the largest evidence; x (n, d), z and row_weight (n,)."""
        share = row_weight / row_weight.sum()
        center, intercept = share @ x, float(share @ z)
        root = np.sqrt(len(z) * share)
        left, sizes, right = np.linalg.svd((x - center) * root[:, None], full_matrices=False)
        target = (z - intercept) * root
        projected, square = left.T @ target, np.square(sizes)
        outside = float(target @ target - projected @ projected)
        alpha, lam = 1 / max(float(np.mean(target**2)), _SMALLEST), 1.0
        for _ in range(_ITERATIONS):
            precision = lam + alpha * square
            own = alpha * sizes * projected / precision
            used = float(np.sum(alpha * square / precision))  # weights that the rows determine
            error = max(outside, 0.0) + float(np.sum(np.square(projected - sizes * own)))
            before = alpha, lam
            alpha = (len(z) - used + _SMALLEST) / (error + len(z) * _SMALLEST)
            lam = (used + _SMALLEST) / (float(own @ own) + _SMALLEST)
            if np.allclose(before, (alpha, lam), rtol=_CONVERGED, atol=0.0):
                break
        precision = lam + alpha * square
        least, most = _ends_of_targets(z)
        few = len(z) <= len(center)
        empty = sizes <= _EMPTY * sizes.max(initial=0.0)
        ends = _ends((x - center) @ right.T, np.where(few & empty, np.inf, _BEYOND_TOGETHER))
        return Line(
            center=center,
            intercept=intercept,
            directions=right.T,
            slope=alpha * sizes * projected / precision,
            along=np.where(few | ~empty, 1 / precision, 0.0),
            **ends,
            across=1 / lam if few else 0.0,
            noise=1 / alpha,
            least=least,
            most=most,
        )

    @staticmethod
    def sparse(x: Floats, z: Floats, row_weight: Floats, *, seed: int) -> "Line":
        """The lasso's line; x (n, d), z and row_weight (n,).

        Noise is the mean square of what cross-validation left, and weights are as uncertain as if
        no two features went together.
        """
        # half a second to import, which predictions do not need
        from sklearn.linear_model import LassoCV
        from sklearn.model_selection import KFold

        share = row_weight / row_weight.sum()
        center = share @ x
        scale = np.sqrt(share @ np.square(x - center))
        scale[scale < _SMALLEST] = np.inf  # a constant says nothing
        parts = KFold(_LASSO_PARTS, shuffle=True, random_state=seed)
        lasso = LassoCV(alphas=_LASSO_PENALTIES, cv=parts, max_iter=_LASSO_ITERATIONS)
        with warnings.catch_warnings():  # weak penalties may not converge, and others win then
            warnings.simplefilter("ignore", ConvergenceWarning)
            lasso.fit((x - center) / scale, z, sample_weight=len(z) * share)
        used = np.flatnonzero(lasso.coef_)
        directions = np.zeros((x.shape[1], len(used)))
        directions[used, np.arange(len(used))] = 1.0
        least, most = _ends_of_targets(z)
        noise = max(float(lasso.mse_path_.mean(axis=1).min()), _SMALLEST)
        return Line(
            center=center,
            intercept=float(lasso.intercept_),
            directions=directions,
            slope=lasso.coef_[used] / scale[used],
            along=noise / (len(z) * np.square(scale[used])),
            **_ends((x - center) @ directions, _BEYOND_TOGETHER),
            across=0.0,
            noise=noise,
            least=least,
            most=most,
        )

    def predict(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation, noise included; (n, d) → (n,) each."""
        x = x - self.center
        place = x @ self.directions
        unknown = np.maximum(np.square(x).sum(axis=1) - np.square(place).sum(axis=1), 0.0)
        place = place.clip(self.lowest, self.highest)
        variance = self.noise + np.square(place) @ self.along + self.across * unknown
        value = self.intercept + place @ self.slope
        mean = value.clip(self.least, self.most)
        passed = np.minimum(np.abs(value - mean), self.target_range)
        return mean, np.sqrt(variance + np.square(passed))

    @property
    def target_range(self) -> float:
        return (self.most - self.least) / (1 + 2 * _BEYOND)


def _ends(seen: Floats, beyond: Floats | float) -> dict[str, Floats]:
    """Where lines end that have seen these rows: by so many ranges beyond; (n, d) → (d,) each."""
    low, high = seen.min(axis=0), seen.max(axis=0)
    room = beyond * np.maximum(high - low, _SMALLEST)
    return {"lowest": low - room, "highest": high + room}


def _ends_of_targets(z: Floats) -> tuple[float, float]:
    """The values at which a line ends that was fitted to these targets, (n,)."""
    ends = _ends(z[:, None], _BEYOND)
    return float(ends["lowest"][0]), float(ends["highest"][0])


@final
class RidgeModel:
    """A line per fold.

    Attributes:
        encoding_: How features are encoded.
        used_: Places of what is used of the encoding, (d',). A feature is, as far as rows go, the
            sum of its bins, and with these it is not used itself: beyond the rows the two would
            part, however large their weights are.
        lowest_, highest_: Where lines end, in each of these, (d',).
        lines_: One per fold.
    """

    def __init__(self, recipe: RidgeRecipe) -> None:
        self.recipe = recipe

    def fit(
        self, rows: ScaledRows, folds: Sequence[Indices], *, seed: int, listener: Listener | None
    ) -> Self:
        self.encoding_ = FeatureEncoding(bins=self.recipe.bins, bound=math.inf).fit(rows.x)
        n_encoded = max(1, len(self.encoding_.kept_) + len(self.encoding_.start_))
        self.used_ = np.setdiff1d(np.arange(n_encoded), self.encoding_.column_)
        z = trained_on(rows.z)
        chosen = [at_most(own, RIDGE_ROWS, seed) for own in folds]
        ends = _ends(self._encoded(rows.x[np.unique(np.concatenate(chosen))]), _BEYOND)
        self.lowest_ = np.maximum(ends["lowest"], -_BOUND)
        self.highest_ = np.minimum(ends["highest"], _BOUND)
        fitted = partial(Line.sparse, seed=seed) if self.recipe.sparse else Line.fitted
        self.lines_ = [
            fitted(self._encoded(rows.x[own]), z[own], rows.weight[own]) for own in chosen
        ]
        return self

    def _encoded(self, x: Floats) -> Floats:
        return np.asarray(self.encoding_(x)[:, self.used_].clip(-_BOUND, _BOUND))

    def fit_again(
        self, rows: ScaledRows, folds: Sequence[Indices], *, seed: int, listener: Listener | None
    ) -> "RidgeModel":
        return RidgeModel(self.recipe).fit(rows, folds, seed=seed, listener=listener)

    def components(self, x: Floats, fold: int | None = None) -> Components:
        encoded = self._encoded(x).clip(self.lowest_, self.highest_)
        chosen = self.lines_ if fold is None else [self.lines_[fold]]
        return Components.stacked([Components.single(*line.predict(encoded)) for line in chosen])
