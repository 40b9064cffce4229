"""
Monitor a model in use
======================

Months later there are new rows, with the values that were predicted then. Do the intervals hold,
and are the rows of the kind that the model knows?
"""

import numpy as np
import pandas as pd

from accord import TableRegressor
from accord.workflows import monitor_table


def sold(n: int, centre: float, seed: int) -> pd.DataFrame:
    """Houses that were sold, of areas about ``centre``."""
    rng = np.random.default_rng(seed)
    area = rng.normal(centre, 15, n)
    return pd.DataFrame({"area": area, "price": 50 + 2 * area + rng.normal(0, 12, n)})


model = TableRegressor(effort="quick", random_state=0).fit(sold(200, 80, 0), "price")

# %%
# New rows of the same kind, and rows of a new development with larger houses.

for name, centre in {"the same": 80, "larger": 140}.items():
    result = monitor_table(model, sold(100, centre, 1))
    print(f"{name}: {result.verdict.headline}", *result.drift.sentences(), sep="\n  ")

# %%
# From the command line: ``accord monitor model.accord sold-in-june.csv``, day after day, with a
# memory; ``accord evaluate model.accord sold-in-june.csv`` for one table and its figures.
