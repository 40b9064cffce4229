"""Distributions made of another one: what all take over, and the two plainest.

`Decomposed` states the parts of its base's variance; `Clipped` puts what lies beyond a bound of the
target onto it.
"""

from typing import TYPE_CHECKING, Self, final

import torch
from torch import Tensor

from accord._checks import check_non_negative, check_ordered, check_trailing
from accord._types import Floats
from accord.distributions.batch import Generator, TensorMap, Values, abridged
from accord.distributions.crps import BoxedGaussians
from accord.distributions.distribution import Distribution, Pointwise, Variances
from accord.distributions.numerical import moments_by_quantiles, shared_parts, spread_landmarks

if TYPE_CHECKING:
    from accord.distributions.families import Normal

_LEAST_LOG_MASS = -27.6  # a probability of 1e-12


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

    def _bracket(self, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        quantile = self._base._quantile(p, q)
        return quantile, quantile

    def _describe(self) -> str:
        distance = f", distance={abridged(self._distance)}" if bool(self._distance.any()) else ""
        return f"{self._base!r}, disagreement={abridged(self._disagreement)}{distance}"


@final
class Clipped(Wrapped):
    """The base with what lies beyond a bound put onto it: min(max(Y, lower), upper).

    For targets many of which lie on a bound, as counts of 0 do: the probability there is what the
    base has there and beyond, and quantiles are the base's, moved to the bound. The density is that
    between the bounds, given that the value lies there, f(y)/P(lower ≤ Y ≤ upper); what lies on a
    bound has none. Where the base has less than 1e-12 of its probability between the bounds, its
    median is first moved to the nearest of them.

    Mean and variance stay the base's own, the mean at a bound where it lies beyond: they are what
    the base was fitted to, and to put onto 0 what lies below would raise every mean of counts near
    it.

    **Shape**: that of the base; bounds scalar or of its trailing shape, −inf or inf for none.

    >>> from accord.distributions import Normal
    >>> count = Clipped(Normal(mean=[0.0, 9.0], std=1.0), lower=0.0)
    >>> count.cdf(0.0).round(3), count.quantile(0.4)
    (array([0.5, 0. ]), array([0.       , 8.7466529]))
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
        )

    def _moved(self, shift: Tensor, factor: Tensor) -> Self:
        return self._replace(
            _base=self._base._moved(shift, factor),
            _lower=shift + factor * self._lower,
            _upper=shift + factor * self._upper,
        )

    def _mean(self) -> Tensor:
        return self._base._mean().clamp(self._lower, self._upper)

    def _variances(self) -> Variances:
        return self._base._variances()

    def _tolerance_variance(self) -> Tensor:
        return self._base._tolerance_variance()

    def _moments_through(self, function: Pointwise) -> tuple[Tensor, Variances]:
        return moments_by_quantiles(self, function)

    def _landmarks(self, *, far: bool) -> Tensor:
        return spread_landmarks(self, far=far).clamp(self._lower, self._upper)

    def _log_prob(self, value: Tensor) -> Tensor:
        base, log_mass = self._with_mass_inside()
        inside = (value >= self._lower) & (value <= self._upper)
        at = value.clamp(self._lower, self._upper)
        return torch.where(inside, base._log_prob(at) - log_mass, -torch.inf)

    def _with_mass_inside(self) -> tuple[Distribution, Tensor]:
        """The base and log P(lower ≤ Y ≤ upper) of it, moved where that is next to nothing.

        There it may be nothing at all, by which no density can be divided.
        """
        base, lower, upper = self._base, self._lower, self._upper
        log_mass = base._log_between(lower, upper)
        outside = log_mass < _LEAST_LOG_MASS
        if not bool(outside.any()):
            return base, log_mass
        median = base._quantiles(*torch.full((2, 1), 0.5, dtype=torch.float64))[..., 0]
        move = torch.where(outside, median.clamp(lower, upper) - median, 0.0).to(lower)
        moved = base._moved(move, torch.ones_like(move))
        return moved, moved._log_between(lower, upper)

    def _log_tail(self, value: Tensor, sign: Tensor) -> Tensor:
        reached = torch.where(sign > 0, value >= self._upper, value <= self._lower)
        missed = torch.where(sign > 0, value < self._lower, value > self._upper)
        between = self._base._log_tail(value, sign)
        return torch.where(reached, 0.0, torch.where(missed, -torch.inf, between))

    def _log_between(self, lower: Tensor, upper: Tensor) -> Tensor:
        missed = (upper < self._lower) | (lower > self._upper)
        low = torch.where(lower <= self._lower, -torch.inf, lower)
        high = torch.where(upper >= self._upper, torch.inf, upper)
        return torch.where(missed, -torch.inf, self._base._log_between(low, high))

    def _log_within(self, center: Tensor, half_width: Tensor) -> Tensor:
        low, high = center - half_width, center + half_width
        whole = (low > self._lower) & (high < self._upper)
        inside = self._base._log_within(center, half_width)
        return torch.where(whole, inside, self._log_between(low, high))

    def _bracket(self, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        quantile = self._base._quantile(p, q).clamp(self._lower, self._upper)
        return quantile, quantile

    def _draw(self, n: int, rng: Generator) -> Tensor:
        return self._base._draw(n, rng).clamp(self._lower, self._upper)

    def _describe(self) -> str:
        return f"{self._base!r}, lower={abridged(self._lower)}, upper={abridged(self._upper)}"
