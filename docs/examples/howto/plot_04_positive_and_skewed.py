"""
Positive and skewed targets
===========================

Prices, durations and concentrations are positive and have a long upper tail. An interval that
reaches below zero, or is as long downwards as upwards, is wrong for them.
"""

import numpy as np
import pandas as pd

from accord import TableRegressor, plots

rng = np.random.default_rng(0)
area = rng.uniform(30, 150, 150)
price = np.exp(4 + 0.012 * area + rng.normal(0, 0.5, 150))
frame = pd.DataFrame({"area": area, "price": price})
model = TableRegressor(effort="quick", random_state=0).fit(frame, "price")

# %%
# ``bounds="detect"``, the default, keeps intervals at or above 0 if no value is below it, and says
# so. State them if you know them: ``bounds=(0, None)``, ``bounds=(0, 100)`` or None.

print(*model.notes_, sep="\n")

# %%
# Where the target is positive and skewed, a recipe of its logarithm is tried as well; the held-out
# rows decide how much it weighs.

print(model.leaderboard_.round(3).to_string(index=False))

# %%
# The interval is longer upwards than downwards.

new = pd.DataFrame({"area": [50.0, 120.0]})
print(model.predict_quantiles(new, [0.05, 0.5, 0.95]).round())
ax = plots.sorted_predictions(y_true=price, dist=model.predict_dist(frame), coverage=0.9)
