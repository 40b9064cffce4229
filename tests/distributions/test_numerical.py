"""Quantiles at the edge of floating point: scales, places and levels many decades apart."""

import numpy as np
import pytest
from distribution_cases import FAMILIES, FamilyCase

from accord.distributions import Mixture, Smoothed

families = pytest.mark.parametrize("family", FAMILIES, ids=str)


def mixture(family: FamilyCase, *, smoothed: bool, seed: int) -> Mixture:
    """Members whose scales, means, tolerances and weights range over twelve decades."""
    rng = np.random.default_rng(seed)
    shape = (4, 200)
    scale = 10 ** rng.uniform(-6, 6, shape)
    mean = rng.choice([-1, 0, 1], size=shape) * 10 ** rng.uniform(-3, 6, shape)
    members = family.make(mean, scale)
    if smoothed:
        members = Smoothed(
            members, rng.choice([0, 1], size=shape) * 10 ** rng.uniform(-8, 7, shape)
        )
    return Mixture(members, weights=10 ** rng.uniform(-12, 0, 4))


@families
@pytest.mark.parametrize("smoothed", [False, True])
@pytest.mark.parametrize("level", [1e-200, 1e-12, 0.025, 0.5, 0.9, 1 - 1e-15])
def test_quantiles_are_as_close_as_floats_are(
    family: FamilyCase, smoothed: bool, level: float
) -> None:
    dist = mixture(family, smoothed=smoothed, seed=3)
    q = dist.quantile(level)

    def log_tail(y: np.ndarray) -> np.ndarray:
        if level > 0.5:
            return -dist.log_interval_prob(y, np.inf)
        return dist.log_interval_prob(-np.inf, y)

    goal = np.log(min(level, 1 - level)) * (-1 if level > 0.5 else 1)
    close = np.abs(log_tail(q) - goal) < 1e-10
    step = 4e-16 * (np.abs(q) + np.abs(dist.components.quantile(0.5)).max(axis=0))
    passed = (log_tail(q - step) <= goal) & (log_tail(q + step) >= goal)
    assert (close | passed).all()


def test_the_ends_of_the_levels_are_the_ends_of_the_support() -> None:
    bounded = mixture(FAMILIES[-1], smoothed=True, seed=0)
    edges = bounded.components.quantile([0.0, 1.0])
    q = bounded.quantile([0.0, 1.0])
    np.testing.assert_array_equal(q[:, 0], edges[..., 0].min(axis=0))
    np.testing.assert_array_equal(q[:, 1], edges[..., 1].max(axis=0))
    unbounded = mixture(FAMILIES[0], smoothed=True, seed=0)
    np.testing.assert_array_equal(unbounded.quantile([0.0, 1.0]), [[-np.inf, np.inf]] * 200)
