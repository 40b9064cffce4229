"""Reshaped distributions keep every promise of a distribution, for every base."""

import numpy as np
import pytest
from scipy import stats

from accord.distributions import (
    Decomposed,
    Laplace,
    Mixture,
    MonotoneCurve,
    Normal,
    Reshaped,
    Smoothed,
    StudentT,
    Uniform,
    curve_through_scores,
    normal_scores,
)

BASES = {
    "normal": Normal([0.0, 3.0], [1.0, 0.5]),
    "laplace": Laplace([0.0, 3.0], [1.0, 0.5]),
    "student-t": StudentT(5.0, [0.0, 3.0], [1.0, 0.5]),
    "uniform": Uniform([-1.0, 2.0], [1.0, 5.0]),
    "mixture": Mixture(Normal([[-1.0, 3.0], [1.5, 3.5]], [[0.5, 0.2], [1.0, 0.3]])),
    "smoothed mixture": Mixture(
        Smoothed(Normal([[-1.0, 3.0], [1.5, 3.5]], [[0.5, 0.2], [1.0, 0.3]]), [0.5, 0.0])
    ),
}
SKEWED = curve_through_scores(np.random.default_rng(0).gumbel(size=200) * 1.5)
IDENTITY = MonotoneCurve(np.array([-1.0, 0.0, 1.0]), np.array([-1.0, 0.0, 1.0]))


@pytest.fixture(params=BASES)
def base(request):
    return BASES[request.param]


def test_identity_changes_nothing(base):
    same = Reshaped(base, [IDENTITY])
    y = base.quantile([0.01, 0.4, 0.99]).T
    np.testing.assert_allclose(same.cdf(y), base.cdf(y), rtol=1e-9)
    np.testing.assert_allclose(same.log_prob(y), base.log_prob(y), atol=1e-9)
    np.testing.assert_allclose((same.mean - base.mean) / base.std, 0, atol=1e-4)
    np.testing.assert_allclose(same.std, base.std, rtol=1e-3)


def test_density_integrates_to_the_cdf(base):
    """By the trapezoidal rule with 10,000 steps; the density jumps at the knots: 1e-3."""
    dist = Reshaped(base, [SKEWED])
    ends = dist.quantile([0.05, 0.3, 0.9])
    for low, high in ((ends[:, 0], ends[:, 1]), (ends[:, 1], ends[:, 2])):
        grid = np.linspace(low, high, 10_001)
        area = np.trapezoid(dist.pdf(grid), grid, axis=0)
        np.testing.assert_allclose(area, dist.cdf(high) - dist.cdf(low), rtol=1e-3)
        between = np.exp(dist.log_interval_prob(low, high))
        np.testing.assert_allclose(between, dist.cdf(high) - dist.cdf(low), rtol=1e-8)


def test_quantiles_invert_the_cdf(base):
    dist = Reshaped(base, [SKEWED])
    # The uniform's upper end swallows the last digits of what lies close below it.
    last = 0.025 if isinstance(base, Uniform) else 1e-6
    levels = np.array([last, 0.1, 0.5, 0.9, 1 - last])
    quantiles = dist.quantile(levels)
    np.testing.assert_allclose(dist.cdf(quantiles.T).T, np.tile(levels, (2, 1)), rtol=1e-6)
    assert np.all(np.isfinite(quantiles))


def test_moments_are_those_of_the_draws(base):
    """40,000 draws: means to 4 standard errors, deviations to 5 %."""
    if isinstance(base, StudentT):
        pytest.skip("power-law tails, stretched so far, have no moments")
    dist = Reshaped(base, [SKEWED])
    draws = dist.sample(40_000, random_state=0)
    error = draws.std(axis=0) / 200
    assert np.all(np.abs(draws.mean(axis=0) - dist.mean) < 4 * error)
    np.testing.assert_allclose(draws.std(axis=0), dist.std, rtol=0.05)


def test_density_is_finite_and_positive_far_out():
    dist = Reshaped(BASES["normal"], [SKEWED])
    far = np.array([[-1e3, -1e3], [-50.0, -40.0], [60.0, 50.0], [1e4, 1e4]])
    log_density = dist.log_prob(far)
    assert np.all(np.isfinite(log_density))
    assert np.all(np.diff(log_density[:2], axis=0) > 0)
    assert np.all(np.diff(log_density[2:], axis=0) < 0)


def test_narrow_window_is_density_times_width():
    dist = Reshaped(BASES["mixture"], [SKEWED])
    for width in (1e-12, 1e-8, 1e-5):
        window = dist.log_within_prob([0.3, 3.2], width)
        np.testing.assert_allclose(window, dist.log_prob([0.3, 3.2]) + np.log(2 * width), atol=1e-4)


def test_each_output_has_its_own_curve():
    base = Normal(np.zeros((4, 2)), np.ones((4, 2)))
    double = MonotoneCurve(np.array([-2.0, 0.0, 2.0]), np.array([-1.0, 0.0, 1.0]))
    dist = Reshaped(base, [IDENTITY, double])
    np.testing.assert_allclose(dist.std, np.tile([1.0, 2.0], (4, 1)), rtol=1e-5)
    np.testing.assert_allclose(dist[1:3].interval(0.95)[0, :, 1], [1.96, 3.92], atol=0.01)
    with pytest.raises(ValueError, match="curves must be one per output, got 1 for 2 outputs"):
        Reshaped(base, [IDENTITY])


def test_epistemic_share_is_kept():
    base = Decomposed(Normal([0.0, 0.0], 5.0), [3.0, 0.0])
    dist = Reshaped(base, [SKEWED])
    np.testing.assert_allclose(dist.epistemic / dist.std, [0.6, 0.0], atol=1e-9)
    np.testing.assert_allclose(dist.aleatoric**2 + dist.epistemic**2, dist.variance)


def test_scores_hold_in_both_tails():
    z = np.array([-300.0, -40.0, -5.0, 0.0, 5.0, 40.0, 300.0])
    np.testing.assert_allclose(normal_scores(Normal(np.zeros(7), 2.0), 2 * z), z, rtol=1e-12)
    laplace = normal_scores(Laplace([0.0], 1.0), np.array([30.0]))
    assert laplace == pytest.approx(stats.norm.isf(0.5 * np.exp(-30.0)), rel=1e-10)
