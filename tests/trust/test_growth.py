"""The growth of a local tolerance: 0 among the data, 1 at their edge, without end beyond."""

import numpy as np
import pytest

from accord.trust import Growth

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
