"""What any distribution can compute without closed forms: quantiles, and moments over them.

Quantiles are found by inversion of the cdf, for all rows and levels at once.

Moments are integrals over the quantiles. With u = Φ(s), E[g(Y)] = ∫ g(Q(Φ(s))) φ(s) ds: whatever
the distribution, the nodes lie where its mass is, and the integrand is smooth where its quantile
function is. Gauss–Legendre in ten panels between s = ±9, beyond which less than 1e-18 of the
probability lies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.special import ndtr
from torch import Tensor

from accord.distributions.batch import rows_of

if TYPE_CHECKING:
    from accord.distributions.distribution import Distribution, Pointwise, Variances

_TOLERANCE = 1e-12  # of the log-odds, and so of the smaller tail relative to itself
_RESOLUTION = 2.3e-16  # of the point relative to itself: float64 has no more
_NEWTON_STEPS = 40
_NEWTON_TOLERANCE = 1e-12  # of the smaller tail relative to itself
# An answer this near, of the tail relative to itself, is one step from the tolerance above, since a
# step squares its error, if that step is short, in standard deviations: between members far apart
# the density is next to nothing, and a step by it would leave the answer that has been found.
_NEAR, _SHORT = 1e-7, 1e-6
_SQRT_2PI = math.sqrt(2 * math.pi)
_ITERATIONS = 200  # bisection alone takes about 130 from one end of float64 to the other

# Tail probabilities: where the mass is, and so far out that what lies beyond never counts.
NEAR_LEVELS = (1e-16, 1e-9, 1e-4, 0.02, 0.2)
FAR_LEVELS = (1e-100, 1e-30)

PANELS = (-9.0, -5.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 5.0, 9.0)
_PER_PANEL = 6


# --- quantiles ----------------------------------------------------------------------------------


def invert(
    distribution: Distribution,
    p: Tensor,
    q: Tensor,
    *,
    bracket: tuple[Tensor, Tensor],
    start: Tensor,
    slope: Tensor,
) -> Tensor:
    """The points x in the bracket with P(Y ≤ x) = p and P(Y ≥ x) = q, to 1e-12 of the smaller.

    The root of g(x) = log-odds of the smaller tail − its target: g is nearly linear, so that few
    steps are needed from far away, and it resolves p = 1e-300 as well as p = 1/2. From ``start``,
    where g has about the given ``slope``, each step goes to the root of the inverse parabola
    through the last three points (Brent's method); a step that leaves the bracket, or that does not
    halve the step before the last, is replaced by a bisection. Rows are dropped as they converge.

    **Shape**: all ``(K, n)`` for a distribution of shape ``(n,)``.
    """
    lower, upper = bracket
    shape, inside = p.shape, (p > 0) & (q > 0) & (lower < upper)
    found = torch.where(q <= 0, upper, lower).reshape(-1)
    known = (start >= lower) & (start <= upper)
    x = torch.where(start.isfinite(), start, _between(lower, upper)).clamp(lower, upper)
    slope = torch.where(known, slope, torch.nan)
    # a root at an end must not fall outside by rounding
    ends = (lower - 1e-14 * lower.abs(), upper + 1e-14 * upper.abs())
    search = _Search(x, slope, p, q, *ends)
    index = torch.arange(found.numel(), device=p.device)
    active = inside.reshape(-1)
    for _ in range(_ITERATIONS):
        if 2 * int(active.sum()) <= len(index):
            index, kept = index[active], torch.nonzero(active).squeeze(-1)
            distribution = distribution._map(rows_of(kept % distribution.shape[0]))
            search.keep(kept)
            active = torch.ones_like(index, dtype=torch.bool)
        if not len(index):
            break
        points = search.x.reshape(-1, distribution.shape[0])
        log_tail = distribution._log_tail(points, search.sign.reshape(points.shape))
        done = search.advance(log_tail.reshape(-1))
        newly = done & active
        found[index[newly]] = search.x[newly]
        active = active & ~done
    return found.reshape(shape)


def newton(distribution: Distribution, p: Tensor, q: Tensor) -> Tensor | None:
    """The points x with P(Y ≤ x) = p and P(Y ≥ x) = q, 0 < p < 1; None if some are not found.

    The normal score Φ⁻¹(P) is nearly a straight line for whatever resembles a normal distribution:
    from the quantile of that with the same moments, Newton's method on it takes three or four
    steps, each with one evaluation of tail and density. Cantelli's inequality gives a bracket,
    μ − σ√(q/p) ≤ x ≤ μ + σ√(p/q); a step that leaves it is replaced by a bisection. `invert` serves
    what this does not reach.

    **Shape**: p and q ``(K, 1)`` or ``(K, n)`` for shape ``(n,)``; the result is ``(K, n)``.
    """
    mean, std = distribution._mean(), distribution._variance().sqrt()
    if not bool((std > 0).all() and std.isfinite().all() and (p > 0).all() and (q > 0).all()):
        return None
    low, high = mean - std * (q / p).sqrt(), mean + std * (p / q).sqrt()
    sign, tail = torch.where(p <= q, 1.0, -1.0).to(p), torch.minimum(p, q)
    score = torch.special.ndtri(tail)
    x = mean + std * sign * score
    state = [v.expand(x.shape).reshape(-1) for v in (x, low, high, sign, tail, score, std)]
    found = torch.empty_like(state[0])
    index = torch.arange(found.numel(), device=found.device)
    for _ in range(_NEWTON_STEPS):
        if not len(index):
            return found.reshape(x.shape)
        done, state = _newton_step(distribution, *state)
        if bool(done.any()):
            found[index[done]] = state[0][done]
        left = ~done
        if 2 * int(left.sum()) <= len(index):
            kept = torch.nonzero(left).squeeze(-1)
            index, state = index[kept], [v[kept] for v in state]
            distribution = distribution._map(rows_of(kept % distribution.shape[0]))
    return None


def _newton_step(
    distribution: Distribution,
    x: Tensor,
    low: Tensor,
    high: Tensor,
    sign: Tensor,
    tail: Tensor,
    score: Tensor,
    std: Tensor,
) -> tuple[Tensor, list[Tensor]]:
    """Which points are answers, and the state for the next step."""
    points = x.reshape(-1, distribution.shape[0])
    here, density = distribution._tail_and_density(points, sign.reshape(points.shape))
    here, density = here.reshape(-1), density.reshape(-1)
    reached = torch.special.ndtri(here.clamp(max=1.0))
    error = sign * (reached - score)
    apart = (here - tail).abs()
    low, high = torch.where(error <= 0, x, low), torch.where(error >= 0, x, high)
    height = torch.exp(-0.5 * reached * reached) / _SQRT_2PI
    trial = x - error * height / density
    inside = (trial > low) & (trial < high)
    # an answer takes its last step too, which squares its error
    near = inside & ((trial - x).abs() <= _SHORT * std) & (apart <= _NEAR * tail)
    done = near | (apart <= _NEWTON_TOLERANCE * tail)
    following = trial
    if not bool((inside | done).all()):
        following = torch.where(inside, trial, _between(low, high))
    kept = torch.where(near, trial, x)
    return done, [torch.where(done, kept, following), low, high, sign, tail, score, std]


class _Search:
    """The state of every root search: the last three points, their errors, the bracket."""

    def __init__(self, x: Tensor, slope: Tensor, p: Tensor, q: Tensor, *ends: Tensor) -> None:
        self.x, self.slope, p, q = (t.reshape(-1) for t in (x, slope, p, q))
        self.low, self.high = (end.reshape(-1) for end in ends)
        self.sign = torch.where(p <= q, 1.0, -1.0).to(p)
        self.target = _log_odds(torch.minimum(p, q).log())
        self.step = self.step_before = self.high - self.low
        self.x1 = self.x2 = torch.full_like(self.x, torch.nan)
        self.error1 = self.error2 = self.x1

    def keep(self, index: Tensor) -> None:
        for name, value in vars(self).items():
            setattr(self, name, value[index])

    def advance(self, log_tail: Tensor) -> Tensor:
        """One step; true where the search is over, its point then the answer."""
        x, error = self.x, (_log_odds(log_tail) - self.target) * self.sign
        self.low = torch.where(error <= 0, x, self.low)
        self.high = torch.where(error >= 0, x, self.high)
        finest = _RESOLUTION * x.abs()
        trial = self._interpolate(error)
        # never less than the finest step, so that the root is soon passed and the bracket closes
        trial = torch.where((trial - x).abs() < finest, x - error.sign() * finest, trial)
        inside = (trial > self.low) & (trial < self.high)
        safe = inside & ((trial - x).abs() <= (self.step_before / 2).clamp(min=finest))
        following = torch.where(safe, trial, _between(self.low, self.high))
        done = (error.abs() <= _TOLERANCE) | (self.high - self.low <= 2 * finest)
        self.step, self.step_before = (following - x).abs(), self.step
        self.x2, self.error2, self.x1, self.error1 = self.x1, self.error1, x, error
        self.x = torch.where(done, x, following)
        return done

    def _interpolate(self, error: Tensor) -> Tensor:
        """The root by the inverse parabola, the secant or the slope, as there are points."""
        x, x1, x2, e, e1, e2 = self.x, self.x1, self.x2, error, self.error1, self.error2
        secant = x - e * (x - x1) / (e - e1)
        bend = ((x1 - x2) / (e1 - e2) - (x - x1) / (e - e1)) / (e2 - e)
        parabola = secant + e * e1 * bend
        first = torch.where(secant.isfinite(), secant, x - e / self.slope)
        return torch.where(parabola.isfinite(), parabola, first)


def _between(low: Tensor, high: Tensor) -> Tensor:
    """The arithmetic mean, or the geometric one of ends of one sign and different size."""
    inner, outer = torch.minimum(low.abs(), high.abs()), torch.maximum(low.abs(), high.abs())
    sided = (low.sign() * high.sign()) > 0
    geometric = torch.copysign(inner.sqrt() * outer.sqrt(), low)
    return torch.where(sided & (outer > 8 * inner), geometric, low / 2 + high / 2)


def _log_odds(log_tail: Tensor) -> Tensor:
    """log p/(1 − p) from log p, which rounding may have put above 0."""
    return log_tail - torch.log(-torch.expm1(log_tail.clamp(max=0)))


# --- moments ------------------------------------------------------------------------------------


def _score_nodes() -> tuple[Any, Any]:
    """Normal scores, and weights that add to 1."""
    node, weight = np.polynomial.legendre.leggauss(_PER_PANEL)
    ends = np.array(PANELS)
    middle, half = (ends[1:] + ends[:-1]) / 2, np.diff(ends) / 2
    scores = (middle[:, None] + half[:, None] * node).ravel()
    weights = (half[:, None] * weight).ravel() * np.exp(-(scores**2) / 2)
    return scores, weights / weights.sum()


SCORES, WEIGHTS = _score_nodes()


def score_levels(like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Probabilities below and above each node, and its weight, ``(K,)``."""
    parts = ndtr(SCORES), ndtr(-SCORES), WEIGHTS
    return tuple(torch.from_numpy(x).to(like) for x in parts)  # type: ignore[return-value]


def mean_and_variance(values: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Of weighted values along the first axis; taken about one of them, so that nothing cancels."""
    column = weights.to(values).reshape(-1, *(1 for _ in values.shape[1:]))
    center = values[len(values) // 2]
    offset = values - center
    mean = (column * offset).sum(0)
    return center + mean, (column * (offset - mean) ** 2).sum(0)


def quantile_rows(dist: Distribution, levels: Sequence[float]) -> Tensor:
    """Quantiles of a flat batch at a few levels, ``(K, n)``."""
    p = torch.tensor(levels, dtype=torch.float64, device=dist._reference.device)
    return dist._quantiles(p, 1 - p).movedim(-1, 0).detach()


def spread_landmarks(dist: Distribution, *, far: bool) -> Tensor:
    """`Distribution._landmarks` from quantiles on both sides, for a density without symmetry."""
    below = FAR_LEVELS + NEAR_LEVELS if far else NEAR_LEVELS
    p = torch.tensor(below, dtype=torch.float64, device=dist._reference.device)
    lower, upper = dist._quantiles(p, 1 - p), dist._quantiles(1 - p, p)
    middle = quantile_rows(dist, (0.5,))
    return torch.cat([lower.movedim(-1, 0), middle, upper.movedim(-1, 0)]).detach()


def shared_parts(variance: Tensor, parts: Variances) -> Variances:
    """A variance divided in the proportions of other parts; all noise where there are none."""
    total = parts[0] + parts[1] + parts[2]
    known = (total > 0) & total.isfinite()
    scale = torch.where(known, variance / torch.where(known, total, 1.0), 0.0)
    disagreement, distance = parts[1] * scale, parts[2] * scale
    disagreement, distance = (torch.where(known, x, 0.0) for x in (disagreement, distance))
    return variance - disagreement - distance, disagreement, distance


def moments_by_quantiles(dist: Distribution, function: Pointwise) -> tuple[Tensor, Variances]:
    """`Distribution._moments_through` for any distribution.

    The parts of the variance have the proportions of its own.
    """
    p, q, weights = score_levels(dist._reference.double())
    points = dist._quantiles(p, q).movedim(-1, 0)
    mean, variance = mean_and_variance(function(points), weights)
    return mean, shared_parts(variance, dist._variances())
