"""The uniform family."""

import math
from typing import final

import torch
from torch import Tensor

from accord._numerics.family import StandardFamily
from accord._numerics.kernel import Kernel, Partials, mirrored

LOG_2 = math.log(2)


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
