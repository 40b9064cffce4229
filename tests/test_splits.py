"""Splits: the published ones to the row, and held-out rows that really lie elsewhere."""

import hashlib

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

from accord.splits import (
    GapSplit,
    OutlierSplit,
    TailSplit,
    cluster_split,
    gap_split,
    group_split,
    groups_of_copies,
    outlier_split,
    standard_splits,
    tail_split,
    time_split,
)


@pytest.fixture
def cloud() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(200, 3))


def assert_partition(train: np.ndarray, test: np.ndarray, n: int) -> None:
    np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(n))


class TestStandardSplits:
    def test_are_the_published_procedure(self) -> None:
        generator = np.random.RandomState(1)
        for train, test in standard_splits(506):
            permutation = generator.choice(range(506), 506, replace=False)
            np.testing.assert_array_equal(np.concatenate([train, test]), permutation)
            assert (len(train), len(test)) == (455, 51)

    def test_are_pinned(self) -> None:
        """Another generator, order or rounding would change the digest."""
        rows = np.concatenate([test for _, test in standard_splits(308)]).astype("<i8")
        digest = hashlib.sha256(rows.tobytes()).hexdigest()
        assert digest[:16] == "6317e7a922e0e811"

    def test_each_is_a_partition_and_no_two_are_equal(self) -> None:
        splits = standard_splits(50, n_splits=5)
        assert len({tuple(test) for _, test in splits}) == len(splits) == 5
        for train, test in splits:
            assert_partition(train, test, 50)

    @pytest.mark.parametrize(("n", "n_splits"), [(2, 1), (0, 1), (50, 0)])
    def test_too_little_is_refused(self, n: int, n_splits: int) -> None:
        with pytest.raises(ValueError, match="must be at least"):
            standard_splits(n, n_splits)


class TestOutlierSplit:
    def test_finds_planted_outliers(self, cloud: np.ndarray) -> None:
        planted = [3, 50, 120]
        cloud[planted] += 8.0
        train, test = outlier_split(cloud, fraction=3 / 200, random_state=0)
        assert test.tolist() == planted
        assert_partition(train, test, 200)

    def test_size_and_seed(self, cloud: np.ndarray) -> None:
        first = outlier_split(cloud, fraction=0.1, random_state=1)
        again = outlier_split(cloud, fraction=0.1, random_state=1)
        other = outlier_split(cloud, fraction=0.1, random_state=2)
        assert len(first[1]) == 20
        np.testing.assert_array_equal(first[1], again[1])
        assert not np.array_equal(first[1], other[1])

    def test_units_do_not_matter(self, cloud: np.ndarray) -> None:
        """Powers of two keep the forest's arithmetic exact."""
        scaled = cloud * np.array([1024.0, 1.0, 0.125])
        np.testing.assert_array_equal(
            outlier_split(cloud, random_state=0)[1], outlier_split(scaled, random_state=0)[1]
        )

    def test_held_out_rows_lie_farther_out(self, cloud: np.ndarray) -> None:
        train, test = outlier_split(cloud, random_state=0)
        radius = np.linalg.norm(cloud, axis=1)
        assert np.median(radius[test]) > np.quantile(radius[train], 0.9)

    def test_splitter_varies_the_forest_and_repeats(self, cloud: np.ndarray) -> None:
        cv = OutlierSplit(n_splits=4, random_state=7)
        first, again = list(cv.split(cloud)), list(cv.split(cloud))
        assert len({tuple(test) for _, test in first}) == cv.get_n_splits() == 4
        for one, two in zip(first, again, strict=True):
            np.testing.assert_array_equal(one[1], two[1])

    @pytest.mark.parametrize("cv", [OutlierSplit(3, random_state=0), GapSplit(), TailSplit([0, 2])])
    def test_splitters_work_in_scikit_learn(self, cv: object, cloud: np.ndarray) -> None:
        target = cloud @ [1.0, -2.0, 0.5]
        np.testing.assert_allclose(cross_val_score(LinearRegression(), cloud, target, cv=cv), 1.0)
        search = GridSearchCV(LinearRegression(), {"fit_intercept": [True, False]}, cv=cv)
        assert search.fit(cloud, target).n_splits_ in (2, 3)


