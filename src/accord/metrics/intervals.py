"""Prediction intervals: how often they hold, how wide they are, and both in one score."""

from typing import Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from accord._types import Floats
from accord.distributions import Distribution
from accord.metrics.inputs import (
    Predictions,
    as_array,
    averaged,
    bounds,
    mean_of,
    positive,
    predictive,
    probability,
    row_weights,
    targets,
)


class IntervalPredictions(Predictions, total=False):
    """Intervals as they are, or the central ones of a predictive at a stated coverage."""

    interval: ArrayLike | None
    coverage: float


@overload
def coverage(
    *, y_true: ArrayLike, average: Literal[True] = True, **given: Unpack[IntervalPredictions]
) -> float: ...
@overload
def coverage(
    *, y_true: ArrayLike, average: Literal[False], **given: Unpack[IntervalPredictions]
) -> Floats: ...
def coverage(
    *,
    y_true: ArrayLike,
    interval: ArrayLike | None = None,
    dist: Distribution | None = None,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    coverage: float = 0.95,
    sample_weight: ArrayLike | None = None,
    average: bool = True,
) -> float | Floats:
    """Share of the observations inside their interval, bounds included.

    The interval is given, or the central one of a predictive at the stated ``coverage``.

    **Shape**: ``y_true`` (N,) or (N, K); ``interval`` (N, 2) or (N, K, 2); zeros and ones in the
    shape of ``y_true`` for ``average=False``.

    >>> coverage(y_true=[0.0, 3.0], mean=[0.0, 0.0], std=[1.0, 1.0], coverage=0.95)
    0.5
    """
    y = targets(y_true)
    lower, upper = _ends(y, interval, probability("coverage", coverage), dist, mean, std)
    return averaged(((lower <= y) & (y <= upper)).astype(np.float64), average, sample_weight)


@overload
def interval_width(
    *, y_true: ArrayLike, average: Literal[True] = True, **given: Unpack[IntervalPredictions]
) -> float: ...
@overload
def interval_width(
    *, y_true: ArrayLike, average: Literal[False], **given: Unpack[IntervalPredictions]
) -> Floats: ...
def interval_width(
    *,
    y_true: ArrayLike,
    interval: ArrayLike | None = None,
    dist: Distribution | None = None,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    coverage: float = 0.95,
    sample_weight: ArrayLike | None = None,
    average: bool = True,
) -> float | Floats:
    """Width u − l of the intervals, in the target's units; ``y_true`` only states their shape.

    **Shape**: ``y_true`` (N,) or (N, K); ``interval`` (N, 2) or (N, K, 2); the shape of ``y_true``
    for ``average=False``.

    >>> interval_width(y_true=[0.0, 0.0], interval=[[0.0, 1.0], [0.0, 3.0]])
    2.0
    """
    y = targets(y_true)
    lower, upper = _ends(y, interval, probability("coverage", coverage), dist, mean, std)
    return averaged(upper - lower, average, sample_weight)


@overload
def interval_score(
    *, y_true: ArrayLike, average: Literal[True] = True, **given: Unpack[IntervalPredictions]
) -> float: ...
@overload
def interval_score(
    *, y_true: ArrayLike, average: Literal[False], **given: Unpack[IntervalPredictions]
) -> Floats: ...
def interval_score(
    *,
    y_true: ArrayLike,
    interval: ArrayLike | None = None,
    dist: Distribution | None = None,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    coverage: float = 0.95,
    sample_weight: ArrayLike | None = None,
    average: bool = True,
) -> float | Floats:
    """Interval (Winkler) score (u − l) + 2/α · [(l − t)₊ + (t − u)₊], α = 1 − coverage.

    Lower is better; its expectation is least for the true central interval. ``coverage`` is what
    the interval claims, also when ``interval`` is given. An infinite interval scores infinity.

    **Shape**: ``y_true`` (N,) or (N, K); ``interval`` (N, 2) or (N, K, 2); the shape of ``y_true``
    for ``average=False``.

    >>> interval_score(y_true=[0.5, 2.0], interval=[[0, 1], [0, 1]], coverage=0.5, average=False)
    array([1., 5.])
    """
    y = targets(y_true)
    alpha = 1 - probability("coverage", coverage)
    lower, upper = _ends(y, interval, coverage, dist, mean, std)
    missed = np.maximum(lower - y, 0) + np.maximum(y - upper, 0)
    return averaged(upper - lower + 2 / alpha * missed, average, sample_weight)


@overload
def sharpness(
    *,
    dist: Distribution | None = None,
    std: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    average: Literal[True] = True,
) -> float: ...
@overload
def sharpness(
    *,
    dist: Distribution | None = None,
    std: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    average: Literal[False],
) -> Floats: ...
def sharpness(
    *,
    dist: Distribution | None = None,
    std: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    average: bool = True,
) -> float | Floats:
    """Root mean predicted variance √(N⁻¹ Σ σ²): how much the predictions claim to know.

    **Shape**: ``std`` (N,) or (N, K), as ``dist``; the standard deviations for ``average=False``.

    >>> sharpness(std=[3.0, 4.0])
    3.5355339059327378
    """
    if (dist is None) == (std is None):
        got = "neither" if dist is None else "both"
        raise TypeError(f"predictions must be std= or dist=, got {got}. Pass one of the two.")
    sigma = positive("std", std) if dist is None else as_array("std", dist.std)
    if not average:
        return sigma
    return float(np.sqrt(mean_of(sigma**2, row_weights(sample_weight, sigma)).mean()))


def _ends(
    y: Floats,
    interval: ArrayLike | None,
    coverage: float,
    dist: Distribution | None,
    mean: ArrayLike | None,
    std: ArrayLike | None,
) -> tuple[Floats, Floats]:
    if interval is None:
        q = predictive(y, dist=dist, mean=mean, std=std)
        return bounds(y, as_array("interval", q.interval(coverage)))
    if any(value is not None for value in (dist, mean, std)):
        raise TypeError(
            "predictions must be interval=, dist=, or mean= with std=, got several. "
            "Pass one of the forms."
        )
    return bounds(y, interval)
