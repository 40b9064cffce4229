"""From a name to a dataset."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accord.datasets.dataset import Dataset
from accord.datasets.entries import Entry
from accord.datasets.files import local_path
from accord.datasets.registry import info
from accord.datasets.toys import make_cubic, make_heteroscedastic, make_homoscedastic

__all__ = ["load"]

Array = NDArray[np.float64]
_TOYS: dict[str, Callable[..., Dataset]] = {
    "cubic": make_cubic,
    "heteroscedastic": make_heteroscedastic,
    "homoscedastic": make_homoscedastic,
}


class _Rows(NamedTuple):
    X: Array
    y: Array


def load(name: str) -> Dataset:
    """A dataset by name, from the user's folder, the cache or the network.

    The folder that the environment variable ``ACCORD_DATA`` names is looked at first, then the
    user's cache; what is in neither is fetched from its public address. Toys are drawn with seed 0.

    Args:
        name: A name of :func:`~accord.datasets.names`, or one under which the literature knows it.

    **Shape**: X (N, d), y (N,); see :class:`~accord.datasets.Dataset`.

    Example:
        >>> data = load("diabetes")
        >>> data.X.shape, data.feature_names[:3], data.feature_units[:3]
        ((442, 10), ('age', 'sex', 'bmi'), ('years', '', 'kg/m²'))
    """
    entry = info(name)
    if entry.kind == "toy":
        return _TOYS[entry.name](random_state=0)
    if entry.kind == "diabetes":
        return _dataset(entry, _diabetes())
    paths = [local_path(file) for file in entry.files]
    if entry.kind == "stocks":
        train, test = _stock_windows(_openings(paths[0]), _openings(paths[1]), entry.d)
        return _dataset(entry, train, holdout=_dataset(entry, test))
    return _dataset(entry, _columns(paths[0], entry.d))


def _dataset(entry: Entry, rows: _Rows, *, holdout: Dataset | None = None) -> Dataset:
    return Dataset(
        name=entry.name,
        X=rows.X,
        y=rows.y,
        feature_names=tuple(name for name, _ in entry.features),
        target_name=entry.target[0],
        feature_units=tuple(unit for _, unit in entry.features),
        target_unit=entry.target[1],
        description=entry.description,
        licence=entry.licence,
        holdout=holdout,
    )


def _columns(path: Path, d: int) -> _Rows:
    """Features in columns 0…d−1 and the target in column d; further columns are unused."""
    table = np.loadtxt(path, dtype=np.float64, ndmin=2)
    return _Rows(np.ascontiguousarray(table[:, :d]), table[:, d].copy())


def _diabetes() -> _Rows:
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True, scaled=False)
    return _Rows(np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64))


def _openings(path: Path) -> Array:
    """The column ``Open``; some numbers carry thousands separators and quotes."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        return np.array([float(row["Open"].replace(",", "")) for row in csv.DictReader(file)])


def _stock_windows(train: Array, test: Array, width: int) -> tuple[_Rows, _Rows]:
    """Each day's price from those of the days before; test days look back on the training ones."""
    return _windows(train, width), _windows(np.concatenate([train[-width:], test]), width)


def _windows(prices: Array, width: int) -> _Rows:
    windows = np.lib.stride_tricks.sliding_window_view(prices, width)[:-1]
    return _Rows(windows.copy(), prices[width:].copy())
