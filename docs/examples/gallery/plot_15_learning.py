"""
Learning curves
===============

The loss of each member of an ensemble, and their mean.
"""

from accord import BVMRegressor, datasets, plots

toy = datasets.make_cubic(200, random_state=0)
model = BVMRegressor(tolerance=2, epochs=120, n_members=8, random_state=0).fit(toy.X, toy.y)
ax = plots.training_curves(model.history_)
