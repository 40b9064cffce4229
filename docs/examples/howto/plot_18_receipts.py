"""
Why is this interval so wide?
=============================

Two flats differ in one column only, and one interval is twice as wide as the other. A receipt
says where the width comes from, and what would make it narrower.
"""

import numpy as np
import pandas as pd

from accord import TableRegressor, plots

rng = np.random.default_rng(0)
flats = pd.DataFrame({"area": rng.normal(70, 15, 300), "floor": rng.integers(0, 6, 300)})
flats["rent"] = 200 + 9 * flats["area"] + 15 * flats["floor"] + rng.normal(0, 40, 300)
model = TableRegressor(effort="quick", random_state=0).fit(flats, "rent")

# %%
# The second flat is on the thirtieth floor; no row of the table is above the fifth.

ask = pd.DataFrame({"area": [70.0, 70.0], "floor": [3, 30]})
receipts = model.explain_uncertainty(ask)
for row in range(2):
    print(receipts.text(row), end="\n\n")

# %%
# As numbers: shares of the variance, which add up to 1. Noise stays;
# disagreement and distance shrink with more rows like this one.

shares = pd.DataFrame(receipts.shares, index=["3rd floor", "30th floor"])
print(shares.round(2))
fig, (ax,) = plots.figure(width=7, height=2.4)
left = np.zeros(2)
for (name, share), color in zip(shares.items(), plots.PALETTE, strict=False):
    ax.barh(shares.index, share, left=left, color=color, label=name)
    left += share
ax.set(xlabel="share of the variance", xlim=(0, 1))
plots.legend(ax, loc="lower left", bbox_to_anchor=(0, 1), ncols=3)

# %%
# From the command line: ``accord predict model.accord new.csv --explain``, and ``--explain-row 12``
# for one row in sentences. What is exact and what is estimated: :doc:`/receipts`.
