"""
Guard a LightGBM
================

You have a LightGBM model that predicts well, and a number per row is not enough any more.
:func:`accord.guard` keeps the model and adds intervals, and an alarm for rows that are unlike the
training rows.
"""

import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor

import accord

rng = np.random.default_rng(0)
cars = pd.DataFrame({"age": rng.uniform(0, 12, 500), "km": rng.gamma(4, 20, 500)})
cars["price"] = 30 * np.exp(-0.12 * cars["age"] - 0.004 * cars["km"])
cars["price"] += rng.normal(0, 0.3 + 0.1 * cars["age"], 500)  # old cars differ more
train, test = cars.head(400), cars.tail(100)

# %%
# ``fit`` trains the model about ten times, each time on a part of the rows, and learns from the
# errors on the others.

model = LGBMRegressor(n_estimators=60, num_leaves=8, n_jobs=1, verbose=-1)
guarded = accord.guard(model, random_state=0).fit(train[["age", "km"]], train["price"])
interval = guarded.predict_interval(test[["age", "km"]], coverage=0.9)
inside = test["price"].between(interval["lower"], interval["upper"])
print(f"{inside.mean():.0%} of {len(test)} new rows are inside their 90 % interval")

# %%
# A new car, an old one, and one that has gone further than any car in the table. Trees answer the
# last one as if it were the furthest that they know; the guard says so.

ask = pd.DataFrame({"age": [1.0, 11.0, 6.0], "km": [60.0, 60.0, 900.0]})
print(guarded.predict_uncertainty(ask).round(2).assign(unusual=guarded.is_unusual(ask)))

# %%
# ``accord.guard(model, fitted=True)`` takes a model that is fitted already, and rows that it has
# not seen. How the guard works, what it can save, and its figures on seventeen tables are in
# :doc:`/guard`.
