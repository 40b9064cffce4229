"""Closed forms for rules without one: find where a callable changes its answer, then use the cdf.

For one row, a rule's answers on a grid show between which points it switches; bisection finds each
switch to the last digit. The agreeing stretches are then intervals like any other, and their
probability needs no quadrature of an indicator, which would converge slowly.

The grid follows the distribution's quantiles, its points set at random between them, and is made
finer beside every switch that it finds. Around the datum it has points at distances that grow by
3 %, out to well beyond both datum and distribution, so that a stretch is found wherever it is wider
than 3 % of its distance from the datum, also where the distribution has next to no mass. A narrower
one may lie between two points: `search` draws from the distribution, adds the draws to the grid if
the rule and the intervals differ for any, and counts how many fresh draws still do.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from accord._types import Floats
from accord.agreement.intervals import INFINITY, Intervals
from accord.agreement.rules import Rule
from accord.distributions import Distribution

POINTS = 1024  # of a grid that is searched once
_FINER = 8  # points added to a cell beside a switch
_BESIDE = 2  # how many cells on either side of a switch are made finer
_MOST_SWITCHES = 200  # per row, above which finer cells would not show anything new
_BISECTIONS = 60
_RATIO = 1.03  # between neighbouring distances from the datum
_DECADES = 14  # that these distances span
_REACH = 4.0  # how far they go, in units of the distance to the far end of the distribution
_DRAWS = 4096  # that found intervals are checked against
_BLOCK = 256  # rows searched at a time
_HALVINGS = 2.0 ** -torch.arange(-3.0, 38.0, dtype=torch.float64)
_SEED = 20_200_803  # one sequence for all searches: the same question has the same answer


class Found(NamedTuple):
    """Intervals found by a search, and how far they may be trusted.

    ``correction`` is the mean over fresh draws of the rule's answer less that of the intervals,
    ``share`` the share of draws for which the two differ. ``error`` is the standard error of the
    probability: where no draw differs, a stretch that few draws meet may still be missing.

    **Shape**: intervals (K, n), the others (n,).
    """

    intervals: Intervals
    correction: Tensor
    share: Tensor

    @property
    def error(self) -> Tensor:
        return torch.from_numpy(binomial_error(self.share.numpy(), _DRAWS))


def search(rule: Rule, y: Tensor, law: Distribution) -> Found:
    """The intervals of ŷ that agree with y, found by asking the rule, where ``law`` has its mass.

    They are checked against draws, and searched for again with these where some were missed.

    Args:
        rule: any rule, asked as ``rule(y_hat, y)``.
        y: one datum per row.
        law: the distribution of ŷ; the search goes beyond its outermost landmarks, and the answer
            there is taken to hold further out.

    **Shape**: y and law (n,).

    Example:
        >>> from accord.distributions import Normal
        >>> law = Normal([0.0], 1.0)
        >>> rule = Rule.from_callable(lambda y_hat, y: y_hat**2 <= y)
        >>> allowed = search(rule, torch.tensor([4.0], dtype=torch.float64), law).intervals
        >>> allowed.lower, allowed.upper
        (tensor([[-2.]], dtype=torch.float64), tensor([[2.]], dtype=torch.float64))
    """
    parts = []
    for start in range(0, len(y), _BLOCK):
        rows = torch.arange(start, min(start + _BLOCK, len(y)))
        parts.append(_search_block(rule.take(rows.numpy()), y[rows], law[rows]))
    most = max(len(part.intervals.lower) for part in parts)
    lower = torch.cat([_padded(part.intervals.lower, most, INFINITY) for part in parts], 1)
    upper = torch.cat([_padded(part.intervals.upper, most, -INFINITY) for part in parts], 1)
    whole = Intervals(torch.zeros_like(y), lower, upper, anchored=False, ends="either")
    correction, share = (torch.cat(x) for x in zip(*((p[1], p[2]) for p in parts), strict=True))
    return Found(whole, correction, share)


def _search_block(rule: Rule, y: Tensor, law: Distribution) -> Found:
    grid = _wide_grid(y, law)
    found = trace_on(rule, y, grid)
    correction, share = missed(rule, y, law, found, n_draws=_DRAWS)
    if bool(share.any()):
        draws = torch.as_tensor(law.sample(_DRAWS, random_state=_SEED)).double()
        found = trace_on(rule, y, torch.cat([grid, draws]).sort(dim=0).values)
        correction, share = missed(rule, y, law, found, n_draws=_DRAWS, seed=_SEED + 1)
    return Found(found, correction, share)


def _padded(bounds: Tensor, length: int, filler: float) -> Tensor:
    extra = bounds.new_full((length - len(bounds), bounds.shape[1]), filler)
    return torch.cat([bounds, extra])


def _wide_grid(y: Tensor, law: Distribution) -> Tensor:
    """The grid of the law, with points around the datum at distances that grow by a ratio."""
    grid = search_grid(law)
    reach = _REACH * torch.maximum((y - grid[0]).abs(), (grid[-1] - y).abs())
    count = math.ceil(_DECADES * math.log(10) / math.log(_RATIO))
    steps = reach * _RATIO ** -torch.arange(count, dtype=torch.float64)[:, None]
    return torch.cat([grid, y - steps, y + steps]).sort(dim=0).values


def trace_on(rule: Rule, y: Tensor, grid: Tensor) -> Intervals:
    """Intervals found on a grid (G, n), to which points are added near y and near every switch."""
    grid = _around_datum(y, grid)
    agrees = _answers(rule, grid, y)
    grid = _beside_switches(grid, agrees)
    agrees = _answers(rule, grid, y)
    lower, upper = _stretches(agrees, _switches(rule, y, grid, agrees))
    return Intervals(torch.zeros_like(y), lower, upper, anchored=False, ends="either")


def missed(
    rule: Rule, y: Tensor, law: Distribution, found: Intervals, *, n_draws: int, seed: int = _SEED
) -> tuple[Tensor, Tensor]:
    """How far traced intervals are from the rule: over draws of ``law``, per row.

    The mean of the rule's answer (0 or 1) less that of the intervals, which corrects their
    probability without bias, and the share of draws for which the two differ.

    **Shape**: y, law and both results (n,).
    """
    draws = torch.as_tensor(law.sample(n_draws, random_state=seed)).double()
    by_rule, by_intervals = _answers(rule, draws, y), _contains(found, draws)
    difference = by_rule.double() - by_intervals.double()
    return difference.mean(0), difference.abs().mean(0)


def _contains(found: Intervals, points: Tensor) -> Tensor:
    """Whether each point (m, n) lies in an interval: more have begun than have ended before it."""
    empty = found.lower_bounds > found.upper_bounds
    lower = torch.where(empty, INFINITY, found.lower_bounds).T.contiguous().sort(-1).values
    upper = torch.where(empty, INFINITY, found.upper_bounds).T.contiguous().sort(-1).values
    x = points.T.contiguous()
    begun = torch.searchsorted(lower, x, right=True)
    return (begun > torch.searchsorted(upper, x)).T


def _answers(rule: Rule, points: Tensor, y: Tensor) -> Tensor:
    return torch.from_numpy(np.array(rule(points, y)))


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


def search_grid(law: Distribution, n_points: int = POINTS) -> Tensor:
    """About ``n_points`` per row between the law's landmarks, one at random in each cell, (G, n).

    On a regular grid, a rule with a period of its own could hide from all points at once.
    """
    marks = law._landmarks(far=True).sort(dim=0).values
    per_gap = max(4, math.ceil(n_points / (len(marks) - 1)))
    places = torch.from_numpy(np.random.default_rng(_SEED).random((per_gap, len(marks) - 1)))
    steps = (torch.arange(per_gap).double()[:, None] + places)[:, :, None] / per_gap
    fine = (marks[:-1] + steps * (marks[1:] - marks[:-1])).flatten(0, 1)
    return torch.cat([marks, fine]).sort(dim=0).values


def _beside_switches(grid: Tensor, agrees: Tensor) -> Tensor:
    """The grid with more points in the cells around each change of the answer."""
    changes = (agrees[:-1] != agrees[1:]).double()
    width = 2 * _BESIDE + 1
    near = torch.nn.functional.max_pool1d(changes.T[:, None], width, 1, _BESIDE)[:, 0].T > 0
    near &= changes.sum(0) <= _MOST_SWITCHES
    most = int(near.sum(0).max())
    if not most:
        return grid
    cell, row = torch.nonzero(near, as_tuple=True)
    rank = (near.cumsum(0) - 1)[cell, row]
    steps = (torch.arange(1, _FINER + 1).double() / (_FINER + 1))[:, None]
    low, high = grid[cell, row], grid[cell + 1, row]
    # rows with fewer such cells repeat their last point, which is harmless
    extra = grid[-1].expand(_FINER, most, -1).clone()
    extra[:, rank, row] = low + steps * (high - low)
    return torch.cat([grid, extra.flatten(0, 1)]).sort(dim=0).values


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


def binomial_error(value: Floats, size: int) -> Floats:
    """√(p(1−p)/S), an upper bound for values in [0, 1], with p drawn off 0 and 1 (Jeffreys)."""
    p = (value * size + 0.5) / (size + 1)
    return np.asarray(np.sqrt(p * (1 - p) / size))
