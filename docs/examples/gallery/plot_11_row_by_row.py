"""
Intervals row by row
====================

Intervals of 90 % for patients whom the model has not seen, in the order of the prediction.
"""

from accord import BVMRegressor, datasets, plots

data = datasets.load("diabetes")
model = BVMRegressor(tolerance=10, epochs=60, random_state=0).fit(data.X[:342], data.y[:342])
dist = model.predict_dist(data.X[342:])
ax = plots.sorted_predictions(y_true=data.y[342:], dist=dist, coverage=0.9)
ax.set_ylabel("disease progression after one year")
