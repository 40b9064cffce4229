"""Figures of merit for predictions with uncertainty, of any model; all keyword-only.

>>> from accord import metrics
>>> round(metrics.crps(y_true=[1.0, 2.0], mean=[1.0, 2.5], std=[0.5, 0.5]), 3)
0.209
"""

from accord.metrics.calibration import (
    MINIMUM_ROWS,
    PAPER_LEVELS,
    DeviationBins,
    ReliabilityCurve,
    deviation_bins,
    ece,
    ence,
    histogram_band,
    mce,
    pit,
    reliability_band,
    reliability_curve,
)
from accord.metrics.catalogue import METRICS, Metric, MetricInput, summary
from accord.metrics.inputs import as_array, check_enough_rows, finite, predictive, targets
from accord.metrics.intervals import coverage, interval_score, interval_width, sharpness
from accord.metrics.scores import (
    agreement,
    crps,
    gaussian_nll,
    mae,
    nll,
    pinball,
    r2,
    rmse,
    squared_error,
)

__all__ = [
    "METRICS",
    "MINIMUM_ROWS",
    "PAPER_LEVELS",
    "DeviationBins",
    "Metric",
    "MetricInput",
    "ReliabilityCurve",
    "agreement",
    "as_array",
    "check_enough_rows",
    "coverage",
    "crps",
    "deviation_bins",
    "ece",
    "ence",
    "finite",
    "gaussian_nll",
    "histogram_band",
    "interval_score",
    "interval_width",
    "mae",
    "mce",
    "nll",
    "pinball",
    "pit",
    "predictive",
    "r2",
    "reliability_band",
    "reliability_curve",
    "rmse",
    "sharpness",
    "squared_error",
    "summary",
    "targets",
]
