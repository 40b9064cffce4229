"""The standard uniform family, f(z) = 1/2 on [−1, 1]."""

import math
from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from accord._numerics.family import StandardFamily
from accord._numerics.kernel import Partials


@final
class UniformFamily(StandardFamily):
    """Uniform on [−1, 1], variance 1/3."""

    name = "uniform"
    variance = 1 / 3

    def log_pdf(self, z: Tensor) -> Tensor:
        return torch.where(z.abs() <= 1, -math.log(2), -torch.inf).to(z.dtype)

    def cdf(self, z: Tensor) -> Tensor:
        return 0.5 * (1 + z.clamp(-1, 1))

    def quantile(self, p: Tensor) -> Tensor:
        return 2 * p - 1

    def sample(
        self,
        shape: Sequence[int],
        generator: torch.Generator | None = None,
        *,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str | None = None,
    ) -> Tensor:
        u = torch.rand(tuple(shape), generator=generator, dtype=dtype, device=device)
        return 2 * u - 1

    def partials(self, z: Tensor, h: Tensor, a: Tensor, b: Tensor, *, density: bool) -> Partials:
        """p is half the overlap with [−1, 1]; its slopes are those of the bounds inside."""
        left, right = (a > -1) & (a < 1), b < 1
        inside = left & right
        overlap = torch.where(inside, 2 * h, b.clamp(max=1) - a.clamp(min=-1)).clamp(min=0)
        ra, rb = left / overlap, right / overlap
        dz, dh = rb - ra, rb + ra
        ds = right * b / overlap - torch.where(left, a, 0) / overlap
        value = torch.log(overlap / 2)
        if density:
            value = torch.where(inside, -math.log(2), value - torch.log(2 * h))
            dh = torch.where(inside, 0.0, dh - 1 / h)
        return Partials(value, dz, dh, ds)
