"""The logistic family."""

import math
from typing import final

import torch
from torch import Tensor

from accord._numerics.family import StandardFamily, register_family
from accord._numerics.kernel import Kernel, Partials, langevin, log1mexp, log_sinhc

NARROW = 1.0  # h below which value and slope are kept per width


@final
class LogisticKernel(Kernel):
    """F(x) = 1/(1 + e^{−x}), so that p = sinh h/(cosh h + cosh z).

    With cosh h + cosh z = 2 cosh(a/2) cosh(b/2), log p is for z ≥ 0 a sum of terms of one sign:
    log p = −max(a, 0) + log(1 − e^{−2h}) − log(1 + e^{−b}) − log(1 + e^{−|a|}).
    """

    variance = math.pi**2 / 3

    def partials(self, z: Tensor, h: Tensor, a: Tensor, b: Tensor, *, single: bool) -> Partials:
        x, low = z.abs(), torch.where(z < 0, -b, a)
        near, far = torch.exp(-torch.minimum(a.abs(), b.abs())), torch.exp(-torch.maximum(-a, b))
        outside = low.clamp(min=0)
        tails = torch.log1p(near) + torch.log1p(far)
        share = torch.exp(low.clamp(max=0)) / ((1 + near) * (1 + far))  # e^x/2(cosh h + cosh x)
        dz = torch.copysign(share * torch.expm1(-2 * x), -z)
        rise = -torch.expm1(-2 * h)
        p = torch.exp(-outside) * rise / ((1 + near) * (1 + far))
        slope = langevin(h) - p
        dh = share * (4 * far + (2 - rise) * (1 + torch.exp(-2 * x))) / rise
        narrow = h < NARROW
        value = torch.where(narrow, log_sinhc(h) - h, log1mexp(2 * h)) - outside - tails
        ds = torch.where(narrow, 1 + h * slope, h.clamp(max=1e30) * dh) + z * dz
        return Partials(value, dz, torch.where(narrow, slope, dh), ds, narrow)


@final
class LogisticFamily(StandardFamily):
    """The standard logistic family."""

    name = "logistic"
    variance = math.pi**2 / 3
    kernel = LogisticKernel()

    def log_pdf(self, z: Tensor) -> Tensor:
        magnitude = z.abs()
        return -magnitude - 2 * torch.log1p(torch.exp(-magnitude))

    def cdf(self, z: Tensor) -> Tensor:
        return torch.sigmoid(z)

    def quantile(self, p: Tensor) -> Tensor:
        return torch.logit(p)

    def log_mean_lower(self, z: Tensor, h: Tensor) -> Tensor:
        """∫F is log(1 + e^b) − log(1 + e^a) = log1p(e^b (1 − e^{−2h})/(1 + e^a))."""
        a, b = z - h, z + h
        # beyond b = 40, ∫F is b to the last digit, and e^b would overflow further on
        odds = -torch.exp(b.clamp(max=40)) * torch.expm1(-2 * h) / (1 + torch.exp(a))
        near = torch.log((torch.log1p(odds) + (b - 40).clamp(min=0)) / (2 * h))
        return torch.where(b < -600, b + log1mexp(2 * h) - torch.log(2 * h), near)

    def crps(self, z: Tensor) -> Tensor:
        far = z.abs()
        return far + 2 * torch.log1p(torch.exp(-far)) - 1

    def draws(self, like: Tensor, generator: torch.Generator | None) -> Tensor:
        """The logarithm of a ratio of exponentials: no draw meets the open ends of (0, 1)."""
        pair = like.new_empty((2, *like.shape)).exponential_(generator=generator)
        return pair[0].log() - pair[1].log()


LOGISTIC = LogisticFamily()
register_family("logistic", lambda _: LOGISTIC)
