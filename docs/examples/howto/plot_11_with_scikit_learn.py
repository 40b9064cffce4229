"""
With scikit-learn
=================

The estimators are scikit-learn's: they can be cloned, put into pipelines, searched over and scored,
also by what they say about their uncertainty.
"""

from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from accord import BVMRegressor, datasets
from accord.metrics import scorers
from accord.splits import OutlierSplit

toy = datasets.make_heteroscedastic(200, random_state=0)
model = BVMRegressor(tolerance=0.05, epochs=40, random_state=0)

# %%
# Scores: NLL and CRPS of the whole distribution (higher is better, as always in scikit-learn).

for name in ("nll_scorer", "crps_scorer"):
    scores = cross_val_score(model, toy.X, toy.y, cv=3, scoring=getattr(scorers, name))
    print(name, scores.round(2))

# %%
# Held-out outliers instead of random rows: a splitter like any other.

splitter = OutlierSplit(n_splits=2)
print(cross_val_score(model, toy.X, toy.y, cv=splitter, scoring=scorers.nll_scorer).round(2))

# %%
# A search over tolerances, in a pipeline.

pipeline = make_pipeline(PolynomialFeatures(3, include_bias=False), model)
grid = {"bvmregressor__tolerance": [0, 0.05, 0.2]}
search = GridSearchCV(pipeline, grid, cv=3, scoring=scorers.nll_scorer).fit(toy.X, toy.y)
print(search.best_params_)
