"""The exponential of a random variable: a target whose logarithm was modelled."""

import math
from dataclasses import dataclass
from typing import Self, final

import numpy as np
import torch
from scipy import special
from torch import Tensor

from accord._checks import check_positive
from accord._types import Floats
from accord.distributions.batch import Generator, TensorMap, abridged, to_floats
from accord.distributions.distribution import Distribution, Pointwise, Variances
from accord.distributions.wrapped import Wrapped

# A variance as a difference of moments loses digits like the square of the scale.
_LEAST_SCALE = 1e-3


@final
@dataclass(frozen=True)
class Log:
    """z = log y, so that y = exp(z) is positive.

    Where y is above ``straight_from``, it goes on along the tangent: a wide distribution of z has
    an absurd mean after an exponential, and not after a straight line.
    """

    straight_from: float = math.inf

    def __post_init__(self) -> None:
        check_positive("straight_from", self.straight_from)

    @property
    def _knot(self) -> float:
        return math.log(self.straight_from)

    def forward(self, z: Tensor) -> Tensor:
        """y of z."""
        if math.isinf(self._knot):
            return torch.exp(z)
        curved = torch.exp(z.clamp(max=self._knot))
        return curved * (1 + (z - self._knot).clamp(min=0))

    def inverse(self, y: Tensor) -> Tensor:
        """z of y; −∞ for y at or below 0."""
        x = y.clamp(min=0)
        if math.isinf(self._knot):
            return torch.log(x)
        beyond = (x / self.straight_from - 1).clamp(min=0)
        return torch.log(x.clamp(max=self.straight_from)) + beyond

    def log_slope(self, z: Tensor) -> Tensor:
        """log dy/dz."""
        return z.clamp(max=self._knot)

    def normal_moments(self, location: Floats, scale: Floats) -> tuple[Floats, Floats]:
        """E[Y] and E[Y²] for a normal Z = μ + σU: of e^Z below the knot, of the tangent above."""
        knot = (self._knot - location) / scale
        with np.errstate(over="ignore", invalid="ignore"):
            # the exponents are added: one alone may overflow
            first, second = (
                np.exp(j * location + 0.5 * j * j * scale**2 + special.log_ndtr(knot - j * scale))
                for j in (1, 2)
            )
        if math.isinf(self._knot):
            return first, second
        # P, E[U] and E[U²] over U ≥ knot, where Y = e^knot (start + σU)
        mass, line = special.ndtr(-knot), np.exp(-(knot**2) / 2) / math.sqrt(2 * math.pi)
        square, top, start = mass + knot * line, self.straight_from, 1 - scale * knot
        return (
            first + top * (start * mass + scale * line),
            second + top**2 * (start**2 * mass + 2 * start * scale * line + scale**2 * square),
        )


