"""The number of successes of unequal trials: against every outcome counted, and in the tails."""

import itertools
import math

import pytest
import torch
from scipy import stats
from torch.autograd import gradcheck

from accord._numerics import log_at_least

P = torch.tensor([[0.9, 0.2, 0.55, 0.01, 0.999, 0.4], [0.5, 0.5, 0.1, 0.3, 0.7, 0.2]]).double()


def counted(p: list[float], failures: int) -> float:
    """The probabilities of all 2ᴺ outcomes with few enough failures, added up."""
    outcomes = itertools.product((True, False), repeat=len(p))
    return sum(
        math.prod(q if held else 1 - q for q, held in zip(p, outcome, strict=True))
        for outcome in outcomes
        if outcome.count(False) <= failures
    )


@pytest.mark.parametrize("failures", range(7))
def test_is_the_sum_over_all_outcomes(failures: int) -> None:
    found = log_at_least(P.log(), failures).exp()
    expected = [counted(row, failures) for row in P.tolist()]
    torch.testing.assert_close(
        found, torch.tensor(expected, dtype=torch.float64), rtol=1e-11, atol=0
    )


def test_is_binomial_for_equal_chances() -> None:
    for least in range(1, 8):
        found = log_at_least(torch.full((7,), math.log(0.3), dtype=torch.float64), 7 - least).exp()
        assert float(found) == pytest.approx(stats.binom.sf(least - 1, 7, 0.3), rel=1e-12)


def test_keeps_its_digits_where_the_probability_has_none() -> None:
    """1,000 rows of e⁻⁵⁰ each, of which one may fail: (1 + 1000 (e⁵⁰ − 1)) e⁻⁵⁰⁰⁰⁰."""
    found = log_at_least(torch.full((1000,), -50.0).double(), 1)
    assert float(found) == pytest.approx(-50_000 + math.log(1000) + 50, rel=1e-14)


def test_each_row_may_have_its_own_number_of_failures() -> None:
    found = log_at_least(P.log(), torch.tensor([1, 4]))
    expected = [counted(row, k) for row, k in zip(P.tolist(), (1, 4), strict=True)]
    torch.testing.assert_close(
        found.exp(), torch.tensor(expected, dtype=torch.float64), rtol=1e-11, atol=0
    )


def test_gradients() -> None:
    log_p = P.log().requires_grad_()
    assert gradcheck(lambda x: log_at_least(x, 2), (log_p,))


def test_the_impossible_has_no_gradient_and_no_nan() -> None:
    log_p = torch.tensor([-torch.inf, -torch.inf, -0.1]).double().requires_grad_()
    found = log_at_least(log_p, 1)
    (grad,) = torch.autograd.grad(found, log_p)
    assert found.item() == -torch.inf
    assert not grad.any()


def test_a_row_that_is_certain_changes_nothing() -> None:
    log_p = torch.cat([P[0].log(), torch.zeros(1).double()]).requires_grad_()
    found = log_at_least(log_p, 2)
    (grad,) = torch.autograd.grad(found, log_p)
    torch.testing.assert_close(found, log_at_least(P[0].log(), 2), rtol=1e-11, atol=1e-11)
    assert grad.isfinite().all()
