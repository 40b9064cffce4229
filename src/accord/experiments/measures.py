"""What is measured on the test rows of a split."""

import numpy as np
from numpy.typing import NDArray

from accord.distributions import Distribution
from accord.experiments.folds import Fold
from accord.metrics import (
    coverage,
    crps,
    interval_width,
    mae,
    nll,
    reliability_curve,
    rmse,
)

__all__ = ["LEVELS", "curves", "measures"]

LEVELS = tuple(k / 10 for k in range(1, 10))


def measures(fold: Fold, dist: Distribution) -> dict[str, float]:
    """Scores of a predictive distribution on a fold's test rows.

    ``nll``, ``coverage95`` and ``width95`` follow the paper: a Gaussian with the predictive mean
    and variance. ``nll_exact`` is that of the predictive distribution itself, a mixture.
    """
    y, mean, std = fold.y_test, np.asarray(dist.mean), np.asarray(dist.std)
    return {
        "rmse": rmse(y_true=y, mean=mean),
        "mae": mae(y_true=y, mean=mean),
        "nll": nll(y_true=y, mean=mean, std=std),
        "nll_exact": nll(y_true=y, dist=dist),
        "crps": crps(y_true=y, mean=mean, std=std),
        "coverage95": coverage(y_true=y, mean=mean, std=std, coverage=0.95),
        "width95": interval_width(y_true=y, mean=mean, std=std, coverage=0.95),
        "n_test": float(len(y)),
        **fold.facts,
    }


def curves(fold: Fold, dist: Distribution, *, predictions: bool) -> dict[str, NDArray[np.float64]]:
    """Observed fractions at the levels 10 % … 90 %, and the predictions themselves on request.

    ``observed`` follows the paper (Gaussian intervals from mean and variance), ``observed_exact``
    the predictive distribution's own intervals.
    """
    y, mean, std = fold.y_test, np.asarray(dist.mean), np.asarray(dist.std)
    gaussian = reliability_curve(y_true=y, mean=mean, std=std, levels=LEVELS)
    own = reliability_curve(y_true=y, dist=dist, levels=LEVELS)
    found = {"observed": gaussian.observed, "observed_exact": own.observed}
    if predictions:
        found |= {
            "mean": mean,
            "std": std,
            "aleatoric": np.asarray(dist.aleatoric),
            "epistemic": np.asarray(dist.epistemic),
        }
    return found
