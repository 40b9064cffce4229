"""Rules that are only callables: known answers, honest errors, never outside [0, 1]."""

import numpy as np
import pytest
import torch

from accord.agreement import Rule, probability_of_agreement, search
from accord.agreement.tracing import missed
from accord.distributions import Laplace, Mixture, Normal, Smoothed, StudentT
from accord.losses import AgreementLoss

SINE = lambda y_hat, y: np.sin(3 * y_hat) > y / 2  # noqa: E731
SQUARES = lambda y_hat, y: np.abs(y_hat * y_hat - y * y) < 0.5  # noqa: E731
COMB = lambda y_hat, y: np.sin(400 * y_hat) > y  # noqa: E731
SLIVER = lambda y_hat, y: np.abs(y_hat - 0.77) < 1e-3  # noqa: E731

CASES = {
    "oscillating under heavy tails": (StudentT(3, [-0.32], [0.92]), [-0.54], SINE),
    "second interval far from the datum": (Laplace([1.0], [0.5]), [1.0], SQUARES),
    "comb": (Normal([0.0], [1.0]), [0.3], COMB),
    "sliver": (Normal([0.0], [1.0]), [0.3], SLIVER),
    "mixture": (Mixture(Normal([[-3.0], [3.0]], [[0.2], [1.0]])), [0.4], SINE),
    "smoothed": (Smoothed(Normal([0.0], [1.0]), 0.4), [0.2], SQUARES),
}


def by_fine_grid(law, y, rule) -> float:
    """The probability on a grid of two million equal cells, with the tails beyond left out."""
    edges = np.linspace(-400.0, 400.0, 2_000_001)
    middle = (edges[1:] + edges[:-1]) / 2
    mass = np.diff(law.cdf(edges[:, None])[:, 0])
    return float(mass[rule(middle, np.full_like(middle, y[0]))].sum())


@pytest.mark.parametrize("name", CASES)
def test_probability_and_its_stated_error(name: str) -> None:
    law, y, rule = CASES[name]
    found = probability_of_agreement(law, y, rule)
    truth = by_fine_grid(law, y, rule)
    gap = abs(found.probability[0] - truth)
    assert 0 <= found.probability[0] <= 1
    assert gap <= 4 * found.standard_error[0] + 1e-6
    assert found.standard_error[0] < 0.01


def test_every_interval_of_the_squares_is_found() -> None:
    """√.5 < |ŷ| < √1.5: without its left half the probability would be 0.403."""
    law = Laplace([1.0], [0.5])
    ends = np.sqrt([0.5, 1.5])
    expected = np.diff(law.cdf(ends[:, None]), axis=0) - np.diff(law.cdf(-ends[:, None]), axis=0)
    found = probability_of_agreement(law, [1.0], SQUARES)
    np.testing.assert_allclose(found.probability, expected[0], rtol=1e-12)


@pytest.mark.parametrize("rule", [SINE, SQUARES, COMB], ids=["sine", "squares", "comb"])
def test_uncertain_data(rule) -> None:
    model, data = Normal([0.5, -1.0], [1.0, 0.5]), Normal([0.3, 0.6], [0.2, 0.4])
    found = probability_of_agreement(model, data, rule, random_state=0)
    assert found.route == ("monte carlo" if rule is COMB else "quadrature")
    rng = np.random.default_rng(0)
    draws = rng.normal([0.5, -1.0], [1.0, 0.5], (400_000, 2))
    truth = rule(draws, rng.normal([0.3, 0.6], [0.2, 0.4], (400_000, 2))).mean(0)
    gap = np.abs(found.probability - truth)
    assert (gap <= 4 * np.hypot(found.standard_error, 0.5 / 400_000**0.5)).all()


def test_random_rules_stay_within_their_errors() -> None:
    """Unions of random narrow intervals: no more than rare errors beyond four stated ones."""
    rng = np.random.default_rng(1)
    law = Normal([0.0], [1.0])
    beyond = 0
    for _ in range(40):
        centers, halves = rng.normal(size=12), 10 ** rng.uniform(-4, -1, 12)

        def rule(y_hat, y, c=centers, h=halves):
            return (np.abs(y_hat[..., None] - c) < h).any(-1)

        fine = np.linspace(-8, 8, 1_000_001)
        middle = (fine[1:] + fine[:-1]) / 2
        truth = np.diff(law.cdf(fine[:, None])[:, 0])[rule(middle, middle)].sum()
        found = probability_of_agreement(law, [0.0], rule)
        beyond += abs(found.probability[0] - truth) > 4 * found.standard_error[0] + 1e-4
    assert beyond <= 2


def test_missed_is_zero_for_what_was_found_and_not_for_what_was_not() -> None:
    law, y = Normal([0.0], [1.0]), torch.tensor([0.3], dtype=torch.float64)
    rule = Rule.from_callable(SQUARES)
    found = search(rule, y, law).intervals
    correction, share = missed(rule, y, law, found, n_draws=1000)
    assert share.item() == correction.item() == 0
    narrow = search(Rule.from_callable(SLIVER), y, law).intervals
    correction, share = missed(rule, y, law, narrow, n_draws=1000)
    assert share.item() == pytest.approx(correction.item(), abs=5e-3)
    assert share.item() > 0.3


def test_loss_refuses_a_rule_whose_intervals_it_cannot_find() -> None:
    mu, var = torch.zeros(4), torch.ones(4)
    with pytest.raises(ValueError, match="Use a rule with intervals"):
        AgreementLoss(lambda a, b: np.sin(1e5 * a) > 0)(mu, mu, var)
    assert AgreementLoss(SQUARES)(mu, mu + 0.5, var).isfinite()
