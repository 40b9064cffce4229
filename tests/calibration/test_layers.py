"""Extra layers learn corrections that differ from row to row, and shrink where rows are few."""

import numpy as np
import pytest

from accord.calibration import ExtraLayers, VarianceScaling
from accord.distributions import Mixture, Normal, StudentT


def rows(n, seed, *, mean_error=0.0, std_power=1.0):
    rng = np.random.default_rng(seed)
    mean, std = 3 * rng.normal(size=n), np.exp(0.5 * rng.normal(size=n))
    y = (1 + mean_error) * mean + std**std_power * rng.normal(size=n)
    return Normal(mean, std), y


def gain_over_scaling(n, **errors):
    """Mean log-density on 2,000 new rows, less that of variance scaling."""
    dist, y = rows(n, 0, **errors)
    new, y_new = rows(2000, 1, **errors)
    layers = ExtraLayers(random_state=0).fit(dist, y)(new).log_prob(y_new)
    return layers.mean() - VarianceScaling().fit(dist, y)(new).log_prob(y_new).mean()


def test_deviation_that_is_wrong_by_row_is_corrected():
    assert gain_over_scaling(500, std_power=2.0) > 0.15


def test_mean_that_is_wrong_by_row_is_corrected():
    assert gain_over_scaling(500, mean_error=0.3) > 0.3


@pytest.mark.parametrize(("n", "cost"), [(20, 0.1), (100, 0.05), (500, 0.02)])
def test_nothing_to_learn_costs_little(n, cost):
    assert gain_over_scaling(n) > -cost


def test_same_seed_same_numbers():
    dist, y = rows(100, 2, std_power=2.0)
    one, two = (ExtraLayers(random_state=3).fit(dist, y)(dist) for _ in range(2))
    np.testing.assert_array_equal(one.std, two.std)


def test_correction_is_bounded_far_from_the_calibration_rows():
    dist, y = rows(200, 4, mean_error=0.3, std_power=2.0)
    layers = ExtraLayers(random_state=0).fit(dist, y)
    far = Normal([1e6, -1e6, 0.0], [1.0, 1e4, 1e-4])
    ratio = layers(far).std / far.std
    assert np.all((ratio > 1e-3) & (ratio < 1e3))


def test_other_families_keep_their_shape():
    dist, y = rows(200, 5, std_power=2.0)
    heavy = StudentT(4.0, dist.mean, dist.std)
    layers = ExtraLayers(random_state=0).fit(heavy, y)
    assert isinstance(layers(heavy), StudentT)
    assert layers(heavy).log_prob(y).mean() > heavy.log_prob(y).mean()


def test_mixtures_are_trained_by_their_own_likelihood():
    rng = np.random.default_rng(6)
    means = np.array([[-2.0], [2.0]]) + np.zeros((2, 100))
    dist = Mixture(Normal(means, np.full((2, 100), 0.2)))
    y = 3 * (rng.choice([-2.0, 2.0], size=100) + 0.2 * rng.normal(size=100))
    calibrated = ExtraLayers(random_state=0).fit(dist, y)(dist)
    np.testing.assert_allclose(calibrated.std / dist.std, 3, rtol=0.02)


def test_outputs_are_corrected_each_by_itself():
    one, y_one = rows(300, 7, mean_error=0.3)
    two, y_two = rows(300, 8)
    both = Normal(np.stack([one.mean, two.mean], 1), np.stack([one.std, two.std], 1))
    calibrated = ExtraLayers(random_state=0).fit(both, np.stack([y_one, y_two], 1))(both)
    moved = np.abs(calibrated.mean - both.mean).mean(axis=0)
    assert calibrated.shape == (300, 2)
    assert moved[0] > 3 * moved[1]


def test_constant_predictions_are_no_obstacle():
    rng = np.random.default_rng(9)
    dist = Normal(np.zeros(100), np.ones(100))
    calibrated = ExtraLayers(random_state=0).fit(dist, 5 + 2 * rng.normal(size=100))(dist)
    np.testing.assert_allclose(calibrated.mean, 5, atol=0.8)
    np.testing.assert_allclose(calibrated.std, 2, atol=0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": 0}, "hidden must be at least 1, got 0"),
        ({"penalty": 0.0}, "penalty must be positive"),
        ({"max_iter": 0}, "max_iter must be at least 1"),
    ],
)
def test_bad_options(options, message):
    dist, y = rows(50, 0)
    with pytest.raises(ValueError, match=message):
        ExtraLayers(**options).fit(dist, y)
