"""The standard Laplace family, f(z) = exp(−|z|)/2."""

import math
from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from accord._numerics.elementary import langevin, log1mexp, log_sinhc
from accord._numerics.family import StandardFamily
from accord._numerics.kernel import Partials


@final
class LaplaceFamily(StandardFamily):
    """Standard Laplace (double exponential), variance 2.

    Beside the peak (z ≥ h): p = e^{−z} sinh h. Across it: p = 1 − e^{−h} cosh z.
    """

    name = "laplace"
    variance = 2.0

    def log_pdf(self, z: Tensor) -> Tensor:
        return -z.abs() - math.log(2)

    def cdf(self, z: Tensor) -> Tensor:
        tail = 0.5 * torch.exp(-z.abs())
        return torch.where(z < 0, tail, 1 - tail)

    def quantile(self, p: Tensor) -> Tensor:
        return torch.where(p < 0.5, torch.log(2 * p), -torch.log(2 * (1 - p)))

    def sample(
        self,
        shape: Sequence[int],
        generator: torch.Generator | None = None,
        *,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str | None = None,
    ) -> Tensor:
        size = tuple(shape)
        magnitude = torch.empty(size, dtype=dtype, device=device).exponential_(generator=generator)
        sign = torch.randint(0, 2, size, generator=generator, dtype=dtype, device=device)
        return magnitude * (2 * sign - 1)

    def partials(self, z: Tensor, h: Tensor, a: Tensor, b: Tensor, *, density: bool) -> Partials:
        parts = zip(_beside(z, h, a, density), _across(z, h, a, b, density), strict=True)
        return Partials(*(torch.where(a >= 0, x, y) for x, y in parts))


def _beside(z: Tensor, h: Tensor, a: Tensor, density: bool) -> tuple[Tensor, ...]:
    slope = langevin(h)
    if density:
        value, dh = log_sinhc(h) - z - math.log(2), slope
    else:
        value, dh = log1mexp(2 * h) - a - math.log(2), slope + 1 / h
    return value, -torch.ones_like(z), dh, 1 + h * slope - z


def _across(z: Tensor, h: Tensor, a: Tensor, b: Tensor, density: bool) -> tuple[Tensor, ...]:
    outside = 0.5 * (torch.exp(a) + torch.exp(-b))  # e^{−h} cosh z
    small = -torch.expm1(-h) - torch.exp(a) * torch.expm1(-z) ** 2 / 2  # e^{−h}(cosh z − 1)
    p = torch.where(outside < 0.5, 1 - outside, small)
    value = torch.where(outside < 0.5, torch.log1p(-outside), torch.log(small))
    dz = 0.5 * torch.exp(a) * torch.expm1(-2 * z) / p
    dh = outside / p
    ds = z * dz + h.clamp(max=1e30) * dh
    if density:
        value, dh = value - torch.log(2 * h), dh - 1 / h
    return value, dz, dh, ds
