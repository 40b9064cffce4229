"""Distributions made of another one: what all take over, and the plainest.

`Decomposed` states the parts of its base's variance.
"""

from typing import TYPE_CHECKING, Self, final

import torch
from torch import Tensor

from accord._checks import check_non_negative, check_trailing
from accord._types import Floats
from accord.distributions.batch import Generator, TensorMap, Values, abridged
from accord.distributions.crps import BoxedGaussians
from accord.distributions.distribution import Beyond, Distribution, Pointwise, Variances
from accord.distributions.numerical import (
    shared_parts,
)

if TYPE_CHECKING:
    from accord.distributions.families import Normal


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
