"""Distributions between known bounds of the target: cut off there, or gathered there.

`Truncated` is its base given that it lies between the bounds; `Clipped` puts what lies beyond a
bound onto it.
"""

from typing import Self, final

import numpy as np
import torch
from torch import Tensor

from accord._checks import check_ordered, check_trailing
from accord.distributions.batch import Generator, TensorMap, Values, abridged, rows_of
from accord.distributions.distribution import Distribution, Pointwise, Variances
from accord.distributions.numerical import (
    moments_by_quantiles,
    shared_parts,
    spread_landmarks,
)
from accord.distributions.wrapped import Wrapped

_LEAST_LOG_MASS = -27.6  # a probability of 1e-12
_ENOUGH_LOG_MASS = -2.3  # with a tenth of the probability left, subtraction keeps its digits
_WHOLE = 1e-10  # rows with less than this outside the bounds keep the moments of the base


class Bounded(Wrapped):
    """A distribution between bounds, one pair for each row or for all; abstract."""

    _lower: Tensor
    _upper: Tensor

    def _bound(self, base: Distribution, lower: Values, upper: Values) -> None:
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

    def _landmarks(self, *, far: bool) -> Tensor:
        marks = spread_landmarks(self, far=far)
        return marks.clamp(self._lower, self._upper)

    def _describe(self) -> str:
        return f"{self._base!r}, lower={abridged(self._lower)}, upper={abridged(self._upper)}"


@final
class Truncated(Bounded):
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
        self._bound(base, lower, upper)
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


@final
class Clipped(Bounded):
    """The base with what lies beyond a bound put onto it: min(max(Y, lower), upper).

    For targets many of which lie on a bound, as counts of 0 do: the probability there is what the
    base has there and beyond, and quantiles are the base's, moved to the bound. The density is that
    between the bounds, given that the value lies there; what lies on a bound has none.

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
        self._bound(base, lower, upper)

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
        return moments_by_quantiles(self, function, self._base)

    def _log_prob(self, value: Tensor) -> Tensor:
        return Truncated(self._base, self._lower, self._upper)._log_prob(value)

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
