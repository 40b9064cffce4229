"""Split conformal prediction on (μ, σ): intervals that hold for any model, and under a shift."""

from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_array, check_is_fitted

from accord._checks import check_finite, check_positive
from accord._types import Floats
from accord.calibration.calibrators import Calibrator, checked_outputs, checked_targets, moments_of
from accord.distributions import (
    ConformalPredictive,
    Decomposed,
    Distribution,
    MonotoneCurve,
    Normal,
    Ranks,
    Reshaped,
    curve_through_scores,
)

# No row counts more than a million times another: a classifier's 0 or 1 is never quite certain.
_LARGEST = 1e6


class Conformal(Calibrator):
    """Intervals μ ± kσ with k taken from held-out rows by rank: coverage is guaranteed.

    The scores |y − μ|/σ of n held-out rows and of a new row are exchangeable, so the new one is
    among the ⌈(n + 1)c⌉ smallest with probability at least c, and at most c + 1/(n + 1) without
    ties: no assumption about the model, the noise or n is made (Lei et al., 2018). If
    ⌈(n + 1)c⌉ > n no finite interval has that property: the bounds are infinite, with a warning.

    For shifted data, give weights: the likelihood ratio w(x) = p_new(x)/p_old(x) of each
    calibration row in ``fit`` and of each new row on call (:class:`LikelihoodRatio` estimates it).
    Coverage then holds for rows from p_new (Tibshirani et al., Conformal prediction under
    covariate shift, 2019).

    Args:
        symmetric: One bound for both sides, which needs 19 rows for 95 %. Otherwise either side
            has its own, by signed scores (y − μ)/σ: for skewed noise; needs 39 rows.

    Attributes:
        scores_: Signed scores of the calibration rows, ascending, (K, n).
        weight_: Their weights in the same order, (K, n).

    Example:
        >>> from accord.distributions import Normal
        >>> y = np.arange(1.0, 20.0)
        >>> conformal = Conformal().fit(Normal(np.zeros(19), 1.0), y)
        >>> conformal(Normal([0.0, 100.0], [1.0, 2.0])).interval(0.95)
        array([[-19.,  19.],
               [ 62., 138.]])
    """

    def __init__(self, *, symmetric: bool = True) -> None:
        self.symmetric = symmetric

    def fit(self, dist: Distribution, y: ArrayLike, *, weight: ArrayLike | None = None) -> Self:
        """Rank the errors of predictions for held-out rows.

        **Shape**: dist and y (n,), or (n, K) for K outputs; weight (n,); n ≥ 2.
        """
        targets = checked_targets(dist, y, at_least=2)
        weights = _checked_weight(weight, len(targets))
        mean, std = moments_of(dist)
        scores = ((targets - mean) / std).reshape(len(targets), -1)
        order = np.argsort(scores, axis=0, kind="stable")
        self.scores_ = np.take_along_axis(scores, order, axis=0).T
        self.weight_ = weights[order].T
        self.weighted_ = weight is not None
        self.n_outputs_ = len(self.scores_)
        return self

    def __call__(self, dist: Distribution, *, weight: ArrayLike | None = None) -> Distribution:
        """Distributions whose quantiles and intervals hold with the guarantee.

        **Shape**: (N,), or (N, K) for K outputs; weight (N,).
        """
        checked_outputs(self, dist)
        if (weight is not None) != self.weighted_:
            raise ValueError(
                f"weight must be given on call exactly if it was given in fit, got "
                f"{'none' if weight is None else 'one'} here. Weigh both or neither."
            )
        own = torch.from_numpy(_checked_weight(weight, len(dist))).to(dist._reference)
        own = own.reshape(-1, *(1 for _ in dist.shape[1:])).expand(dist.shape)
        pairs = list(zip(self.scores_, self.weight_, strict=True))
        return ConformalPredictive(
            Reshaped(
                Decomposed(Normal(dist.mean, dist.std), dist.disagreement, dist.distance),
                [self._curve(scores, weights) for scores, weights in pairs],
            ),
            below=tuple(_ranks(-scores, weights, self.symmetric) for scores, weights in pairs),
            above=tuple(_ranks(scores, weights, self.symmetric) for scores, weights in pairs),
            share=2 if self.symmetric else 1,
            own_weight=own,
        )

    def _curve(self, scores: Floats, weight: Floats) -> MonotoneCurve:
        if self.symmetric:  # each error could as well have been on the other side
            scores, weight = np.concatenate([-scores, scores]), np.concatenate([weight, weight])
        return curve_through_scores(scores, weight=weight)


