"""
Save, load and pass on
======================

A model file holds numbers and text, and no code. Loading it runs nothing, whoever
made it.
"""

import tempfile
import zipfile
from pathlib import Path

import numpy as np

import accord
from accord.persistence import read_metadata, read_version, save

toy = accord.datasets.make_cubic(100, random_state=0)
model = accord.BVMRegressor(tolerance=2, random_state=0).fit(toy.X, toy.y)
path = Path(tempfile.mkdtemp()) / "cubic.accord"
save(model, path, metadata={"made for": "this page"})

# %%
# Predictions are the same to the bit.

again = accord.load(path)
print(np.array_equal(again.predict(toy.X), model.predict(toy.X)))

# %%
# What is in it can be read without loading it, also by other tools: it is a zip file
# (:doc:`/reference/formats`).

print(read_version(path), read_metadata(path))
print(zipfile.ZipFile(path).namelist()[:3], f"{path.stat().st_size / 1024:.0f} kB")

# %%
# ``TableRegressor.save`` adds the model's card: where it comes from, and its figures.
