"""Closed forms for rules without one: find where a callable changes its mind, then use the cdf.

For one row, a rule's answers on a grid show between which points it switches; bisection finds each
switch to the last digit. The agreeing stretches are then intervals like any other, and their
probability needs no quadrature of an indicator, which would converge slowly.

A stretch that agrees only between two neighbouring grid points is not seen. The grid follows the
distribution's quantiles and closes in on the datum on a logarithmic scale (down to 2⁻⁴⁰ of the
range), where agreement usually is.
"""

import numpy as np
import torch
from torch import Tensor

from accord.agreement.intervals import INFINITY, Intervals
from accord.agreement.landmarks import landmarks
from accord.agreement.rule import Rule
from accord.distributions import Distribution

_REFINE = 4  # grid points per gap between landmarks
_BISECTIONS = 60
_HALVINGS = 2.0 ** -torch.arange(-3.0, 38.0, dtype=torch.float64)


def trace(rule: Rule, y: Tensor, law: Distribution) -> Intervals:
    """The intervals of ŷ that agree with y, found by asking the rule, where ``law`` has its mass.

    Args:
        rule: any rule, asked as ``rule(y_hat, y)``.
        y: one datum per row.
        law: the distribution of ŷ; the search goes as far as its outermost landmarks, and the
            answer there is taken to hold beyond.

    **Shape**: y (n,), law (n,) → bounds (K, n).

    Example:
        >>> from accord.distributions import Normal
        >>> law = Normal([0.0], 1.0)
        >>> rule = Rule.from_callable(lambda y_hat, y: y_hat**2 <= y)
        >>> allowed = trace(rule, torch.tensor([4.0], dtype=torch.float64), law)
        >>> allowed.lower, allowed.upper
        (tensor([[-2.]], dtype=torch.float64), tensor([[2.]], dtype=torch.float64))
    """
    return trace_on(rule, y, search_grid(law))


def trace_on(rule: Rule, y: Tensor, grid: Tensor) -> Intervals:
    """`trace` on a given grid (G, n), to which points that close in on y are added."""
    grid = _around_datum(y, grid)
    agrees = torch.from_numpy(np.array(rule(grid, y)))
    lower, upper = _stretches(agrees, _switches(rule, y, grid, agrees))
    return Intervals(torch.zeros_like(y), lower, upper, anchored=False, ends="either")


def _stretches(agrees: Tensor, switch: Tensor) -> tuple[Tensor, Tensor]:
    """Where agreement begins and ends, k-th stretch of each row in row k, (K, n)."""
    begins, ends = ~agrees[:-1] & agrees[1:], agrees[:-1] & ~agrees[1:]
    first, last = agrees[0].long(), agrees[-1]
    count = begins.sum(0) + first
    n_stretches = max(1, int(count.max()))
    lower = torch.full((n_stretches, agrees.shape[1]), INFINITY, dtype=torch.float64)
    upper = torch.full_like(lower, -INFINITY)
    lower[0, agrees[0]] = -INFINITY
    upper[count[last] - 1, torch.nonzero(last)[:, 0]] = INFINITY
    for bound, changes, before in ((lower, begins, first), (upper, ends, 0)):
        cell, row = torch.nonzero(changes, as_tuple=True)
        rank = changes.cumsum(0) - 1 + before
        bound[rank[cell, row], row] = switch[cell, row]
    return lower, upper


def search_grid(law: Distribution) -> Tensor:
    """Points per row that follow the law's quantiles, sorted, (G, n)."""
    marks = landmarks(law).sort(dim=0).values
    steps = torch.arange(_REFINE, dtype=torch.float64)[:, None, None] / _REFINE
    fine = (marks[:-1] + steps * (marks[1:] - marks[:-1])).flatten(0, 1)
    return torch.cat([fine, marks[-1:]])


def _around_datum(y: Tensor, grid: Tensor) -> Tensor:
    """The grid with points at y and at y ± range · 2⁻ʲ, sorted."""
    quarter = len(grid) // 4  # the middle half of the points: far tails would stretch the range
    scale = (grid[-1 - quarter] - grid[quarter]) * _HALVINGS[:, None]
    near = torch.cat([y[None], y - scale, y + scale]).clamp(grid[0], grid[-1])
    return torch.cat([grid, near]).sort(dim=0).values


def _switches(rule: Rule, y: Tensor, grid: Tensor, agrees: Tensor) -> Tensor:
    """Where the answer changes inside each cell that has different answers at its ends."""
    switch = grid[:-1].clone()
    cell, row = torch.nonzero(agrees[:-1] != agrees[1:], as_tuple=True)
    low, high, at_low = grid[cell, row], grid[cell + 1, row], agrees[cell, row]
    rule_there, datum = rule.take(row.numpy()), y[row]
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        like_low = torch.from_numpy(np.array(rule_there(middle, datum))) == at_low
        low, high = torch.where(like_low, middle, low), torch.where(like_low, high, middle)
    switch[cell, row] = (low + high) / 2
    return switch
