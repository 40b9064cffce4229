"""Wider intervals for rows of another kind than those that a calibration was learnt from."""

import math

import numpy as np
from numpy.typing import ArrayLike

from accord._checks import check_probability
from accord._types import Bools
from accord.calibration.calibrator import as_floats, checked_targets
from accord.distributions import Distribution


def widening_for(dist: Distribution, y: ArrayLike, *, coverage: float) -> float:
    """The factor on deviations under which intervals hold for rows such as these; at least 1.

    Each of n rows has a factor that takes its interval's bound just to its target. The
    ⌈(n + 1)c⌉-th smallest of them covers a further row of their kind with probability at least c,
    by the rank argument of conformal prediction; where n is too small for that, the largest serves.

    Args:
        dist: Predictions for the rows, calibrated on rows of the usual kind.
        y: Their targets.
        coverage: c.

    **Shape**: dist and y (n,).

    Example:
        >>> from accord.distributions import Normal
        >>> y = np.linspace(-3.92, 3.92, 41)
        >>> round(widening_for(Normal(np.zeros(41), 1.0), y, coverage=0.95), 2)
        2.0
    """
    check_probability("coverage", coverage, strict=True)
    targets = checked_targets(dist, y, at_least=1)
    mean, bounds = as_floats(dist.mean), as_floats(dist.interval(coverage))
    error = targets - mean
    reach = np.where(error > 0, bounds[:, 1] - mean, mean - bounds[:, 0])
    # no factor takes an interval without width anywhere
    factors = np.divide(np.abs(error), reach, out=np.ones_like(error), where=reach > 0)
    rank = min(math.ceil((len(factors) + 1) * coverage - 1e-9), len(factors))
    return max(1.0, float(np.sort(factors)[rank - 1]))


def widened(dist: Distribution, rows: Bools, factor: float) -> Distribution:
    """The same predictions, with deviations ``factor`` times as large in some rows."""
    return dist.rescaled(np.where(rows, factor, 1.0)) if factor > 1 else dist
