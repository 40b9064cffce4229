"""
Does a large σ mean a large error?
==================================

If deviations are honest, the groups' errors follow the edge of the inner cone.
"""

from accord import BVMRegressor, datasets, plots

train = datasets.make_heteroscedastic(600, random_state=0)
test = datasets.make_heteroscedastic(600, random_state=1)
model = BVMRegressor(tolerance=0.05, epochs=150, random_state=0).fit(train.X, train.y)
ax = plots.error_against_deviation(y_true=test.y, dist=model.predict_dist(test.X))