@final
class Transformed(Wrapped):
    """Y = h(Z) for Z of the base, of which log Y was modelled: h is the inverse of a `Log`.

    Its density has the Jacobian, g(y) = f(h⁻¹(y)) / h'(h⁻¹(y)); quantiles are mapped. Mean and
    variance are exact for a normal base, and otherwise come from Gauss–Legendre
    quadrature between the quantiles of every member of the base, to about 1e-8 of the standard
    deviation where h is smooth and log h' varies by a few units over the base. The parts of the
    variance are those of the members' images.

    **Shape**: that of the base.

    >>> from accord.distributions import Normal
    >>> price = Transformed(Normal(mean=[0.0, 1.0], std=0.5), Log())
    >>> price.quantile(0.5).round(3), price.mean.round(3)
    (array([1.   , 2.718]), array([1.133, 3.08 ]))
    """

    def __init__(self, base: Distribution, transform: Log) -> None:
        self._base, self._numpy, self._transform = base, base._numpy, transform
        self._known: tuple[Tensor, Variances] | None = None
        # after `_moved`, Y = shift + stretch · h(Z)
        self._shift = torch.zeros_like(base._reference)
        self._stretch = torch.ones_like(base._reference)

    @property
    def transform(self) -> Log:
        """The function h."""
        return self._transform

    def _map(self, function: TensorMap, lead: int = 0) -> Self:
        return self._replace(
            _base=self._base._map(function, lead),
            _shift=function(self._shift, lead),
            _stretch=function(self._stretch, lead),
            _known=None,
        )

    def _mean(self) -> Tensor:
        return self._moments()[0]

    def _variances(self) -> Variances:
        return self._moments()[1]

    def _moments(self) -> tuple[Tensor, Variances]:
        """Found once."""
        if self._known is None:
            found = self._closed_moments()
            mean, parts = found or self._base._moments_through(self._transform.forward)
            noise, disagreement, distance = (self._stretch**2 * part for part in parts)
            self._known = (
                self._shift + self._stretch * mean,
                (noise, disagreement, distance),
            )
        return self._known

    def _closed_moments(self) -> tuple[Tensor, Variances] | None:
        """Mean and variance of h(Z) for a normal Z; None without a closed form that is exact."""
        normal = self._base.as_normal()
        if normal is not self._base or normal is None or not self._numpy:
            return None
        location, scale = to_floats(normal._location), to_floats(normal._scale)
        if np.any(scale < _LEAST_SCALE):
            return None
        first, second = self._transform.normal_moments(location, scale)
        with np.errstate(over="ignore", invalid="ignore"):
            difference = second - first**2
        if not np.isfinite(difference).all():
            return None
        variance, kind = torch.from_numpy(difference), self._base._reference
        nothing = torch.zeros_like(kind)
        return torch.from_numpy(first).to(kind), (variance.to(kind), nothing, nothing)

    def _tolerance_variance(self) -> Tensor:
        return self._base._tolerance_variance() * self._variance() / self._base._variance()

    def _moments_through(self, function: Pointwise) -> tuple[Tensor, Variances]:
        return self._base._moments_through(lambda z: function(self._forward(z)))

    def _moved(self, shift: Tensor, factor: Tensor) -> Self:
        return self._replace(
            _shift=shift + factor * self._shift, _stretch=factor * self._stretch, _known=None
        )

    def _landmarks(self, *, far: bool) -> Tensor:
        return self._forward(self._base._landmarks(far=far))

    @property
    def _n_uniforms(self) -> int:
        return self._base._n_uniforms

    def _from_uniforms(self, u: Tensor) -> Tensor:
        return self._forward(self._base._from_uniforms(u))

    def _tail_and_density(self, value: Tensor, sign: Tensor) -> tuple[Tensor, Tensor]:
        z, inside = self._inside(value)
        tail, density = self._base._tail_and_density(z, sign)
        density = density / (self._stretch * self._transform.log_slope(z).exp())
        if not bool(inside.all()):
            above, below = (value == torch.inf).to(tail), sign > 0
            tail = torch.where(inside, tail, torch.where(below, above, 1 - above))
            density = torch.where(inside, density, 0.0)
        return tail, density

    def _log_prob(self, value: Tensor) -> Tensor:
        z, inside = self._inside(value)
        log_slope = self._transform.log_slope(z) + self._stretch.log()
        return torch.where(inside, self._base._log_prob(z) - log_slope, -torch.inf)

    def _log_tail(self, value: Tensor, sign: Tensor) -> Tensor:
        return self._base._log_tail(self._inverse(value), sign)

    def _log_between(self, lower: Tensor, upper: Tensor) -> Tensor:
        wide = self._base._log_between(self._inverse(lower), self._inverse(upper))
        finite = lower.isfinite() & upper.isfinite()
        low, high = torch.where(finite, lower, 0.0), torch.where(finite, upper, 0.0)
        narrow = self._log_narrow((low + high) / 2, (high - low) / 2)
        return torch.where(finite & self._is_narrow(low, high), narrow, wide)

    def _log_within(self, center: Tensor, half_width: Tensor) -> Tensor:
        low, high = center - half_width, center + half_width
        wide = self._base._log_between(self._inverse(low), self._inverse(high))
        return torch.where(self._is_narrow(low, high), self._log_narrow(center, half_width), wide)

    def _is_narrow(self, low: Tensor, high: Tensor) -> Tensor:
        """Where ends agree in so many digits that the density between them is constant."""
        return high - low < 1e-7 * torch.maximum(low.abs(), high.abs())

    def _log_narrow(self, center: Tensor, half_width: Tensor) -> Tensor:
        return self._log_prob(center) + torch.log(2 * half_width)

    def _bracket(self, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        quantile = self._forward(self._base._quantile(p, q))
        return quantile, quantile

    def _draw(self, n: int, rng: Generator) -> Tensor:
        return self._forward(self._base._draw(n, rng))

    def _describe(self) -> str:
        moved = bool((self._shift != 0).any() or (self._stretch != 1).any())
        extra = (
            f", shift={abridged(self._shift)}, stretch={abridged(self._stretch)}" if moved else ""
        )
        return f"{self._base!r}, {self._transform}{extra}"

    def _forward(self, z: Tensor) -> Tensor:
        return self._shift + self._stretch * self._transform.forward(z)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._transform.inverse((y - self._shift) / self._stretch)

    def _inside(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """z of y, and where that is finite: elsewhere there is no density, and z is any number."""
        z = self._inverse(y)
        inside = z.isfinite()
        return (
            z if bool(inside.all()) else torch.where(inside, z, self._base._mean().to(z))
        ), inside
