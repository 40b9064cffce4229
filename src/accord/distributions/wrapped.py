"""Distributions made of another one: what all take over, and the two plainest.

`Decomposed` states the parts of its base's variance; `Truncated` lies between known bounds of the
target.
"""

from typing import TYPE_CHECKING, Self, final

import numpy as np
import torch
from torch import Tensor

from accord._checks import check_non_negative, check_ordered, check_trailing
from accord._types import Floats
from accord.distributions.batch import Generator, TensorMap, Values, abridged, rows_of
from accord.distributions.crps import BoxedGaussians
from accord.distributions.distribution import Beyond, Distribution, Pointwise, Variances
from accord.distributions.numerical import (
    moments_by_quantiles,
    shared_parts,
    spread_landmarks,
)

if TYPE_CHECKING:
    from accord.distributions.families import Normal

_LEAST_LOG_MASS = -27.6  # a probability of 1e-12
_ENOUGH_LOG_MASS = -2.3  # with a tenth of the probability left, subtraction keeps its digits
_WHOLE = 1e-10  # rows with less than this outside the bounds keep the moments of the base


class Wrapped(Distribution):
    """A distribution made of one other, its base; abstract.

    Concrete classes set ``_base``, and ``_numpy`` as the base has it.
    """

    _base: Distribution

    @property
    def base(self) -> Distribution:
        """The distribution that this one is made of."""
        return self._base

    @property
    def _reference(self) -> Tensor:
        return self._base._reference

    @property
    def _width(self) -> int:
        return self._base._width

    def _inner(self) -> tuple[Distribution, ...]:
        return (self._base,)


class SameDensity(Wrapped):
    """A distribution with the density, cdf, moments and draws of its base; abstract.

    What differs is which parts of its variance are known, or where its quantiles are taken.
    """

    def as_normal(self) -> "Normal | None":
        return self._base.as_normal()

    def _boxed_gaussians(self) -> BoxedGaussians | None:
        return self._base._boxed_gaussians()

    def _closed_crps(self, value: Floats) -> Floats | None:
        return self._base._closed_crps(value)

    def _mean(self) -> Tensor:
        return self._base._mean()

    def _variances(self) -> Variances:
        return self._base._variances()

    def _moments_through(self, function: Pointwise) -> tuple[Tensor, Variances]:
        return self._base._moments_through(function)

    def _moved(self, shift: Tensor, factor: Tensor) -> Self:
        return self._replace(_base=self._base._moved(shift, factor))

    def _tolerance_variance(self) -> Tensor:
        return self._base._tolerance_variance()

    def _landmarks(self, *, far: bool) -> Tensor:
        return self._base._landmarks(far=far)

    @property
    def _n_uniforms(self) -> int:
        return self._base._n_uniforms

    def _from_uniforms(self, u: Tensor) -> Tensor:
        return self._base._from_uniforms(u)

    def _tail_and_density(self, value: Tensor, sign: Tensor) -> tuple[Tensor, Tensor]:
        return self._base._tail_and_density(value, sign)

    def _log_prob(self, value: Tensor) -> Tensor:
        return self._base._log_prob(value)

    def _log_tail(self, value: Tensor, sign: Tensor) -> Tensor:
        return self._base._log_tail(value, sign)

    def _log_between(self, lower: Tensor, upper: Tensor) -> Tensor:
        return self._base._log_between(lower, upper)

    def _log_within(self, center: Tensor, half_width: Tensor) -> Tensor:
        return self._base._log_within(center, half_width)

    def _draw(self, n: int, rng: Generator) -> Tensor:
        return self._base._draw(n, rng)