class TestGapAndTail:
    def test_gap_is_the_middle_third(self, cloud: np.ndarray) -> None:
        train, test = gap_split(cloud, feature=1)
        values = cloud[:, 1]
        below, above = values[train] < values[test].min(), values[train] > values[test].max()
        assert len(test) == 67
        assert (below | above).all()
        assert abs(int(below.sum()) - int(above.sum())) <= 1

    @pytest.mark.parametrize("side", ["lower", "upper", "both"])
    def test_tail_is_beyond_the_rest(self, side: str, cloud: np.ndarray) -> None:
        train, test = tail_split(cloud, feature=-1, side=side)
        values = cloud[:, 2]
        beyond = {
            "lower": values[test] < values[train].min(),
            "upper": values[test] > values[train].max(),
            "both": np.abs(values[test]) > 0,
        }[side]
        assert len(test) == 20
        assert beyond.all()
        if side == "both":
            inside = (values[test] > values[train].min()) & (values[test] < values[train].max())
            assert not inside.any()

    def test_columns_by_name(self, cloud: np.ndarray) -> None:
        frame = pd.DataFrame(cloud, columns=["a", "b", "c"])
        np.testing.assert_array_equal(
            gap_split(frame, feature="b")[1], gap_split(cloud, feature=1)[1]
        )
        with pytest.raises(ValueError, match=r"got 'z'\. Columns: a, b, c"):
            gap_split(frame, feature="z")

    def test_splitter_skips_columns_that_do_not_vary(self, cloud: np.ndarray) -> None:
        cloud[:, 1] = 5.0
        assert GapSplit().get_n_splits(cloud) == len(list(TailSplit().split(cloud))) == 2
        with pytest.raises(ValueError, match="feature must vary"):
            gap_split(cloud, feature=1)


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (np.zeros(5), {}, r"\(rows, features\), got \(5,\)"),
        ([[1.0, np.nan]] * 20, {}, "X must be finite"),
        ([["a"], ["b"]], {}, "X must be numeric"),
        (np.eye(20), {"fraction": 1.5}, "between 0 and 1, got 1.5"),
        (np.eye(3), {"fraction": 0.1}, "rows on both sides, got 0.1 of 3 rows"),
    ],
)
def test_bad_input_is_refused_clearly(X: object, options: dict[str, float], message: str) -> None:
    for split in (outlier_split, gap_split, tail_split):
        with pytest.raises(ValueError, match=message):
            split(X, **{"fraction": 0.2, **options})


rng = np.random.default_rng(4)


def test_copies_in_a_frame_have_one_number() -> None:
    once = pd.DataFrame(
        {
            "a": rng.normal(size=50),
            "b": rng.choice(["x", None], 50),
            "c": pd.date_range("2020-01-01", periods=50),
        }
    )
    y = rng.normal(size=50)
    order = rng.permutation(250)
    five = pd.concat([once] * 5, ignore_index=True).iloc[order]
    groups = groups_of_copies(five, np.tile(y, 5)[order])
    assert len(np.unique(groups)) == 50
    np.testing.assert_array_equal(np.unique(groups, return_counts=True)[1], 5)
    pd.testing.assert_series_equal(
        five.groupby(groups)["a"].nunique(), pd.Series(1, range(50), name="a"), check_dtype=False
    )


def test_equal_features_with_other_targets_are_no_copies() -> None:
    X = pd.DataFrame({"a": [1.0, 1.0, np.nan, np.nan]})
    assert groups_of_copies(X, np.array([1.0, 2.0, 3.0, 3.0])).tolist() == [0, 1, 2, 2]


def test_the_same_features_with_another_target_are_no_copy() -> None:
    x = np.ones((10, 2))
    assert len(np.unique(groups_of_copies(x, np.arange(10.0)))) == 10


def test_copies_are_found_in_tables_longer_than_are_compared_at_a_time() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    rows = np.concatenate([np.arange(20_000), rng.integers(0, 20_000, 15_000)])
    found = groups_of_copies(X[rows], X[rows, 0])
    _, by_first = np.unique(found, return_index=True)
    assert len(by_first) == 20_000
    np.testing.assert_array_equal(rows[by_first][found], rows)


def test_few_values_are_no_copies() -> None:
    """A table of two yes-or-no columns has alike rows by chance: each is its own."""
    x, y = rng.integers(0, 2, size=(200, 2)).astype(float), np.ones(200)
    assert len(np.unique(groups_of_copies(x, y))) == 200


