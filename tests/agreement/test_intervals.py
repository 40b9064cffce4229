"""The interval algebra against Boolean logic, point by point."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

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

    total = set_.log_measure(within=within, between=between).exp()
    assert total.item() == pytest.approx((2 + 0.5 + 0.5 + 1) / 10)


def test_narrow_interval_keeps_its_width_beside_a_large_datum() -> None:
    y = torch.tensor([1e12], dtype=torch.float64)
    halves = []
    band = Intervals.around(y, -1e-9, 1e-9) & Intervals.around(y, 0.0, INFINITY, ends="infinite")
    band.log_measure(within=lambda c, h: halves.append(h) or h.log(), between=lambda a, b: a)
    assert halves[0].item() == 0.5e-9


def test_empty_set_has_probability_zero_and_no_gradient() -> None:
    mu = torch.tensor([0.3], dtype=torch.float64, requires_grad=True)
    empty = (one(0, 1) & one(2, 3)) | (one(5, 6) & one(7, 8))
    log_p = empty.log_measure(
        within=lambda c, h: -((c - mu) ** 2) * h, between=lambda a, b: mu.expand_as(a)
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
