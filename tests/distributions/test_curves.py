"""Monotone curves: strictly increasing whatever the scores, invertible, straight in the tails."""

import numpy as np
import pytest
import torch
from scipy import stats

from accord.distributions import MonotoneCurve, curve_through_scores

RNG = np.random.default_rng(0)
SCORES = {
    "normal": RNG.normal(size=300),
    "far too wide": 50 * RNG.normal(size=300),
    "all alike": np.zeros(40),
    "ties": np.repeat([-1.0, 0.0, 2.0], 20),
    "outside the support": np.r_[np.full(15, -np.inf), RNG.normal(size=30), np.full(5, np.inf)],
    "few": RNG.normal(size=3),
}


@pytest.mark.parametrize("name", SCORES)
def test_increases_strictly_with_a_bounded_slope(name):
    curve = curve_through_scores(SCORES[name])
    x = torch.linspace(-200, 200, 4001, dtype=torch.float64)
    assert torch.all(curve(x).diff() > 0)
    assert torch.all(curve.log_slope(x).exp() <= 1e3 * (1 + 1e-6))


@pytest.mark.parametrize("name", SCORES)
def test_inverse_undoes(name):
    curve = curve_through_scores(SCORES[name])
    x = torch.linspace(-30, 30, 601, dtype=torch.float64)
    torch.testing.assert_close(curve.inverse()(curve(x)), x, rtol=1e-9, atol=1e-9)


def test_slope_is_the_derivative():
    curve = curve_through_scores(SCORES["normal"])
    x = torch.linspace(-6, 6, 500, dtype=torch.float64).requires_grad_()
    (gradient,) = torch.autograd.grad(curve(x).sum(), x)
    torch.testing.assert_close(curve.log_slope(x).exp(), gradient)


def test_finds_the_transport_to_the_normal():
    """n = 20,000: a quantile's standard error is at most .02 within ±2 deviations."""
    skewed = np.random.default_rng(1).gumbel(size=20_000)
    curve = curve_through_scores(skewed)
    levels = np.linspace(0.03, 0.97, 30)
    found = curve(torch.from_numpy(stats.gumbel_r.ppf(levels)))
    np.testing.assert_allclose(found, stats.norm.ppf(levels), atol=0.08)


def test_weights_count_as_repetitions():
    scores = np.random.default_rng(2).normal(size=2000)
    weight = np.where(scores > 0, 3.0, 1.0)
    x = torch.linspace(-2, 2, 9, dtype=torch.float64)
    weighted = curve_through_scores(scores, weight=weight)(x)
    # Three quarters of the weight lie above 0, which therefore has the score Φ⁻¹(1/4).
    assert float(weighted[4]) == pytest.approx(
        stats.norm.ppf(weight[scores < 0].sum() / weight.sum()), abs=0.1
    )
    equal = curve_through_scores(scores, weight=np.full(2000, 7.0))(x)
    torch.testing.assert_close(equal, curve_through_scores(scores)(x))


def test_one_row_with_all_the_weight_leaves_a_curve():
    curve = curve_through_scores(SCORES["normal"], weight=np.r_[1e9, np.ones(299)])
    x = torch.linspace(-9, 9, 101, dtype=torch.float64)
    assert torch.all(curve(x).diff() > 0)


def test_tails_follow_the_chords_to_the_middle():
    curve = MonotoneCurve(np.array([-1.0, 0.0, 1.0]), np.array([-3.0, 0.0, 2.0]))
    x = torch.tensor([-10.0, 10.0], dtype=torch.float64)
    assert curve(x).tolist() == [-30.0, 20.0]
