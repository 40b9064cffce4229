"""
Methods side by side
====================

NLL on a test set, with its standard error over the rows.
"""

import numpy as np

from accord import BVMRegressor, DeepEnsembleRegressor, MCDropoutRegressor, datasets, plots
from accord.metrics import nll

train = datasets.make_heteroscedastic(400, random_state=0)
test = datasets.make_heteroscedastic(1000, random_state=1)
methods = {
    "BVM, ε = 0.1": BVMRegressor(tolerance=0.1, epochs=100, random_state=0),
    "BVM, local ε": BVMRegressor(epochs=100, random_state=0),
    "Deep Ensembles": DeepEnsembleRegressor(epochs=100, random_state=0),
    "MC dropout": MCDropoutRegressor(epochs=100, random_state=0),
}
scores = {
    name: nll(y_true=test.y, dist=model.fit(train.X, train.y).predict_dist(test.X), average=False)
    for name, model in methods.items()
}
errors = {name: float(np.std(score) / np.sqrt(len(score))) for name, score in scores.items()}
means = {name: float(np.mean(score)) for name, score in scores.items()}
ax = plots.metric_by_method(means, errors=errors)
