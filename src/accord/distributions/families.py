"""The location-scale families: a location, a scale and a standard family."""

import math
from collections.abc import Callable
from typing import Any, Self, final

import numpy as np
import torch
from torch import Tensor

from accord._checks import check_finite, check_ordered, check_positive, check_scalar
from accord._numerics import (
    LAPLACE,
    LOGISTIC,
    NORMAL,
    UNIFORM,
    StandardFamily,
    agreement_loss,
    family_with_variance,
    log_between,
    log_cdf,
    log_mean_between,
    log_mean_cdf,
    log_within,
    student_t,
)
from accord._types import Floats
from accord.distributions.batch import (
    Generator,
    TensorMap,
    Values,
    abridged,
    broadcast,
    to_floats,
    to_tensors,
    torch_generator,
)
from accord.distributions.crps import BoxedGaussians, one_gaussian
from accord.distributions.distribution import Distribution, Pointwise, Variances
from accord.distributions.numerical import (
    FAR_LEVELS,
    NEAR_LEVELS,
    mean_and_variance,
    quantile_rows,
    score_levels,
)
from accord.distributions.smoothed import Smoothable, Smoothed

_FLOOR = "Use a small positive floor."
_LEAST = 1e-290  # variances beyond it, or its inverse, have lost digits to the range of floats


