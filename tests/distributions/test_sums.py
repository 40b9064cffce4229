"""Sums with noise: known ones, and those that a new class registers."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from accord.agreement import DatasetRule, Within, probability_of_agreement
from accord.agreement.dataset_rules import log_exact_agreement
from accord.distributions import (
    Decomposed,
    Distribution,
    Laplace,
    Logistic,
    Mixture,
    Normal,
    Smoothed,
    Uniform,
    predictive,
    register_sum,
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


@pytest.fixture
def registered() -> Iterator[None]:
    before = dict(predictive._SUMS)
    yield
    predictive._SUMS.clear()
    predictive._SUMS.update(before)


@pytest.mark.usefixtures("registered")
def test_a_new_sum_serves_the_probability_of_agreement() -> None:
    model, data = Normal([0.0], 1.0), Logistic([0.0], 0.5)
    assert with_noise(model, data) is None
    assert probability_of_agreement(model, data, Within(1.0)).route == "quadrature"

    @register_sum(Normal, Logistic)
    def wider(law: Normal, noise: Logistic) -> Distribution:
        return Normal(law.mean, np.hypot(law.std, noise.std))

    assert probability_of_agreement(model, data, Within(1.0)).route == "closed form"


def test_a_new_rule_over_all_rows_brings_its_own_closed_form() -> None:
    @dataclass(frozen=True)
    class FirstRowAbove(DatasetRule):
        limit: float

        def _holds(self, y_hat, y):
            return y_hat[..., 0] >= self.limit

        def __str__(self) -> str:
            return "first row above"

    rule, law = FirstRowAbove(0.0), Normal([0.0, 1.0], 1.0)
    sampled = probability_of_agreement(law, [0.0, 0.0], rule, random_state=0)
    assert sampled.route == "monte carlo"

    @log_exact_agreement.register
    def exact(rule: FirstRowAbove, pair, options):
        log_p = pair.model.law[:1].log_interval_prob(torch.tensor([rule.limit]), np.inf)
        return np.asarray(log_p[0]), np.zeros(()), "closed form"

    found = probability_of_agreement(law, [0.0, 0.0], rule)
    assert found.route == "closed form"
    assert float(found.probability) == pytest.approx(0.5, rel=1e-12)
