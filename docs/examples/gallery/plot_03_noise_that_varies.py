"""
Noise that varies
=================

The noise of these data depends on x, and its true size is known. The model finds it without being
its size being given. Dotted: ±2σ of the truth.
"""

import numpy as np

from accord import BVMRegressor, datasets, plots

toy = datasets.make_heteroscedastic(800, random_state=0)
grid = np.linspace(0, np.pi / 2, 200)[:, None]
model = BVMRegressor(tolerance=0.05, epochs=150, random_state=0).fit(toy.X, toy.y)

fig, (ax,) = plots.figure(width=7.2, height=4)
dist = model.predict_dist(grid)
plots.envelope(x=grid[:, 0], dist=dist, n_std=2, truth=toy.truth.mean(grid), ax=ax)
for sign in (-2, 2):
    edge = toy.truth.mean(grid) + sign * toy.truth.std(grid)
    ax.plot(grid[:, 0], edge, color="#d55e00", lw=1, ls=":", label="±2σ of the truth")
ax.scatter(toy.X[:, 0], toy.y, s=4, color="grey", alpha=0.5, lw=0)
