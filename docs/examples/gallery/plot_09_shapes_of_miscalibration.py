"""
Shapes of miscalibration
========================

PIT histograms of three forecasts of the same values. Bars outside the grey band are more than
chance.
"""

import numpy as np

from accord import Normal, plots

rng = np.random.default_rng(0)
mean = rng.normal(size=1000)
y = rng.normal(mean, 1.0)
cases = {"over-confident": 0.6, "calibrated": 1.0, "too cautious": 1.8}
fig, axes = plots.figure(1, 3, width=11, height=3.6, titles=list(cases))
for ax, std in zip(axes, cases.values(), strict=True):
    plots.pit_histogram(y_true=y, dist=Normal(mean, std), ax=ax)