@final
class Decomposed(SameDensity):
    """The base, of whose variance stated parts are disagreement and distance; the rest is noise.

    For predictions that know the parts but are not mixtures: var = noise² + disagreement² +
    distance².

    Parts that together exceed the base's deviation are an error, unless they are ``limited`` to it,
    distance first.

    **Shape**: that of the base; ``disagreement`` and ``distance`` (standard deviations) are scalars
    or have that shape.

    >>> from accord.distributions import Normal
    >>> prediction = Decomposed(Normal(mean=[0.0, 1.0], std=5.0), disagreement=[3.0, 0.0])
    >>> prediction.noise, prediction.disagreement, prediction.std
    (array([4., 5.]), array([3., 0.]), array([5., 5.]))
    """

    _smoothed_by = "Smooth inside: Decomposed(Smoothed(base, tolerance), disagreement)."

    def __init__(
        self,
        base: Distribution,
        disagreement: Values,
        distance: Values = 0.0,
        *,
        limited: bool = False,
    ) -> None:
        self._base, self._numpy = base, base._numpy
        # found once: a mixture of many takes as long for them as for a quantile
        self._center, self._total = base._mean(), base._variance()
        self._disagreement = self._stated("disagreement", disagreement)
        self._distance = self._stated("distance", distance)
        if not limited:
            self._check_parts()

    def _stated(self, name: str, value: Values) -> Tensor:
        part = self._base._convert(name, value)
        check_non_negative(name, part, remedy="Use 0 where there is none.")
        check_trailing(name, part, self._base.shape, owner="base")
        return part.expand(self._base.shape)

    def _check_parts(self) -> None:
        total = self._total.sqrt()
        stated = torch.hypot(self._disagreement, self._distance)
        # A part computed on its own route may exceed the whole by rounding.
        slack = 1e-4 if total.dtype == torch.float32 else 1e-9
        over = stated > total * (1 + slack)
        if bool(over.any()):
            raise ValueError(
                "disagreement and distance must not exceed the standard deviation of the base, got "
                f"{float(stated[over][0])} with {float(total[over][0])}. "
                "Pass standard deviations, not variances."
            )

    def _map(self, function: TensorMap, lead: int = 0) -> Self:
        return self._replace(
            _base=self._base._map(function, lead),
            _center=function(self._center, lead),
            _total=function(self._total, lead),
            _disagreement=function(self._disagreement, lead),
            _distance=function(self._distance, lead),
        )

    @property
    def _by_newton(self) -> bool:
        return self._base._by_newton

    def _mean(self) -> Tensor:
        return self._center

    def _variances(self) -> Variances:
        total = self._total
        disagreement = torch.minimum(self._disagreement**2, total)
        distance = torch.minimum(self._distance**2, total - disagreement)
        distance = torch.where(total.isinf(), self._distance**2, distance)
        return total - disagreement - distance, disagreement, distance

    def _moments_through(self, function: Pointwise) -> tuple[Tensor, Variances]:
        mean, parts = self._base._moments_through(function)
        return mean, shared_parts(parts[0] + parts[1] + parts[2], self._variances())

    def _moved(self, shift: Tensor, factor: Tensor) -> Self:
        return self._replace(
            _base=self._base._moved(shift, factor),
            _center=shift + factor * self._center,
            _total=factor**2 * self._total,
            _disagreement=factor * self._disagreement,
            _distance=factor * self._distance,
        )

    def _beyond(self, bound: Tensor, center: Tensor, *, above: bool) -> Beyond | None:
        return self._base._beyond(bound, center, above=above)

    def _bracket(self, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        quantile = self._base._quantile(p, q)
        return quantile, quantile

    def _describe(self) -> str:
        distance = f", distance={abridged(self._distance)}" if bool(self._distance.any()) else ""
        return f"{self._base!r}, disagreement={abridged(self._disagreement)}{distance}"


@final
class Truncated(Wrapped):
    """The base given that it lies between bounds, f(y)/P(lower ≤ Y ≤ upper) inside them.

    For targets that cannot be otherwise (a price is positive, a share at most 1). Quantiles, draws
    and the mean lie inside. Mean and variance are the base's without what is cut off, in closed
    form for normal, log-normal and Student-t curves and their mixtures, otherwise (and where next
    to nothing is left) by quadrature between quantiles, to about 1e-6 of the standard deviation;
    the parts of the variance have the base's proportions. Where the base has less than 1e-12 of its
    probability between the bounds, its median is first moved to the nearest of them.

    **Shape**: that of the base; bounds scalar or of its trailing shape, −inf or inf for none.

    >>> from accord.distributions import Normal
    >>> price = Truncated(Normal(mean=[0.0, 9.0], std=1.0), lower=0.0)
    >>> price.quantile([0.025, 0.5]).round(3)
    array([[0.031, 0.674],
           [7.04 , 9.   ]])
    >>> price.mean.round(4)
    array([0.7979, 9.    ])
    """

    def __init__(
        self, base: Distribution, lower: Values = -torch.inf, upper: Values = torch.inf
    ) -> None:
        self._base, self._numpy = base, base._numpy
        low, high = base._convert("lower", lower), base._convert("upper", upper)
        check_ordered("lower", low, "upper", high, strict=True)
        for name, bound in (("lower", low), ("upper", high)):
            check_trailing(name, bound, base.shape, owner="base")
        self._lower, self._upper = low.expand(base.shape), high.expand(base.shape)
        log_mass = self._mass_inside()
        self._base = self._reachable(log_mass)
        # what is found once: log P(lower ≤ Y ≤ upper) of the base, the moments, their parts
        self._mass: Tensor | None = log_mass if self._base is base else None
        self._known: tuple[Tensor, Tensor] | None = None
        self._parts: Variances | None = None

    def _mass_inside(self) -> Tensor:
        """log P(lower ≤ Y ≤ upper) of the base, for a batch of any shape."""
        if bool(self._upper.isposinf().all()):
            return self._base._evaluate("_log_tail", self._lower, -torch.ones_like(self._lower))
        return self._base._evaluate("_log_between", self._lower, self._upper)

    def _reachable(self, log_mass: Tensor) -> Distribution:
        """The base, its centre moved to the nearest bound where it has next to nothing inside."""
        outside = log_mass < _LEAST_LOG_MASS
        if not bool(outside.any()):
            return self._base
        middle = self._base._quantiles(*torch.full((2, 1), 0.5, dtype=torch.float64))[..., 0]
        move = torch.where(outside, middle.clamp(self._lower, self._upper) - middle, 0.0)
        return self._base._moved(move.to(self._lower), torch.ones_like(self._lower))

    @property
    def lower(self) -> Values:
        """The lower bound per row."""
        return self._answer(self._lower)

    @property
    def upper(self) -> Values:
        """The upper bound per row."""
        return self._answer(self._upper)

    def _map(self, function: TensorMap, lead: int = 0) -> Self:
        return self._replace(
            _base=self._base._map(function, lead),
            _lower=function(self._lower, lead),
            _upper=function(self._upper, lead),
            _mass=None,
            _known=None,
            _parts=None,
        )

    def _mean(self) -> Tensor:
        return self._moments()[0]

    def _variances(self) -> Variances:
        if self._parts is None:
            self._parts = shared_parts(self._moments()[1], self._base._variances())
        return self._parts

    def _moments(self) -> tuple[Tensor, Tensor]:
        """Mean and variance, found once: the base's own in rows of which nothing is cut off."""
        if self._known is None:
            flat = self._flat()
            mean, variance = flat._base._mean().clone(), flat._base._variance().clone()
            log_mass = flat._mass_inside() if self._mass is None else self._mass.reshape(-1)
            cut = torch.nonzero(log_mass < -_WHOLE).squeeze(-1)
            easy = cut[log_mass[cut] > _ENOUGH_LOG_MASS]
            some = flat._map(rows_of(easy))
            if self._numpy and len(easy) and some._by_subtraction(mean, variance, easy):
                cut = cut[log_mass[cut] <= _ENOUGH_LOG_MASS]
            if len(cut):
                some_mean, parts = moments_by_quantiles(
                    flat._map(rows_of(cut)), lambda y: y, flat._base[cut]
                )
                mean[cut] = some_mean.to(mean)
                variance[cut] = (parts[0] + parts[1] + parts[2]).to(variance)
            self._known = mean.reshape(self.shape), variance.reshape(self.shape)
        return self._known

    def _by_subtraction(self, mean: Tensor, variance: Tensor, rows: Tensor) -> bool:
        """Take from the base's moments what lies beyond the bounds; whether that was possible."""
        center = mean[rows]
        below = self._base._beyond(self._lower, center, above=False)
        above = self._base._beyond(self._upper, center, above=True)
        if below is None or above is None:
            return False
        mass = 1 - below.mass - above.mass
        move = -(below.first + above.first) / mass
        second = (variance[rows].double().numpy() - below.second - above.second) / mass
        mean[rows] = center + torch.from_numpy(move).to(mean)
        variance[rows] = torch.from_numpy(np.maximum(second - move**2, 0.0)).to(variance)
        return True

    def _tolerance_variance(self) -> Tensor:
        return self._base._tolerance_variance() * self._moments()[1] / self._base._variance()

    def _moments_through(self, function: Pointwise) -> tuple[Tensor, Variances]:
        return moments_by_quantiles(self, function, self._base)

    def _moved(self, shift: Tensor, factor: Tensor) -> Self:
        return self._replace(
            _base=self._base._moved(shift, factor),
            _lower=shift + factor * self._lower,
            _upper=shift + factor * self._upper,
            _known=None,
            _parts=None,
        )

    def _landmarks(self, *, far: bool) -> Tensor:
        marks = spread_landmarks(self, far=far)
        return marks.clamp(self._lower, self._upper)

    def _log_mass(self) -> Tensor:
        return self._base._log_between(self._lower, self._upper)

    def _log_prob(self, value: Tensor) -> Tensor:
        inside = (value >= self._lower) & (value <= self._upper)
        at = value.clamp(self._lower, self._upper)
        return torch.where(inside, self._base._log_prob(at) - self._log_mass(), -torch.inf)

    def _log_tail(self, value: Tensor, sign: Tensor) -> Tensor:
        at = value.clamp(self._lower, self._upper)
        below = sign > 0
        low = torch.where(below, self._lower.expand_as(at), at)
        high = torch.where(below, at, self._upper.expand_as(at))
        return (self._base._log_between(low, high) - self._log_mass()).clamp(max=0)

    def _log_between(self, lower: Tensor, upper: Tensor) -> Tensor:
        low, high = (x.clamp(self._lower, self._upper) for x in (lower, upper))
        return (self._base._log_between(low, high) - self._log_mass()).clamp(max=0)

    def _log_within(self, center: Tensor, half_width: Tensor) -> Tensor:
        low, high = center - half_width, center + half_width
        whole = (low >= self._lower) & (high <= self._upper)
        inside = self._base._log_within(center, half_width) - self._log_mass()
        return torch.where(whole, inside.clamp(max=0), self._log_between(low, high))

    def _bracket(self, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        """The base's quantile with p of the mass between the bounds below it, and q above."""
        one = torch.ones_like(self._lower)
        below = self._base._log_tail(self._lower, one).exp()
        above = self._base._log_tail(self._upper, -one).exp()
        mass = self._log_mass().exp()
        quantile = self._base._quantile(below + p * mass, above + q * mass)
        quantile = quantile.clamp(self._lower, self._upper)
        return quantile, quantile

    def _draw(self, n: int, rng: Generator) -> Tensor:
        u = torch.from_numpy(rng.random((n, *self.shape))).to(self._reference.device)
        return self._evaluate("_quantile", u, 1 - u)

    def _describe(self) -> str:
        return f"{self._base!r}, lower={abridged(self._lower)}, upper={abridged(self._upper)}"
