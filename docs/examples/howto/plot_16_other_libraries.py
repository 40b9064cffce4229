"""
With other libraries
====================

Frames of polars, weights through scikit-learn's pipelines, skpro, MAPIE, ScoringBench and MLflow:
what works with what.
"""

import numpy as np
import pandas as pd
import polars as pl
import sklearn
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import accord
from accord.metrics import scorers

rng = np.random.default_rng(0)
area, town = rng.uniform(40, 200, 150), rng.choice(["Ulm", "Bonn"], 150)
price = 2 * area + 20 * (town == "Ulm") + rng.normal(0, 5, 150)

# %%
# **polars.** A frame goes in as it is, with its types, and answers come back as frames of polars.
# The same holds for tables of pyarrow. Of a lazy frame call ``collect`` first.

frame = pl.DataFrame({"area": area, "town": town, "price": price})
engine = accord.BVMRegressor(tolerance="1%", epochs=30, random_state=0)
model = accord.TableRegressor(engine=engine, random_state=0).fit(frame, "price")
new = frame.head(3)
print(new.hstack(model.predict_interval(new, coverage=0.9)))

# %%
# **Weights and tolerances in pipelines and searches.** With scikit-learn's metadata routing an
# estimator says what its ``fit`` wants, a scorer what it is weighted with, and each fold gets its
# own rows of it: ``sample_weight``, ``groups``, ``y_tolerance``, ``y_lower`` and ``y_upper``.

X, weight = area[:, None], rng.uniform(0.5, 2, 150)
tolerance = rng.uniform(1, 5, 150)  # of each price, in its units
with sklearn.config_context(enable_metadata_routing=True):
    asking = engine.set_fit_request(sample_weight=True, y_tolerance=True)
    search = GridSearchCV(
        make_pipeline(PolynomialFeatures(2), asking),
        {"bvmregressor__hidden": [(20,), (50,)]},
        scoring=scorers.nll_scorer.set_score_request(sample_weight=True),
        cv=3,
    ).fit(X, price, sample_weight=weight, y_tolerance=tolerance)
print(search.best_params_, round(search.best_score_, 2))

# %%
# **skpro.** :class:`accord.adapters.SkproRegressor` is a regressor of skpro whose ``predict_proba``
# gives the whole predictive distribution. (skpro takes columns of numbers only.)

from accord.adapters import SkproRegressor  # noqa: E402

columns, target = pd.DataFrame({"area": area}), pd.DataFrame({"price": price})
regressor = SkproRegressor(accord.DeepEnsembleRegressor(epochs=30, random_state=0))
print(regressor.fit(columns, target).predict_quantiles(columns.head(2), alpha=[0.05, 0.95]).round())

# %%
# **MAPIE** takes any of our estimators where it takes one of scikit-learn.

from mapie.regression import SplitConformalRegressor  # noqa: E402

fitted = accord.DeepEnsembleRegressor(epochs=30, random_state=0).fit(X[:100], price[:100])
conformal = SplitConformalRegressor(estimator=fitted, confidence_level=0.9, prefit=True)
_, interval = conformal.conformalize(X[100:], price[100:]).predict_interval(X[:2])
print(interval[..., 0].round())

# %%
# **ScoringBench.** ``benchmarks/scoringbench_wrapper.py`` has the three methods of its models.
#
# **MLflow** keeps a model's file, and the figures of its card. This block is shown and not run with
# the page, since MLflow asks for an older ``importlib-metadata`` than the one that is tested here.
# It was run with MLflow 3.17.
#
# .. code-block:: python
#
#     with mlflow.start_run():
#         mlflow.log_params(model.card_.settings)
#         mlflow.log_metrics(model.card_.held_out)
#         model.save("model.accord")
#         mlflow.log_artifact("model.accord")
