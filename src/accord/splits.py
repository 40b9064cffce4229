"""Train and test rows: at random, or on purpose unlike each other.

A model judged on random held-out rows is judged where it has data. The splits here also hold out
rows that are *unusual* (:func:`outlier_split`), that lie *between* the others (:func:`gap_split`)
or *beyond* them (:func:`tail_split`), that are of another *kind* (:func:`cluster_split`,
:func:`group_split`) or *later* (:func:`time_split`). Each is a function that gives one
``(train, test)`` pair of sorted row numbers; the first three are scikit-learn splitters for
:func:`~sklearn.model_selection.cross_val_score`, too. :func:`groups_of_copies` finds rows that
have to stay together, by :func:`row_hashes`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord._checks import RandomState, check_choice, check_count, drawn_seeds, sklearn_seed
from accord._types import Floats, Indices

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "GapSplit",
    "OutlierSplit",
    "TailSplit",
    "cluster_split",
    "gap_split",
    "group_split",
    "groups_of_copies",
    "outlier_split",
    "row_hashes",
    "standard_splits",
    "tail_split",
    "time_split",
]

Split = tuple[Indices, Indices]
Feature = int | str
TailSide = Literal["lower", "upper", "both"]


def standard_splits(n: int, n_splits: int = 20) -> list[Split]:
    """The random splits on which the UCI regression sets are compared in the literature.

    One ``RandomState(1)`` permutes the rows anew for each split, and the first round(0.9 n) of
    them train: the index files that accompany MC-dropout hold the same numbers, in this order.

    Args:
        n: Number of rows.
        n_splits: Number of splits; the literature takes 20, and 5 for the protein set.

    **Shape**: ``n_splits`` pairs, train (round(0.9 n),) and test (n − round(0.9 n),).

    Example:
        >>> train, test = standard_splits(10)[0]
        >>> train.tolist(), test.tolist()
        ([2, 9, 6, 4, 0, 3, 1, 7, 8], [5])
    """
    n_train = round(0.9 * n)
    check_count("n_splits", n_splits)
    if not 0 < n_train < n:
        raise ValueError(f"n must be at least 6 rows, got {n}. One tenth of them is held out.")
    generator = np.random.RandomState(1)  # legacy, as the published files were drawn with it
    orders = (generator.choice(range(n), n, replace=False) for _ in range(n_splits))
    return [(order[:n_train].astype(np.intp), order[n_train:].astype(np.intp)) for order in orders]


def outlier_split(
    X: ArrayLike, *, fraction: float = 0.1, random_state: RandomState = None
) -> Split:
    """Hold out the rows whose features are the most anomalous, by Isolation Forest.

    A forest of random cuts isolates an unusual row in few of them; the rows with the shortest
    paths form the test set. The cuts are drawn between a feature's extremes, so the scale of the
    features does not matter.

    Args:
        X: Features.
        fraction: Share of the rows held out.
        random_state: Seed of the forest.

    **Shape**: X (N, d); test (round(fraction N),), train the rest, both sorted.

    Example:
        >>> X = np.linspace(0, 1, 20)[:, None]
        >>> X[3] = 40
        >>> outlier_split(X, fraction=0.05, random_state=0)[1]
        array([3])
    """
    from sklearn.ensemble import IsolationForest  # slow to import, and predicting needs no split

    features = _features(X)
    n_test = _held_out(len(features), fraction)
    forest = IsolationForest(random_state=sklearn_seed(random_state)).fit(features)
    most_anomalous_first = np.argsort(forest.score_samples(features), kind="stable")
    return _pair(len(features), most_anomalous_first[:n_test])


def gap_split(X: ArrayLike, *, feature: Feature = 0, fraction: float = 1 / 3) -> Split:
    """Hold out the middle of one feature: is the model sure of itself between its data?

    Args:
        X: Features.
        feature: Column number, or name where X is a data frame.
        fraction: Share of the rows held out; a third by custom.

    **Shape**: X (N, d); test (round(fraction N),), train the rest, both sorted.

    Example:
        >>> gap_split(np.arange(9.0)[:, None])
        (array([0, 1, 2, 6, 7, 8]), array([3, 4, 5]))
    """
    order = _order(_features(X), _column(X, feature))
    n_test = _held_out(len(order), fraction)
    first = (len(order) - n_test) // 2
    return _pair(len(order), order[first : first + n_test])


def tail_split(
    X: ArrayLike, *, feature: Feature = 0, side: TailSide = "upper", fraction: float = 0.1
) -> Split:
    """Hold out the lowest or highest values of one feature: does the model know where it ends?

    Args:
        X: Features.
        feature: Column number, or name where X is a data frame.
        side: Which tail; ``"both"`` takes half of the rows from each.
        fraction: Share of the rows held out.

    **Shape**: X (N, d); test (round(fraction N),), train the rest, both sorted.

    Example:
        >>> tail_split(np.arange(10.0)[:, None], side="both", fraction=0.2)[1]
        array([0, 9])
    """
    check_choice("side", side, get_args(TailSide))
    order = _order(_features(X), _column(X, feature))
    n_test = _held_out(len(order), fraction)
    n_lower = {"lower": n_test, "upper": 0, "both": n_test // 2}[side]
    n_upper = n_test - n_lower
    return _pair(len(order), np.concatenate([order[:n_lower], order[len(order) - n_upper :]]))


def cluster_split(
    X: ArrayLike, *, n_clusters: int = 5, cluster: int = 0, random_state: RandomState = None
) -> Split:
    """Hold out one cluster of rows: does the model know a kind of row that it has not seen?

    The clusters are those of k-means in standardised features, numbered from the largest on.

    Args:
        X: Features.
        n_clusters: Number of clusters.
        cluster: Which of them is held out; 0 is the largest.
        random_state: Seed of the first centres.

    **Shape**: X (N, d); train and test sorted.

    Example:
        >>> cluster_split([[0.0], [0.1], [0.2], [9.0], [9.1]], n_clusters=2, random_state=0)
        (array([3, 4]), array([0, 1, 2]))
    """
    features = _features(X)
    if not (2 <= n_clusters <= len(features) and 0 <= cluster < n_clusters):
        got = f"n_clusters={n_clusters}, cluster={cluster} of {len(features)} rows"
        raise ValueError(f"n_clusters must lie between 2 and the rows, cluster below, got {got}.")
    deviation = features.std(axis=0)
    scaled = (features - features.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    from sklearn.cluster import KMeans  # slow to import, and predicting needs no split

    means = KMeans(n_clusters, n_init=4, random_state=sklearn_seed(random_state))
    found = means.fit_predict(scaled)
    largest_first = np.argsort(-np.bincount(found, minlength=n_clusters), kind="stable")
    return group_split(found, group=largest_first[cluster])


def group_split(groups: ArrayLike, *, group: Any) -> Split:
    """Hold out all rows of one group: another site, another person, another machine.

    **Shape**: groups (N,), any values; train and test sorted.

    Example:
        >>> group_split(["north", "south", "north"], group="south")
        (array([0, 2]), array([1]))
    """
    own = np.asarray(groups) == group
    if own.all() or not own.any():
        raise ValueError(
            f"group must be one of several groups, got {group!r}: {own.sum()} of {len(own)} rows."
        )
    return np.flatnonzero(~own), np.flatnonzero(own)


def time_split(time: ArrayLike, *, fraction: float = 0.1) -> Split:
    """Hold out the latest rows, as the future is; rows of one moment stay together.

    **Shape**: time (N,), any values that can be ordered; train and test sorted.

    Example:
        >>> time_split([2021, 2020, 2022, 2022], fraction=0.25)
        (array([0, 1]), array([2, 3]))
    """
    moments = np.asarray(time)
    first = np.sort(moments)[len(moments) - _held_out(len(moments), fraction)]
    if first == moments.min():
        raise ValueError(
            f"time must leave earlier rows to train on, got {len(np.unique(moments))} moments, "
            f"of which the last {fraction:g} of the rows reach back to the first."
        )
    return _pair(len(moments), np.flatnonzero(moments >= first))


@dataclass(frozen=True)
class OutlierSplit:
    """Several :func:`outlier_split`, each by another forest, as a scikit-learn splitter.

    One forest's idea of the most anomalous tenth swings by more than most methods differ; average
    several.

    Args:
        n_splits: Number of forests.
        fraction: Share of the rows held out.
        random_state: Seed from which the forests' seeds are drawn.

    Example:
        >>> from sklearn.linear_model import LinearRegression
        >>> from sklearn.model_selection import cross_val_score
        >>> X = np.random.default_rng(0).normal(size=(50, 2))
        >>> cv = OutlierSplit(n_splits=3, random_state=0)
        >>> cross_val_score(LinearRegression(), X, X[:, 0], cv=cv).round(6)
        array([1., 1., 1.])
    """

    n_splits: int = 5
    fraction: float = field(default=0.1, kw_only=True)
    random_state: RandomState = field(default=None, kw_only=True)

    def split(self, X: ArrayLike, y: Any = None, groups: Any = None) -> Iterator[Split]:
        """Pairs of train and test rows."""
        check_count("n_splits", self.n_splits)
        for seed in drawn_seeds(self.random_state, self.n_splits):
            yield outlier_split(X, fraction=self.fraction, random_state=seed)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of pairs."""
        return self.n_splits


