"""
Every probability at once
=========================

A prediction is a whole distribution. Here are its quantiles along x, from nearly certain to a coin
toss.
"""

import numpy as np

from accord import BVMRegressor, datasets, plots

toy = datasets.make_heteroscedastic(600, random_state=1)
grid = np.linspace(0, np.pi / 2, 150)[:, None]
dist = BVMRegressor(tolerance=0.05, epochs=150, random_state=0).fit(toy.X, toy.y).predict_dist(grid)
fig, (ax,) = plots.figure(width=7.2, height=4)
for coverage in np.arange(0.05, 1, 0.05):
    lower, upper = dist.interval(coverage).T
    ax.fill_between(grid[:, 0], lower, upper, color="#0072b2", alpha=0.08, lw=0)
ax.scatter(toy.X[:, 0], toy.y, s=4, color="black", lw=0)
ax.set(xlabel="x", ylabel="y", xlim=(0, np.pi / 2))
