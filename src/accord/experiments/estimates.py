"""Means over splits with their standard errors, and how far two of them lie apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, isfinite, nan, sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from accord.experiments.published import Figure

__all__ = ["Estimate", "jackknife", "paired_difference", "standard_errors_apart"]


@dataclass(frozen=True)
class Estimate:
    """A mean over n splits and its standard error (NaN for a single split)."""

    value: float
    error: float
    n: int

    @classmethod
    def over(cls, values: Sequence[float]) -> "Estimate":
        """Mean and standard error s/√n of per-split values.

        Example:
            >>> Estimate.over([1.0, 2.0, 3.0])
            Estimate(value=2.0, error=0.577..., n=3)
        """
        sample = np.asarray(values, dtype=np.float64)
        error = float(sample.std(ddof=1)) / sqrt(len(sample)) if len(sample) > 1 else nan
        return cls(float(sample.mean()), error, len(sample))


def paired_difference(ours: Sequence[float], theirs: Sequence[float]) -> Estimate:
    """Mean of the per-split differences: what the splits share cancels.

    Example:
        >>> paired_difference([2.0, 12.0], [1.0, 11.0])
        Estimate(value=1.0, error=0.0, n=2)
    """
    if len(ours) != len(theirs):
        raise ValueError(f"both sides must have the same splits, got {len(ours)}, {len(theirs)}.")
    return Estimate.over(np.subtract(ours, theirs).tolist())


def standard_errors_apart(ours: Estimate, printed: Figure) -> float:
    """(ours − published) in combined standard errors.

    The combination is √(s² + s_p² + r²): our standard error, the published one, and what printing
    has rounded off. A published single run is taken to vary as one of ours does, a published mean
    without an error as our mean does. NaN where our own error is unknown (a single split).

    Example:
        >>> round(standard_errors_apart(Estimate(2.6, 0.06, 20), Figure(2.5, 0.08, 2)), 2)
        1.0
    """
    theirs = printed.error
    if theirs is None:
        theirs = ours.error * (sqrt(ours.n) if printed.single else 1.0)
    combined = hypot(ours.error, theirs, printed.rounding)
    return (ours.value - printed.value) / combined if isfinite(combined) else nan


def jackknife(curves: NDArray[np.float64], statistic: Literal["mean", "max"]) -> Estimate:
    """Calibration error of the mean reliability curve, its standard error by leaving out splits.

    ``curves`` holds each split's |levels| observed − expected fractions. The statistic is that of
    the *mean* curve, as in the paper: a single split of a small set has too few rows for its own.

    **Shape**: curves (n_splits, n_levels); statistic ``"mean"`` (ECE) or ``"max"`` (MCE).

    Example:
        >>> jackknife(np.array([[0.1, -0.1], [0.1, 0.3]]), "mean").value
        0.1
    """
    n = len(curves)
    value = float(_reduced(curves.mean(axis=0), statistic))
    if n < 2:
        return Estimate(value, nan, n)
    left_out = (curves.sum(axis=0) - curves) / (n - 1)
    replicates = _reduced(left_out, statistic)
    error = sqrt((n - 1) / n * float(((replicates - replicates.mean()) ** 2).sum()))
    return Estimate(value, error, n)


def _reduced(curves: NDArray[np.float64], statistic: str) -> NDArray[np.float64]:
    sizes = np.abs(curves)
    return np.asarray(sizes.mean(axis=-1) if statistic == "mean" else sizes.max(axis=-1))
