"""The families against scipy.stats, and the quantities that do not exist."""

import numpy as np
import pytest
from distribution_cases import FAMILIES, MEAN, SCALE, FamilyCase

from accord.distributions import (
    Logistic,
    Normal,
    Smoothed,
    StudentT,
    Uniform,
    VaryingStudentT,
    gaussian_match,
)

families = pytest.mark.parametrize("family", FAMILIES, ids=str)


@families
def test_as_in_scipy(family: FamilyCase) -> None:
    dist = family.make(MEAN, SCALE)
    y = MEAN + SCALE * np.array([-0.9, -0.1, 0.4, 0.95])
    z = (y - MEAN) / SCALE
    np.testing.assert_allclose(dist.pdf(y), family.peer.pdf(z) / SCALE, rtol=1e-12)
    np.testing.assert_allclose(dist.log_prob(y), family.peer.logpdf(z) - np.log(SCALE), rtol=1e-12)
    np.testing.assert_allclose(dist.cdf(y), family.peer.cdf(z), rtol=1e-12)
    for level in (1e-9, 0.2, 0.5, 0.99):
        expected = MEAN + SCALE * family.peer.ppf(level)
        np.testing.assert_allclose(dist.quantile(level), expected, rtol=1e-9)


@pytest.mark.parametrize("family", [f for f in FAMILIES if f.peer.std() < np.inf], ids=str)
def test_moments_as_in_scipy(family: FamilyCase) -> None:
    dist = family.make(MEAN, SCALE)
    np.testing.assert_allclose(dist.mean, MEAN, atol=1e-15)
    np.testing.assert_allclose(dist.std, SCALE * family.peer.std(), rtol=1e-12)
    np.testing.assert_allclose(dist.aleatoric, dist.std)
    assert (dist.epistemic == 0).all()


@families
def test_the_ends_of_the_support(family: FamilyCase) -> None:
    dist = family.make(MEAN, SCALE)
    ends = MEAN[:, None] + SCALE[:, None] * np.array(family.peer.support())
    np.testing.assert_array_equal(dist.quantile([0.0, 1.0]), ends)
    np.testing.assert_array_equal(dist.cdf(-np.inf), np.zeros(4))
    np.testing.assert_array_equal(dist.cdf(np.inf), np.ones(4))


def test_levels_near_one_are_resolved_like_those_near_zero() -> None:
    dist = Logistic(0.0, 1.0)
    coverage = 1 - 1e-14
    lower, upper = dist.interval(coverage)
    assert lower == -upper
    np.testing.assert_allclose(upper, -np.log((1 - coverage) / 2), rtol=1e-12)


def test_heavy_tails_have_no_variance_and_then_no_mean() -> None:
    thin, heavy, heavier = (StudentT(df, [1.0, 2.0], 1.0) for df in (2.5, 1.5, 1.0))
    np.testing.assert_allclose(thin.variance, 5.0)
    assert np.isinf(heavy.variance).all()
    assert np.isinf(heavier.std).all()
    np.testing.assert_array_equal(heavy.mean, [1.0, 2.0])
    assert np.isnan(heavier.mean).all()
    np.testing.assert_array_equal(heavier.quantile(0.5), [1.0, 2.0])
    np.testing.assert_array_equal(heavier.location, [1.0, 2.0])


def test_degrees_of_freedom_by_row_agree_with_those_of_all_rows() -> None:
    y, df = np.array([-3.0, 0.2]), [3.0, 9.0]
    varying = VaryingStudentT(df, MEAN[:2], SCALE[:2])
    for row in range(2):
        fixed = StudentT(df[row], MEAN[row], SCALE[row])
        np.testing.assert_allclose(varying[row].log_prob(y), fixed.log_prob(y), rtol=1e-12)
        np.testing.assert_allclose(varying[row].cdf(y), fixed.cdf(y), rtol=1e-12)


def test_parameters_can_be_read_back() -> None:
    box = Uniform([0.0, 1.0], [2.0, 5.0])
    np.testing.assert_array_equal(box.lower, [0.0, 1.0])
    np.testing.assert_array_equal(box.upper, [2.0, 5.0])
    np.testing.assert_array_equal(box.location, [1.0, 3.0])
    np.testing.assert_array_equal(box.scale, [1.0, 2.0])
    assert StudentT(4, 0.0, 1.0).df == 4
    assert repr(Normal([0.0, 1.5], 2.0)) == "Normal(mean=[0. , 1.5], std=[2., 2.])"
    assert repr(Normal(np.zeros((3, 40)), 2.0)) == "Normal(mean=<3 × 40>, std=<3 × 40>)"


def test_a_distribution_does_not_change_with_the_arrays_it_was_built_from() -> None:
    mean = np.zeros(3)
    dist = Normal(mean, 1.0)
    mean += 5
    assert (dist.mean == 0).all()


def test_values_may_have_axes_in_front() -> None:
    dist = Normal(MEAN, SCALE)
    grid = np.linspace(-1, 1, 5)[:, None, None] + np.zeros((2, 4))
    assert dist.log_prob(grid).shape == (5, 2, 4)
    np.testing.assert_array_equal(dist.cdf(grid)[3, 1], dist.cdf(grid[3, 1]))
    assert dist.log_interval_prob(grid, grid[0, 0] + 9).shape == (5, 2, 4)
    assert Normal(0.0, 1.0).cdf(grid).shape == (5, 2, 4)


def test_one_row_takes_many_points_in_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accord.distributions.batch._CHUNK", 7)
    dist, grid = Normal([1.0], [2.0]), np.linspace(-5, 5, 50)[:, None]
    assert dist.cdf(grid).shape == (50, 1)
    np.testing.assert_allclose(dist.cdf(grid)[::9, 0], [dist.cdf(y)[0] for y in grid[::9, 0]])


def test_the_moment_match_has_the_same_mean_and_std() -> None:
    smoothed = Smoothed(Normal(MEAN, SCALE), 3 * SCALE)
    match = gaussian_match(smoothed)
    np.testing.assert_allclose(match.std, 2 * SCALE)
    np.testing.assert_allclose(match.mean, MEAN)
    with pytest.raises(ValueError, match="std must be finite, got inf"):
        gaussian_match(StudentT(2, MEAN, SCALE))
