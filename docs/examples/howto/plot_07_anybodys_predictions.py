"""
Predictions of any model, by a rule
===================================

You have a file with measured and predicted values, and a requirement. Do they agree?
"""

import numpy as np
import pandas as pd

from accord.workflows import validate_predictions

rng = np.random.default_rng(0)
measured = rng.uniform(10, 20, 200)
rig = pd.DataFrame(
    {"measured": measured, "model": measured + rng.normal(0.05, 0.2, 200), "sigma": 0.2}
)

# %%
# The requirement is a rule in words; ``required`` is the agreement that is asked for.

result = validate_predictions(
    rig, truth="measured", mean="model", std="sigma", rule="within 0.5", required=0.9
)
print(result.verdict.headline, result.verdict.summary, sep="\n")

# %%
# A second verdict: can the stated uncertainty be believed?

print(result.belief.headline, result.belief.summary, sep="\n")

# %%
# Rules can be about the whole test, and be combined.

rule = "80% within 0.5 and mean error within 0.2"
result = validate_predictions(rig, truth="measured", mean="model", std="sigma", rule=rule)
print(result.agreement)

# %%
# From the command line: ``accord validate rig.csv --truth measured --mean model --std sigma --rule
# "within 0.5" --fail-below 90%``, whose exit code tells a script. All rules are in
# :doc:`/validation`.
