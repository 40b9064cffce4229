"""
Where there are no data
=======================

Two models of the same rows, ±2σ. In the gap and on the right Deep Ensembles are sure of themselves,
and miss the truth; the portfolio widens.
"""

import numpy as np

from accord import DeepEnsembleRegressor, PortfolioRegressor, plots

rng = np.random.default_rng(0)
x = np.concatenate([rng.uniform(-4, -1, 100), rng.uniform(1.5, 5, 100)])
y = np.sin(1.5 * x) + 0.25 * x + (0.1 + 0.04 * abs(x)) * rng.normal(size=200)
grid = np.linspace(-7, 8, 200)
truth = np.sin(1.5 * grid) + 0.25 * grid
models = {
    "Deep Ensembles": DeepEnsembleRegressor(epochs=400, random_state=0),
    "Accord's portfolio": PortfolioRegressor(effort="quick", random_state=0),
}
fig, axes = plots.figure(1, 2, width=9, height=3.6, titles=list(models))
for ax, model in zip(axes, models.values(), strict=True):
    dist = model.fit(x[:, None], y).predict_dist(grid[:, None])
    plots.envelope(x=grid, dist=dist, n_std=2, truth=truth, x_data=x, y_data=y, ax=ax)
    ax.set_ylim(-6.5, 6.5)