class LocationScale(Smoothable):
    """Y = μ + sZ with Z from a standard family: every probability is one of Z at (y − μ)/s."""

    _location: Tensor
    _scale: Tensor
    _family: StandardFamily

    @property
    def location(self) -> Values:
        """The centre of symmetry μ per row: the median, and the mean where there is one."""
        return self._answer(self._location)

    @property
    def scale(self) -> Values:
        """The scale s per row (std of the normal, half the width of the uniform)."""
        return self._answer(self._scale)

    @property
    def _reference(self) -> Tensor:
        return self._location

    @property
    def _width(self) -> int:
        return 1

    def _map(self, function: TensorMap, lead: int = 0) -> Self:
        return self._replace(
            _location=function(self._location, lead), _scale=function(self._scale, lead)
        )

    def _mean(self) -> Tensor:
        return self._location if self._family.has_mean else self._location * torch.nan

    def _variances(self) -> Variances:
        nothing = torch.zeros_like(self._scale)
        return self._family.variance * self._scale**2, nothing, nothing

    def _moments_through(self, function: Pointwise) -> tuple[Tensor, Variances]:
        p, q, weights = score_levels(self._location)
        axes = tuple(1 for _ in self.shape)
        points, _ = self._bracket(p.reshape(-1, *axes), q.reshape(-1, *axes))
        mean, variance = mean_and_variance(function(points), weights)
        return mean, (variance, torch.zeros_like(variance), torch.zeros_like(variance))

    def _moved(self, shift: Tensor, factor: Tensor) -> Self:
        return self._replace(_location=shift + factor * self._location, _scale=factor * self._scale)

    def _landmarks(self, *, far: bool) -> Tensor:
        """The upper tail mirrors the lower one, where probabilities keep their digits."""
        if math.isfinite(self._family.support):
            return quantile_rows(self, (0.0, 0.25, 0.5, 0.75, 1.0))
        below = quantile_rows(self, FAR_LEVELS + NEAR_LEVELS if far else NEAR_LEVELS)
        return torch.cat([below, self._location[None], 2 * self._location - below])

    def _smoothable(self) -> Distribution:
        return Smoothed(self, 0.0)

    def _closed_crps(self, value: Floats) -> Floats | None:
        """scale · CRPS(F₀, z), z = (value − μ) / scale, for the families with a closed form."""
        scale = to_floats(self._scale)
        z = (value - to_floats(self._location)) / scale
        score = self._family.crps(torch.from_numpy(z))
        return None if score is None else np.asarray(scale * score.numpy())

    def _tail_and_density(self, value: Tensor, sign: Tensor) -> tuple[Tensor, Tensor]:
        z = self._standard(value)
        density = self._family.pdf(z).div_(self._scale)
        return self._family.cdf(z.mul_(sign)), density

    def _log_prob(self, value: Tensor) -> Tensor:
        return self._family.log_pdf(self._standard(value)) - self._scale.log()

    def _log_tail(self, value: Tensor, sign: Tensor) -> Tensor:
        return log_cdf(self._family, sign * self._standard(value))

    def _log_between(self, lower: Tensor, upper: Tensor) -> Tensor:
        half = torch.where(lower == upper, 0.0, upper - lower) / 2 / self._scale
        return log_between(self._family, self._standard(lower), self._standard(upper), half)

    def _log_within(self, center: Tensor, half_width: Tensor) -> Tensor:
        return log_within(self._family, self._standard(center), half_width / self._scale)

    def _log_smoothed_prob(self, value: Tensor, half_width: Tensor) -> Tensor:
        """By the loss's own call where there is a variance: the two agree to the last digits."""
        variance, *_ = self._variances()
        if bool((variance > _LEAST).all() and (variance < 1 / _LEAST).all()):
            arguments = self._location, variance, value, half_width
            smoothed = -agreement_loss(self._family, *arguments, density=True)
        else:
            z, h = self._standard(value), half_width / self._scale
            smoothed = log_within(self._family, z, h, density=True) - self._scale.log()
        return torch.where(half_width > 0, smoothed, self._log_prob(value))

    def _log_mean_tail(self, value: Tensor, half_width: Tensor, sign: Tensor) -> Tensor:
        z = sign * self._standard(value)
        return log_mean_cdf(self._family, z, half_width / self._scale)

    def _mean_tail_and_density(
        self, value: Tensor, half_width: Tensor, sign: Tensor
    ) -> tuple[Tensor, Tensor]:
        z, h = broadcast(self._standard(value).mul_(sign), half_width / self._scale)
        tail, density = self._family.mean_cdf_and_pdf(z, h)
        return tail, density.div_(self._scale)

    def _log_mean_within(self, center: Tensor, half_width: Tensor, window: Tensor) -> Tensor:
        z, half = self._standard(center), half_width / self._scale
        window = window / self._scale
        return log_mean_between(self._family, z - half, z + half, z, half, window)

    def _log_mean_between(self, lower: Tensor, upper: Tensor, window: Tensor) -> Tensor:
        a, b, s = self._standard(lower), self._standard(upper), self._scale
        half, z = (upper - lower) / 2 / s, (a + b) / 2
        close = half < 0.01 * z.abs()  # then the bounds' difference has fewer digits than ``half``
        a, b = torch.where(close, z - half, a), torch.where(close, z + half, b)
        return log_mean_between(self._family, a, b, z, half, window / s)

    def _bracket(self, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        z = self._family.quantile(torch.minimum(p, q))
        quantile = self._location + self._scale * torch.where(p <= q, z, -z)
        return quantile, quantile

    def _draw(self, n: int, rng: Generator) -> Tensor:
        like = torch.empty((n, *self.shape), dtype=self._location.dtype)
        noise = self._family.draws(like, torch_generator(rng))
        return self._location + self._scale * noise.to(self._location.device)

    def _standard(self, value: Tensor) -> Tensor:
        return (value - self._location) / self._scale

    def _describe(self) -> str:
        return f"mean={abridged(self._location)}, scale={abridged(self._scale)}"


@final
class Normal(LocationScale):
    """The normal distribution, f(y) = exp(−(y − μ)²/2σ²)/√(2πσ²).

    >>> Normal(mean=[0.0, 1.0], std=[1.0, 2.0]).variance
    array([1., 4.])
    """

    _family = NORMAL

    def __init__(self, mean: Values, std: Values) -> None:
        (self._location, self._scale), self._numpy = to_tensors(mean=mean, std=std)
        check_positive("std", self._scale, remedy=_FLOOR)

    def _boxed_gaussians(self) -> BoxedGaussians:
        return one_gaussian(to_floats(self._location), to_floats(self._scale))

    def as_normal(self) -> "Normal":
        return self

    def _describe(self) -> str:
        return f"mean={abridged(self._location)}, std={abridged(self._scale)}"


@final
class Laplace(LocationScale):
    """The Laplace distribution, f(y) = exp(−|y − μ|/b)/2b, with variance 2b².

    >>> Laplace(mean=[0.0, 1.0], scale=1.0).quantile(0.75).round(4)
    array([0.6931, 1.6931])
    """

    _family = LAPLACE

    def __init__(self, mean: Values, scale: Values) -> None:
        (self._location, self._scale), self._numpy = to_tensors(mean=mean, scale=scale)
        check_positive("scale", self._scale, remedy=_FLOOR)


@final
class Logistic(LocationScale):
    """The logistic distribution, F(y) = 1/(1 + exp(−(y − μ)/s)), with variance π²s²/3.

    >>> Logistic(mean=[0.0, 1.0], scale=1.0).cdf(0.0).round(4)
    array([0.5   , 0.2689])
    """

    _family = LOGISTIC

    def __init__(self, mean: Values, scale: Values) -> None:
        (self._location, self._scale), self._numpy = to_tensors(mean=mean, scale=scale)
        check_positive("scale", self._scale, remedy=_FLOOR)


@final
class StudentT(LocationScale):
    """The Student-t distribution, f(y) ∝ (1 + z²/df)^{−(df+1)/2} with z = (y − μ)/s.

    Its variance s² df/(df − 2) is infinite for df ≤ 2, and it has no mean (NaN) for df ≤ 1.

    >>> StudentT(df=4, mean=[0.0, 1.0], scale=1.0).variance
    array([2., 2.])
    >>> StudentT(df=2, mean=[0.0, 1.0], scale=1.0).std
    array([inf, inf])
    """

    def __init__(self, df: float, mean: Values, scale: Values) -> None:
        (self._location, self._scale), self._numpy = to_tensors(mean=mean, scale=scale)
        check_scalar("df", df, remedy="Use VaryingStudentT where it differs by row.")
        check_positive("df", df)
        check_finite("df", df, remedy="Use Normal for the limit.")
        check_positive("scale", self._scale, remedy=_FLOOR)
        self._df = float(df)
        self._family = student_t(self._df)

    @property
    def df(self) -> float:
        """The degrees of freedom."""
        return self._df

    def _describe(self) -> str:
        return f"df={self._df:g}, {super()._describe()}"


@final
class Uniform(LocationScale):
    """The uniform distribution on [lower, upper].

    >>> Uniform(lower=0.0, upper=[1.0, 2.0]).mean
    array([0.5, 1. ])
    """

    _family = UNIFORM

    def __init__(self, lower: Values, upper: Values) -> None:
        (low, high), self._numpy = to_tensors(lower=lower, upper=upper)
        check_ordered("lower", low, "upper", high, strict=True)
        self._location, self._scale = (low + high) / 2, (high - low) / 2

    @property
    def lower(self) -> Values:
        """The lower end per row."""
        return self._answer(self._location - self._scale)

    @property
    def upper(self) -> Values:
        """The upper end per row."""
        return self._answer(self._location + self._scale)

    def _describe(self) -> str:
        low, high = self._location - self._scale, self._location + self._scale
        return f"lower={abridged(low)}, upper={abridged(high)}"


@final
class OfFamily(LocationScale):
    """Any standard family at a location and scale, for families without a class of their own."""

    def __init__(self, family: StandardFamily, mean: Values, scale: Values) -> None:
        (self._location, self._scale), self._numpy = to_tensors(mean=mean, scale=scale)
        check_positive("scale", self._scale, remedy=_FLOOR)
        self._family = family

    def _describe(self) -> str:
        return f"{self._family}, {super()._describe()}"


# Families with a class of their own, whose name and parameters users know.
_CLASSES: dict[type[StandardFamily], Callable[[Any, Values, Values], LocationScale]] = {
    type(NORMAL): lambda _, mean, scale: Normal(mean, scale),
    type(LAPLACE): lambda _, mean, scale: Laplace(mean, scale),
    type(LOGISTIC): lambda _, mean, scale: Logistic(mean, scale),
    type(student_t(1.0)): lambda family, mean, scale: StudentT(family.df, mean, scale),
}


def of_family(family: StandardFamily, mean: Values, scale: Values) -> LocationScale:
    """The distribution of a standard family at a location and scale."""
    return _CLASSES.get(type(family), OfFamily)(family, mean, scale)


def with_moments(family: str, mean: Values, std: Values, df: float | None = None) -> LocationScale:
    """The distribution of a named family that has this mean and standard deviation.

    >>> with_moments("laplace", [0.0], [2.0]).std
    array([2.])
    """
    standard = family_with_variance(family, df)
    (location, deviation), from_numpy = to_tensors(mean=mean, std=std)
    made = of_family(standard, location, deviation / math.sqrt(standard.variance))
    return made._replace(_numpy=from_numpy)


def gaussian_match(distribution: Distribution) -> Normal:
    """The normal distribution with the same mean and standard deviation, row by row.

    >>> from accord.distributions import Smoothed
    >>> gaussian_match(Smoothed(Normal(0.0, 1.0), tolerance=3.0))
    Normal(mean=0., std=2.)
    """
    return Normal(distribution.mean, distribution.std)
