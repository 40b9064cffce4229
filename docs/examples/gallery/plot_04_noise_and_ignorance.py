"""
Aleatoric and epistemic
=======================

The band, divided: blue is noise that no model can remove, orange is what the members of the
ensemble do not agree on.
"""

import numpy as np

from accord import BVMRegressor, plots

rng = np.random.default_rng(1)
x = np.concatenate([rng.uniform(-3, -0.5, 60), rng.uniform(1, 3, 60)])
y = np.sin(2 * x) + (0.1 + 0.1 * (x > 0)) * rng.normal(size=120)
model = BVMRegressor(tolerance=0.02, epochs=300, mean_head="identity", random_state=0)
grid = np.linspace(-4, 4, 200)
dist = model.fit(x[:, None], y).predict_dist(grid[:, None])
ax = plots.envelope(x=grid, dist=dist, n_std=2, split=True, x_data=x, y_data=y)
