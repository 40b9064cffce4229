"""Quantiles by inversion: a safeguarded Newton iteration for all rows and levels at once."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

Evaluate = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""(rows, points, signs) to (log tail probability, log density) at those rows' points."""

_TOLERANCE = 1e-12  # of the log-odds, and so of the tail probability relative to itself
_RESOLUTION = 4e-16  # of the point relative to itself: float64 has no more
_ITERATIONS = 200  # bisection alone needs about 130 to go from one end of float64 to the other


def invert(
    evaluate: Evaluate, p: Tensor, q: Tensor, lower: Tensor, upper: Tensor, start: Tensor
) -> Tensor:
    """The points x with P(Y ≤ x) = p and P(Y ≥ x) = q, which lie between ``lower`` and ``upper``.

    Newton's method on the log-odds of the smaller tail, g(x) = log F − log(1 − F) with
    g' = f/F(1 − F): it is nearly linear for exponential tails, so that few steps are needed from
    far away, and it resolves p = 1e-300 as well as p = 1/2. A step that leaves the bracket, or that
    does not halve the step before the last, is replaced by a bisection. Rows that have converged
    are left out.

    **Shape**: all one-dimensional, one element per row and level.
    """
    sign = torch.where(p <= q, 1.0, -1.0).to(p)
    target = _log_odds(torch.minimum(p, q).log())
    low, high = lower.to(p), upper.to(p).clone()
    low = torch.minimum(low, high)
    x = torch.where(p <= 0, low, torch.where(q <= 0, high, start.to(p).clamp(low, high)))
    last = before = high - low
    rows = torch.nonzero((p > 0) & (q > 0) & (low < high)).squeeze(-1)
    state = [value[rows] for value in (x, sign, target, low, high, last, before)]
    for _ in range(_ITERATIONS):
        if not len(rows):
            break
        point, side, goal, low, high, last, before = state
        log_tail, log_density = evaluate(rows, point, side)
        error = (_log_odds(log_tail) - goal) * side
        low, high = torch.where(error <= 0, point, low), torch.where(error >= 0, point, high)
        newton = -error * torch.exp(log_tail + _log1mexp(log_tail) - log_density)
        trial = point + newton
        safe = (trial > low) & (trial < high) & (newton.abs() <= before / 2)
        following = torch.where(safe, trial, low / 2 + high / 2)
        moved = (following - point).abs()
        close = error.abs() <= _TOLERANCE
        x[rows] = torch.where(close, point, following)
        active = ~close & (moved > _RESOLUTION * point.abs())
        rows = rows[active]
        state = [v[active] for v in (following, side, goal, low, high, moved, last)]
    return x


def _log_odds(log_tail: Tensor) -> Tensor:
    return log_tail - _log1mexp(log_tail)


def _log1mexp(x: Tensor) -> Tensor:
    """log(1 − e^x) for x ≤ 0."""
    return torch.where(x > -math.log(2), torch.log(-torch.expm1(x)), torch.log1p(-torch.exp(x)))
