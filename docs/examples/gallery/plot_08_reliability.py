"""
Stated and observed coverage
============================

How often do intervals hold what they should hold? The spread of an ensemble that was trained on
squared error is no measure of noise; a learnt variance comes close.
"""

from accord import BVMRegressor, MSEEnsembleRegressor, datasets, plots
from accord.metrics import reliability_curve

train = datasets.make_heteroscedastic(500, random_state=0)
test = datasets.make_heteroscedastic(500, random_state=1)
models = {
    "BVM, ε = 0.05": BVMRegressor(tolerance=0.05, epochs=150, random_state=0),
    "spread of an MSE ensemble": MSEEnsembleRegressor(epochs=150, random_state=0),
}
curves = {
    name: reliability_curve(y_true=test.y, dist=model.fit(train.X, train.y).predict_dist(test.X))
    for name, model in models.items()
}
ax = plots.reliability_diagram(curves)
