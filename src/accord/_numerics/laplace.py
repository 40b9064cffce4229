"""The Laplace family."""

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
        return -z.abs() - math.log(2)

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
