"""Which rows train and which test: random ones, and six families of shift.

A large set is a random sample of its rows, so that all methods can afford all sets. No method is
told what kind of shift it will meet, nor which rows belong together.

Every set has outliers and one or two of gap, tail and cluster. Groups need a column that says which
rows belong together, and time needs days.
"""

from typing import NamedTuple

import numpy as np

from accord._types import Floats, Indices
from accord.paper import published, sets
from accord.splits import (
    Split,
    cluster_split,
    gap_split,
    group_split,
    outlier_split,
    tail_split,
    time_split,
)

__all__ = [
    "CONTROLLED",
    "FAMILIES",
    "GROUP_COLUMNS",
    "MOMENTS",
    "RANDOM",
    "ROWS",
    "SETS",
    "SHIFTS",
    "STOCKS",
    "TEST_ROWS",
    "ShiftedCase",
    "case",
    "leading_feature",
]

ROWS = 400
TEST_ROWS = 120
# Columns that say which rows belong together: the shape of a hull or a building, an index of
# roads, the age of a mixture, a speed, a chord, a motor, a class of spots.
GROUP_COLUMNS: dict[str, tuple[int, ...]] = {
    "yacht": (0, 1, 2, 3, 4),
    "energy": (0,),
    "boston": (8,),
    "concrete": (7,),
    "naval": (0,),
    "airfoil": (2,),
    "servo": (0,),
    "solar": (0,),
}
# Moments at which the stocks are cut, as shares of the days; the next tenth of them tests.
MOMENTS = (0.5, 0.7, 0.9)
# A column with fewer values has no middle and no tails to speak of.
_FEWEST_VALUES = 10

RANDOM = "random rows"
SHIFTS = ("outliers", "gap", "tail", "cluster", "group", "time")


class ShiftedCase(NamedTuple):
    """Training and test rows of one split.

    **Shape**: X_train (N, d), y_train (N,), X_test (M, d), y_test (M,).
    """

    X_train: Floats
    y_train: Floats
    X_test: Floats
    y_test: Floats


def case(family: str, dataset: str, split: int) -> ShiftedCase:
    """The rows of a split; the same for every method."""
    X, y = sets.table(dataset)
    if family == "time":
        return _in_time(X, y, split)
    rows = _sample(len(y), ROWS, seed=split)
    X, y = X[rows], y[rows]
    train, test = _split(family, dataset, X, y, split)
    return _case(X, y, train, test, split)


def _split(family: str, dataset: str, X: Floats, y: Floats, split: int) -> Split:
    if family == RANDOM:
        order = np.random.default_rng([split, 1]).permutation(len(y))
        test, train = np.split(order, [round(0.2 * len(y))])
        return np.sort(train), np.sort(test)
    match family:
        case "outliers":
            return outlier_split(X, random_state=split)
        case "gap":
            return gap_split(X, feature=leading_feature(X, y))
        case "tail":
            return tail_split(X, feature=leading_feature(X, y), side="both", fraction=0.2)
        case "cluster":
            return cluster_split(X, cluster=1, random_state=split)
        case "group":
            return _without_group(X[:, list(GROUP_COLUMNS[dataset])])
    raise ValueError(f"family must be one of {RANDOM}, {', '.join(SHIFTS)}, got {family!r}.")


def leading_feature(X: Floats, y: Floats) -> int:
    """The column whose ranks go most with the target's, among those of many values.

    >>> x = np.arange(20.0)
    >>> leading_feature(np.column_stack([x % 2, np.cos(x), -x]), x**3)
    2
    """
    from scipy.stats import spearmanr

    many = [j for j, column in enumerate(X.T) if len(np.unique(column)) >= _FEWEST_VALUES]
    return max(many, key=lambda j: abs(float(spearmanr(X[:, j], y).statistic)))


def _without_group(columns: Floats) -> Split:
    """The largest group that holds no more than a third of the rows is held out."""
    groups = np.unique(columns, axis=0, return_inverse=True)[1].ravel()
    sizes = np.bincount(groups)
    sizes[3 * sizes > len(groups)] = 0
    return group_split(groups, group=int(sizes.argmax()))


def _in_time(X: Floats, y: Floats, split: int) -> ShiftedCase:
    days = np.arange(round((MOMENTS[split] + 0.1) * len(y)))
    train, test = time_split(days, fraction=0.1 * len(y) / len(days))
    return _case(X, y, train[_sample(len(train), ROWS, seed=split)], test, split)


def _case(X: Floats, y: Floats, train: Indices, test: Indices, split: int) -> ShiftedCase:
    asked = test[_sample(len(test), TEST_ROWS, seed=split)]
    return ShiftedCase(X[train], y[train], X[asked], y[asked])


def _sample(n: int, most: int, *, seed: int) -> Indices:
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng([seed, 0]).choice(n, most, replace=False))


SETS = (*published.datasets("table3"), *sets.DEVELOPMENT)
STOCKS = "google"
CONTROLLED = ("concrete", "energy", "kin8nm", "yacht")

FAMILIES: dict[str, tuple[str, ...]] = {
    "outliers": SETS,
    "gap": (
        *("boston", "concrete", "energy", "kin8nm", "power", "protein", "wine"),
        *("airfoil", "pumadyn32nm"),
    ),
    "tail": (
        *("boston", "concrete", "kin8nm", "naval", "power", "wine", "yacht"),
        *("autos", "tamielectric"),
    ),
    "cluster": (
        *("concrete", "energy", "kin8nm", "power", "wine", "yacht"),
        *("elevators", "servo", "skillcraft", "solar"),
    ),
    "group": tuple(GROUP_COLUMNS),
    "time": (STOCKS,),
    RANDOM: SETS,
}
