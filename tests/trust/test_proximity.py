"""Distances to the training data, and how a local tolerance grows with them."""

import numpy as np
import pytest
from sklearn.base import clone

from accord.trust import Growth, Proximity


def brute_force(train, rows, k, *, own=False):
    """The definition, pair by pair."""
    mean, std = train.mean(axis=0), train.std(axis=0)
    a, b = (rows - mean) / std, (train - mean) / std
    pairs = np.linalg.norm(a[:, None] - b[None], axis=2)
    if own:
        np.fill_diagonal(pairs, np.inf)
    return np.sort(pairs, axis=1)[:, :k].mean(axis=1)


@pytest.mark.parametrize("d", [1, 3, 10, 11, 40])
def test_equals_the_definition_by_every_route(d):
    rng = np.random.default_rng(d)
    train, new = rng.normal(size=(60, d)), 2 * rng.normal(size=(25, d))
    near = Proximity(n_neighbors=4).fit(train)
    np.testing.assert_allclose(near.distance(new), brute_force(train, new, 4), rtol=1e-12)
    np.testing.assert_allclose(
        near.distance_leave_one_out(), brute_force(train, train, 4, own=True), rtol=1e-12
    )


def test_features_of_little_weight_count_little():
    """Twenty features, of which two count: distances are those of the weighted differences."""
    rng = np.random.default_rng(0)
    train, new = rng.normal(size=(80, 20)), rng.normal(size=(30, 20))
    weight = np.where(np.arange(20) < 2, 1.0, 0.05)
    near = Proximity(n_neighbors=4).fit(train, feature_weight=weight)
    scaled = Proximity(n_neighbors=4).fit(train)
    pairs = (scaled._standardise(new)[:, None] - scaled._standardise(train)) * weight
    expected = np.sort(np.linalg.norm(pairs, axis=2), axis=1)[:, :4].mean(axis=1)
    np.testing.assert_allclose(near.distance(new), expected, rtol=1e-12)


@pytest.mark.parametrize("d", [2, 15])
def test_a_training_row_asked_as_new_finds_itself(d):
    train = np.random.default_rng(0).normal(size=(30, d))
    near = Proximity(n_neighbors=1).fit(train)
    assert np.all(near.distance(train) == 0)
    assert np.all(near.distance_leave_one_out() > 0)


def test_repeated_rows_are_neighbours_of_each_other():
    train = np.repeat(np.random.default_rng(1).normal(size=(10, 3)), 3, axis=0)
    near = Proximity(n_neighbors=2).fit(train)
    assert np.all(near.distance_leave_one_out() == 0)


def test_units_and_constant_features_do_not_matter():
    rng = np.random.default_rng(2)
    train, new = rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
    scale, shift = np.array([1e-3, 1.0, 1e4]), np.array([5.0, -1.0, 100.0])
    plain = Proximity().fit(train).distance(new)
    other = Proximity().fit(train * scale + shift).distance(new * scale + shift)
    np.testing.assert_allclose(other, plain, rtol=1e-9)

    def widen(X, value):
        return np.column_stack([X, np.full(len(X), value)])

    constant = Proximity().fit(widen(train, 0.1)).distance(widen(new, 7.0))
    np.testing.assert_allclose(constant, plain, rtol=1e-12)


def test_the_rounding_of_a_mean_of_many_is_no_scale():
    """The mean of many equal numbers differs from them by more digits the more they are."""
    x = np.column_stack([np.arange(3000.0), np.full(3000, 0.7)])
    assert Proximity().fit(x).varying_.tolist() == [0]


def test_only_constant_features_leave_no_distance():
    near = Proximity().fit(np.full((6, 2), 0.1))
    assert np.all(near.distance([[0.1, 0.1], [3.0, 4.0]]) == 0)


def test_leave_one_out_resembles_new_rows_of_the_same_density():
    """Mean of 2,000 distances, deviation about .5 each: 5 % is more than three standard errors."""
    rng = np.random.default_rng(3)
    near = Proximity().fit(rng.normal(size=(2000, 4)))
    fresh = near.distance(rng.normal(size=(2000, 4)))
    assert near.distance_leave_one_out().mean() == pytest.approx(fresh.mean(), rel=0.05)
    assert np.median(near.distance_leave_one_out()) == pytest.approx(np.median(fresh), rel=0.05)


def test_subset_of_references_serves_training_and_new_rows_alike():
    rng = np.random.default_rng(4)
    train = rng.normal(size=(3000, 3))
    near = Proximity(max_references=300, random_state=0).fit(train)
    assert len(near.references_) == 300
    assert len(near.distance_leave_one_out()) == 3000
    fresh = near.distance(rng.normal(size=(3000, 3)))
    assert near.distance_leave_one_out().mean() == pytest.approx(fresh.mean(), rel=0.05)
    again = clone(near).fit(train)
    np.testing.assert_array_equal(again.references_, near.references_)


def test_few_rows_lower_the_number_of_neighbours():
    near = Proximity(n_neighbors=5).fit([[0.0], [1.0], [3.0]])
    np.testing.assert_allclose(
        near.distance([[0.0]]), brute_force(np.array([[0.0], [1.0], [3.0]]), np.zeros((1, 1)), 2)
    )