@dataclass(frozen=True)
class GapSplit:
    """A :func:`gap_split` for each of several features, as a scikit-learn splitter.

    Args:
        features: Columns, by number or name; every column that varies unless given.
        fraction: Share of the rows held out.

    Example:
        >>> GapSplit().get_n_splits(np.eye(4))
        4
    """

    features: Sequence[Feature] | None = None
    fraction: float = field(default=1 / 3, kw_only=True)

    def split(self, X: ArrayLike, y: Any = None, groups: Any = None) -> Iterator[Split]:
        """Pairs of train and test rows."""
        for feature in _chosen(self.features, X):
            yield gap_split(X, feature=feature, fraction=self.fraction)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of pairs."""
        return len(_chosen(self.features, X))


@dataclass(frozen=True)
class TailSplit:
    """A :func:`tail_split` for each of several features, as a scikit-learn splitter.

    Args:
        features: Columns, by number or name; every column that varies unless given.
        side: Which tail; ``"both"`` takes half of the rows from each.
        fraction: Share of the rows held out.

    Example:
        >>> [test.tolist() for _, test in TailSplit(fraction=0.25).split(np.eye(4))]
        [[0], [1], [2], [3]]
    """

    features: Sequence[Feature] | None = None
    side: TailSide = field(default="upper", kw_only=True)
    fraction: float = field(default=0.1, kw_only=True)

    def split(self, X: ArrayLike, y: Any = None, groups: Any = None) -> Iterator[Split]:
        """Pairs of train and test rows."""
        for feature in _chosen(self.features, X):
            yield tail_split(X, feature=feature, side=self.side, fraction=self.fraction)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of pairs."""
        return len(_chosen(self.features, X))


