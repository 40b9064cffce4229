"""A distribution whose cdf values are passed through a monotone curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np
import torch
from scipy.special import ndtr, ndtri
from torch import Tensor

from accord._numerics import NORMAL, log_between
from accord._types import Floats
from accord.distributions.batch import Generator, TensorMap
from accord.distributions.distribution import Distribution, Pointwise, Variances
from accord.distributions.numerical import (
    PANELS,
    moments_by_quantiles,
    shared_parts,
    spread_landmarks,
)
from accord.distributions.wrapped import Wrapped

_MAX_KNOTS = 25
# The steepest a curve may be: scores that coincide would give an infinite density.
_STEEPEST = 1e3
# Φ(±8.3) are the last cdf values that float64 distinguishes from 0 and 1.
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
    """Number of equally weighted rows that say as much: (Σw)² / Σw²."""
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
    """Separate coinciding knots, as little as the steepest slope asks, about their middle."""
    least = np.diff(values) / _STEEPEST
    offset = np.concatenate([[0.0], np.cumsum(np.maximum(np.diff(knots), least))])
    middle = len(knots) // 2
    spread: Floats = knots[middle] + offset - offset[middle]
    return spread


# Φ(−37) is the last normal float64: the base has no name for quantiles beyond.
_LAST_BASE_SCORE = 37.0
_NODES = 8


@final
class Reshaped(Wrapped):
    """The base with its cdf F replaced by G = Φ ∘ T ∘ Φ⁻¹ ∘ F, T a monotone curve between scores.

    With z(y) = Φ⁻¹(F(y)) its density is g(y) = f(y) T'(z) φ(T(z)) / φ(z): positive wherever the
    base's is, and finite, because T' is. Both tails of F are used, so nothing is lost far from the
    centre. Mean and variance come from Gauss–Legendre quadrature of the cdf (errors of about 1e-4
    deviations); the parts of the variance have the base's proportions. Power-law tails (Student-t)
    that are stretched become heavier, and may lose their moments.

    Args:
        base: Before reshaping.
        curves: One for all rows, or one per output.

    **Shape**: that of the base, (N,) with one curve or (N, K) with K curves.

    Example:
        >>> from accord.distributions import Normal
        >>> double = MonotoneCurve(np.array([-2.0, 0.0, 2.0]), np.array([-1.0, 0.0, 1.0]))
        >>> Reshaped(Normal([0.0], 1.0), [double]).interval(0.95).round(2)
        array([[-3.92,  3.92]])
    """

    def __init__(self, base: Distribution, curves: Sequence[MonotoneCurve]) -> None:
        outputs = base.shape[-1] if len(base.shape) > 1 else 1
        if len(curves) != outputs:
            raise ValueError(
                f"curves must be one per output, got {len(curves)} for {outputs} outputs. "
                "Calibrate and predict the same outputs."
            )
        self._base, self._numpy, self._curves = base, base._numpy, tuple(curves)
        column = torch.arange(outputs, dtype=torch.float64, device=base._reference.device)
        self._column = column.expand(base.shape)
        self._known: tuple[Tensor, Tensor] | None = None

    def _map(self, function: TensorMap, lead: int = 0) -> Self:
        return self._replace(
            _base=self._base._map(function, lead),
            _column=function(self._column, lead),
            _known=None,
        )

    def _mean(self) -> Tensor:
        return self._moments()[0]

    def _variances(self) -> Variances:
        return shared_parts(self._moments()[1], self._base._variances())

    def _tolerance_variance(self) -> Tensor:
        return self._base._tolerance_variance() * self._moments()[1] / self._base._variance()

    def _moments_through(self, function: Pointwise) -> tuple[Tensor, Variances]:
        return moments_by_quantiles(self, function)

    def _moved(self, shift: Tensor, factor: Tensor) -> Self:
        return self._replace(_base=self._base._moved(shift, factor), _known=None)

    def _landmarks(self, *, far: bool) -> Tensor:
        return spread_landmarks(self, far=far)

    def _log_prob(self, value: Tensor) -> Tensor:
        z = _score_at(self._base, value)
        # Where the base has no density, neither has its reshaped form.
        z = z.clamp(-1e8, 1e8)
        log_slope = self._by_column([curve.log_slope(z) for curve in self._curves])
        w = self._apply(z)
        change = NORMAL.log_pdf(w) - NORMAL.log_pdf(z) + log_slope
        return self._base._log_prob(value) + change

    def _log_tail(self, value: Tensor, sign: Tensor) -> Tensor:
        log_p: Tensor = torch.special.log_ndtr(sign * self._score(value))
        return log_p

    def _log_between(self, lower: Tensor, upper: Tensor) -> Tensor:
        return log_between(NORMAL, self._score(lower), self._score(upper))

    def _log_within(self, center: Tensor, half_width: Tensor) -> Tensor:
        a, b = self._score(center - half_width), self._score(center + half_width)
        wide = log_between(NORMAL, a, torch.maximum(a, b))
        # So narrow a window that the scores of its ends agree in most digits has constant density.
        narrow = self._log_prob(center) + (2 * half_width).log()
        return torch.where((b - a).abs() < 1e-6, narrow, wide)

    def _bracket(self, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        tail = torch.special.ndtri(torch.minimum(p, q))
        quantile = self._point(torch.where(p <= q, tail, -tail))
        return quantile, quantile

    def _draw(self, n: int, rng: Generator) -> Tensor:
        u = torch.from_numpy(np.asarray(rng.random((n, *self.shape))))
        return self._evaluate("_quantile", *(v.to(self._reference.device) for v in (u, 1 - u)))

    def _describe(self) -> str:
        return f"{self._base!r}, {len(self._curves[0].knots)} knots"

    def _score(self, value: Tensor) -> Tensor:
        return self._apply(_score_at(self._base, value))

    def _apply(self, z: Tensor) -> Tensor:
        return self._by_column([curve(z) for curve in self._curves])

    def _by_column(self, answers: list[Tensor]) -> Tensor:
        chosen = answers[0]
        for column, answer in enumerate(answers[1:], start=1):
            chosen = torch.where(self._column == column, answer, chosen)
        return chosen

    def _point(self, w: Tensor) -> Tensor:
        """Where the normal score is w after reshaping; a flat batch, scores before it."""
        z = self._by_column([curve.inverse()(w) for curve in self._curves])
        near = torch.where(w.isinf(), w, z.clamp(-_LAST_BASE_SCORE, _LAST_BASE_SCORE))
        point = self._base_point(near)
        beyond = torch.where(w.isinf(), 0.0, z - near)
        if not bool(beyond.any()):
            return point
        # Straight on, which is exact where the base has Gaussian tails.
        slope = (point - self._base_point(near - beyond.sign())) * beyond.sign()
        return torch.where(beyond == 0, point, point + slope * beyond)

    def _base_point(self, z: Tensor) -> Tensor:
        return self._base._quantile(NORMAL.cdf(z), NORMAL.cdf(-z))

    def _moments(self) -> tuple[Tensor, Tensor]:
        """Mean and variance, found once.

        About the median c, E[Y − c] = ∫ S − ∫ G and E[(Y − c)²] = 2 ∫ (y − c) S + 2 ∫ (c − y) G,
        with S = 1 − G over y > c and G over y < c: cdf values at nodes between a few quantiles.
        """
        if self._known is None:
            ends = self._evaluate("_point", self._batched(PANELS)).to(torch.float64)
            center, width = ends[len(PANELS) // 2], ends.diff(dim=0)
            nodes, weights = np.polynomial.legendre.leggauss(_NODES)
            first = second = torch.zeros_like(center)
            for node, weight in zip(nodes, weights / 2, strict=True):
                y = ends[:-1] + (1 + node) / 2 * width
                sign = torch.where(y > center, -1.0, 1.0).to(y)
                tail = weight * width * self._evaluate("_log_tail", y, sign).exp()
                first = first - (sign * tail).sum(0)
                second = second + 2 * ((y - center).abs() * tail).sum(0)
            self._known = center + first, second - first**2
        return self._known

    def _batched(self, values: Sequence[float]) -> Tensor:
        """The same values for every row, in front of the batch."""
        column = torch.tensor(values, dtype=torch.float64, device=self._reference.device)
        return column.reshape(-1, *(1 for _ in self.shape)).expand(-1, *self.shape)


def normal_scores(dist: Distribution, value: Floats) -> Floats:
    """z = Φ⁻¹(F(value)), the place of each value in its distribution, in normal deviations.

    **Shape**: value and result of the distribution's shape.

    Example:
        >>> from accord.distributions import Laplace
        >>> normal_scores(Laplace([0.0, 0.0], 1.0), np.array([0.0, 1e4])).round(2)
        array([  0.  , 141.38])
    """
    points = torch.from_numpy(value).to(dist._reference)
    sign = torch.ones_like(points)
    below, above = (dist._evaluate("_log_tail", points, side) for side in (sign, -sign))
    scores: Floats = _score_between(below, above).detach().cpu().double().numpy()
    return scores


def _score_at(dist: Distribution, value: Tensor) -> Tensor:
    """The same for a flat batch, inside the evaluation of a distribution."""
    sign = torch.ones_like(value)
    return _score_between(dist._log_tail(value, sign), dist._log_tail(value, -sign))


def _score_between(below: Tensor, above: Tensor) -> Tensor:
    """From log F and log(1 − F), the smaller of the two, so that it is exact far out."""
    tail = _log_ndtri(torch.minimum(below, above))
    return torch.where(below <= above, tail, -tail)


def _log_ndtri(log_p: Tensor) -> Tensor:
    """Φ⁻¹(exp(log_p)) for log_p ≤ log ½: by Newton's method where exp(log_p) underflows."""
    direct: Tensor = torch.special.ndtri(log_p.double().exp())
    far = (log_p < -600) & log_p.isfinite()
    if not bool(far.any()):
        return direct.to(log_p)
    target = torch.where(far, log_p, -700.0).double()
    z = -(-2 * target - torch.log(-4 * torch.pi * target)).sqrt()
    for _ in range(3):  # log Φ is nearly a parabola here: each step doubles the digits
        log_phi = torch.special.log_ndtr(z)
        z = z - (log_phi - target) * torch.exp(log_phi - NORMAL.log_pdf(z))
    return torch.where(far, z, direct).to(log_p)
