"""Sums with noise: known ones, and what becomes of others."""

import numpy as np
import pytest

from accord.agreement import Within, probability_of_agreement
from accord.distributions import (
    Decomposed,
    Laplace,
    Logistic,
    Mixture,
    Normal,
    Smoothed,
    Uniform,
    with_noise,
)

SUMS = {
    "two normals": (Normal([1.0], 0.5), Normal([9.0], 1.2)),
    "family and box": (Laplace([1.0], 0.5), Uniform([-3.0], [-1.0])),
    "box and normal": (Uniform([0.0], [2.0]), Normal([3.0], 0.4)),
    "smoothed and normal": (Smoothed(Normal([1.0], 0.5), 0.7), Normal([0.0], 0.4)),
    "normal and smoothed": (Normal([1.0], 0.5), Smoothed(Normal([0.0], 0.4), 0.7)),
    "mixture": (Mixture(Normal([[0.0], [2.0]], 0.3)), Decomposed(Normal([0.0], 1.0), 0.2)),
    "decomposed": (Decomposed(Normal([1.0], 1.0), 0.2), Normal([0.0], 1.0)),
}


@pytest.mark.parametrize("name", SUMS)
def test_known_sums_against_draws(name: str) -> None:
    law, noise = SUMS[name]
    total = with_noise(law, noise)
    assert total is not None
    n = 400_000
    centred = noise.sample(n, random_state=1) - noise.quantile(0.5)
    draws = np.sort((law.sample(n, random_state=0) + centred)[:, 0])
    # Kolmogorov's distance of n draws is below 2/√n in 99.9 % of all cases
    assert np.abs(total.cdf(draws[:, None])[:, 0] - np.arange(n) / n).max() < 2 / n**0.5


def test_an_unknown_sum_is_integrated() -> None:
    model, data = Normal([0.0], 1.0), Logistic([0.0], 0.5)
    assert with_noise(model, data) is None
    assert probability_of_agreement(model, data, Within(1.0)).route == "quadrature"
