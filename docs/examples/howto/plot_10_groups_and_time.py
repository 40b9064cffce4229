"""
Groups and time
===============

Ten visits of one patient are not ten patients. If rows belong together, they must be held out
together, or the figures are too good for new groups.
"""

import numpy as np
import pandas as pd

from accord import TableRegressor

rng = np.random.default_rng(0)
patient = np.repeat(np.arange(30), 6)
own = rng.normal(0, 2, 30)[patient]  # what makes a patient different
weight = np.repeat(rng.normal(70, 10, 30), 6) + rng.normal(0, 0.2, 180)
frame = pd.DataFrame({"patient": patient, "weight": weight.round(1)})
frame["dose"] = 0.1 * weight + own + rng.normal(0, 0.3, 180)

# %%
# Without the group, the weight tells the patients apart, and the model seems to be good.

naive = TableRegressor(effort="quick", ignore=["patient"], random_state=0).fit(frame, "dose")
model = TableRegressor(effort="quick", group="patient", random_state=0).fit(frame, "dose")
for name, each in {"rows held out": naive, "patients held out": model}.items():
    figures = each.held_out_.figures()
    print(f"{name}: RMSE {figures['rmse']:.2f}, mean width {each.held_out_.mean_width:.1f}")

# %%
# The second figure is the one for a new patient. With ``time="date"`` rows are held out in blocks
# of time: the figures are then those for a stretch of time that the model has not seen.
# From the command line: ``--group patient``, ``--time date``.
