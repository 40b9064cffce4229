"""Isotonic recalibration: cdf values become uniform, densities improve, tails stay sane."""

import numpy as np
import pytest
from scipy import stats

from accord.calibration import IsotonicCalibration, VarianceScaling
from accord.distributions import Mixture, Normal, Uniform


def rows(kind, n, seed):
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
    isotonic = IsotonicCalibration().fit(*rows(kind, 2000, seed=0))
    dist, y = rows(kind, 2000, seed=1)
    pit = np.sort(isotonic(dist).cdf(y))
    expected = (np.arange(2000) + 0.5) / 2000
    assert np.abs(pit - expected).max() < 0.055


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_cover(kind):
    """2,000 rows each: ± 3 standard errors of two proportions, .02, and the curve's own bend."""
    isotonic = IsotonicCalibration().fit(*rows(kind, 2000, seed=2))
    dist, y = rows(kind, 2000, seed=3)
    interval = isotonic(dist).interval(0.9)
    covered = np.mean((y >= interval[:, 0]) & (y <= interval[:, 1]))
    assert covered == pytest.approx(0.9, abs=0.03)


def test_shape_is_learned_where_one_factor_cannot():
    dist, y = rows("skewed", 1000, seed=4)
    new, y_new = rows("skewed", 1000, seed=5)
    isotonic = IsotonicCalibration().fit(dist, y)(new).log_prob(y_new).mean()
    scaled = VarianceScaling().fit(dist, y)(new).log_prob(y_new).mean()
    assert isotonic > scaled + 0.2


def test_calibrated_predictions_lose_little():
    dist, y = rows("calibrated", 1000, seed=6)
    new, y_new = rows("calibrated", 1000, seed=7)
    change = IsotonicCalibration().fit(dist, y)(new).log_prob(y_new) - new.log_prob(y_new)
    assert change.mean() > -0.03


@pytest.mark.parametrize("kind", ["hopelessly over-confident", "calibrated"])
def test_density_is_finite_even_where_cdf_values_saturate(kind):
    dist, y = rows(kind, 50, seed=8)
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
