"""Which rows each part of a portfolio may learn from.

Random folds say how the model does on rows like its own. What belongs together stays together: rows
of one group, rows that are copies of each other, and, if the order in time is given, stretches of
time. Shifted parts hold out rows unlike the rest: how the model does on those, and how wide their
intervals must be, cannot be learnt from random folds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord._types import Bools, Floats, Indices
from accord.distributions import Distribution
from accord.splits import gap_split, group_split, groups_of_copies, outlier_split, tail_split

# More folds where rows are few, so that each part sees most of them.
_FEW_ROWS, _MANY_ROWS = 250, 20_000
# A feature with fewer values has no ends and no middle; one with more, no kinds of rows.
_MANY_VALUES, _FEW_VALUES, _FEWEST_OF_A_VALUE = 10, 20, 5
_CLUSTERS, _CLUSTERED_ROWS = 5, 5_000
# Each part unlike the rest takes as long to learn as a fold.
_SHIFTED_PARTS = 5
# Rows that are asked about in all.
ASKED_ROWS = 20_000


@dataclass(frozen=True)
class Part:
    """Rows to learn from and rows to be asked about."""

    train: Indices
    test: Indices


@dataclass(frozen=True)
class HeldOut:
    """Predictions for training rows by models that had not seen them.

    **Shape**: all (n,); ``rows`` are places in the training data, ``growth`` their distance to the
    rows that the models had seen, as :class:`accord.trust.Growth` measures it.
    """

    rows: Indices
    dist: Distribution
    growth: Floats
    unusual: Bools


def fold_count(n: int) -> int:
    """Folds for n rows: more where rows are few, fewer where training takes long."""
    return 8 if n < _FEW_ROWS else 5 if n < _MANY_ROWS else 3


def held_out_parts(
    x: Floats,
    y: Floats,
    measured: Bools,
    *,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
    seed: int,
) -> list[Part]:
    """Folds of the rows, by groups, in time, or else with copies of a row together.

    **Shape**: x (N, d), all others (N,).
    """
    n_folds = fold_count(len(y))
    if time is not None:
        parts = time_parts(np.asarray(time, dtype=np.float64), n_folds)
    else:
        if groups is None:
            together = groups_of_copies(x, y, n_parts=n_folds)
        else:
            together = np.unique(np.asarray(groups), return_inverse=True)[1]
        parts = random_parts(together, n_folds, seed=seed)
    taught = [part for part in parts if measured[part.train].any() and len(part.test)]
    if len(taught) < 2:
        # what is left without its only group with measured targets teaches nothing
        n_groups = sum(measured[part.test].any() for part in parts)
        kind, other = ("groups", "groups") if time is None else ("stretches of time", "times")
        raise ValueError(
            f"the rows with a measured target must form at least 2 {kind} to hold some out, got "
            f"{n_groups}. Give other {other}, or none."
        )
    return thinned(taught, ASKED_ROWS, seed=seed)


def random_parts(together: NDArray[np.int64], n_folds: int, *, seed: int) -> list[Part]:
    """Folds of about equal size; rows with the same number in ``together`` stay together.

    **Shape**: together (N,).

    >>> parts = random_parts(np.array([0, 0, 1, 1, 2, 2]), 3, seed=0)
    >>> sorted(tuple(part.test.tolist()) for part in parts)
    [(0, 1), (2, 3), (4, 5)]
    """
    names, sizes = np.unique(together, return_counts=True)
    n_folds = min(n_folds, len(names))
    order = np.random.default_rng(seed).permutation(len(names))
    order = order[np.argsort(-sizes[order], kind="stable")]
    fold_of, filled = np.empty(len(names), np.intp), np.zeros(n_folds)
    if sizes.max() == 1:  # as below, for a million rows at once
        fold_of[order] = np.arange(len(names)) % n_folds
        order = order[:0]
    for name in order:  # the largest first, each into the emptiest fold
        fold_of[name] = np.argmin(filled)
        filled[fold_of[name]] += sizes[name]
    return _parts(fold_of[np.searchsorted(names, together)], n_folds)


def time_parts(time: Floats, n_folds: int) -> list[Part]:
    """Stretches of time, each held out in turn; rows of one moment stay together."""
    _, moment = np.unique(time, return_inverse=True)
    share = np.argsort(np.argsort(moment, kind="stable"), kind="stable") / len(time)
    first = np.full(moment.max() + 1, np.inf)
    np.minimum.at(first, moment, share)
    return _parts((first[moment] * n_folds).astype(np.intp), n_folds)


def _parts(fold: Indices, n_folds: int) -> list[Part]:
    return [
        Part(np.flatnonzero(fold != own), np.flatnonzero(fold == own)) for own in range(n_folds)
    ]


def thinned(parts: list[Part], most: int, *, seed: int) -> list[Part]:
    """The same parts, asked about fewer rows: a large table says enough with some of them."""
    total = sum(len(part.test) for part in parts)
    if total <= most:
        return parts
    random = np.random.default_rng(seed)
    kept = [random.permutation(part.test)[: len(part.test) * most // total] for part in parts]
    return [Part(part.train, np.sort(test)) for part, test in zip(parts, kept, strict=True)]


def at_most(rows: Indices, most: int, seed: int) -> Indices:
    """A random subset of rows where they are many."""
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))


def first_of(rows: Indices, most: int, n: int, seed: int) -> Indices:
    """The same, by one random order of all ``n`` rows: subsets of several folds overlap."""
    if len(rows) <= most:
        return rows
    rank = np.random.default_rng(seed).permutation(n)[rows]
    return np.asarray(rows[rank <= np.partition(rank, most - 1)[most - 1]])


def unusual_part(x: Floats, *, seed: int) -> Part:
    """The most unusual tenth is held out, of few rows some more.

    **Shape**: x (N, d).
    """
    share = max(0.1, min(0.3, 10 / len(x)))
    # no row is unusual in the others, and no draw is to depend on how many they are
    varies = np.ptp(x, axis=0) > 0
    x = x[:, varies] if varies.any() else x
    return Part(*outlier_split(x, fraction=share, random_state=seed))


def shifted_parts(x: Floats, relevance: Floats, *, seed: int) -> list[Part]:
    """At most five kinds of rows unlike the rest, the most unusual tenth first.

    Then, in the features that matter most, the upper end and the middle of one with many values, a
    value of one with few, and a cluster; ends and middles of a second feature make up for what a
    table does not have.

    **Shape**: x (N, d), relevance (d,).
    """
    order = [int(j) for j in np.argsort(-relevance, kind="stable")]
    values = [len(np.unique(column)) for column in x.T]
    many = [j for j in order if values[j] >= _MANY_VALUES][:2]
    few = [x[:, j] for j in order if 3 <= values[j] <= _FEW_VALUES]
    ends = [
        Part(*split)
        for j in many
        for split in (
            tail_split(x, feature=j, fraction=0.15),
            gap_split(x, feature=j, fraction=0.25),
        )
    ]
    one = next((part for part in map(_one_value, few) if part is not None), None)
    cluster = _cluster(x, relevance, seed=seed)
    found = [unusual_part(x, seed=seed), *ends[:2], one, cluster, *ends[2:]]
    return [part for part in found if part is not None][:_SHIFTED_PARTS]


def _one_value(column: Floats) -> Part | None:
    """The most common value with at most a third of the rows is held out.

    **Shape**: column (N,).
    """
    values, sizes = np.unique(column, return_counts=True)
    sizes[(3 * sizes > len(column)) | (sizes < _FEWEST_OF_A_VALUE)] = 0
    if not sizes.any():
        return None
    return Part(*group_split(column, group=values[sizes.argmax()]))


def _cluster(x: Floats, relevance: Floats, *, seed: int) -> Part | None:
    """The second largest of five clusters, in features that count as they matter."""
    deviation = x.std(axis=0)
    used = (relevance > 0) & (deviation > 0)
    z = (x[:, used] - x[:, used].mean(axis=0)) / deviation[used]
    z *= relevance[used] / relevance.max(initial=0.0)
    some = z[at_most(np.arange(len(z)), _CLUSTERED_ROWS, seed)]
    if not used.any() or len(np.unique(some, axis=0)) < _CLUSTERS:
        return None
    from sklearn.cluster import KMeans  # slow to import, and predicting needs no split

    own = KMeans(_CLUSTERS, n_init=2, random_state=seed).fit(some).predict(z)
    largest_first = np.argsort(-np.bincount(own, minlength=_CLUSTERS), kind="stable")
    return Part(*group_split(own, group=largest_first[1]))


def own_places(used: Indices, parts: Sequence[Part]) -> Iterator[Indices]:
    """For each fold with rows in use, but not all of these, their places among them."""
    for part in parts:
        own = np.isin(used, part.test)
        if own.any() and not own.all():
            yield np.flatnonzero(own)
