"""
Choosing a tolerance
====================

Each ε is scored on held-out rows and on held-out outliers; ``"robust"`` chooses by the outliers,
here at some cost to usual rows.
"""

import numpy as np

from accord import BVMRegressor, plots

rng = np.random.default_rng(0)
X = rng.standard_t(3, size=(250, 2))
y = np.tanh(X[:, 0]) + 0.3 * X[:, 1] ** 2 + 0.2 * rng.normal(size=250)
model = BVMRegressor(tolerance="robust", epochs=60, random_state=0).fit(X, y)
ax = plots.tolerance_curve(model.tolerance_curve_)