def test_state_is_numbers_and_arrays_only():
    near = Proximity().fit(np.random.default_rng(5).normal(size=(20, 2)))
    assert all(
        isinstance(value, (int, np.ndarray)) for key, value in vars(near).items() if key[-1] == "_"
    )


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        ([[1.0]], {}, "at least 2 rows"),
        ([[1.0], [np.nan]], {}, "NaN"),
        ([[1.0], [2.0]], {"n_neighbors": 0}, "n_neighbors must be at least 1, got 0"),
        ([[1.0], [2.0]], {"max_references": 1}, "max_references must be at least 2, got 1"),
    ],
)
def test_bad_input(X, options, message):
    with pytest.raises(ValueError, match=message):
        Proximity(**options).fit(X)


def test_wrong_number_of_columns():
    near = Proximity().fit(np.eye(4))
    with pytest.raises(ValueError, match="features"):
        near.distance(np.eye(3))


ROWS = np.random.default_rng(0).normal(size=(400, 3))


@pytest.fixture(scope="module")
def growth() -> Growth:
    return Growth().fit(ROWS)


def test_half_of_the_rows_have_none_and_a_twentieth_more_than_one(growth: Growth) -> None:
    values = growth.leave_one_out()
    assert np.mean(values <= 0) == pytest.approx(0.5, abs=1 / 400)
    assert np.mean(values > 1) == pytest.approx(0.05, abs=1 / 400)
    assert values.max() == growth.farthest_


def test_it_grows_in_proportion_to_the_distance(growth: Growth) -> None:
    direction = np.array([[1.0, 0.0, 0.0]])
    far, farther = growth(100 * direction), growth(200 * direction)
    assert growth(np.zeros((1, 3))) < 0 < far
    np.testing.assert_allclose(farther / far, 2.0, rtol=0.05)


@pytest.mark.parametrize("d", [3, 12])
def test_it_is_cut_off_at_zero(d: int) -> None:
    rng = np.random.default_rng(0)
    growth, new = Growth().fit(rng.normal(size=(2000, d))), rng.normal(size=(700, d))
    before = growth(new)
    assert 0.3 < np.mean(before < 0) < 0.7
    np.testing.assert_array_equal(growth.cut_off(new), before.clip(min=0.0))


def test_units_do_not_matter(growth: Growth) -> None:
    scale = np.array([1e-3, 1.0, 1e5])
    new = np.array([[0.0, 1.0, 2.0], [9.0, 9.0, 9.0]])
    np.testing.assert_allclose(Growth().fit(ROWS * scale)(new * scale), growth(new), rtol=1e-9)


def test_a_feature_of_little_weight_is_hardly_looked_at() -> None:
    weighed = Growth().fit(ROWS, feature_weight=np.array([1.0, 1.0, 1e-9]))
    without = Growth().fit(ROWS[:, :2])
    new = np.array([[0.0, 1.0, 50.0], [3.0, -4.0, 0.0]])
    np.testing.assert_allclose(weighed(new), without(new[:, :2]), rtol=1e-6)


def test_rows_all_alike_give_numbers() -> None:
    growth = Growth().fit(np.repeat([[1.0, 2.0], [1.0, 3.0]], 20, axis=0))
    assert np.isfinite(growth(np.array([[1.0, 2.0], [1.0, 9.0]]))).all()
    assert growth(np.array([[1.0, 9.0]])) > 1


def test_half_width_is_bounded_by_the_range(growth: Growth) -> None:
    values = np.array([-1.0, 0.0, 0.5, 1.0, growth.farthest_, 1e9])
    unit, target_range = np.array([0.1]), np.array([2.0])
    half = growth.half_width(values, unit=unit, target_range=target_range)[:, 0]
    assert (np.diff(half) >= 0).all()
    np.testing.assert_allclose(half[:4], [0.0, 0.0, 0.05, 0.1])
    assert half[-1] == 2.0


@pytest.mark.parametrize("d", [3, 40])
def test_copies_of_rows_are_one_neighbour(d):
    rng = np.random.default_rng(0)
    rows, new = rng.normal(size=(50, d)), rng.normal(size=(20, d))
    copies = np.repeat(np.arange(50), 4)
    once, often = Proximity().fit(rows), Proximity().fit(rows[copies], copies=copies)
    np.testing.assert_allclose(often.distance(new), once.distance(new), rtol=1e-9)
    np.testing.assert_allclose(
        often.distance_leave_one_out(), once.distance_leave_one_out()[copies], rtol=1e-9
    )
    np.testing.assert_array_equal(often.reference_rows_, np.arange(0, 200, 4))
    grown = Growth().fit(rows[copies], copies=copies)(new)  # quantiles of repeated values differ
    np.testing.assert_allclose(grown, Growth().fit(rows)(new), atol=0.3)


def test_what_is_surely_near_is_exactly_as_near_as_was_asked() -> None:
    """A mean of five equal numbers need not be that number, and 0 is not next to 0."""
    rng = np.random.default_rng(0)
    proximity = Proximity(n_neighbors=5).fit(rng.normal(size=(800, 8)))
    rows = 0.1 * rng.normal(size=(600, 8))
    for near in 7.5 + rng.uniform(size=20) / 2:
        assert np.all(proximity.distance(rows, near=near) == near)
