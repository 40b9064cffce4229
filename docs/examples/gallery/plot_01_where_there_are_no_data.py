"""
Where there are no data
=======================

Two models of the same rows. Deep Ensembles stay sure of themselves in the gap and outside; the
portfolio widens.
"""

import numpy as np

from accord import DeepEnsembleRegressor, PortfolioRegressor, plots

rng = np.random.default_rng(0)
x = np.concatenate([rng.uniform(-4, -1, 75), rng.uniform(1, 4, 75)])
y = x**3 + 3 * rng.normal(size=150)
grid = np.linspace(-7, 7, 200)
models = {
    "Deep Ensembles": DeepEnsembleRegressor(epochs=300, random_state=0),
    "Accord's portfolio": PortfolioRegressor(effort="quick", random_state=0),
}
fig, axes = plots.figure(1, 2, width=9, height=3.6, titles=list(models))
for ax, model in zip(axes, models.values(), strict=True):
    dist = model.fit(x[:, None], y).predict_dist(grid[:, None])
    plots.envelope(x=grid, dist=dist, n_std=2, truth=grid**3, x_data=x, y_data=y, ax=ax)
    ax.set_ylim(-250, 250)
