"""A distribution given as draws."""

import numpy as np
import pytest

from accord.distributions import Empirical, Smoothed

DRAWS = np.random.default_rng(0).normal(size=(37, 5))


def test_it_answers_as_numpy_does() -> None:
    dist = Empirical(DRAWS)
    assert dist.shape == (5,)
    np.testing.assert_allclose(dist.mean, DRAWS.mean(0))
    np.testing.assert_allclose(dist.variance, DRAWS.var(0))
    levels = np.linspace(0, 1, 80)
    expected = np.quantile(DRAWS, levels, axis=0, method="inverted_cdf").T
    np.testing.assert_array_equal(dist.quantile(levels), expected)
    np.testing.assert_allclose(dist.cdf(0.3), (DRAWS <= 0.3).mean(0))


def test_a_quantile_is_the_smallest_draw_with_enough_below() -> None:
    dist = Empirical(np.arange(1.0, 11.0))
    np.testing.assert_array_equal(dist.quantile(np.arange(1, 11) / 10), np.arange(1.0, 11.0))
    np.testing.assert_array_equal(dist.quantile([0.0, 0.05, 0.11, 1.0]), [1.0, 1.0, 2.0, 10.0])


def test_intervals_hold_the_draws_at_their_ends() -> None:
    dist = Empirical([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(np.exp(dist.log_interval_prob(2.0, 3.0)), 0.5)
    np.testing.assert_allclose(np.exp(dist.log_within_prob(2.0, 1.0)), 0.75)
    assert dist.log_interval_prob(5.0, 6.0) == -np.inf


def test_draws_keep_the_dependence_between_rows() -> None:
    together = Empirical(np.stack([np.arange(50.0), -np.arange(50.0)], axis=1))
    draws = together.sample(200, random_state=0)
    np.testing.assert_array_equal(draws[:, 0], -draws[:, 1])


def test_there_is_no_density_unless_it_is_smoothed() -> None:
    with pytest.raises(TypeError, match=r"no density.*Smoothed\(Empirical\(draws\), tolerance\)"):
        Empirical(DRAWS).log_prob(0.0)
    with pytest.raises(ValueError, match="tolerance must be positive where Empirical is smoothed"):
        Smoothed(Empirical(DRAWS), 0.0).log_prob(0.0)
    smoothed = Smoothed(Empirical([0.0, 1.0, 5.0]), 1.0)
    np.testing.assert_allclose(smoothed.pdf(0.5), 2 / 3 / 2)
    np.testing.assert_allclose(smoothed.cdf(0.0), 1 / 6)
    np.testing.assert_allclose(np.exp(smoothed.log_interval_prob(0.0, 1.0)), 1 / 3)
    np.testing.assert_allclose(smoothed.quantile(1 / 6), 0.0, atol=1e-11)


def test_a_scalar_is_no_set_of_draws() -> None:
    with pytest.raises(ValueError, match="draws must have a leading axis of draws"):
        Empirical(3.0)


def test_the_draws_can_be_read_back() -> None:
    np.testing.assert_array_equal(Empirical(DRAWS).draws, DRAWS)
    np.testing.assert_array_equal(Empirical(DRAWS)[[3, 1]].draws, DRAWS[:, [3, 1]])
