"""What an ensemble predicts, in a graph: bell curves, their mixtures, and outputs of networks.

Curves are stated in elementary operations: ONNX has no error function in float64, and no Student-t.
The normal tail is φ(x) times Mills' ratio, which is t P(t) with t = 1/(1 + x/4) and a polynomial P.
The Student-t tail with n degrees of freedom is wⁿ K(τ) with w = cos θ, τ = tan θ/2 and
tan θ = x/√n, again with a polynomial K: both are analytic in τ on [0, 1]. Either holds to about
1e-13 of the tail itself. Of a mixture there are the moments and quantiles. The member axis of
networks comes first.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, final

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray
from scipy import special

from accord._types import Floats
from accord.export.graph import Graph, NotExportableError, Value, polynomial

_MILLS_RATE, _MILLS_DEGREE = 0.25, 20
_STUDENT_DEGREE = 28
# Fitted polynomials are checked to this much of a tail; the curves in use reach 1e-12.
_FIT = 1e-9
# A window this narrow, in scales, has the cdf of its middle up to a term of second order.
_NARROW = 1e-4
_FARTHEST = 1e150  # can be squared
_LAST_NORMAL = 39.0  # beyond, the density is 0 in float64
# Rounds of a search: ten are many; bisection alone takes about 60.
_ROUNDS = 100
# The last step of a search, in deviations: it squares the error that is left.
_LAST_STEP = 1e-7
_LEAST = 1e-300  # the smallest target whose logarithm is taken


class Curve(ABC):
    """A standard, symmetric distribution; abstract.

    ``variance`` is that of scale 1.
    """

    variance: float

    @abstractmethod
    def both(self, z: Value) -> tuple[Value, Value]:
        """P(Z ≤ z), exact relative to itself where it is small, and the density."""

    @abstractmethod
    def area(self, z: Value, cdf: Value, density: Value) -> Value:
        """∫ P(Z ≤ u) du over u ≤ z, given the two of ``both``."""

    @abstractmethod
    def slope(self, z: Value, density: Value) -> Value:
        """The derivative of the density."""

    def smoothed(self, z: Value, half: Value) -> tuple[Value, Value]:
        """``both`` of Z + hU, U uniform on (−1, 1): means over z ± h."""
        low, high = z - half, z + half
        at, at_low, at_high = (self.both(x) for x in (z, low, high))
        wide = (self.area(high, *at_high) - self.area(low, *at_low)) / (2 * half)
        wide_density = (at_high[0] - at_low[0]) / (2 * half)
        narrow = at[0] + half.square() / 6 * self.slope(z, at[1])
        is_narrow = half < _NARROW
        return is_narrow.where(narrow, wide), is_narrow.where(at[1], wide_density)


Moments = tuple[Value, Value, Value]


@final
class NormalCurve(Curve):
    variance = 1.0

    @cached_property
    def _mills(self) -> list[float]:
        def ratio(t: Floats) -> Floats:
            t = np.maximum(t, 1e-9)
            x = (1 / t - 1) / _MILLS_RATE
            return np.asarray(math.sqrt(math.pi / 2) * special.erfcx(x / math.sqrt(2)) / t)

        return _fitted(ratio, _MILLS_DEGREE)

    def both(self, z: Value) -> tuple[Value, Value]:
        density = (z * z * -0.5).exp() * (1 / math.sqrt(2 * math.pi))
        t = 1 / (1 + _MILLS_RATE * z.abs())
        tail = density * (t * polynomial(self._mills, 2 * t - 1))
        return (z < 0).where(tail, 1 - tail), density

    def area(self, z: Value, cdf: Value, density: Value) -> Value:
        return z * cdf + density

    def slope(self, z: Value, density: Value) -> Value:
        return -z * density

    def above(self, z: Value) -> Moments:
        """P, E[Z] and E[Z²] over Z ≥ z."""
        mass, first, second = self.below(-z)
        return mass, -first, second

    def below(self, z: Value) -> Moments:
        """P, E[Z] and E[Z²] over Z ≤ z, exact relative to themselves also far out."""
        z = z.at_least(-_LAST_NORMAL).at_most(_LAST_NORMAL)
        mass, density = self.both(z)
        return mass, -density, mass - z * density


@final
class StudentCurve(Curve):
    def __init__(self, df: float) -> None:
        self.df = df
        self.variance = df / (df - 2) if df > 2 else math.inf
        log_height = math.lgamma((df + 1) / 2) - math.lgamma(df / 2)
        self._height = math.exp(log_height) / math.sqrt(df * math.pi)
        self._tail = _fitted(self._ratio, _STUDENT_DEGREE)

    def _ratio(self, tau: Floats) -> Floats:
        """T / wⁿ = I_u(n/2, ½) / 2 u^{n/2}, u = w²."""
        half, u = self.df / 2, np.square((1 - tau**2) / (1 + tau**2))
        series = special.hyp2f1(half, 0.5, half + 1, u)
        return np.asarray(series / (2 * half * special.beta(0.5, half)))

    def both(self, z: Value) -> tuple[Value, Value]:
        q = (z.abs() / math.sqrt(self.df)).at_most(_FARTHEST)
        root = (1 + q * q).sqrt()
        power = self._power(1 / root)
        tail = power * polynomial(self._tail, 2 * (q / (1 + root)) - 1)
        return (z < 0).where(tail, 1 - tail), power / root * self._height

    def _power(self, w: Value) -> Value:
        """wⁿ: by products where n is whole, which is several times faster."""
        if self.df != int(self.df):
            return (self.df * w.log()).exp()
        result, square, rest = None, w, int(self.df)
        while rest:
            if rest % 2:
                result = square if result is None else result * square
            square, rest = square * square if rest > 1 else square, rest // 2
        return w if result is None else result

    def area(self, z: Value, cdf: Value, density: Value) -> Value:
        return z * cdf + (self.df + z * z) / (self.df - 1) * density

    def slope(self, z: Value, density: Value) -> Value:
        return -(self.df + 1) * z / (self.df + z * z) * density


@final
class LaplaceCurve(Curve):
    variance = 2.0

    def both(self, z: Value) -> tuple[Value, Value]:
        tail = 0.5 * (-z.abs()).exp()
        return (z < 0).where(tail, 1 - tail), tail

    def area(self, z: Value, cdf: Value, density: Value) -> Value:
        return z.at_least(0.0) + density

    def slope(self, z: Value, density: Value) -> Value:
        return (z < 0).where(density, -density)


@final
class LogisticCurve(Curve):
    variance = math.pi**2 / 3

    def both(self, z: Value) -> tuple[Value, Value]:
        tail = (-z.abs()).exp()
        smaller = tail / (1 + tail)
        return (z < 0).where(smaller, 1 - smaller), smaller / (1 + tail)

    def area(self, z: Value, cdf: Value, density: Value) -> Value:
        return z.at_least(0.0) + (1 + (-z.abs()).exp()).log()

    def slope(self, z: Value, density: Value) -> Value:
        return density * (1 - 2 * self.both(z)[0])


NORMAL = NormalCurve()


def curve_of(family: str, df: float | None = None) -> Curve:
    """The curve of a family, by the name that estimators know it by.

    >>> curve_of("student-t", 4.0).variance
    2.0
    """
    match family:
        case "normal":
            return NORMAL
        case "laplace":
            return LaplaceCurve()
        case "logistic":
            return LogisticCurve()
        case "student-t" if df is not None:
            return NORMAL if math.isinf(df) else StudentCurve(float(df))
    raise NotExportableError([f"the family {family!r}"])


def _fitted(function: Callable[[Floats], Floats], degree: int) -> list[float]:
    """Coefficients in 2s − 1, the highest first, of a function on [0, 1]."""
    series = Chebyshev.interpolate(function, degree, domain=(0.0, 1.0))
    powers = [float(c) for c in np.polynomial.chebyshev.cheb2poly(series.coef)[::-1]]
    s = np.linspace(0, 1, 1001)
    if np.max(np.abs(np.polyval(powers, 2 * s - 1) / function(s) - 1)) > _FIT:
        raise NotExportableError(["a Student-t distribution with very many degrees of freedom"])
    return powers


def network_outputs(parameters: Sequence[NDArray[Any]], x: Value, activation: str) -> Value:
    """Raw outputs of all members; ``parameters`` hold the weights of all layers, then the biases.

    **Shape**: x (N, d) → (M, N, outputs).
    """
    graph = x.graph
    n_layers = len(parameters) // 2
    weights, biases = parameters[:n_layers], parameters[n_layers:]
    h = x.wider(0)
    for number, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        h = h @ _stored(graph, weight) + _stored(graph, bias)
        if number < n_layers - 1:
            h = _activated(h, activation)
    return h


def _stored(graph: Graph, block: NDArray[Any]) -> Value:
    """Weights in the precision that they were trained in: half the size for float32."""
    return graph.constant(block).cast(np.float64)


def _activated(h: Value, activation: str) -> Value:
    match activation:
        case "relu":
            return h.at_least(0.0)
        case "tanh":
            return h.graph.add("Tanh", h)
        case "silu":
            return h * h.sigmoid()
        case "gelu":
            return h * NORMAL.both(h)[0]
    raise ValueError(f"activation must be one that the graph knows, got {activation!r}.")


def heads(raw: Value, k: int, *, mean: str, variance: str, floor: float) -> tuple[Value, Value]:
    """Means and variances from the first 2k raw outputs, as :class:`accord.training.Heads` does.

    **Shape**: raw (M, N, ≥ 2k) → (M, N, k) each.
    """
    centers, spreads = raw.take(np.arange(k), 2), raw.take(np.arange(k, 2 * k), 2)
    if mean == "sigmoid":
        centers = centers.sigmoid()
    match variance:
        case "sigmoid":
            spreads = spreads.sigmoid()
        case "softplus":
            spreads = spreads.at_least(0.0) + (1 + (-spreads.abs()).exp()).log()
        case "exp":
            spreads = spreads.exp()
    return centers, spreads + floor


def by_row(values: Value, width: int) -> Value:
    """The curves of all members side by side: (M, N, K) → (N, M·K)."""
    return values.moved(1, 0, 2).shaped(0, width)


def affine(x: Value, shift: Floats, scale: Floats) -> Value:
    """(x − shift) / scale, of columns."""
    return (x - shift[None]) / scale[None]


@dataclass(frozen=True)
class CurveGroup:
    """Curves of one kind, with their shares of the mixture.

    With ``knot``, the curves are of z = log y, y going on along the tangent above exp(knot); with
    ``half_width``, each is smoothed by a window.

    **Shape**: location, scale and half_width (N, M) or (1, M); weight likewise.
    """

    curve: Curve
    location: Value
    scale: Value
    weight: Value
    knot: float | None = None
    half_width: Value | None = None

    def moments(self) -> tuple[Value, Value]:
        """Mean and variance of each curve, (N, M)."""
        if self.knot is not None:
            return _about_mean(*self._log_moments(self.knot))
        variance = self.curve.variance * self.scale.square()
        if self.half_width is not None:
            variance = variance + self.half_width.square() / 3
        return self.location, variance

    def both(self, points: Value, sign: Floats) -> tuple[Value, Value]:
        """Tail and density of each curve at points (N, L): the tail below for sign 1, above for −1.

        **Shape**: (N, L, M) each.
        """
        location, scale = self.location.wider(1), self.scale.wider(1)
        side, y = sign[:, None], points.wider(2)
        slope = 1 / scale
        if self.knot is not None:
            y, by_y = self._logarithm(y)
            slope = slope * by_y
        z = side * ((y - location) / scale)
        if self.half_width is None:
            tail, density = self.curve.both(z)
        else:
            tail, density = self.curve.smoothed(z, self.half_width.wider(1) / scale)
        return tail, density * slope

    def _logarithm(self, y: Value) -> tuple[Value, Value]:
        """z of y and dz/dy."""
        top = math.exp(self.knot or 0.0)
        curved = y.at_least(_LEAST).at_most(top)
        return curved.log() + (y / top - 1).at_least(0.0), 1 / curved

    def _log_moments(self, knot: float) -> Moments:
        """P, E[Y] and E[Y²]: the exponential of Z below the knot, the tangent above.

        E[e^{jZ}; Z ≤ z] = e^{jμ + j²σ²/2} Φ((z − μ)/σ − jσ).
        """
        m, s = self.location, self.scale
        k = (knot - m) / s
        parts = [
            (j * m + 0.5 * j * j * s.square()).exp() * NORMAL.below(k - j * s)[0] for j in (0, 1, 2)
        ]
        above = NORMAL.above(k)
        # on the tangent Y = e^knot (1 + Z − knot), about which Z − knot = σ(u − k)
        top, offset = math.exp(knot), 1 - s * k
        line = s * above[1] + offset * above[0]
        square = s.square() * above[2] + 2 * s * offset * above[1] + offset.square() * above[0]
        return parts[0] + above[0], parts[1] + top * line, parts[2] + top**2 * square


@dataclass(frozen=True)
class MixtureGraph:
    """The mixture of all groups' curves; their weights add to 1."""

    groups: Sequence[CurveGroup]

    @property
    def lowest(self) -> float:
        """The lower end of the support."""
        return -math.inf if any(group.knot is None for group in self.groups) else 0.0

    def moments(self) -> tuple[Value, Value]:
        """Mean and standard deviation, (N, 1) each."""
        parts = [group.moments() for group in self.groups]
        mean = self._average([mean for mean, _ in parts])
        spread = [variance + (m - mean).square() for m, variance in parts]
        return mean, self._average(spread).sqrt()

    def quantiles(self, tails: Floats, sign: Floats, own: Value | None = None) -> Value:
        """Points with these tail probabilities, below them for sign 1 and above for −1.

        ``own`` are the tails of each row, where they differ from these.

        Newton's method on the log-odds of the tail, from the quantile of the normal distribution
        with the same moments, inside the bracket of Cantelli's inequality. A step that leaves the
        bracket, or that is not half as long as the one before, is replaced by a bisection.

        **Shape**: tails, all positive, and sign (L,); own (N, L) → (N, L).
        """
        mean, std = self.moments()
        graph = mean.graph
        wanted = graph.real(tails[None]) if own is None else own
        odds_against = ((1 - wanted) / wanted).sqrt()
        lower = graph.constant(sign[None] > 0)
        reach = lower.where(odds_against, 1 / odds_against)
        low, high = mean - std * (1.01 * reach), mean + std * (1.01 / reach)
        x = (mean + std * (sign * special.ndtri(tails))[None]).at_least(low).at_most(high)
        target = (wanted / (1 - wanted)).log()

        def step(number: Value, *state: Value) -> tuple[Value, list[Value]]:
            x, low, high, before, done = state
            found, density = self._tail_and_density(x, sign)
            error = sign * (found - wanted)
            low, high = (error <= 0).where(x, low), (error >= 0).where(x, high)
            odds = (found / (1 - found)).log() - target
            move = odds * found * (1 - found) / density * sign
            trial = x - move
            inside = (trial >= low) & (trial <= high)
            newton = inside & (move.abs() <= 0.5 * before)
            following = done.where(x, newton.where(trial, 0.5 * (low + high)))
            length = (following - x).abs()
            done = done | (length <= _LAST_STEP * std)
            left = (~done).cast(np.int64).total().cast(np.bool_)
            return left, [following, low, high, length, done]

        start = [x, low, high, high - low, x.is_nan()]
        return graph.loop(_ROUNDS, start, step)[0]

    def _tail_and_density(self, x: Value, sign: Floats) -> tuple[Value, Value]:
        tails, densities = [], []
        for group in self.groups:
            weight = group.weight.wider(1)
            tail, density = group.both(x, sign)
            tails.append((weight * tail).sum(2))
            densities.append((weight * density).sum(2))
        return reduce(Value.__add__, tails), reduce(Value.__add__, densities)

    def _average(self, values: Sequence[Value]) -> Value:
        """The weighted sum over all curves, (N, 1)."""
        parts = [
            (group.weight * value).sum(1, keep=True)
            for group, value in zip(self.groups, values, strict=True)
        ]
        return reduce(Value.__add__, parts)


def _about_mean(mass: Value, first: Value, second: Value) -> tuple[Value, Value]:
    mean = first / mass
    return mean, (second / mass - mean.square()).at_least(0.0)
