"""Calibrators: known optima, uniform cdf values, sane tails, less correction by fewer rows."""

import numpy as np
import pytest
from scipy import optimize, stats

from accord.calibration import ExtraLayers, IsotonicCalibration, VarianceScaling
from accord.calibration.calibrators import _most_likely_factors
from accord.distributions import (
    Decomposed,
    Empirical,
    Laplace,
    Mixture,
    Normal,
    Smoothed,
    StudentT,
    Uniform,
)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=400), rng.uniform(0.5, 2, size=400)
    return mean, std, mean + 3 * std * rng.normal(size=400)


def test_closed_form_is_the_optimum_of_the_likelihood(rows):
    mean, std, y = rows
    closed = VarianceScaling().fit(Normal(mean, std), y).factor_

    def loss(log_factor):
        return -Normal(mean, np.exp(log_factor) * std).log_prob(y).mean()

    found = optimize.minimize_scalar(loss, bounds=(-3, 3), method="bounded")
    assert closed[0] == pytest.approx(np.exp(found.x), rel=1e-4)
    assert closed[0] == pytest.approx(np.sqrt(np.mean(((y - mean) / std) ** 2)), rel=1e-12)
    np.testing.assert_allclose(_most_likely_factors(Normal(mean, std), y, mean), closed, rtol=1e-6)


def test_laplace_has_its_own_closed_form(rows):
    """The most likely scale of a Laplace sample is its mean absolute deviation."""
    mean, std, y = rows
    factor = VarianceScaling().fit(Laplace(mean, std), y).factor_[0]
    assert factor == pytest.approx(np.mean(np.abs(y - mean) / std), rel=1e-6)


def test_bounded_support_is_stretched_until_every_row_is_inside():
    y = np.array([-3.0, 1.0, 0.5, 2.0])
    scaling = VarianceScaling().fit(Uniform(-np.ones(4), np.ones(4)), y)
    assert scaling.factor_[0] == pytest.approx(3.0, rel=0.2)
    assert np.all(np.isfinite(scaling(Uniform(-np.ones(4), np.ones(4))).log_prob(y)))


def test_mixtures_stay_mixtures_and_improve(rows):
    mean, std, y = rows
    members = Smoothed(Normal([mean - 0.1, mean + 0.1], [std, std]), 0.2)
    dist = Mixture(members)
    scaled = VarianceScaling().fit(dist, y)(dist)
    assert isinstance(scaled, Mixture)
    assert scaled.log_prob(y).mean() > dist.log_prob(y).mean() + 1
    np.testing.assert_allclose(scaled.mean, dist.mean)
    np.testing.assert_allclose(scaled.epistemic / dist.epistemic, scaled.std / dist.std)


def test_stated_epistemic_part_changes_nothing_of_the_factor(rows):
    mean, std, y = rows
    plain = VarianceScaling().fit(Normal(mean, std), y).factor_
    stated = VarianceScaling().fit(Decomposed(Normal(mean, std), std / 2), y).factor_
    np.testing.assert_array_equal(stated, plain)


def test_outputs_are_scaled_each_by_itself(rows):
    mean, std, y = rows
    twice = np.stack([mean, mean], axis=1), np.stack([std, 3 * std], axis=1)
    scaling = VarianceScaling().fit(Normal(*twice), np.stack([y, y], axis=1))
    assert scaling.factor_.shape == (2,)
    assert scaling.factor_[0] == pytest.approx(3 * scaling.factor_[1])
    scaled = scaling(Normal(*twice))
    np.testing.assert_allclose(scaled.std[:, 0], scaled.std[:, 1])


def test_exact_predictions_keep_a_density():
    scaling = VarianceScaling().fit(Normal(np.zeros(5), 1.0), np.zeros(5))
    assert np.isfinite(scaling(Normal([0.0], 1.0)).log_prob([0.0])).all()


@pytest.mark.parametrize(
    ("dist", "y", "error", "message"),
    [
        (Normal(np.zeros(3), 1.0), [0.0, 1.0], ValueError, "same shape"),
        (Normal(np.zeros(3), 1.0), [[0.0], [1.0], [2.0]], ValueError, "same shape"),
        (Normal(np.zeros(3), 1.0), [0.0, np.nan, 1.0], ValueError, "y must be finite"),
        (Normal(np.zeros(1), 1.0), [0.0], ValueError, "at least 2 held-out rows, got 1"),
        (Normal(0.0, 1.0), 0.0, ValueError, r"shape \(N,\) or \(N, K\)"),
        (np.zeros(3), [0.0, 1.0, 2.0], TypeError, "dist must be a Distribution, got ndarray"),
        (Empirical(np.zeros((5, 3))), [0.0, 1.0, 2.0], TypeError, "no density"),
    ],
)
def test_bad_input(dist, y, error, message):
    with pytest.raises(error, match=message):
        VarianceScaling().fit(dist, y)


def test_other_number_of_outputs_is_refused(rows):
    mean, std, y = rows
    scaling = VarianceScaling().fit(Normal(mean, std), y)
    with pytest.raises(ValueError, match="1 outputs, as in fit, got 2"):
        scaling(Normal(np.zeros((3, 2)), np.ones((3, 2))))


def misjudged(kind, n, seed):
    """Predictions and targets that the predictions misjudge in a known way."""
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=n), np.exp(0.5 * rng.normal(size=n))
    noise = {
        "calibrated": rng.normal(size=n),
        "over-confident": 3 * rng.normal(size=n),
        "hopelessly over-confident": 60 * rng.normal(size=n),
        "biased": 1 + rng.normal(size=n),
        "skewed": rng.exponential(size=n) - 1,
        "heavy tails": rng.standard_t(3, size=n),
    }[kind]
    return Normal(mean, std), mean + std * noise


