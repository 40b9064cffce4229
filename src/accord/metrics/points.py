"""Errors of the predicted mean."""

from typing import Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from accord._types import Floats
from accord.distributions import Distribution
from accord.metrics.inputs import (
    PointPredictions,
    averaged,
    check_enough_rows,
    mean_of,
    point,
    row_weights,
    targets,
)

__all__ = ["mae", "r2", "rmse", "squared_error"]


@overload
def squared_error(
    *, y_true: ArrayLike, average: Literal[True] = True, **given: Unpack[PointPredictions]
) -> float: ...
@overload
def squared_error(
    *, y_true: ArrayLike, average: Literal[False], **given: Unpack[PointPredictions]
) -> Floats: ...
def squared_error(
    *,
    y_true: ArrayLike,
    mean: ArrayLike | None = None,
    dist: Distribution | None = None,
    sample_weight: ArrayLike | None = None,
    average: bool = True,
) -> float | Floats:
    """(t − μ)², whose average is the mean squared error.

    **Shape**: ``y_true`` and ``mean`` (N,) or (N, K); the same for ``average=False``.

    >>> squared_error(y_true=[1.0, 2.0], mean=[1.0, 4.0])
    2.0
    """
    y = targets(y_true)
    return averaged((y - point(y, dist=dist, mean=mean)) ** 2, average, sample_weight)


@overload
def mae(
    *, y_true: ArrayLike, average: Literal[True] = True, **given: Unpack[PointPredictions]
) -> float: ...
@overload
def mae(
    *, y_true: ArrayLike, average: Literal[False], **given: Unpack[PointPredictions]
) -> Floats: ...
def mae(
    *,
    y_true: ArrayLike,
    mean: ArrayLike | None = None,
    dist: Distribution | None = None,
    sample_weight: ArrayLike | None = None,
    average: bool = True,
) -> float | Floats:
    """Mean absolute error |t − μ|.

    **Shape**: ``y_true`` and ``mean`` (N,) or (N, K); the same for ``average=False``.

    >>> mae(y_true=[1.0, 2.0], mean=[1.0, 4.0], average=False)
    array([0., 2.])
    """
    y = targets(y_true)
    return averaged(np.abs(y - point(y, dist=dist, mean=mean)), average, sample_weight)


def rmse(
    *,
    y_true: ArrayLike,
    mean: ArrayLike | None = None,
    dist: Distribution | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Root mean squared error; with several outputs the mean of theirs, as in scikit-learn.

    **Shape**: ``y_true`` and ``mean`` (N,) or (N, K).

    >>> rmse(y_true=[0.0, 0.0], mean=[3.0, 4.0])
    3.5355339059327378
    """
    squares = squared_error(y_true=y_true, mean=mean, dist=dist, average=False)
    return float(np.sqrt(mean_of(squares, row_weights(sample_weight, squares))).mean())


def r2(
    *,
    y_true: ArrayLike,
    mean: ArrayLike | None = None,
    dist: Distribution | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of the variance explained, 1 − Σ(t − μ)² / Σ(t − t̄)²; averaged over outputs.

    A constant target has no variance to explain: 1 if it is met exactly, otherwise 0, as in
    scikit-learn.

    **Shape**: ``y_true`` and ``mean`` (N,) or (N, K), N ≥ 2.

    >>> r2(y_true=[1.0, 2.0, 3.0], mean=[1.0, 2.0, 4.0])
    0.5
    """
    y = targets(y_true)
    check_enough_rows(len(y), 2, "R²")
    weight = row_weights(sample_weight, y)
    squares = squared_error(y_true=y, mean=mean, dist=dist, average=False)
    residual, total = mean_of(squares, weight), mean_of((y - mean_of(y, weight)) ** 2, weight)
    constant = total == 0
    unexplained = residual / np.where(constant, 1.0, total)
    share = np.where(constant, np.where(residual == 0, 1.0, 0.0), 1.0 - unexplained)
    return float(share.mean())
