"""
Censored lifetimes
==================

A reliability engineer tests 240 bearings. Tests are stopped after a time that was booked on the
rig, whether the bearing has failed or not. For about half of them all that is known is: it lived
at least this long.
"""

import numpy as np
import pandas as pd

from accord import TableRegressor, plots

rng = np.random.default_rng(0)
n = 240
tests = pd.DataFrame({"load": rng.uniform(2, 8, n), "lubricant": rng.choice(["oil", "grease"], n)})
log_life = 8 - 0.6 * tests["load"] + 0.8 * (tests["lubricant"] == "oil") + rng.normal(0, 0.4, n)
booked = rng.uniform(3, 8, n)  # log-hours
tests["log_life"] = np.minimum(log_life, booked)
tests["ran_out"] = np.where(log_life > booked, booked, np.nan)
print(tests.head(4).round(2), f"{tests['ran_out'].notna().mean():.0%} ran out", sep="\n\n")

# %%
# ``y_lower`` names the column with the lower bound; it is empty where the life was observed.
# From the command line: ``accord fit tests.csv --target log_life --lower-column ran_out``.

model = TableRegressor(effort="quick", bounds=None, random_state=0)
model.fit(tests, "log_life", y_lower="ran_out")
naive = TableRegressor(effort="quick", bounds=None, random_state=0)
naive.fit(tests.drop(columns="ran_out"), "log_life")

# %%
# The naive model takes the end of a test for the end of a life.

grid = pd.DataFrame({"load": np.linspace(2, 8, 60), "lubricant": "oil"})
truth = 8.8 - 0.6 * grid["load"]
titles = ["the stop taken for the failure", "at least"]
fig, axes = plots.figure(1, 2, width=10, height=4, titles=titles)
for ax, each in zip(axes, [naive, model], strict=True):
    dist = each.predict_dist(grid)
    plots.envelope(x=grid["load"], dist=dist, n_std=2, truth=truth, ax=ax)
    ax.set(xlabel="load in kN", ylabel="log-hours", ylim=(1, 9))

# %%
# What the customer asks: which life do 90 % of the bearings reach (the life B10), and how probable
# are 150 hours?

wanted = pd.DataFrame({"load": [3.0, 5.0], "lubricant": ["oil", "oil"]})
dist = model.predict_dist(wanted)
b10 = np.exp(np.ravel(dist.quantile([0.1])))
survival = 1 - np.ravel(dist.cdf(np.full(2, np.log(150))))
for load, hours, share in zip(wanted["load"], b10, survival, strict=True):
    print(f"{load} kN: B10 = {hours:.0f} h; {share:.0%} reach 150 h")