KINDS = (
    "calibrated",
    "over-confident",
    "hopelessly over-confident",
    "biased",
    "skewed",
    "heavy tails",
)


@pytest.mark.parametrize("kind", KINDS)
def test_cdf_values_of_new_rows_become_uniform(kind):
    """2,000 calibration and 2,000 new rows: a cdf value's error is below 2.5 % + 3 · 1.1 %."""
    isotonic = IsotonicCalibration().fit(*misjudged(kind, 2000, seed=0))
    dist, y = misjudged(kind, 2000, seed=1)
    pit = np.sort(isotonic(dist).cdf(y))
    expected = (np.arange(2000) + 0.5) / 2000
    assert np.abs(pit - expected).max() < 0.055


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_cover(kind):
    """2,000 rows each: ± 3 standard errors of two proportions, .02, and the curve's own bend."""
    isotonic = IsotonicCalibration().fit(*misjudged(kind, 2000, seed=2))
    dist, y = misjudged(kind, 2000, seed=3)
    interval = isotonic(dist).interval(0.9)
    covered = np.mean((y >= interval[:, 0]) & (y <= interval[:, 1]))
    assert covered == pytest.approx(0.9, abs=0.03)


def test_shape_is_learned_where_one_factor_cannot():
    dist, y = misjudged("skewed", 1000, seed=4)
    new, y_new = misjudged("skewed", 1000, seed=5)
    isotonic = IsotonicCalibration().fit(dist, y)(new).log_prob(y_new).mean()
    scaled = VarianceScaling().fit(dist, y)(new).log_prob(y_new).mean()
    assert isotonic > scaled + 0.2


def test_calibrated_predictions_lose_little():
    dist, y = misjudged("calibrated", 1000, seed=6)
    new, y_new = misjudged("calibrated", 1000, seed=7)
    change = IsotonicCalibration().fit(dist, y)(new).log_prob(y_new) - new.log_prob(y_new)
    assert change.mean() > -0.03


@pytest.mark.parametrize("kind", ["hopelessly over-confident", "calibrated"])
def test_density_is_finite_even_where_cdf_values_saturate(kind):
    dist, y = misjudged(kind, 50, seed=8)
    calibrated = IsotonicCalibration().fit(dist, y)(dist)
    far = dist.mean + dist.std * np.array([-1e4, -300, 0, 300, 1e4])[:, None]
    assert np.all(np.isfinite(calibrated.log_prob(far)))
    assert np.all(np.isfinite(calibrated.quantile([1e-6, 1 - 1e-6])))
    assert np.all(np.isfinite(calibrated.std))


def test_exact_predictions_give_no_infinite_density():
    dist = Normal(np.zeros(30), 1.0)
    calibrated = IsotonicCalibration().fit(dist, np.zeros(30))(dist)
    assert np.all(calibrated.log_prob(np.zeros(30)) < np.log(1e4))


def test_targets_outside_the_support_leave_a_support():
    dist = Uniform(np.zeros(40), np.ones(40))
    calibrated = IsotonicCalibration().fit(dist, np.linspace(-1, 2, 40))(dist)
    interval = calibrated.interval(0.5)
    assert np.all(interval[:, 0] < interval[:, 1])
    assert np.all((interval >= 0) & (interval <= 1))


def test_mixtures_are_mapped_too():
    rng = np.random.default_rng(9)
    means = rng.normal(size=(3, 500))
    dist = Mixture(Normal(means, np.full((3, 500), 0.3)))
    y = means.mean(axis=0) + 2 * rng.normal(size=500)
    calibrated = IsotonicCalibration().fit(dist, y)(dist)
    # Three narrow modes: the steps of their cdf are followed by 11 knots only.
    assert stats.kstest(calibrated.cdf(y), "uniform").statistic < 0.1
    assert calibrated.log_prob(y).mean() > dist.log_prob(y).mean() + 1


def test_too_few_rows_for_a_shape():
    with pytest.raises(ValueError, match="at least 10 held-out rows, got 9"):
        IsotonicCalibration().fit(Normal(np.zeros(9), 1.0), np.zeros(9))


def curved_rows(n, seed, *, mean_error=0.0, std_power=1.0):
    rng = np.random.default_rng(seed)
    mean, std = 3 * rng.normal(size=n), np.exp(0.5 * rng.normal(size=n))
    y = (1 + mean_error) * mean + std**std_power * rng.normal(size=n)
    return Normal(mean, std), y


def gain_over_scaling(n, **errors):
    """Mean log-density on 2,000 new rows, less that of variance scaling."""
    dist, y = curved_rows(n, 0, **errors)
    new, y_new = curved_rows(2000, 1, **errors)
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
    dist, y = curved_rows(100, 2, std_power=2.0)
    one, two = (ExtraLayers(random_state=3).fit(dist, y)(dist) for _ in range(2))
    np.testing.assert_array_equal(one.std, two.std)


def test_correction_is_bounded_far_from_the_calibration_rows():
    dist, y = curved_rows(200, 4, mean_error=0.3, std_power=2.0)
    layers = ExtraLayers(random_state=0).fit(dist, y)
    far = Normal([1e6, -1e6, 0.0], [1.0, 1e4, 1e-4])
    ratio = layers(far).std / far.std
    assert np.all((ratio > 1e-3) & (ratio < 1e3))


def test_other_families_keep_their_shape():
    dist, y = curved_rows(200, 5, std_power=2.0)
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
    one, y_one = curved_rows(300, 7, mean_error=0.3)
    two, y_two = curved_rows(300, 8)
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
    dist, y = curved_rows(50, 0)
    with pytest.raises(ValueError, match=message):
        ExtraLayers(**options).fit(dist, y)
