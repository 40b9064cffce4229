"""The data of the literature by name, and toys whose truth is known.

``load("boston")`` gives a small typed object. Files come from the folder that ``ACCORD_DATA``
names, or from the user's cache, filled from their public address, and are checked by SHA-256.
"""

from accord.datasets.loading import load, make_cubic, make_heteroscedastic, make_homoscedastic
from accord.datasets.registry import Dataset, DatasetInfo, File, Truth, info, names

__all__ = [
    "Dataset",
    "DatasetInfo",
    "File",
    "Truth",
    "info",
    "load",
    "make_cubic",
    "make_heteroscedastic",
    "make_homoscedastic",
    "names",
]
