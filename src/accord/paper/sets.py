"""Sets by name, the rows that train and test in each split, and what is measured on the latter.

Sets are those of the registry and the eight tables of ``development`` in the folder that
``ACCORD_DATA`` names; these have no address of their own, and studies use them where they are
there.
"""

import gzip
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from accord._types import Floats, Indices
from accord.datasets import Dataset, info, load, make_cubic
from accord.distributions import Distribution
from accord.metrics import (
    coverage,
    crps,
    interval_width,
    mae,
    nll,
    reliability_curve,
    rmse,
)
from accord.paper.study import Scheme
from accord.splits import outlier_split, standard_splits

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


TOY_GRID = np.linspace(-6.0, 6.0, 241)
# Draws below this one served to settle the toy's training recipe, which the paper does not print.
_FIRST_TOY_DRAW = 100


@dataclass(frozen=True)
class Fold:
    """Training and test rows of one split, and what is known of them.

    **Shape**: X_train (N, d), y_train (N,), X_test (M, d), y_test (M,).
    """

    split: int
    X_train: Floats
    y_train: Floats
    X_test: Floats
    y_test: Floats
    facts: dict[str, float] = field(default_factory=dict)


def folds(dataset: str, scheme: Scheme, splits: Sequence[int]) -> list[Fold]:
    """The folds with these numbers; each depends on its number only, not on the others.

    Example:
        >>> [fold] = folds("cubic", "toy", [3])
        >>> fold.X_train.shape, fold.X_test.shape
        ((20, 1), (241, 1))
    """
    if scheme == "toy":
        return [_toy(split) for split in splits]
    data = load(dataset)
    if scheme == "holdout":
        return [_holdout(data, split) for split in splits]
    if scheme == "standard":
        pairs = standard_splits(len(data.y), max(splits) + 1)
        return [_rows(data, split, *pairs[split]) for split in splits]
    if scheme == "outlier":
        pairs = [outlier_split(data.X, random_state=split) for split in splits]
        return [_rows(data, split, *pair) for split, pair in zip(splits, pairs, strict=True)]
    raise ValueError(f"scheme must have folds, got {scheme!r}.")


def _rows(data: Dataset, split: int, train: Indices, test: Indices) -> Fold:
    facts = target_shift(data.y[train], data.y[test])
    return Fold(split, data.X[train], data.y[train], data.X[test], data.y[test], facts)


def target_shift(y_train: Floats, y_test: Floats) -> dict[str, float]:
    """Differences in mean and variance, test minus train, of the targets as Table 3 has them.

    Targets are brought to [0, 1] by the *training* range, t' = (t − min) / (max − min).

    **Shape**: (N,) and (M,).

    Example:
        >>> target_shift(np.array([0.0, 10.0]), np.array([10.0, 10.0]))
        {'mean_shift': 0.5, 'variance_shift': -0.25}
    """
    width = float(np.ptp(y_train))
    return {
        "mean_shift": float(y_test.mean() - y_train.mean()) / width,
        "variance_shift": float(y_test.var() - y_train.var()) / width**2,
    }


def _holdout(data: Dataset, split: int) -> Fold:
    if data.holdout is None:
        raise ValueError(f"dataset must have test rows of its own, got {data.name!r}.")
    return Fold(split, data.X, data.y, data.holdout.X, data.holdout.y)


def _toy(split: int) -> Fold:
    """A draw of the cubic, and fresh noisy targets on the figure's grid, beyond the data too."""
    seed = _FIRST_TOY_DRAW + split
    toy = make_cubic(random_state=seed)
    noise = np.random.default_rng([seed, 1]).normal(0.0, 3.0, size=len(TOY_GRID))
    return Fold(split, toy.X, toy.y, TOY_GRID[:, None], TOY_GRID**3 + noise)


def measures(fold: Fold, dist: Distribution) -> dict[str, float]:
    """Scores of a predictive distribution on a fold's test rows.

    ``nll``, ``crps``, ``coverage95`` and ``width95`` follow the paper: they are of the Gaussian
    with the mixture's mean and variance. ``nll_exact`` is that of the predictive distribution
    itself, a mixture.
    """
    y, mean, std = fold.y_test, np.asarray(dist.mean), np.asarray(dist.std)
    return {
        "rmse": rmse(y_true=y, mean=mean),
        "mae": mae(y_true=y, mean=mean),
        "nll": nll(y_true=y, mean=mean, std=std),
        "nll_exact": nll(y_true=y, dist=dist),
        "crps": crps(y_true=y, mean=mean, std=std),
        "coverage95": coverage(y_true=y, mean=mean, std=std, coverage=0.95),
        "width95": interval_width(y_true=y, mean=mean, std=std, coverage=0.95),
        "n_test": float(len(y)),
        **fold.facts,
    }


def curves(fold: Fold, dist: Distribution, *, predictions: bool) -> dict[str, Floats]:
    """Observed fractions at the levels 10 % … 90 %, and the predictions themselves on request.

    ``observed`` follows the paper (Gaussian intervals from mean and variance), ``observed_exact``
    the predictive distribution's own intervals.
    """
    y, mean, std = fold.y_test, np.asarray(dist.mean), np.asarray(dist.std)
    gaussian = reliability_curve(y_true=y, mean=mean, std=std)
    own = reliability_curve(y_true=y, dist=dist)
    found = {"observed": gaussian.observed, "observed_exact": own.observed}
    if predictions:
        found |= {"mean": mean, "std": std}
    return found
