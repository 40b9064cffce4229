"""Intervals whose ends differ by many orders of magnitude, against mpmath.

An interval of centre and half-width has lost its nearer end when the other is 1e16 times as far.
"""

import itertools

import mpmath
import numpy as np
import pytest
import torch

from accord.agreement import Asymmetric, AtLeast, Inside, Within, probability_of_agreement
from accord.distributions import (
    Decomposed,
    Empirical,
    Laplace,
    Logistic,
    Mixture,
    Normal,
    Smoothed,
    StudentT,
    VaryingStudentT,
)
from accord.losses import AgreementLoss

DECADES = np.logspace(-7, 7, 15)


def normal_tail(x):
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2


def laplace_tail(x):
    return mpmath.exp(-x) / 2 if x >= 0 else 1 - mpmath.exp(x) / 2


def logistic_tail(x):
    return 1 / (1 + mpmath.exp(x))


def cauchy_tail(x):
    return mpmath.mpf(1) / 2 - mpmath.atan(x) / mpmath.pi


FAMILIES = {
    "normal": (lambda n: Normal(np.zeros(n), 1.0), normal_tail),
    "laplace": (lambda n: Laplace(np.zeros(n), 1.0), laplace_tail),
    "logistic": (lambda n: Logistic(np.zeros(n), 1.0), logistic_tail),
    "student-t": (lambda n: StudentT(1.0, np.zeros(n), 1.0), cauchy_tail),
    "varying student-t": (lambda n: VaryingStudentT(np.ones(n), 0.0, 1.0), cauchy_tail),
    "mixture": (lambda n: Mixture(Normal(np.zeros((2, n)), 1.0)), normal_tail),
    "decomposed": (lambda n: Decomposed(Normal(np.zeros(n), 1.0), 0.5), normal_tail),
}


def ends():
    """Both ends over 14 decades, on one side of the centre and across it."""
    pairs = [(a, b) for a, b in itertools.product(DECADES, DECADES) if a < b]
    pairs += [(-a, b) for a, b in itertools.product(DECADES, DECADES)]
    return np.array(pairs + [(-b, -a) for a, b in pairs]).T


def log_reference(tail, lower, upper):
    with mpmath.workdps(60):
        lower, upper = mpmath.mpf(float(lower)), mpmath.mpf(float(upper))
        if lower + upper < 0:
            lower, upper = -upper, -lower
        with mpmath.workdps(60 + int(min(2000, max(0, lower) ** 2 / 4))):
            return float(mpmath.log(tail(lower) - tail(upper)))


@pytest.mark.parametrize("name", FAMILIES)
def test_both_ends_over_many_decades(name: str) -> None:
    law_of, tail = FAMILIES[name]
    lower, upper = ends()
    near = np.minimum(np.abs(lower), np.abs(upper))
    lower, upper = lower[near < 60], upper[near < 60]
    law = law_of(len(lower))
    expected = np.array([log_reference(tail, *pair) for pair in zip(lower, upper, strict=True)])
    found = law.log_interval_prob(lower, upper)
    rtol = 3e-10 if name == "varying student-t" else 2e-12  # SciPy's digits beside the centre
    # log p near 0 is as exact as p itself
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=4e-15)
    rule = probability_of_agreement(law, np.zeros(len(lower)), Inside(lower, upper))
    np.testing.assert_allclose(rule.log_probability, expected, rtol=rtol, atol=4e-15)


def smoothed_tail(x, h):
    """1/2h ∫ of the normal tail over x ± h."""

    def integral(v):
        return mpmath.exp(-v * v / 2) / mpmath.sqrt(2 * mpmath.pi) - v * normal_tail(v)

    return (integral(x - h) - integral(x + h)) / (2 * h)


@pytest.mark.parametrize("tolerance", [1e-3, 0.5, 20.0])
def test_smoothed_intervals_over_many_decades(tolerance: float) -> None:
    lower, upper = ends()
    law = Smoothed(Normal(np.zeros(len(lower)), 1.0), tolerance)
    near = np.abs(np.where(np.abs(lower) < np.abs(upper), lower, upper))
    seen = near < 30
    with mpmath.workdps(60):
        half = mpmath.mpf(tolerance)
        expected = np.array(
            [
                log_reference(lambda x: smoothed_tail(x, half), *pair)
                for pair in zip(lower[seen], upper[seen], strict=True)
            ]
        )
    found = law.log_interval_prob(lower, upper)[seen]
    np.testing.assert_allclose(found, expected, rtol=5e-12, atol=4e-15)


def test_smoothed_draws() -> None:
    law = Smoothed(Empirical(np.zeros((1, 1))), 4.0)
    assert np.exp(law.log_interval_prob(3.0, 1e20)) == pytest.approx(1 / 8)


@pytest.mark.parametrize("far", [1e3, 1e8, 1e20, 1e300])
def test_far_end_does_not_hide_the_near_one(far: float) -> None:
    at_least_3 = 0.0013498980316300945
    for rule, datum in (
        (Inside(3, far), 0.0),
        (Asymmetric(below=0.0, above=far), 3.0),
        (AtLeast() & Within(far), 3.0),
    ):
        found = probability_of_agreement(Normal([0.0], [1.0]), [datum], rule)
        np.testing.assert_allclose(found.probability, at_least_3, rtol=1e-12)
        assert found.route == "closed form"


@pytest.mark.parametrize("location", [0.0, 1.0, -7.0])
def test_narrow_interval_at_zero_keeps_its_width(location: float) -> None:
    law = Normal([location], [2.0])
    found = law.log_interval_prob(0.0, 1e-20)
    np.testing.assert_allclose(found, law.log_prob(0.0) + np.log(1e-20), rtol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("far", [3e3, 3e7, 1e20])
def test_loss_of_a_wide_interval_and_its_gradient(dtype: torch.dtype, far: float) -> None:
    mu = torch.zeros(1, dtype=dtype, requires_grad=True)
    var = torch.ones(1, dtype=dtype, requires_grad=True)
    loss = AgreementLoss(Inside(3.0, far))(mu, torch.zeros(1, dtype=dtype), var)
    hazard = np.exp(Normal(0.0, 1.0).log_prob(3.0)) / 0.0013498980316300945
    by_mu, by_var = torch.autograd.grad(loss, (mu, var))
    rtol = 1e-12 if dtype == torch.float64 else 1e-5
    np.testing.assert_allclose(loss.item(), -np.log(0.0013498980316300945), rtol=rtol)
    np.testing.assert_allclose(by_mu.item(), -hazard, rtol=rtol)
    np.testing.assert_allclose(by_var.item(), -1.5 * hazard, rtol=rtol)


def test_narrow_rows_beside_wide_ones() -> None:
    mu = torch.zeros(3, dtype=torch.float64)
    rule = Inside(torch.tensor([3.0, 1.0, -1.0]), torch.tensor([1e20, 1.0 + 1e-7, 1.0]).double())
    loss = AgreementLoss(rule, reduction="none")
    together = loss(mu, mu, torch.ones(3, dtype=torch.float64))
    vmapped = torch.func.vmap(lambda low, high, m: AgreementLoss(Inside(low, high))(m, m, 1.0))
    alone = vmapped(rule.lower[:, None].double(), rule.upper[:, None], mu[:, None])
    np.testing.assert_allclose(together, alone, rtol=1e-14)
