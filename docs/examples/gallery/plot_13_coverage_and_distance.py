"""
Coverage away from the data
===========================

Test rows reach further out than training rows. Deep Ensembles lose their coverage on the way.
"""

import numpy as np

from accord import DeepEnsembleRegressor, PortfolioRegressor, plots
from accord.trust import Proximity

rng = np.random.default_rng(0)
X, X_new = rng.normal(size=(200, 2)), 2 * rng.normal(size=(400, 2))
truth = lambda X: np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=len(X))  # noqa: E731
y, y_new = truth(X), truth(X_new)
distance = Proximity().fit(X).distance(X_new)
models = {
    "Deep Ensembles": DeepEnsembleRegressor(epochs=150, random_state=0),
    "Accord's portfolio": PortfolioRegressor(effort="quick", random_state=0),
}
fig, axes = plots.figure(1, 2, width=10, height=4, titles=list(models))
for ax, model in zip(axes, models.values(), strict=True):
    lower, upper = model.fit(X, y).predict_interval(X_new, coverage=0.9).T
    inside = (lower <= y_new) & (y_new <= upper)
    plots.coverage_by_distance(distance=distance, inside=inside, coverage=0.9, ax=ax)
    ax.set_ylim(0, 1.02)
