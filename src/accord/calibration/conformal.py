"""Split conformal prediction on (μ, σ): intervals that hold, whatever the model."""

from typing import Self

import numpy as np
import torch
from numpy.typing import ArrayLike

from accord._checks import check_finite, check_positive
from accord._types import Floats
from accord.calibration.calibrator import Calibrator, checked_outputs, checked_targets, moments_of
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
        checked_outputs(self, dist, "n_outputs_")
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