# Neighbours in the order of their bytes are compared so many at a time.
_COMPARED_ROWS = 16_384


def groups_of_copies(X: Any, y: ArrayLike, *, n_parts: int = 5) -> Indices:
    """A number per row, the same for rows that repeat each other in features and target.

    Copies of a row belong into the same of ``n_parts`` parts: held out from a model that has
    learnt from its copy, a row is no test. Where nearly every row has copies, or one has more than
    a part holds, or equal features have unlike targets and all of both make fewer pairs than there
    are rows, values are few and rows are alike without being copies: each then has its own number.

    **Shape**: X (N, d), a data frame or an array; y (N,) → (N,).

    >>> first, second, third = groups_of_copies(np.array([[1.0], [2.0], [1.0]]), [5.0, 6.0, 5.0])
    >>> bool(first == third), bool(first == second)
    (True, False)
    """
    target = np.asarray(y, dtype=np.float64)
    alike = _alike_in_frame if hasattr(X, "iloc") else _alike_in_array
    group = alike(X, target)
    n, size = len(group), np.bincount(group)
    if len(size) == n:
        return group
    features = len(np.unique(alike(X, np.zeros(n))))
    few = features < len(size) and features * len(np.unique(target)) < n
    chance = len(size) < max(2, n / 10) or size.max() > max(2, n / n_parts)
    return np.arange(n) if chance or few else group


