"""Unions of disjoint intervals, row by row: what a rule allows the prediction to be.

Nearly every agreement rule says of a prediction ŷ, given the datum y, that it must lie in a union
of intervals. Intersection, union and complement of such sets are again such sets, so a compound
rule keeps the closed form of its parts: P(A) = Σ_k [F(upper_k) − F(lower_k)].
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from accord._numerics import log_sum

INFINITY = float("inf")

Ends = Literal["finite", "infinite", "either"]
"""Whether all non-empty intervals have two finite ends, whether none has, or whether both occur."""

LogOf1 = Callable[[Tensor], Tensor]
LogOf2 = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Intervals:
    """K disjoint intervals [origin + lower, origin + upper] for each row.

    Bounds are kept as offsets from an origin, because y ± ε rounds to y when ε is small beside y:
    the narrow form (centre, half-width) stays exact. An empty interval has lower > upper, so that
    rows with fewer than K intervals need no ragged arrays. Nothing here branches on values, so the
    algebra runs under ``torch.func.vmap`` and is differentiable in the bounds.

    Args:
        origin: the datum where ``anchored``, else 0.
        lower: lower offsets; −inf for none.
        upper: upper offsets; +inf for none.
        anchored: whether the offsets count from the datum.
        ends: which ends there are, as far as the rule's form tells, whatever the data.

    **Shape**: origin (*S); lower and upper (K, *S).

    Example:
        >>> y = torch.tensor([1.0, 2.0])
        >>> band = Intervals.around(y, -0.5, 0.5)
        >>> band.lower_bounds.tolist(), band.upper_bounds.tolist()
        ([[0.5, 1.5]], [[1.5, 2.5]])
        >>> (~band).upper_bounds.tolist()
        [[0.5, 1.5], [inf, inf]]
    """

    origin: Tensor
    lower: Tensor
    upper: Tensor
    anchored: bool
    ends: Ends

    @classmethod
    def around(
        cls, y: Tensor, lower: Tensor | float, upper: Tensor | float, *, ends: Ends = "finite"
    ) -> "Intervals":
        """One interval [y + lower, y + upper] per row."""
        return cls(y, _per_row(lower, y), _per_row(upper, y), anchored=True, ends=ends)

    @classmethod
    def between(cls, y: Tensor, lower: Tensor | float, upper: Tensor | float) -> "Intervals":
        """One interval [lower, upper] per row of y, wherever y is."""
        low, high = _per_row(lower, y), _per_row(upper, y)
        return cls(torch.zeros_like(y), low, high, anchored=False, ends="either")

    @property
    def lower_bounds(self) -> Tensor:
        return self.origin + self.lower

    @property
    def upper_bounds(self) -> Tensor:
        return self.origin + self.upper

    def __and__(self, other: "Intervals") -> "Intervals":
        left, right = _on_one_origin(self, other)
        # Pairwise intersections of two disjoint families are disjoint.
        lower = torch.maximum(left.lower[:, None], right.lower[None]).flatten(0, 1)
        upper = torch.minimum(left.upper[:, None], right.upper[None]).flatten(0, 1)
        lower, upper = _empty_where(lower > upper, lower, upper)
        ends: Ends = "finite" if "finite" in (left.ends, right.ends) else "either"
        return Intervals(left.origin, lower, upper, anchored=left.anchored, ends=ends)

    def __or__(self, other: "Intervals") -> "Intervals":
        left, right = _on_one_origin(self, other)
        lower, upper = _merged(
            torch.cat([left.lower, right.lower]), torch.cat([left.upper, right.upper])
        )
        ends: Ends = left.ends if left.ends == right.ends else "either"
        return Intervals(left.origin, lower, upper, anchored=left.anchored, ends=ends)

    def __invert__(self) -> "Intervals":
        lower, order = self.lower.sort(dim=0)
        upper = self.upper.gather(0, order)
        # The gaps between neighbours; an empty interval sorts last and starts a gap at +inf.
        edge = torch.full_like(lower[:1], INFINITY)
        gap_lower = torch.cat([-edge, torch.where(lower > upper, edge, upper)])
        gap_upper = torch.cat([lower, edge])
        gap_lower, gap_upper = _empty_where(gap_lower >= gap_upper, gap_lower, gap_upper)
        return Intervals(self.origin, gap_lower, gap_upper, anchored=self.anchored, ends="either")

    def log_measure(
        self,
        *,
        within: LogOf2,
        between: LogOf2,
        below: LogOf1,
        above: LogOf1,
        log_weight: Tensor | float = 0.0,
    ) -> Tensor:
        """Log-probability of the union, log Σ_k w_k P(lower_k ≤ ŷ ≤ upper_k).

        The functions never see an infinity: scaled by a trained σ, it would have a NaN gradient.

        Args:
            within: (center, half_width) → log P(|ŷ − center| ≤ half_width), for intervals that are
                narrow beside their origin, whose ends would be rounded to it.
            between: (lower, upper) → log P(lower ≤ ŷ ≤ upper), for intervals with one end so far
                out that the centre would have none of the other's digits.
            below: x → log P(ŷ ≤ x), for intervals without a lower end.
            above: x → log P(ŷ ≥ x), for intervals without an upper end.
            log_weight: log w_k, for intervals that count differently; they may then overlap.

        **Shape**: each is called with (K, *S) and returns that; the result is (*S).
        """
        filled = self.upper > self.lower
        to_left, to_right = self.lower == -INFINITY, self.upper == INFINITY
        log_terms = torch.zeros_like(self.lower)  # the whole line, unless something cuts it
        if self.ends != "infinite":
            finite = filled & ~to_left & ~to_right
            low, high = torch.where(finite, self.lower, -1.0), torch.where(finite, self.upper, 1.0)
            log_inside = _log_inside(self.origin, low, high, within, between)
            log_terms = torch.where(finite, log_inside, log_terms)
        if self.ends != "finite":
            up, down = filled & to_right & ~to_left, filled & to_left & ~to_right
            log_above = above(self.origin + torch.where(up, self.lower, 0.0))
            log_below = below(self.origin + torch.where(down, self.upper, 0.0))
            log_terms = torch.where(up, log_above, torch.where(down, log_below, log_terms))
        return log_sum(torch.where(filled, log_terms + log_weight, -INFINITY))

    def parts(self) -> "Iterator[Intervals]":
        """The intervals one by one, without those that are empty in every row.

        The values are looked at, so that each part knows its ends; not for use under vmap.
        """
        for lower, upper in zip(self.lower, self.upper, strict=True):
            filled = upper > lower
            if bool(filled.any()):
                part = replace(self, lower=lower[None], upper=upper[None])
                yield replace(part, ends=part.ends_of(filled[None]))

    def ends_of(self, filled: Tensor) -> Ends:
        """Which ends some of the intervals have, by their values; ``filled`` says which."""
        finite = (self.lower.isfinite() & self.upper.isfinite())[filled]
        return "finite" if finite.all() else "either" if finite.any() else "infinite"


def _log_inside(
    origin: Tensor, low: Tensor, high: Tensor, within: LogOf2, between: LogOf2
) -> Tensor:
    """By the centre or by the ends of each interval, whichever keeps the digits."""
    far, near = torch.maximum(low.abs(), high.abs()), torch.minimum(low.abs(), high.abs())
    by_ends = far > 2 * (origin.abs() + near)
    seen = not torch._C._functorch.is_functorch_wrapped_tensor(by_ends)
    if seen and not bool(by_ends.any()):
        return within(origin + (low + high) / 2, (high - low) / 2)
    # where a form does not apply, it is asked about an interval that both can answer
    low_end, high_end = torch.where(by_ends, low, -1.0), torch.where(by_ends, high, 1.0)
    log_between = between(origin + low_end, origin + high_end)
    if seen and bool(by_ends.all()):
        return log_between
    low, high = torch.where(by_ends, -1.0, low), torch.where(by_ends, 1.0, high)
    log_within = within(origin + (low + high) / 2, (high - low) / 2)
    return torch.where(by_ends, log_between, log_within)


def _per_row(bound: Tensor | float, y: Tensor) -> Tensor:
    offset = bound.to(y) if isinstance(bound, Tensor) else y.new_tensor(bound)
    return offset.expand(y.shape)[None]


def _on_one_origin(a: Intervals, b: Intervals) -> tuple[Intervals, Intervals]:
    if a.anchored == b.anchored:
        return a, b
    return _absolute(a), _absolute(b)


def _absolute(a: Intervals) -> Intervals:
    origin = torch.zeros_like(a.origin)
    return Intervals(origin, a.lower_bounds, a.upper_bounds, anchored=False, ends=a.ends)


def _empty_where(mask: Tensor, lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    return torch.where(mask, INFINITY, lower), torch.where(mask, -INFINITY, upper)


def _merged(lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    """Join overlapping and touching intervals; the first of a group takes the group's end."""
    lower, order = lower.sort(dim=0)
    reach = upper.gather(0, order).cummax(dim=0).values
    starts = torch.cat([torch.ones_like(lower[:1], dtype=torch.bool), lower[1:] > reach[:-1]])
    ends = [reach[-1]]
    for k in range(len(lower) - 2, -1, -1):
        ends.append(torch.where(starts[k + 1], reach[k], ends[-1]))
    upper = torch.stack(ends[::-1])
    return _empty_where(~starts | (lower > upper), lower, upper)
