"""What belongs together is held out together, and every row once."""

import re

import numpy as np
import pytest

from accord.portfolio.folds import (
    Part,
    first_of,
    fold_count,
    held_out_parts,
    random_parts,
    shifted_parts,
    thinned,
    time_parts,
)
from accord.splits import groups_of_copies

RNG = np.random.default_rng(0)


def folds_of(parts: list[Part], n: int) -> np.ndarray:
    """The fold that each row is held out in; every row in exactly one, and in no training set."""
    fold = np.full(n, -1)
    for number, part in enumerate(parts):
        assert (fold[part.test] == -1).all()
        fold[part.test] = number
        assert np.array_equal(np.union1d(part.train, part.test), np.arange(n))
        assert len(np.intersect1d(part.train, part.test)) == 0
    assert (fold >= 0).all()
    return fold


@pytest.mark.parametrize("n_folds", [2, 5, 8])
def test_groups_stay_together_in_folds_of_like_size(n_folds: int) -> None:
    groups = RNG.integers(0, 40, size=300)
    fold = folds_of(random_parts(groups, n_folds, seed=0), 300)
    for name in np.unique(groups):
        assert len(np.unique(fold[groups == name])) == 1
    sizes = np.bincount(fold)
    assert sizes.max() - sizes.min() <= np.bincount(groups).max()


def test_fewer_groups_than_folds() -> None:
    fold = folds_of(random_parts(np.repeat([7, 9], 30), 8, seed=0), 60)
    assert len(np.unique(fold)) == 2


def test_one_group_cannot_be_held_out_and_is_counted() -> None:
    """Nor can one of two, if no other has a target to learn from."""
    x, y, measured = RNG.normal(size=(20, 1)), RNG.normal(size=20), np.ones(20, bool)
    halves = np.repeat([0, 1], 10)
    for known, together, got in (
        (measured, {"groups": np.zeros(20)}, "2 groups to hold some out, got 1. Give other groups"),
        (halves == 0, {"groups": halves}, "2 groups to hold some out, got 1"),
        (measured, {"time": np.zeros(20)}, "2 stretches of time to hold some out, got 1. Give"),
    ):
        with pytest.raises(ValueError, match=re.escape(got)):
            held_out_parts(x, y, known, **together, seed=0)
    assert len(held_out_parts(x, y, measured, groups=halves, seed=0)) == 2


def test_the_seed_decides() -> None:
    rows = np.arange(100)
    first, same, other = (random_parts(rows, 5, seed=s)[0].test for s in (0, 0, 1))
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


def test_copies_are_one_group_wherever_they_stand() -> None:
    x, y = RNG.normal(size=(60, 2)), RNG.normal(size=60)
    order = RNG.permutation(180)
    copies = np.tile(np.arange(60), 3)[order]
    group = groups_of_copies(x[copies], y[copies])
    fold = folds_of(random_parts(group, 5, seed=0), 180)
    for original in range(60):
        assert len(np.unique(fold[copies == original])) == 1


def test_stretches_of_time_follow_each_other() -> None:
    time = RNG.permutation(np.repeat(np.arange(50.0), 4))
    fold = folds_of(time_parts(time, 5), 200)
    order = np.argsort(time, kind="stable")
    assert (np.diff(fold[order]) >= 0).all()
    for moment in np.unique(time):
        assert len(np.unique(fold[time == moment])) == 1
    assert np.ptp(np.bincount(fold)) <= 4


def test_few_moments_make_few_stretches() -> None:
    parts = [part for part in time_parts(np.repeat([0.0, 1.0], 30), 5) if len(part.test)]
    fold = folds_of(parts, 60)
    assert (fold[:30] == fold[0]).all()
    assert fold[30] != fold[0]


def test_thinned_parts_ask_about_fewer_rows_and_learn_from_all() -> None:
    parts = random_parts(np.arange(1000), 5, seed=0)
    fewer = thinned(parts, 100, seed=0)
    assert sum(len(part.test) for part in fewer) == 100
    for before, after in zip(parts, fewer, strict=True):
        assert np.isin(after.test, before.test).all()
        np.testing.assert_array_equal(after.train, before.train)
    assert thinned(parts, 1000, seed=0) is parts


def test_shifted_parts_hold_out_the_unusual_the_ends_and_the_middle() -> None:
    x = RNG.normal(size=(200, 3))
    relevance = np.array([0.0, 2.0, 1.0])
    outliers, tail, gap, *_ = shifted_parts(x, relevance, seed=0)
    assert len(outliers.test) == 20
    assert (x[outliers.test] ** 2).sum(axis=1).mean() > 2 * (x[outliers.train] ** 2).sum(1).mean()
    value = np.abs(x[:, 1] - np.median(x[:, 1]))  # the feature that matters most
    assert value[tail.test].mean() > 2 * value[tail.train].mean()
    assert value[gap.test].max() < value[gap.train].max() / 2
    for part in (outliers, tail, gap):
        assert len(np.intersect1d(part.train, part.test)) == 0


def test_a_value_and_a_cluster_are_left_out_where_there_are_such() -> None:
    kind = np.repeat([0.0, 1.0, 2.0, 3.0], [90, 50, 30, 30])
    place = RNG.normal(size=200) + 20 * (np.arange(200) % 2)
    x = np.column_stack([kind, place, RNG.normal(size=200)])
    parts = shifted_parts(x, np.array([1.0, 2.0, 0.0]), seed=0)
    assert len(parts) == 5
    one, cluster = parts[3:]
    assert set(kind[one.test]) == {1.0}  # the largest that is no more than a third
    assert not (kind[one.train] == 1.0).any()
    # a cluster is a neighbourhood in the features that matter
    assert place[cluster.test].std() < place.std() / 2
    assert 5 <= len(cluster.test) <= 100


def test_rows_that_are_all_alike_have_no_clusters_or_values_to_leave_out() -> None:
    assert len(shifted_parts(np.ones((60, 2)), np.zeros(2), seed=0)) == 1
    two = np.tile([0.0, 1.0], 30)[:, None]
    assert len(shifted_parts(two, np.ones(1), seed=0)) == 1


def test_few_rows_are_cut_into_more_folds() -> None:
    assert fold_count(20) > fold_count(1_000) > fold_count(100_000)


def test_rows_alone_are_dealt_out_as_groups_of_equal_size_are() -> None:
    alone = random_parts(np.arange(100), 7, seed=3)
    pairs = random_parts(np.repeat(np.arange(100), 2), 7, seed=3)
    for one, two in zip(alone, pairs, strict=True):
        np.testing.assert_array_equal(np.repeat(one.test, 2) * 2, two.test // 2 * 2)


def test_subsets_of_several_folds_overlap_as_far_as_the_folds_do() -> None:
    one, two = np.arange(0, 900), np.arange(100, 1000)
    first, second = (first_of(rows, 500, 1000, seed=0) for rows in (one, two))
    assert len(first) == len(second) == 500
    assert np.all(np.diff(first) > 0)
    assert set(first) <= set(one)
    # 500 of 900 at random would share about 247; by one order of all rows they share nearly all
    assert len(set(first) & set(second)) > 400
