"""What is measured of predictions on a split, and what is kept of each row for the figures."""

import numpy as np

from accord._types import Floats
from accord.distributions import Distribution
from accord.metrics import coverage, crps, interval_score, interval_width, nll
from accord.paper.shift.families import ShiftedCase
from accord.paper.study import Answer
from accord.trust import Growth

__all__ = ["COVERAGES", "RETAINED", "answer", "auroc", "retention"]

COVERAGES = (0.5, 0.9, 0.95)
# Quantiles by which the CRPS is taken, of all methods alike: closed forms are not to be had of all.
_LEVELS = (np.arange(50) + 0.5) / 50
RETAINED = tuple(k / 10 for k in range(1, 11))
# An error is large if it belongs to this share of a method's own.
LARGE_SHARE = 0.2


def answer(case: ShiftedCase, dist: Distribution, *, seconds: float) -> Answer:
    """Scores of a method on a split, widths and errors in deviations of the training targets.

    Of each row are kept: ``distance``, that of :class:`~accord.trust.Growth` to the training rows
    in all features alike, so that no method chooses it; ``loss``; ``covered``, ``width`` of the
    90 % interval.
    """
    y, unit = case.y_test, float(case.y_train.std())
    intervals = {level: np.asarray(dist.interval(level)) for level in COVERAGES}
    loss = nll(y_true=y, dist=dist, average=False)
    error = np.abs(y - np.asarray(dist.mean)) / unit
    deviation = np.asarray(dist.std) / unit
    measures = {
        "nll": float(loss.mean()),
        "crps": crps(y_true=y, quantiles=_quantiles(dist), alpha=_LEVELS) / unit,
        "interval_score": interval_score(y_true=y, interval=intervals[0.9], coverage=0.9) / unit,
        "rmse": float(np.sqrt(np.mean(error**2))),
        "auroc": auroc(error, deviation),
        "retention": float(retention(error, deviation).mean()),
        "seconds": seconds,
        "n_train": float(len(case.y_train)),
        "n_test": float(len(y)),
    }
    for level, interval in intervals.items():
        measures[f"coverage{100 * level:.0f}"] = coverage(y_true=y, interval=interval)
        measures[f"width{100 * level:.0f}"] = interval_width(y_true=y, interval=interval) / unit
    curves = {
        "distance": Growth().fit(case.X_train)(case.X_test),
        "loss": loss,
        "covered": coverage(y_true=y, interval=intervals[0.9], average=False),
        "width": interval_width(y_true=y, interval=intervals[0.9], average=False) / unit,
        "retention": retention(error, deviation),
    }
    return Answer(measures, curves)


def _quantiles(dist: Distribution) -> Floats:
    """Quantiles at the levels, ascending and finite.

    Conformal prediction on few rows has infinite ones at the ends, which count as the last finite
    one; equal ones may differ by rounding.
    """
    found = np.asarray(dist.quantile(_LEVELS))
    finite = np.where(np.isfinite(found), found, np.nan)
    low, high = np.nanmin(finite, axis=1), np.nanmax(finite, axis=1)
    return np.maximum.accumulate(np.clip(found, low[:, None], high[:, None]), axis=1)


def auroc(error: Floats, deviation: Floats) -> float:
    """How well the predicted deviation tells large errors from others; 0.5 is chance.

    **Shape**: both (N,).

    >>> auroc(np.arange(10.0), np.arange(10.0)), auroc(np.arange(10.0), np.ones(10))
    (1.0, 0.5)
    """
    from sklearn.metrics import roc_auc_score

    n_large = max(1, round(LARGE_SHARE * len(error)))
    large = np.zeros(len(error), bool)
    large[np.argsort(-error, kind="stable")[:n_large]] = True
    return float(roc_auc_score(large, deviation))


def retention(error: Floats, deviation: Floats) -> Floats:
    """Mean error of the surest tenth, two tenths, … of the rows, in that of all rows.

    1 throughout where the deviations say nothing: rows of equal deviation share their errors.

    **Shape**: both (N,) → (10,).

    >>> retention(np.array([1.0, 3.0]), np.array([0.1, 0.2])).tolist()[4:]
    [0.5, 0.5, 0.5, 0.5, 0.5, 1.0]
    """
    _, place, size = np.unique(deviation, return_inverse=True, return_counts=True)
    shared = np.bincount(place, weights=error) / size
    ordered = np.sort(place)
    total = np.cumsum(shared[ordered])
    kept = np.maximum(1, np.floor(np.array(RETAINED) * len(error) + 1e-9)).astype(int)
    mean = total[-1] / len(error)
    return np.asarray(total[kept - 1] / kept / (mean or 1.0))
