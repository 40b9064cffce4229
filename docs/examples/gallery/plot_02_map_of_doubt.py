"""
A map of uncertainty
====================

Two features, training rows on a ring. The colour is the predicted standard deviation: it rises
outside the ring, and in its empty middle.
"""

import numpy as np

from accord import PortfolioRegressor, plots

rng = np.random.default_rng(0)
angle, radius = rng.uniform(0, 2 * np.pi, 150), rng.normal(2, 0.2, 150)
X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=150)
model = PortfolioRegressor(effort="quick", random_state=0).fit(X, y)

u, v = np.meshgrid(np.linspace(-4, 4, 60), np.linspace(-4, 4, 60))
_, std = model.predict(np.column_stack([u.ravel(), v.ravel()]), return_std=True)
fig, (ax,) = plots.figure(width=6, height=5)
shades = ax.contourf(u, v, std.reshape(u.shape), levels=14, cmap="Blues")
ax.scatter(*X.T, s=9, color="#d55e00", label="training rows")
fig.colorbar(shades, label="predicted standard deviation")
ax.set(xlabel="first feature", ylabel="second feature", aspect="equal")
