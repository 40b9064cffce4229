"""
Intervals repaired by rank
==========================

A linear model that takes skewed noise for normal, before and after conformal recalibration.
"""

import numpy as np
from sklearn.linear_model import BayesianRidge

from accord import Normal, Recalibrated, plots
from accord.metrics import reliability_curve

rng = np.random.default_rng(0)
X = rng.normal(size=(1500, 1))
y = X[:, 0] + rng.exponential(size=1500) ** 2
plain = BayesianRidge().fit(X[:700], y[:700])
repaired = Recalibrated(plain, method="conformal", cv="prefit").fit(X[700:1000], y[700:1000])
before = Normal(*plain.predict(X[1000:], return_std=True))
after = repaired.predict_dist(X[1000:])
curves = {"before": before, "after": after}
ax = plots.reliability_diagram(
    {name: reliability_curve(y_true=y[1000:], dist=dist) for name, dist in curves.items()}
)
