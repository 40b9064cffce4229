"""
Where the uncertainty comes from
================================

Noise, disagreement of the models, distance from the training rows: for rows as in training, and
for rows that reach beyond them.
"""

import numpy as np

from accord import PortfolioRegressor, plots

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 2))
y = X[:, 0] ** 2 + X[:, 1] + 0.3 * rng.normal(size=150)
model = PortfolioRegressor(effort="quick", random_state=0).fit(X, y)
fig, axes = plots.figure(1, 2, width=11, height=4, titles=["rows as in training", "beyond them"])
for ax, spread in zip(axes, [1, 3], strict=True):
    dist = model.predict_dist(spread * rng.normal(size=(300, 2)))
    plots.uncertainty_split(dist=dist, n_groups=15, ax=ax)
