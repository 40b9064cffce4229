"""The interval algebra against Boolean logic, point by point."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from accord._numerics import NORMAL, log_between, log_within
from accord.agreement import Asymmetric, AtLeast, AtMost, Inside, Rule, Within, WithinRelative
from accord.agreement.intervals import INFINITY, Intervals, log_sum

bounds = st.lists(st.integers(-4, 4), min_size=2, max_size=2).map(sorted)
POINTS = torch.arange(-5.4, 5.5, 0.25, dtype=torch.float64)  # never on an integer bound


def one(lower: float, upper: float, *, anchored: bool = True) -> Intervals:
    y = torch.zeros(1, dtype=torch.float64)
    make = Intervals.around if anchored else Intervals.between
    return make(y, float(lower), float(upper))


def contains(set_: Intervals) -> torch.Tensor:
    lower, upper = set_.lower_bounds[..., None], set_.upper_bounds[..., None]
    inside = (lower <= POINTS) & (upper >= POINTS)
    assert (inside.sum(0) <= 1).all(), "the intervals of a row must be disjoint"
    return inside.any(0)[0]


@settings(max_examples=200, deadline=None)
@given(bounds, bounds, bounds, st.booleans())
def test_algebra_is_boolean_logic(a, b, c, anchored) -> None:
    A, B, C = one(*a), one(*b, anchored=anchored), one(*c)
    in_a, in_b, in_c = contains(A), contains(B), contains(C)
    assert torch.equal(contains(A & B), in_a & in_b)
    assert torch.equal(contains(A | B), in_a | in_b)
    assert torch.equal(contains(~A), ~in_a)
    assert torch.equal(contains(~(A | B) & C), ~(in_a | in_b) & in_c)
    assert torch.equal(contains((A | ~B) | C), in_a | ~in_b | in_c)
    assert torch.equal(contains(~~(A | B)), in_a | in_b)


def test_measure_of_a_uniform_law() -> None:
    """On the uniform law over (−5, 5) the log-measure is the log of the total length / 10."""
    set_ = (one(-2, -1) | one(-1.5, 0)) | one(3, 3.5) | ~one(-4.5, 4)

    def between(lower, upper):
        return ((upper.clamp(-5, 5) - lower.clamp(-5, 5)) / 10).clamp(min=0).log()

    def within(center, half_width):
        return between(center - half_width, center + half_width)

    total = set_.log_measure(
        within=within,
        between=between,
        below=lambda x: between(x * 0 - 5, x),
        above=lambda x: between(x, x * 0 + 5),
    ).exp()
    assert total.item() == pytest.approx((2 + 0.5 + 0.5 + 1) / 10)


def test_narrow_interval_keeps_its_width_beside_a_large_datum() -> None:
    y = torch.tensor([1e12], dtype=torch.float64)
    halves = []
    band = Intervals.around(y, -1e-9, 1e-9) & Intervals.around(y, 0.0, INFINITY, ends="infinite")
    band.log_measure(
        within=lambda c, h: halves.append(h) or h.log(),
        between=lambda low, high: low.log(),
        below=torch.log,
        above=torch.log,
    )
    assert halves[0].item() == 0.5e-9


def test_empty_set_has_probability_zero_and_no_gradient() -> None:
    mu = torch.tensor([0.3], dtype=torch.float64, requires_grad=True)
    empty = (one(0, 1) & one(2, 3)) | (one(5, 6) & one(7, 8))
    log_p = empty.log_measure(
        within=lambda c, h: -((c - mu) ** 2) * h,
        between=lambda low, high: -((low - mu) ** 2) * high,
        below=mu.expand_as,
        above=mu.expand_as,
    )
    assert log_p.item() == -INFINITY
    (gradient,) = torch.autograd.grad(log_p, mu)
    assert gradient.item() == 0.0


def test_log_sum_agrees_with_logsumexp() -> None:
    terms = torch.tensor([[-1.0, -800.0, -INFINITY], [-2.0, -801.0, 0.5]], dtype=torch.float64)
    np.testing.assert_allclose(log_sum(terms), torch.logsumexp(terms, 0), rtol=1e-14)


def test_algebra_runs_under_vmap() -> None:
    y = torch.randn(5, 3, dtype=torch.float64)

    def lowest(row):
        band = Intervals.around(row, -1.0, 2.0)
        return (~band | (band & Intervals.between(row, 0.0, INFINITY))).lower_bounds

    together = torch.func.vmap(lowest)(y)
    assert torch.equal(together, torch.stack([lowest(row) for row in y]))


# As a loss uses it: standardise, and let the primitive do the rest.


def log_agreement(rule: Rule, mu, sigma, y):
    return rule.intervals(y).log_measure(
        within=lambda c, h: log_within(NORMAL, (c - mu) / sigma, h / sigma),
        between=lambda low, high: log_between(NORMAL, (low - mu) / sigma, (high - mu) / sigma),
        below=lambda x: NORMAL.log_cdf((x - mu) / sigma),
        above=lambda x: NORMAL.log_sf((x - mu) / sigma),
    )


DIFFERENTIABLE = [
    Within(0.5),
    WithinRelative(0.2),
    Asymmetric(below=0.1, above=0.4),
    AtLeast(),
    Inside(-0.3, 0.9),
    ~Within(0.5),
    (Within(0.5) & AtMost()) | Inside(1.0, 2.0),
]


@pytest.mark.parametrize("rule", DIFFERENTIABLE, ids=str)
def test_gradients_flow_through_the_rule(rule: Rule) -> None:
    mu, sigma, y = (
        torch.tensor(values, dtype=torch.float64, requires_grad=True)
        for values in ([0.1, -0.4, 1.2], [0.5, 1.0, 0.3], [0.3, -0.2, 0.8])
    )
    assert torch.autograd.gradcheck(lambda *args: log_agreement(rule, *args), (mu, sigma, y))


@pytest.mark.parametrize("rule", DIFFERENTIABLE, ids=str)
def test_loss_of_stacked_members_under_vmap(rule: Rule) -> None:
    mu, y = torch.randn(4, 3, dtype=torch.float64), torch.tensor([0.3, -0.2, 0.8]).double()
    sigma = torch.full_like(mu, 0.7)
    together = torch.func.vmap(lambda m, s: log_agreement(rule, m, s, y))(mu, sigma)
    alone = torch.stack([log_agreement(rule, m, s, y) for m, s in zip(mu, sigma, strict=True)])
    torch.testing.assert_close(together, alone)


def test_gradient_reaches_a_trainable_tolerance() -> None:
    eps = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    y = torch.zeros(3, dtype=torch.float64)
    log_agreement(Within(eps), y, torch.ones_like(y), y).sum().backward()
    density = float(torch.exp(-(eps.detach() ** 2) / 2)) / np.sqrt(2 * np.pi)
    expected = 3 * 2 * density / (2 * float(torch.special.ndtr(eps.detach())) - 1)
    assert float(eps.grad) == pytest.approx(expected, rel=1e-10)
