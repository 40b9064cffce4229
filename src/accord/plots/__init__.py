"""Figures of predictions and their uncertainty: an ``ax`` in, an ``ax`` out.

Without ``ax`` each function makes a figure of its own (``ax.figure``), outside pyplot; `figure`
makes one with several axes, `save` writes it, and `to_svg` gives it for a page. A notebook shows
these figures by itself. `plot_model` draws a model's predictions beside what was observed.

>>> from accord import plots
>>> ax = plots.envelope(x=[0.0, 1.0], mean=[0.0, 1.0], std=[1.0, 2.0])
>>> plots.to_svg(ax.figure, alt="a line and its band").startswith("<svg")
True
"""

from accord.plots.diagnostics import (
    ToleranceCurveLike,
    coverage_by_distance,
    error_against_deviation,
    metric_by_method,
    pit_histogram,
    reliability_diagram,
    tolerance_curve,
    trade_off,
    training_curves,
)
from accord.plots.envelopes import dependence_curve, envelope, residuals, series_envelope
from accord.plots.predictions import (
    Evidence,
    evidence_figure,
    plot_model,
    sorted_predictions,
    uncertainty_split,
)
from accord.plots.style import PALETTE, figure, ink, legend, method_look, save, to_png, to_svg

__all__ = [
    "PALETTE",
    "Evidence",
    "ToleranceCurveLike",
    "coverage_by_distance",
    "dependence_curve",
    "envelope",
    "error_against_deviation",
    "evidence_figure",
    "figure",
    "ink",
    "legend",
    "method_look",
    "metric_by_method",
    "pit_histogram",
    "plot_model",
    "reliability_diagram",
    "residuals",
    "save",
    "series_envelope",
    "sorted_predictions",
    "to_png",
    "to_svg",
    "tolerance_curve",
    "trade_off",
    "training_curves",
    "uncertainty_split",
]
