"""Intervals made drawable: an infinite one reaches beyond everything else in the picture."""

import numpy as np

from accord._types import Floats
from accord.distributions import Distribution
from accord.metrics import as_array


def drawable_interval(dist: Distribution, coverage: float, y: Floats) -> tuple[Floats, Floats]:
    """Central intervals as they are, and with infinite ends moved just beyond all that is finite.

    Conformal intervals are infinite where too few calibration rows allow no bound.

    **Shape**: ``y`` (N,), as ``dist``; both results (N, 2).
    """
    interval = as_array("interval", dist.interval(coverage))
    shown = np.concatenate([interval[np.isfinite(interval)], y, as_array("mean", dist.mean)])
    low, high = float(shown.min()), float(shown.max())
    beyond = 0.15 * (high - low) if high > low else 1.0
    return interval, np.clip(interval, low - beyond, high + beyond)
