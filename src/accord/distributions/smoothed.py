"""A distribution smoothed by its tolerance: what the ε-BVM is the likelihood of."""

from abc import abstractmethod
from typing import Self, final

import numpy as np
import torch
from torch import Tensor

from accord._checks import check_finite, check_non_negative, check_trailing
from accord.distributions.batch import (
    Generator,
    TensorMap,
    Values,
    abridged,
    to_floats,
    torch_generator,
)
from accord.distributions.crps import BoxedGaussians
from accord.distributions.distribution import Distribution, Pointwise, Variances
from accord.distributions.numerical import mean_and_variance
from accord.distributions.wrapped import Wrapped

_BOX_NODES = 6


class Smoothable(Distribution):
    """A distribution whose probabilities can be averaged over a moving window in closed form."""

    @abstractmethod
    def _log_smoothed_prob(self, value: Tensor, half_width: Tensor) -> Tensor:
        """log of the mean density over |v − value| ≤ half_width, the density where it is 0."""

    @abstractmethod
    def _log_mean_tail(self, value: Tensor, half_width: Tensor, sign: Tensor) -> Tensor:
        """log of the mean of P(Y ≤ v), or P(Y ≥ v) for sign −1, over |v − value| ≤ half_width."""

    @abstractmethod
    def _log_mean_within(self, center: Tensor, half_width: Tensor, window: Tensor) -> Tensor:
        """log of the mean of P(|Y − c| ≤ half_width) over |c − center| ≤ window."""

    @abstractmethod
    def _log_mean_between(self, lower: Tensor, upper: Tensor, window: Tensor) -> Tensor:
        """log of the mean of P(lower + u ≤ Y ≤ upper + u) over |u| ≤ window; finite bounds."""

    def _mean_tail_and_density(
        self, value: Tensor, half_width: Tensor, sign: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The mean of P(Y ≤ v), or P(Y ≥ v), over |v − value| ≤ half_width, and of the density."""
        tail = self._log_mean_tail(value, half_width, sign).exp()
        return tail, self._log_smoothed_prob(value, half_width).exp()


@final
class Smoothed(Wrapped):
    """The base convolved with Uniform(−ε, ε): the distribution of Y + εU with U uniform on (−1, 1).

    Its density is the probability of agreement within ε, per unit of y,

        q_ε(y) = [F((y + ε − μ)/σ) − F((y − ε − μ)/σ)] / 2ε = exp(−C_BVM)/2ε,

    its mean is the base's and its variance σ² + ε²/3. Where ε = 0 it is the base itself.

    A stated tolerance counts as noise. One that grows with the distance to the training rows says
    what the model does not know there: with ``distance``, its part ε²/3 of the variance counts as
    that.

    ``base`` is a location-scale family or an :class:`Empirical`. A mixture is smoothed by smoothing
    its components; a smoothed distribution is not smoothed again, since the sum of two uniform
    variables is not uniform.

    **Shape**: that of the base; ``tolerance`` is a scalar or has the base's trailing shape, so that
    members ``(M, N)`` may share the tolerances ``(N,)``.

    >>> from accord.distributions import Normal
    >>> smoothed = Smoothed(Normal(mean=[0.0, 5.0], std=1.0), tolerance=[0.0, 3.0])
    >>> smoothed.variance
    array([1., 4.])
    >>> smoothed.log_prob([0.0, 5.0]).round(4)
    array([-0.9189, -1.7945])
    >>> far = Smoothed(Normal(mean=[0.0, 5.0], std=1.0), tolerance=[0.0, 3.0], distance=True)
    >>> far.noise, far.distance.round(4)
    (array([1., 1.]), array([0.    , 1.7321]))
    """

    _base: Smoothable
    _smoothed_by = "Smooth the base once."

    def __init__(self, base: Distribution, tolerance: Values, *, distance: bool = False) -> None:
        if not isinstance(base, Smoothable):
            raise TypeError(
                "base must be a location-scale family or Empirical, got "
                f"{type(base).__name__}. {getattr(base, '_smoothed_by', '')}".rstrip()
            )
        eps = base._convert("tolerance", tolerance)
        check_finite("tolerance", eps)
        check_non_negative("tolerance", eps, remedy="Use 0 for no smoothing.")
        check_trailing("tolerance", eps, base.shape, owner="base")
        self._base, self._numpy = base, base._numpy
        self._tolerance, self._from_distance = eps.expand(base.shape), distance

    @property
    def tolerance(self) -> Values:
        """The half-width ε of the tolerance, per row."""
        return self._answer(self._tolerance)

    def _map(self, function: TensorMap, lead: int = 0) -> Self:
        return self._replace(
            _base=self._base._map(function, lead), _tolerance=function(self._tolerance, lead)
        )

    def _mean(self) -> Tensor:
        return self._base._mean()

    def _variances(self) -> Variances:
        return self._widened(self._base._variances(), self._tolerance**2 / 3)

    def _widened(self, parts: Variances, extra: Tensor) -> Variances:
        noise, disagreement, distance = parts
        if self._from_distance:
            return noise, disagreement, distance + extra
        return noise + extra, disagreement, distance

    def _tolerance_variance(self) -> Tensor:
        return self._base._tolerance_variance() + self._tolerance**2 / 3

    def _moments_through(self, function: Pointwise) -> tuple[Tensor, Variances]:
        """The mean of the moved base's moments over ±ε; what they add is the tolerance's."""
        nodes, weights = (torch.from_numpy(x) for x in np.polynomial.legendre.leggauss(_BOX_NODES))
        nodes, weights = nodes.to(self._tolerance), weights.to(self._tolerance) / 2
        moved = [
            self._base._moments_through(_after_shift(function, node * self._tolerance))
            for node in nodes
        ]
        total = torch.stack([sum(parts, torch.zeros(())) for _, parts in moved])
        mean, between = mean_and_variance(torch.stack([mean for mean, _ in moved]), weights)
        variance = between + torch.tensordot(weights.to(total), total, dims=1)
        _, parts = self._base._moments_through(function)
        extra = variance - sum(parts, torch.zeros(()))
        return mean, self._widened(parts, extra.clamp(min=0))

    def _moved(self, shift: Tensor, factor: Tensor) -> Self:
        return self._replace(
            _base=self._base._moved(shift, factor), _tolerance=factor * self._tolerance
        )

    def _boxed_gaussians(self) -> BoxedGaussians | None:
        inner = self._base._boxed_gaussians()
        if inner is None:
            return None
        return inner._replace(half_width=to_floats(self._tolerance)[None])

    def _landmarks(self, *, far: bool) -> Tensor:
        inner = self._base._landmarks(far=far)
        return torch.cat([inner - self._tolerance, inner + self._tolerance])

    @property
    def _n_uniforms(self) -> int:
        return 1 + self._base._n_uniforms

    def _from_uniforms(self, u: Tensor) -> Tensor:
        return self._base._from_uniforms(u[:, 1:]) + (2 * u[:, :1] - 1) * self._tolerance

    def _tail_and_density(self, value: Tensor, sign: Tensor) -> tuple[Tensor, Tensor]:
        return self._base._mean_tail_and_density(value, self._tolerance, sign)

    def _log_prob(self, value: Tensor) -> Tensor:
        return self._base._log_smoothed_prob(value, self._tolerance)

    def _log_tail(self, value: Tensor, sign: Tensor) -> Tensor:
        return self._base._log_mean_tail(value, self._tolerance, sign)

    def _log_between(self, lower: Tensor, upper: Tensor) -> Tensor:
        to_right, to_left = upper == torch.inf, lower == -torch.inf
        low = torch.where(to_left, torch.where(to_right, 0.0, upper), lower)
        high = torch.where(to_right, low, upper)
        bounded = self._base._log_mean_between(low, high, self._tolerance)
        sign = torch.where(to_right, -1.0, 1.0).to(bounded)
        tail = self._log_tail(torch.where(to_right, low, high), sign)
        open_ended = torch.where(to_right & to_left, 0.0, tail)
        return torch.where(to_right | to_left, open_ended, bounded)

    def _log_within(self, center: Tensor, half_width: Tensor) -> Tensor:
        return self._base._log_mean_within(center, half_width, self._tolerance)

    def _bracket(self, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        """Y and the smoothed Y differ by at most ε, and so do their quantiles."""
        lower, upper = self._base._bracket(p, q)
        return lower - self._tolerance, upper + self._tolerance

    def _draw(self, n: int, rng: Generator) -> Tensor:
        draws = self._base._draw(n, rng)
        u = torch.rand(draws.shape, generator=torch_generator(rng), dtype=draws.dtype)
        return draws + self._tolerance * (2 * u - 1).to(draws.device)

    def _describe(self) -> str:
        return f"{self._base!r}, tolerance={abridged(self._tolerance)}"


def _after_shift(function: Pointwise, shift: Tensor) -> Pointwise:
    return lambda value: function(value + shift)
