"""The sets of a study by name: those of the registry, and tables of the user's own folder.

The eight tables of ``development`` in the folder that ``ACCORD_DATA`` names have no address of
their own; studies use them where they are there.
"""

import gzip
import hashlib
import os
from functools import cache
from pathlib import Path

import numpy as np

from accord._types import Floats
from accord.datasets import info, load

__all__ = ["DEVELOPMENT", "digests", "is_there", "table", "title"]

DEVELOPMENT = (
    "airfoil",
    "autos",
    "elevators",
    "pumadyn32nm",
    "servo",
    "skillcraft",
    "solar",
    "tamielectric",
)


def _path(name: str) -> Path:
    return Path(os.environ.get("ACCORD_DATA", "")) / "development" / f"{name}.csv.gz"


def is_there(name: str) -> bool:
    """Whether a set can be had: always if it is one of the registry."""
    return name not in DEVELOPMENT or _path(name).is_file()


def title(name: str) -> str:
    """A set's name for people.

    >>> title("boston"), title("airfoil")
    ('Boston housing', 'Airfoil')
    """
    return name.capitalize() if name in DEVELOPMENT else info(name).title


@cache
def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def digests(name: str) -> list[str]:
    """SHA-256 of the files that a set comes from."""
    if name in DEVELOPMENT:
        return [_digest(_path(name))]
    return [file.sha256 for file in info(name).files]


def table(name: str) -> tuple[Floats, Floats]:
    """Features and target; a table of the user's folder has no header, and its target last.

    **Shape**: (N, d) and (N,).
    """
    if name not in DEVELOPMENT:
        data = load(name)
        return data.X, data.y
    with gzip.open(_path(name), "rt", encoding="utf-8") as file:
        rows = np.loadtxt(file, delimiter=",", ndmin=2)
    return np.ascontiguousarray(rows[:, :-1]), rows[:, -1].copy()
