"""All figures of merit in one place: how each is computed, called, explained and written.

Reports, comparisons and tables show what stands here. A new figure is one more row of `METRICS`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from accord._types import Floats
from accord.distributions import Distribution
from accord.metrics.calibration import MINIMUM_ROWS, ece, ence, mce
from accord.metrics.inputs import as_array, predictive, row_weights, targets
from accord.metrics.intervals import coverage, interval_score, interval_width, sharpness
from accord.metrics.scores import crps, gaussian_nll, mae, nll, r2, rmse


@dataclass(frozen=True)
class MetricInput:
    """Predictions beside what came true.

    **Shape**: y (N,) or (N, K), as ``dist``; weight (N,) or None.
    """

    y: Floats
    dist: Distribution
    coverage: float
    weight: Floats | None
    interval: Floats


@dataclass(frozen=True)
class Metric:
    """A figure of merit.

    Args:
        name: Its key in results.
        title: Its heading in a table.
        meaning: What it says, in a few words.
        compute: From the case to the figure.
        format: How it is written.
        better: Whether lower or higher values are better, or neither on its own.
        unit: "target" for the target's units, "" for none.
        least: How many values it needs; with fewer it is NaN.
    """

    name: str
    title: str
    meaning: str
    compute: Callable[[MetricInput], float]
    format: Literal["number", "percent", "count"] = "number"
    better: Literal["lower", "higher", "neither"] = "lower"
    unit: Literal["target", ""] = ""
    least: int = 1


def _scored(metric: Callable[..., float]) -> Callable[[MetricInput], float]:
    return lambda case: metric(y_true=case.y, dist=case.dist, sample_weight=case.weight)


def _of_interval(metric: Callable[..., float]) -> Callable[[MetricInput], float]:
    return lambda case: metric(
        y_true=case.y, interval=case.interval, coverage=case.coverage, sample_weight=case.weight
    )


def _median_width(case: MetricInput) -> float:
    """The median over rows and outputs; with weights, that of rows repeated as often."""
    width = np.ravel(case.interval[..., 1] - case.interval[..., 0])
    if case.weight is None:
        return float(np.median(width))
    order = np.argsort(width)
    below = np.cumsum(np.repeat(case.weight, len(width) // len(case.y))[order])
    middle = [np.searchsorted(below, below[-1] / 2, side=side) for side in ("left", "right")]
    return float(width[order][middle].mean())


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "rows",
            "rows",
            "rows with an observed target",
            lambda case: float(len(case.y)),
            format="count",
            better="neither",
        ),
        Metric(
            "coverage",
            "coverage",
            "share inside their interval",
            _of_interval(coverage),
            format="percent",
            better="neither",
        ),
        Metric(
            "median_width",
            "median width",
            "half of the intervals are narrower",
            _median_width,
            unit="target",
        ),
        Metric(
            "interval_width",
            "mean width",
            "mean width of an interval",
            _of_interval(interval_width),
            unit="target",
        ),
        Metric(
            "interval_score",
            "interval score",
            "width plus penalty for misses",
            _of_interval(interval_score),
            unit="target",
        ),
        Metric("rmse", "RMSE", "root mean squared error of the mean", _scored(rmse), unit="target"),
        Metric("mae", "MAE", "mean absolute error of the mean", _scored(mae), unit="target"),
        Metric(
            "bias",
            "bias",
            "mean of predicted minus observed",
            lambda case: float(
                np.average(np.asarray(case.dist.mean) - case.y, axis=0, weights=case.weight).mean()
            ),
            better="neither",
            unit="target",
        ),
        Metric(
            "r2",
            "R²",
            "share of the target's variance explained",
            _scored(r2),
            better="higher",
            least=2,
        ),
        Metric("nll", "NLL", "negative log-likelihood", _scored(nll)),
        Metric(
            "gaussian_nll",
            "Gaussian NLL",
            "negative log-likelihood of mean and variance alone",
            _scored(gaussian_nll),
        ),
        Metric("crps", "CRPS", "continuous ranked probability score", _scored(crps), unit="target"),
        Metric(
            "sharpness",
            "sharpness",
            "root mean predicted variance",
            lambda case: sharpness(dist=case.dist, sample_weight=case.weight),
            unit="target",
        ),
        Metric(
            "ece",
            "ECE",
            "mean gap between stated and observed coverage",
            _scored(ece),
            format="percent",
            least=MINIMUM_ROWS,
        ),
        Metric(
            "mce",
            "MCE",
            "largest gap between stated and observed coverage",
            _scored(mce),
            format="percent",
            least=MINIMUM_ROWS,
        ),
        Metric(
            "ence",
            "ENCE",
            "mean gap between stated deviation and error, relative to the former",
            _scored(ence),
            format="percent",
            least=2 * MINIMUM_ROWS,
        ),
    )
}


def summary(
    *,
    y_true: ArrayLike,
    dist: Distribution,
    coverage: float = 0.95,
    sample_weight: ArrayLike | None = None,
    names: Iterable[str] | None = None,
) -> dict[str, float]:
    """Figures of the catalogue by name, all unless ``names`` chooses; NaN where rows are too few.

    **Shape**: ``y_true`` (N,) or (N, K), as ``dist``; ``sample_weight`` (N,).

    >>> from accord import Normal
    >>> round(summary(y_true=[1.0, 2.0], dist=Normal([1.0, 2.5], [1.0, 1.0]))["mae"], 2)
    0.25
    """
    y = targets(y_true)
    q = predictive(y, dist=dist)
    interval = as_array("interval", q.interval(coverage))
    case = MetricInput(y, q, coverage, row_weights(sample_weight, y), interval)
    chosen = [METRICS[name] for name in (METRICS if names is None else names)]
    return {
        metric.name: metric.compute(case) if y.size >= metric.least else float("nan")
        for metric in chosen
    }