@pytest.mark.parametrize("of", [np.asarray, pd.DataFrame])
def test_copies_are_found_alike_in_frames_and_arrays(of) -> None:
    X, y = np.tile(rng.normal(size=(30, 2)), (2, 1)), np.tile(rng.normal(size=30), 2)
    group = groups_of_copies(of(X), y)
    np.testing.assert_array_equal(group[:30], group[30:])
    assert len(np.unique(group)) == 30


@pytest.mark.parametrize("of", [np.asarray, pd.DataFrame])
def test_rows_with_few_values_are_alike_and_no_copies(of) -> None:
    some = np.random.default_rng(0)
    X, y = some.integers(0, 3, (200, 2)), some.integers(0, 5, 200)
    assert len(np.unique(groups_of_copies(of(X), y))) == 200
    measured = some.normal(size=40)  # the same numbers again can only be copies
    again = np.tile(np.arange(40), 5)
    assert len(np.unique(groups_of_copies(of(X[again]), measured[again]))) == 40


@pytest.mark.parametrize("of", [np.asarray, pd.DataFrame])
def test_a_row_with_more_copies_than_a_part_holds_is_no_copy(of) -> None:
    X, y = np.concatenate([np.zeros((30, 1)), rng.normal(size=(70, 1))]), np.zeros(100)
    assert len(np.unique(groups_of_copies(of(X), y, n_parts=5))) == 100
    assert len(np.unique(groups_of_copies(of(X), y, n_parts=2))) == 71


def test_two_equal_rows_can_still_be_parted() -> None:
    assert groups_of_copies(np.ones((2, 1)), [1.0, 1.0]).tolist() == [0, 1]


class TestClusterSplit:
    def test_holds_out_a_planted_cluster_whole(self, cloud: np.ndarray) -> None:
        planted = cloud.copy()
        planted[150:] += [1e3, 0.0, 0.0]  # a scale of its own: features are standardised
        train, test = cluster_split(planted, n_clusters=2, cluster=1, random_state=0)
        np.testing.assert_array_equal(test, np.arange(150, 200))
        assert_partition(train, test, 200)

    def test_clusters_are_numbered_by_size_and_share_the_rows(self, cloud: np.ndarray) -> None:
        parts = [cluster_split(cloud, cluster=k, random_state=0)[1] for k in range(5)]
        sizes = [len(part) for part in parts]
        assert sizes == sorted(sizes, reverse=True)
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(200))

    @pytest.mark.parametrize("options", [{"n_clusters": 1}, {"cluster": 5}, {"cluster": -1}])
    def test_impossible_clusters_are_refused(
        self, cloud: np.ndarray, options: dict[str, int]
    ) -> None:
        with pytest.raises(ValueError, match="n_clusters must lie between"):
            cluster_split(cloud, **options)


class TestGroupSplit:
    def test_no_row_of_the_group_is_left(self) -> None:
        groups = np.array([3, 1, 3, 2, 1])
        train, test = group_split(groups, group=3)
        assert set(groups[test]) == {3}
        assert set(groups[train]) == {1, 2}
        assert_partition(train, test, 5)

    @pytest.mark.parametrize(("groups", "group"), [([1, 2], 3), ([1, 1], 1)])
    def test_a_group_of_no_or_all_rows_is_refused(self, groups: list[int], group: int) -> None:
        with pytest.raises(ValueError, match="one of several groups"):
            group_split(groups, group=group)


class TestTimeSplit:
    def test_everything_held_out_is_later(self) -> None:
        time = np.random.default_rng(0).permutation(100)
        train, test = time_split(time, fraction=0.2)
        assert time[train].max() < time[test].min()
        assert len(test) == 20

    def test_dates_are_ordered_and_one_moment_stays_together(self) -> None:
        days = pd.to_datetime(["2020-01-03", "2020-01-01", "2020-01-02", "2020-01-03"])
        train, test = time_split(days, fraction=0.25)
        assert (train.tolist(), test.tolist()) == ([1, 2], [0, 3])

    def test_one_moment_is_refused(self) -> None:
        with pytest.raises(ValueError, match="earlier rows to train on"):
            time_split([1, 1, 1, 1], fraction=0.25)
