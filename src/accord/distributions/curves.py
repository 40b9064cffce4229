"""Monotone curves between normal scores: the shape that recalibration gives to a distribution.

A cdf value p has the normal score z = Φ⁻¹(p). Scores stay far apart where cdf values crowd against
0 and 1, so a curve between scores, straight beyond its last knots, has tails: they are Gaussian.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import ndtr, ndtri
from torch import Tensor

from accord._types import Floats

_MAX_KNOTS = 25
# The steepest a curve may be: scores that coincide would give an infinite density.
_STEEPEST = 1e3
# Φ(±8.3) are the last cdf values that float64 tells from 0 and 1.
_LAST_SCORE = 8.3


@dataclass(frozen=True)
class MonotoneCurve:
    """A strictly increasing, piecewise linear map of the real line onto itself.

    Beyond the first and last knot it goes on along the chords from there to the middle knot.

    Args:
        knots: Where the curve bends, strictly increasing; an odd number.
        values: Its values there, strictly increasing.

    **Shape:** knots and values (K,); the curve maps any shape to itself

    Example:
        >>> curve = MonotoneCurve(np.array([-1.0, 0.0, 1.0]), np.array([-3.0, 0.0, 2.0]))
        >>> curve(torch.tensor([-2.0, 0.5, 2.0]))
        tensor([-6.,  1.,  4.])
        >>> curve.inverse()(torch.tensor([-6.0, 1.0, 4.0]))
        tensor([-2.0000,  0.5000,  2.0000])
    """

    knots: Floats
    values: Floats

    def __call__(self, x: Tensor) -> Tensor:
        starts, heights, slopes = self._segments(x)
        i = self._segment_of(x)
        return heights[i] + slopes[i] * (x - starts[i])

    def log_slope(self, x: Tensor) -> Tensor:
        """Logarithm of the derivative, at a knot that of the segment above it."""
        slopes = self._segments(x)[2]
        return slopes.log()[self._segment_of(x)]

    def inverse(self) -> MonotoneCurve:
        """The curve that undoes this one."""
        return MonotoneCurve(self.values, self.knots)

    def _segments(self, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Start, height there and slope of the K + 1 segments, the tails first and last."""
        chords = self._chords()
        inner = np.diff(self.values) / np.diff(self.knots)
        starts = np.concatenate([self.knots[:1], self.knots])
        heights = np.concatenate([self.values[:1], self.values])
        slopes = np.concatenate([chords[:1], inner, chords[1:]])
        return tuple(  # type: ignore[return-value]
            torch.as_tensor(part, dtype=like.dtype, device=like.device)
            for part in (starts, heights, slopes)
        )

    def _segment_of(self, x: Tensor) -> Tensor:
        knots = torch.as_tensor(self.knots, dtype=x.dtype, device=x.device)
        return torch.searchsorted(knots, x.detach().contiguous(), right=True)

    def _chords(self) -> Floats:
        ends, middle = [0, -1], len(self.knots) // 2
        rise = self.values[ends] - self.values[middle]
        chords: Floats = rise / (self.knots[ends] - self.knots[middle])
        return chords


def curve_through_scores(scores: Floats, *, weight: Floats | None = None) -> MonotoneCurve:
    """The curve that turns a sample of scores into standard normal ones.

    A sample's quantile at level p goes to Φ⁻¹(p). The isotonic fit of the sample's distribution
    function is that function itself, a staircase with no density; here it is followed at few
    levels only, equally spaced in score from the smallest row to the largest, with 0.6 n^(1/3)
    knots on either side of the median: fewer miss the shape, more follow the noise.

    Args:
        scores: Normal scores of the observed targets; may be infinite.
        weight: Weight of each, equal unless given.

    **Shape:** scores and weight (n,)

    Example:
        >>> z = np.random.default_rng(0).normal(size=5000)
        >>> curve = curve_through_scores(3 * z)     # three times too wide
        >>> curve(torch.tensor([-3.0, 0.0, 3.0])).round(decimals=1)
        tensor([-1.,  0.,  1.])
    """
    weight = np.ones_like(scores) if weight is None else weight
    n = max(effective_size(weight), 2.0)  # one row alone says nothing of the spread
    outermost = ndtri(n / (n + 1))
    half = int(np.clip(round(0.6 * n ** (1 / 3)), 1, _MAX_KNOTS // 2))
    values = np.linspace(-outermost, outermost, 2 * half + 1)
    knots = _weighted_quantile(_finite(scores), weight, ndtr(values))
    return MonotoneCurve(_spread(knots, values), values)


def effective_size(weight: Floats) -> float:
    """Number of equally weighted rows that tell as much: (Σw)² / Σw²."""
    return float(weight.sum() ** 2 / np.square(weight).sum())


def _finite(scores: Floats) -> Floats:
    """Infinite scores (targets outside the distribution's support) become the last finite ones."""
    finite = np.abs(scores[np.isfinite(scores)])
    last = max(_LAST_SCORE, finite.max(initial=0.0))
    return np.clip(scores, -last, last)


def _weighted_quantile(scores: Floats, weight: Floats, levels: Floats) -> Floats:
    """Quantiles with the i-th of n equal rows at level i / (n + 1), interpolated between."""
    order = np.argsort(scores, kind="stable")
    total = weight.sum() * (1 + 1 / effective_size(weight))
    cumulative = np.cumsum(weight[order])
    own = cumulative - 0.5 * weight[order] + 0.5 * (total - weight.sum())
    return np.interp(levels, own / total, scores[order])


def _spread(knots: Floats, values: Floats) -> Floats:
    """Move coinciding knots apart, as little as the steepest slope asks, about their middle."""
    least = np.diff(values) / _STEEPEST
    apart = np.concatenate([[0.0], np.cumsum(np.maximum(np.diff(knots), least))])
    middle = len(knots) // 2
    spread: Floats = knots[middle] + apart - apart[middle]
    return spread
