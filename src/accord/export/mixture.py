"""What an ensemble predicts, in a graph: outputs of stacked networks, and mixtures of bell curves.

The member axis of networks comes first. Of a mixture there are the moments and quantiles.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from accord._types import Floats
from accord.export.curves import NORMAL, Curve, Moments
from accord.export.graph import Graph, Value

# Rounds of a search: ten are many; bisection alone takes about 60.
_ROUNDS = 100
# The last step of a search, in deviations: it squares the error that is left.
_LAST_STEP = 1e-7
_LEAST = 1e-300  # the smallest target whose logarithm is taken


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
        x = (mean + std * (sign * ndtri(tails))[None]).at_least(low).at_most(high)
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
