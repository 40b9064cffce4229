"""Variance scaling: one factor on the standard deviation."""

from collections.abc import Callable
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from accord._types import Floats
from accord.calibration.calibrator import (
    Calibrator,
    as_floats,
    checked_outputs,
    checked_targets,
    moments_of,
)
from accord.distributions import Decomposed, Distribution, Normal

# log of the smallest and largest factor: three orders of magnitude either way.
_RANGE = (-6.9, 6.9)
_GRID = 70


class VarianceScaling(Calibrator):
    """Stretch every prediction about its mean by one factor s, the same for all rows.

    s minimises the calibration rows' negative log-likelihood. For Gaussian predictions that is
    s² = n⁻¹ Σ (yᵢ − μᵢ)² / σᵢ² (Levi et al., 2019; Laves et al., 2021); for other predictions a
    search in one dimension finds it. A single number, it is learned from few rows, and keeps the
    order in which the model ranks its own uncertainty.

    Attributes:
        factor_: s of each output, (K,).

    Example:
        >>> from accord.distributions import Normal
        >>> y = np.array([2.0, -2.0, 2.0, -2.0])
        >>> scaling = VarianceScaling().fit(Normal(np.zeros(4), 1.0), y)
        >>> scaling(Normal([5.0], 3.0))
        Normal(mean=[5.], std=[6.])
    """

    def fit(self, dist: Distribution, y: ArrayLike) -> Self:
        """Find the factor from predictions for held-out rows and their targets.

        **Shape**: dist and y (n,), or (n, K) for K outputs; n ≥ 2.
        """
        targets = checked_targets(dist, y, at_least=2)
        plain = dist.base if isinstance(dist, Decomposed) else dist
        mean, std = moments_of(dist)
        if isinstance(plain, Normal):
            squares = np.square((targets - mean) / std)
            factor = np.sqrt(np.atleast_1d(squares.mean(axis=0)))
        else:
            factor = _most_likely_factors(dist, targets, mean)
        self.factor_ = np.clip(factor, *np.exp(_RANGE))
        self.n_outputs_ = len(self.factor_)
        return self

    def __call__(self, dist: Distribution) -> Distribution:
        """The predictions, stretched.

        **Shape**: (N,), or (N, K) for K outputs.
        """
        checked_outputs(self, dist, "n_outputs_")
        return dist.rescaled(self.factor_)


def _most_likely_factors(dist: Distribution, y: Floats, mean: Floats) -> Floats:
    """The best of a grid of factors, then a search between its neighbours, per output."""

    def losses(log_factor: float) -> Floats:
        """−log of the stretched density, f(μ + (y − μ)/s)/s, averaged over the rows."""
        log_density = as_floats(dist.log_prob(mean + (y - mean) * np.exp(-log_factor)))
        return np.atleast_1d(log_factor - log_density.mean(axis=0))

    grid = np.linspace(*_RANGE, _GRID)
    on_grid = np.stack([losses(step) for step in grid])
    log_factors = [
        _refined(partial(_entry, losses, k), grid, column) for k, column in enumerate(on_grid.T)
    ]
    factors: Floats = np.exp(log_factors)
    return factors


def _entry(losses: Callable[[float], Floats], k: int, log_factor: float) -> float:
    # Finite, though a target outside a bounded support has no likelihood: the search subtracts.
    return min(float(losses(log_factor)[k]), 1e100)


def _refined(loss: Callable[[float], float], grid: Floats, on_grid: Floats) -> float:
    best = int(np.argmin(on_grid))
    around = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    # With bounded support the loss can be infinite on one side: then the search may end worse off.
    found = minimize_scalar(loss, bounds=around, method="bounded", options={"xatol": 1e-8})
    return float(found.x if found.fun < on_grid[best] else grid[best])