def _alike_in_frame(X: Any, y: Floats) -> Indices:
    """Rows numbered by their first copy."""
    import pandas as pd

    return np.asarray(pd.factorize(row_hashes(X, y))[0], dtype=np.intp)


def row_hashes(X: "pd.DataFrame", y: Floats) -> NDArray[np.uint64]:
    """A number per row that equal rows share, features and target.

    **Shape**: X (N, d), y (N,) → (N,).
    """
    import pandas as pd

    hashed = pd.util.hash_pandas_object(X.assign(**{"\0target": y}), index=False)
    return np.asarray(hashed, dtype=np.uint64)


def _alike_in_array(X: ArrayLike, y: Floats) -> Indices:
    """Rows numbered in the order of their bytes."""
    table = np.ascontiguousarray(np.column_stack([X, y]))
    rows = table.view(np.dtype((np.void, table.dtype.itemsize * table.shape[1]))).ravel()
    # as np.unique has it, which takes a sorted copy of the table
    order, first = np.argsort(rows), np.ones(len(rows), bool)
    for start in range(1, len(rows), _COMPARED_ROWS):
        part = rows[order[start - 1 : start + _COMPARED_ROWS]]
        first[start : start + _COMPARED_ROWS] = part[1:] != part[:-1]
    group = np.empty(len(rows), np.intp)
    group[order] = np.cumsum(first) - 1
    return group


def _features(X: ArrayLike) -> Floats:
    try:
        features = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X must be numeric, got {error}. Encode categories as numbers first."
        ) from error
    if features.ndim != 2:
        raise ValueError(
            f"X must have shape (rows, features), got {features.shape}. "
            "Use X[:, None] for a single feature."
        )
    if not np.isfinite(features).all():
        raise ValueError("X must be finite, got NaN or infinity. Fill in or drop those rows first.")
    return features


def _column(X: ArrayLike, feature: Feature) -> int:
    """Number of a column given by number (negative ones count from the end) or by name."""
    if isinstance(feature, str):
        names = [str(name) for name in getattr(X, "columns", [])]
        if feature not in names:
            known = ", ".join(names) or "none: X is no data frame"
            raise ValueError(f"feature must be a column of X, got {feature!r}. Columns: {known}.")
        return names.index(feature)
    n_columns = int(np.shape(X)[-1])
    if not -n_columns <= feature < n_columns:
        raise ValueError(f"feature must be one of X's {n_columns} columns, got {feature}.")
    return feature % n_columns


def _order(features: Floats, column: int) -> Indices:
    values = features[:, column]
    if np.ptp(values) == 0:
        raise ValueError(
            f"feature must vary, got column {column} with the one value {values[0]:g}. "
            "Choose another column."
        )
    return np.argsort(values, kind="stable")


def _chosen(features: Sequence[Feature] | None, X: Any) -> Sequence[Feature]:
    if features is not None:
        return features
    if X is None:
        raise ValueError("X must be given to count the splits when features is None, got None.")
    return np.flatnonzero(np.ptp(_features(X), axis=0)).tolist()


def _held_out(n: int, fraction: float) -> int:
    if not 0 < fraction < 1:
        raise ValueError(f"fraction must lie between 0 and 1, got {fraction}. Use 0.1 for a tenth.")
    n_test = round(fraction * n)
    if not 0 < n_test < n:
        raise ValueError(
            f"fraction must leave rows on both sides, got {fraction} of {n} rows. "
            "Give more rows or another fraction."
        )
    return n_test


def _pair(n: int, test: Indices) -> Split:
    held_out = np.zeros(n, dtype=bool)
    held_out[test] = True
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)
