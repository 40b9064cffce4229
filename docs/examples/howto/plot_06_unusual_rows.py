"""
Rows unlike the training data
=============================

A model answers any row. Whether the row is of a kind that it has learnt from is another question.
"""

import numpy as np
import pandas as pd

from accord import TableRegressor, TrustScore

rng = np.random.default_rng(0)
frame = pd.DataFrame({"speed": rng.normal(50, 10, 200), "road": rng.choice(["wet", "dry"], 200)})
frame["braking"] = 0.01 * frame["speed"] ** 2 * np.where(frame["road"] == "wet", 1.6, 1)
frame["braking"] += rng.normal(0, 1.5, 200)
model = TableRegressor(effort="quick", random_state=0).fit(frame, "braking")

# %%
# A usual row, a speed that is far out, and a kind of road that never occurred.

new = pd.DataFrame({"speed": [50.0, 140.0, 50.0], "road": ["wet", "wet", "ice"]})
print(model.is_unusual(new))
print(model.predict_uncertainty(new).round(1))

# %%
# The part ``distance`` is what the model adds because a row is far from its training rows. The flag
# is raised for one usual row in twenty; the interval is widened for all that are far. Neither knows
# how cars brake on ice: see :doc:`/explanation/promises`.
#
# **For a model that you have already**, the score alone needs only its rows. Its false-alarm
# rate is guaranteed for rows of the same kind.

X = frame[["speed"]].to_numpy()
trust = TrustScore(false_alarm_rate=0.02).fit(X[:100], X_held_out=X[100:])
print(trust.is_unusual([[50.0], [140.0]]), trust.p_value([[50.0], [140.0]]).round(3))
