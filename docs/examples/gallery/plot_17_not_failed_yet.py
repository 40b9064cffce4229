"""
Censored lifetimes
==================

Tests that were stopped before failure say *at least*. Leaving them out, or taking the stop for the
failure, makes lives look too short.
"""

import numpy as np

from accord import BVMRegressor, plots

rng = np.random.default_rng(0)
load = rng.uniform(1, 3, 300)
life = 10 - 2.5 * load + 0.6 * rng.normal(size=300)  # log-cycles
stop = rng.uniform(2, 8, 300)
stopped, y = life > stop, np.minimum(life, stop)
grid = np.linspace(1, 3, 100)[:, None]
make = lambda: BVMRegressor(tolerance=0, epochs=150, mean_head="identity", random_state=0)  # noqa: E731
naive = make().fit(load[:, None], y)
lower, upper = np.where(stopped, y, np.nan), np.where(stopped, np.inf, np.nan)
censored = make().fit(load[:, None], y, y_lower=lower, y_upper=upper)
titles = ["the stop taken for the failure", "at least"]
fig, axes = plots.figure(1, 2, width=10, height=4, titles=titles)
for ax, model in zip(axes, [naive, censored], strict=True):
    dist, truth = model.predict_dist(grid), 10 - 2.5 * grid[:, 0]
    plots.envelope(x=grid[:, 0], dist=dist, n_std=2, truth=truth, x_data=load, y_data=y, ax=ax)
    ax.set(xlabel="load", ylabel="life", ylim=(0, 10))
