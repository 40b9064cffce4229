"""Greedy selection: answers that are known."""

import numpy as np
import pytest

from accord.portfolio.blend import blended, greedy_weights

RNG = np.random.default_rng(0)


def test_the_better_of_two_models_takes_all() -> None:
    good = RNG.normal(size=200)
    weights = greedy_weights(np.stack([good - 0.5, good, good - 3]), np.ones(200))
    assert weights.tolist() == [0.0, 1.0, 0.0]


def test_models_that_know_different_halves_share() -> None:
    knows = np.tile([-1.0, -8.0], 100)
    weights = greedy_weights(np.stack([knows, knows[::-1]]), np.ones(200))
    np.testing.assert_allclose(weights, 0.5)


def test_weights_come_near_the_best_blend() -> None:
    """Against a fine grid of the weights of two models."""
    one, two = -RNG.gamma(2, size=300), -RNG.gamma(2, size=300)
    density = np.stack([one, two])
    grid = [blended(density, np.array([w, 1 - w])).mean() for w in np.linspace(0.001, 0.999, 999)]
    found = blended(density, greedy_weights(density, np.ones(300))).mean()
    assert found >= max(grid) - 0.003


def test_rows_without_weight_do_not_count() -> None:
    one, two = np.tile([-1.0, -9.0], 50), np.tile([-2.0, -2.0], 50)
    first_rows = np.tile([1.0, 0.0], 50)
    assert greedy_weights(np.stack([one, two]), first_rows).tolist() == [1.0, 0.0]
    assert greedy_weights(np.stack([one, two]), 1 - first_rows).tolist() == [0.0, 1.0]


def test_a_model_that_brings_almost_nothing_is_left_out() -> None:
    good = RNG.normal(size=500)
    almost = good + np.where(RNG.random(500) < 0.5, 1e-3, -1e-3)
    assert sorted(greedy_weights(np.stack([good, almost]), np.ones(500)).tolist()) == [0.0, 1.0]


def test_one_row_that_no_model_explains_decides_nothing() -> None:
    one, two = np.full(100, -1.0), np.full(100, -1.2)
    one[0], two[0] = -1e6, -30.0
    assert greedy_weights(np.stack([one, two]), np.ones(100)).tolist() == [1.0, 0.0]
    impossible = one.copy()
    impossible[0] = -np.inf
    assert np.isfinite(greedy_weights(np.stack([impossible, two]), np.ones(100))).all()


def test_weights_sum_to_one() -> None:
    for seed in range(20):
        density = np.random.default_rng(seed).normal(size=(6, 40))
        weights = greedy_weights(density, np.ones(40))
        assert weights.sum() == pytest.approx(1.0)
        assert (weights >= 0).all()


def test_a_blend_is_the_weighted_mean_of_densities() -> None:
    density = RNG.normal(size=(3, 10))
    weights = np.array([0.2, 0.0, 0.8])
    np.testing.assert_allclose(
        blended(density, weights), np.log(weights @ np.exp(density)), rtol=1e-12
    )
    np.testing.assert_allclose(blended(density - 2000, weights), blended(density, weights) - 2000)


def test_rows_that_no_model_allows_for_have_no_density() -> None:
    density = np.array([[-np.inf, -1.0], [-np.inf, -np.inf]])
    found = blended(density, np.array([0.5, 0.5]))
    np.testing.assert_array_equal(found, [-np.inf, np.log(0.5) - 1.0])
