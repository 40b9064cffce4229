"""Distributions made of another one: what they take over from it as it is."""

from torch import Tensor

from accord.distributions.conversion import Generator
from accord.distributions.distribution import Distribution


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
    """A distribution with the density, cdf, mean and draws of its base; abstract.

    What differs is what is known about its variance, or where its quantiles are taken.
    """

    def _mean(self) -> Tensor:
        return self._base._mean()

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
