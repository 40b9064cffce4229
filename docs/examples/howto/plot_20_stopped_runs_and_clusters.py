"""
Stopped runs and clusters
=========================

A fit can be stopped and taken up again, and its parts can be done by other processes or machines.
The result is the same to the bit. Needs the extra ``distributed``.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

from accord import TableRegressor

rng = np.random.default_rng(0)
flats = pd.DataFrame({"area": rng.uniform(40, 120, 100)})
flats["rent"] = 200 + 9 * flats["area"] + rng.normal(0, 40, 100)

# %%
# **After a stop.** With ``checkpoint``, finished parts are kept in a folder until ``fit`` ends. If
# it was stopped, the same call goes on with them. ``accord fit`` does this by itself.

folder = Path(tempfile.mkdtemp()) / "unfinished"
alone = TableRegressor(effort="quick", random_state=0).fit(flats, "rent", checkpoint=folder)

# %%
# **On a cluster.** Here it is a Dask cluster within this process; ``Client("tcp://10.0.0.5:8786")``
# is one of many machines. From the command line: ``accord fit big.parquet --target y --scheduler
# tcp://10.0.0.5:8786``.

with (
    LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as it,
    Client(it) as client,
):
    there = TableRegressor(effort="quick", random_state=0).fit(flats, "rent", client=client)
print("the same predictions:", np.array_equal(alone.predict(flats), there.predict(flats)))

# %%
# What is moved, what a lost worker costs, and how much faster it gets: :doc:`/cluster`.
