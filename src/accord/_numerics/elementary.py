"""The families whose intervals have elementary probabilities: Laplace, logistic and uniform."""

import math
from typing import final

import torch
from torch import Tensor

from accord._numerics.family import StandardFamily, register_family
from accord._numerics.kernel import (
    Kernel,
    Partials,
    exp_remainder,
    langevin,
    log1mexp,
    log_sinhc,
    mirrored,
)

LOG_2 = math.log(2)
NARROW = 1.0  # h below which value and slope are kept per width


@final
class LaplaceKernel(Kernel):
    """f(x) = exp(−|x|)/2.

    Beside the peak, h ≤ |z|: p = e^{−|z|} sinh h. Across it: p = 1 − e^{−h} cosh z.
    """

    variance = 2.0

    def partials(self, z: Tensor, h: Tensor, a: Tensor, b: Tensor, *, single: bool) -> Partials:
        flip = z < 0
        x, a, b = mirrored(z, a, b)
        narrow = h < NARROW
        beside = a >= 0
        pairs = zip(_beside(x, h, a, narrow), _across(x, h, a, b, narrow), strict=True)
        value, dz, dh, ds = (torch.where(beside, *pair) for pair in pairs)
        return Partials(value, torch.where(flip, -dz, dz), dh, ds, narrow)


def _beside(z: Tensor, h: Tensor, a: Tensor, narrow: Tensor) -> tuple[Tensor, ...]:
    slope = langevin(h)
    value = torch.where(narrow, log_sinhc(h) - z, log1mexp(2 * h) - a) - LOG_2
    dh = torch.where(narrow, slope, slope + 1 / h)
    return value, -torch.ones_like(z), dh, 1 + h * slope - z


def _across(z: Tensor, h: Tensor, a: Tensor, b: Tensor, narrow: Tensor) -> tuple[Tensor, ...]:
    """Small p is 1 − e^{−h} − bend, bend = e^{−h}(cosh z − 1); large p is 1 less the outside."""
    outside = 0.5 * (torch.exp(a) + torch.exp(-b))
    bend = 0.5 * torch.exp(a) * torch.expm1(-z) ** 2
    inside = -torch.expm1(-h) - bend
    small = outside >= 0.5
    p = torch.where(small, inside, 1 - outside)
    value = torch.where(small, torch.log(inside), torch.log1p(-outside))
    dz = 0.5 * torch.exp(a) * torch.expm1(-2 * z) / p
    dh = outside / p
    ds = z * dz + h.clamp(max=1e30) * dh
    value = torch.where(narrow, value - torch.log(2 * h), value)
    excess = (exp_remainder(h) + bend - h * inside) / h / inside  # dh − 1/h
    return value, dz, torch.where(narrow, excess, dh), ds


@final
class LaplaceFamily(StandardFamily):
    """The standard Laplace (double exponential) family."""

    name = "laplace"
    kinks = (0.0,)
    variance = 2.0
    kernel = LaplaceKernel()

    def log_pdf(self, z: Tensor) -> Tensor:
        return -z.abs() - LOG_2

    def cdf(self, z: Tensor) -> Tensor:
        tail = 0.5 * torch.exp(-z.abs())
        return torch.where(z < 0, tail, 1 - tail)

    def quantile(self, p: Tensor) -> Tensor:
        return torch.where(p < 0.5, torch.log(2 * p), -torch.log(2 * (1 - p)))

    def log_mean_lower(self, z: Tensor, h: Tensor) -> Tensor:
        """∫F is ½ e^b (1 − e^{−2h}) below the peak, b + ½(e^{−b} − e^a) across it."""
        a, b = z - h, z + h
        over = b.clamp(min=0)
        across = over + 0.5 * (torch.expm1(-over) - torch.expm1(a))
        below = b + log1mexp(2 * h) - torch.log(4 * h)
        return torch.where(b <= 0, below, torch.log(across / (2 * h)))

    def crps(self, z: Tensor) -> Tensor:
        far = z.abs()
        return far + torch.exp(-far) - 0.75

    def draws(self, like: Tensor, generator: torch.Generator | None) -> Tensor:
        magnitude = torch.empty_like(like).exponential_(generator=generator)
        sign = torch.empty_like(like).random_(0, 2, generator=generator)
        return magnitude * (2 * sign - 1)


LAPLACE = LaplaceFamily()
register_family("laplace", lambda _: LAPLACE)


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


@final
class UniformKernel(Kernel):
    """f(x) = 1/2 on [−1, 1]: p is half the overlap, its slopes are those of the bounds inside."""

    variance = 1 / 3

    def partials(self, z: Tensor, h: Tensor, a: Tensor, b: Tensor, *, single: bool) -> Partials:
        flip = z < 0
        _, a, b = mirrored(z, a, b)
        left, right = (a > -1) & (a < 1), b < 1
        narrow = (left | (h == 0) & (a <= 1)) & (b <= 1)
        overlap = (b.clamp(max=1) - a.clamp(-1, 1)).clamp(min=0)
        overlap = torch.where(narrow, 2 * h, overlap)
        ra, rb = left / overlap, right / overlap
        dz = torch.where(narrow, 0.0, rb - ra)
        ds = torch.where(narrow, 1.0, torch.where(left, -a, 0.0) / overlap)
        value = torch.where(narrow, -LOG_2, torch.log(overlap / 2))
        dh = torch.where(narrow, 0.0, rb + ra)
        outside = overlap == 0
        dz, ds, dh = (torch.where(outside & ~narrow, 0.0, x) for x in (dz, ds, dh))
        return Partials(value, torch.where(flip, -dz, dz), dh, ds, narrow)


@final
class UniformFamily(StandardFamily):
    """The uniform family on [−1, 1]."""

    name = "uniform"
    support = 1.0
    kinks = (-1.0, 1.0)
    variance = 1 / 3
    kernel = UniformKernel()

    def log_pdf(self, z: Tensor) -> Tensor:
        return torch.where(z.abs() <= 1, z.new_tensor(-LOG_2), z.new_tensor(-torch.inf))

    def cdf(self, z: Tensor) -> Tensor:
        return 0.5 * (1 + z.clamp(-1, 1))

    def quantile(self, p: Tensor) -> Tensor:
        return 2 * p - 1

    def log_mean_lower(self, z: Tensor, h: Tensor) -> Tensor:
        """∫F is (b − a)(a + b + 2)/4 on [−1, 1]."""
        # relative to z, so that b − a is 2h to the last digit inside
        a, b = torch.maximum(-h, -1 - z), torch.minimum(h, 1 - z).clamp(min=-h)
        area = (b - a).clamp(min=0) * (2 * (1 + z) + a + b) / 4 + (z + h - 1).clamp(min=0)
        return torch.log(area / (2 * h))

    def crps(self, z: Tensor) -> Tensor:
        far = z.abs()
        inside = far.clamp(max=1)
        return inside**2 / 2 + 1 / 6 + far - inside

    def draws(self, like: Tensor, generator: torch.Generator | None) -> Tensor:
        return torch.empty_like(like).uniform_(-1, 1, generator=generator)


UNIFORM = UniformFamily()
