"""The Student-t distribution with its own degrees of freedom in every row."""

import math
from typing import Any, Self, final

import numpy as np
import torch
from scipy import special
from torch import Tensor

from accord._checks import check_positive
from accord._numerics import through_numpy
from accord.distributions.batch import Generator, TensorMap, Values, abridged, to_tensors
from accord.distributions.distribution import Distribution, Pointwise, Variances
from accord.distributions.numerical import (
    FAR_LEVELS,
    NEAR_LEVELS,
    moments_by_quantiles,
    quantile_rows,
)

_NODES, _WEIGHTS = (x.tolist() for x in np.polynomial.legendre.leggauss(16))
_LOG_TINY = math.log(1e-290)  # tails below it are taken from their hazard


@final
class VaryingStudentT(Distribution):
    """Student-t, f(y) ∝ (1 + z²/df)^{−(df+1)/2} with z = (y − μ)/s, where df differs by row.

    What evidential networks predict. Where one df serves all rows, :class:`StudentT` can be
    smoothed and differentiated as well; here gradients flow through ``log_prob`` only.

    >>> VaryingStudentT(df=[3.0, 30.0], mean=0.0, scale=1.0).quantile(0.975).round(2)
    array([3.18, 2.04])
    """

    def __init__(self, df: Values, mean: Values, scale: Values) -> None:
        tensors, self._numpy = to_tensors(df=df, mean=mean, scale=scale)
        self._df, self._location, self._scale = tensors
        check_positive("df", self._df)
        check_positive("scale", self._scale, remedy="Use a small positive floor.")

    @property
    def _reference(self) -> Tensor:
        return self._location

    @property
    def _width(self) -> int:
        return 1

    def _map(self, function: TensorMap, lead: int = 0) -> Self:
        return self._replace(
            _df=function(self._df, lead),
            _location=function(self._location, lead),
            _scale=function(self._scale, lead),
        )

    def _mean(self) -> Tensor:
        return torch.where(self._df > 1, self._location, torch.nan)

    def _variances(self) -> Variances:
        beyond = torch.where(self._df > 2, self._df - 2, 1.0)
        variance = torch.where(self._df > 2, self._scale**2 * self._df / beyond, torch.inf)
        return variance, torch.zeros_like(variance), torch.zeros_like(variance)

    def _moments_through(self, function: Pointwise) -> tuple[Tensor, Variances]:
        return moments_by_quantiles(self, function)

    def _moved(self, shift: Tensor, factor: Tensor) -> Self:
        return self._replace(_location=shift + factor * self._location, _scale=factor * self._scale)

    def _landmarks(self, *, far: bool) -> Tensor:
        below = quantile_rows(self, FAR_LEVELS + NEAR_LEVELS if far else NEAR_LEVELS)
        return torch.cat([below, self._location[None], 2 * self._location - below])

    def _log_prob(self, value: Tensor) -> Tensor:
        return self._log_density(self._standard(value)) - self._scale.log()

    def _log_tail(self, value: Tensor, sign: Tensor) -> Tensor:
        z = sign * self._standard(value)
        tail = self._log_outside(z.abs())
        return torch.where(z <= 0, tail, torch.log1p(-torch.exp(tail)))

    def _log_between(self, lower: Tensor, upper: Tensor) -> Tensor:
        low, high = self._standard(lower), self._standard(upper)
        half = (upper - lower) / 2 / self._scale
        # in the half where the interval has more of its length, so that both tails are small
        flip = low + high < 0
        low, high = torch.where(flip, -high, low), torch.where(flip, -low, high)
        near, far = self._log_outside(low.abs()), self._log_outside(high)
        beside = near + torch.log(-torch.expm1(far - near))
        across = torch.log1p(-torch.exp(near) - torch.exp(far))
        wide = torch.where(low > 0, beside, across)
        finite = torch.isfinite(half)
        center = torch.where(finite, low + half, 0.0)
        narrow = self._log_narrow(center, torch.where(finite, half, 0.0))
        return torch.where(finite & self._is_narrow(center, half), narrow, wide)

    def _log_within(self, center: Tensor, half_width: Tensor) -> Tensor:
        z, half = self._standard(center), half_width / self._scale
        narrow = self._log_narrow(z, half)
        wide = self._log_between(center - half_width, center + half_width)
        return torch.where(self._is_narrow(z, half), narrow, wide)

    def _bracket(self, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        z = through_numpy(_lower_quantile, self._df, torch.minimum(p, q))
        quantile = self._location + self._scale * torch.where(p <= q, z, -z)
        return quantile, quantile

    def _draw(self, n: int, rng: Generator) -> Tensor:
        noise = rng.standard_t(self._df.detach().cpu().numpy(), size=(n, *self.shape))
        return self._location + self._scale * torch.as_tensor(noise).to(self._location)

    def _describe(self) -> str:
        df, location, scale = map(abridged, (self._df, self._location, self._scale))
        return f"df={df}, mean={location}, scale={scale}"

    def _standard(self, value: Tensor) -> Tensor:
        return (value - self._location) / self._scale

    def _log_density(self, z: Tensor) -> Tensor:
        half = 0.5 * self._df
        height = torch.lgamma(half + 0.5) - torch.lgamma(half) - 0.5 * torch.log(math.pi * self._df)
        return height - (half + 0.5) * torch.log1p(z * (z / self._df))

    def _log_outside(self, z: Tensor) -> Tensor:
        """log P(Z > z) for z ≥ 0; where it underflows, density over the tail's hazard rate."""
        log_tail = torch.log(through_numpy(special.stdtr, self._df, -z))
        deep = (log_tail < _LOG_TINY) & torch.isfinite(z)
        x = torch.where(deep, z, 1.0)
        hazard = (self._df + 1) * x / (self._df + x * x)
        return torch.where(deep, self._log_density(x) - torch.log(hazard), log_tail)

    def _is_narrow(self, z: Tensor, half: Tensor) -> Tensor:
        """Where the density is so smooth over z ± half that quadrature is exact to rounding."""
        reach = torch.sqrt(self._df + z * z)
        decay = (self._df + 1) * z.abs() / reach**2
        return (half <= 0.3 * reach / torch.sqrt(self._df + 1)) & (half * decay <= 2)

    def _log_narrow(self, z: Tensor, half: Tensor) -> Tensor:
        """log ∫ f over z ± half by Gauss–Legendre."""
        terms = [
            self._log_density(z + node * half) + math.log(weight)
            for node, weight in zip(_NODES, _WEIGHTS, strict=True)
        ]
        return torch.logsumexp(torch.stack(terms), dim=0) + torch.log(half)


def _lower_quantile(df: Any, p: Any) -> Any:
    """The z ≤ 0 with P(Z ≤ z) = p ≤ 1/2, from u = df/(df + z²) or 1 − u, whichever is smaller."""
    outer = special.betaincinv(0.5 * df, 0.5, np.minimum(2 * p, 0.5))
    inner = special.betaincinv(0.5, 0.5 * df, np.minimum(1 - 2 * p, 0.5))
    far = p < 0.25
    with np.errstate(divide="ignore"):
        return -np.sqrt(df * np.where(far, (1 - outer) / outer, inner / (1 - inner)))
