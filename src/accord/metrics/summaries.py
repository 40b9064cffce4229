"""All figures of a report in one call."""

from numpy.typing import ArrayLike

from accord.distributions import Distribution
from accord.metrics.calibration import MINIMUM_ROWS, ence, reliability_curve
from accord.metrics.inputs import predictive, targets
from accord.metrics.intervals import coverage as covered
from accord.metrics.intervals import interval_score, interval_width, sharpness
from accord.metrics.points import mae, r2, rmse
from accord.metrics.scores import crps, gaussian_nll, nll

__all__ = ["summary"]


def summary(*, y_true: ArrayLike, dist: Distribution, coverage: float = 0.95) -> dict[str, float]:
    """The figures that a report shows, by name; NaN where there are too few rows for a statement.

    ``n``, ``rmse``, ``mae``, ``r2``, ``nll``, ``gaussian_nll``, ``crps``, ``coverage``,
    ``interval_width``, ``interval_score``, ``sharpness``, ``ece``, ``mce``, ``ence``.

    **Shape**: ``y_true`` (N,) or (N, K), as ``dist``.

    >>> from accord import Normal
    >>> round(summary(y_true=[1.0, 2.0], dist=Normal([1.0, 2.5], [1.0, 1.0]))["mae"], 2)
    0.25
    """
    y = targets(y_true)
    q = predictive(y, dist=dist)
    curve = reliability_curve(y_true=y, dist=q) if y.size >= MINIMUM_ROWS else None
    interval = q.interval(coverage)
    missing = float("nan")
    return {
        "n": float(len(y)),
        "rmse": rmse(y_true=y, dist=q),
        "mae": mae(y_true=y, dist=q),
        "r2": r2(y_true=y, dist=q) if len(y) > 1 else missing,
        "nll": nll(y_true=y, dist=q),
        "gaussian_nll": gaussian_nll(y_true=y, dist=q),
        "crps": crps(y_true=y, dist=q),
        "coverage": covered(y_true=y, interval=interval),
        "interval_width": interval_width(y_true=y, interval=interval),
        "interval_score": interval_score(y_true=y, interval=interval, coverage=coverage),
        "sharpness": sharpness(dist=q),
        "ece": curve.ece if curve else missing,
        "mce": curve.mce if curve else missing,
        "ence": ence(y_true=y, dist=q) if y.size >= 2 * MINIMUM_ROWS else missing,
    }
