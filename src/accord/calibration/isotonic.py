"""Isotonic recalibration: a monotone map of the cdf."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from accord.calibration.calibrator import Calibrator, checked_outputs, checked_targets
from accord.distributions import (
    Distribution,
    MonotoneCurve,
    Reshaped,
    curve_through_scores,
    normal_scores,
)


class IsotonicCalibration(Calibrator):
    """Replace every predicted cdf F by R ∘ F, with R the distribution function of the values F(y).

    If a predicted 90 % quantile lies above 70 % of the held-out targets, R(0.9) = 0.7 (Kuleshov,
    Fenner and Ermon, Accurate uncertainties for deep learning, 2018). R is followed at few knots,
    between normal scores Φ⁻¹(F), and goes on straight beyond them: the result has a density
    everywhere, finite and positive, and Gaussian tails where no calibration row tells more. It
    corrects bias, spread and shape (skewness, heavy tails), all of them alike in every row.

    Attributes:
        knots_: Normal scores of the predictions at the knots, (K, number of knots).
        values_: What they become, (K, number of knots).

    Example:
        >>> from accord.distributions import Normal
        >>> rng = np.random.default_rng(0)
        >>> skewed = rng.exponential(size=2000)
        >>> isotonic = IsotonicCalibration().fit(Normal(np.zeros(2000), 1.0), skewed)
        >>> isotonic(Normal([0.0], 1.0)).interval(0.8).round(1)      # in truth 0.1 and 2.3
        array([[0.1, 2.4]])
    """

    def fit(self, dist: Distribution, y: ArrayLike) -> Self:
        """Find the map from predictions for held-out rows and their targets.

        **Shape**: dist and y (n,), or (n, K) for K outputs; n ≥ 10.
        """
        targets = checked_targets(dist, y, at_least=10)
        scores = normal_scores(dist, targets).reshape(len(targets), -1)
        curves = [curve_through_scores(column) for column in scores.T]
        self.knots_ = np.stack([curve.knots for curve in curves])
        self.values_ = np.stack([curve.values for curve in curves])
        self.n_outputs_ = len(curves)
        return self

    def __call__(self, dist: Distribution) -> Distribution:
        """The predictions with their cdf mapped.

        **Shape**: (N,), or (N, K) for K outputs.
        """
        checked_outputs(self, dist, "n_outputs_")
        pairs = zip(self.knots_, self.values_, strict=True)
        return Reshaped(dist, [MonotoneCurve(knots, values) for knots, values in pairs])
