"""Models in one file that is safe to load and outlives renames of the code.

A model file (``.accord``) is an uncompressed zip of ``manifest.json`` and one ``.npy`` file per
array, so that any tool can look into it. The manifest holds everything but the arrays as JSON and
names types by a stable public name (:mod:`accord.persistence.encoding`). Loading reads numbers and
text only: no pickle, no code, no type that is not on that list.

skops, which does the same job for scikit-learn, names types by the module that they happen to
live in, trusts whole packages by prefix, and reads entries before their sizes are known.
"""

from accord.persistence.archive import (
    FORMAT,
    ModelFileError,
    load,
    read_metadata,
    read_version,
    save,
)

__all__ = ["FORMAT", "ModelFileError", "load", "read_metadata", "read_version", "save"]