def _ranks(scores: Floats, weight: Floats, symmetric: bool) -> Ranks:
    scores = np.abs(scores) if symmetric else scores
    order = np.argsort(scores, kind="stable")
    return Ranks(scores[order], weight[order])


def _checked_weight(weight: ArrayLike | None, n: int) -> Floats:
    if weight is None:
        return np.ones(n)
    weights = np.asarray(weight, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(
            f"weight must have one entry per row, ({n},), got {weights.shape}. "
            "Give the likelihood ratio of each row."
        )
    check_positive("weight", weights, remedy="Floor the likelihood ratio at a small number.")
    check_finite("weight", weights)
    return weights


class LikelihoodRatio(BaseEstimator):  # type: ignore[misc]
    """Ratio of the densities of new and old feature rows, by a classifier that distinguishes them.

    With ρ(x) the probability that row x is a new one, w(x) = ρ(x) n_old / ((1 − ρ(x)) n_new)
    estimates p_new(x) / p_old(x) (Tibshirani et al., Conformal prediction under covariate shift,
    2019).

    Args:
        classifier: Any scikit-learn classifier with ``predict_proba``. By default a logistic
            regression on the features and their squares, which holds for Gaussian features whose
            means and spreads have changed.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> old, new = rng.normal(size=(4000, 1)), rng.normal(1.0, 1.0, size=(4000, 1))
        >>> ratio = LikelihoodRatio().fit(old, new)
        >>> ratio([[0.5], [1.5]]).round(1)          # 1 and e, to 3 %
        array([1. , 2.8])
    """

    def __init__(self, *, classifier: Any = None) -> None:
        self.classifier = classifier

    def fit(self, X_old: Any, X_new: Any) -> Self:
        """Learn to distinguish new rows from old ones.

        **Shape:** X_old (N, d), X_new (N', d)
        """
        X_old, X_new = _rows(X_old), _rows(X_new)
        if X_old.shape[1] != X_new.shape[1]:
            raise ValueError(
                "X_old and X_new must have the same number of features, "
                f"got {X_old.shape[1]} and {X_new.shape[1]}. Pass the same columns of both."
            )
        self.size_ratio_ = len(X_old) / len(X_new)
        X = np.concatenate([X_old, X_new])
        is_new = np.repeat([0, 1], [len(X_old), len(X_new)])
        self.scaler_ = StandardScaler().fit(X)
        default = self.classifier is None
        classifier = LogisticRegression(max_iter=1000) if default else clone(self.classifier)
        self.classifier_ = classifier.fit(self._inputs(X), is_new)
        return self

    def __call__(self, X: Any) -> Floats:
        """Weight of each row.

        **Shape:** X (n, d) → (n,)
        """
        check_is_fitted(self)
        probability = self.classifier_.predict_proba(self._inputs(_rows(X)))
        with np.errstate(divide="ignore"):
            odds = probability[:, 1] / probability[:, 0]
        weight: Floats = np.clip(odds * self.size_ratio_, 1 / _LARGEST, _LARGEST)
        return weight

    def _inputs(self, X: Floats) -> Floats:
        if self.classifier is not None:
            return X
        Z = self.scaler_.transform(X)
        return np.hstack([Z, np.square(Z)])


def _rows(X: Any) -> Floats:
    rows: Floats = check_array(X, dtype=np.float64)
    return rows
