"""The standard Student-t family with fixed degrees of freedom."""

import math
from collections.abc import Sequence
from typing import final

import numpy as np
import torch
from scipy import special
from torch import Tensor

from accord._numerics.family import StandardFamily
from accord._numerics.kernel import Partials

NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
NARROW = 0.3


@final
class StudentTFamily(StandardFamily):
    """Student-t with ``df`` degrees of freedom, f(z) ∝ (1 + z²/df)^{−(df+1)/2}."""

    def __init__(self, df: float) -> None:
        if not (math.isfinite(df) and df > 0):
            raise ValueError(
                f"df must be positive and finite, got {df}. Use the normal family for df = inf."
            )
        self.df = float(df)
        self.name = f"student-t({df:g})"
        self.variance = df / (df - 2) if df > 2 else math.inf
        self._log_norm = float(-0.5 * math.log(df) - special.betaln(0.5, 0.5 * df))

    def log_pdf(self, z: Tensor) -> Tensor:
        return self._log_norm - 0.5 * (self.df + 1) * torch.log1p(z * (z / self.df))

    def cdf(self, z: Tensor) -> Tensor:
        tail = self._tail(z.abs())
        return torch.where(z < 0, tail, 1 - tail)

    def quantile(self, p: Tensor) -> Tensor:
        return _through_numpy(lambda q: special.stdtrit(self.df, q), p)

    def sample(
        self,
        shape: Sequence[int],
        generator: torch.Generator | None = None,
        *,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str | None = None,
    ) -> Tensor:
        size = tuple(shape)
        half = torch.full(size, 0.5 * self.df, dtype=dtype, device=device)
        gamma = torch._standard_gamma(half, generator=generator)
        return torch.randn(size, generator=generator, dtype=dtype, device=device) * torch.sqrt(
            half / gamma
        )

    def partials(self, z: Tensor, h: Tensor, a: Tensor, b: Tensor, *, density: bool) -> Partials:
        narrow = h <= NARROW * torch.sqrt(self.df + z * z) / math.sqrt(self.df + 1)
        ta, tb = self._tail(a.abs()), self._tail(b)
        s = torch.where(a > 0, ta - tb, ta + tb)
        value = torch.where(a > 0, torch.log(s), torch.log1p(-s))
        ra, rb = (torch.exp(self.log_pdf(x) - value) for x in (a, b))
        big = 1e30
        dz, dh, ds = rb - ra, rb + ra, b.clamp(max=big) * rb - a.clamp(-big, big) * ra
        if density:
            value, dh = value - torch.log(2 * h), dh - 1 / h
        series = self._narrow(z, h, density)
        wide = (value, dz, dh, ds)
        return Partials(*(torch.where(narrow, x, y) for x, y in zip(series, wide, strict=True)))

    def _narrow(self, z: Tensor, h: Tensor, density: bool) -> tuple[Tensor, ...]:
        """Gauss–Legendre of f(z + hx)/f(z), whose logarithm is exact in the small step hx."""
        n = self.df
        scale = n + z * z
        j, jz, jh = torch.zeros_like(z), torch.zeros_like(z), torch.zeros_like(z)
        for x, weight in zip(NODES.tolist(), WEIGHTS.tolist(), strict=True):
            step = h * x
            growth = torch.exp(-0.5 * (n + 1) * torch.log1p((2 * z + step) * step / scale))
            y = z + step
            score = -(n + 1) * y / (n + y * y) * growth
            j, jz, jh = (
                j + 0.5 * weight * growth,
                jz + 0.5 * weight * score,
                jh + 0.5 * weight * x * score,
            )
        dz, slope = jz / j, jh / j
        value = self.log_pdf(z) + torch.log(j)
        ds = 1 + z * dz + h * slope
        if density:
            return value, dz, slope, ds
        return value + torch.log(2 * h), dz, slope + 1 / h, ds

    def _tail(self, x: Tensor) -> Tensor:
        """1 − F(x) for x ≥ 0 by the regularised incomplete beta function."""
        n = self.df
        return _through_numpy(lambda q: 0.5 * special.betainc(0.5 * n, 0.5, n / (n + q * q)), x)


def _through_numpy(function, x: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
    return torch.as_tensor(function(x.detach().cpu().numpy()), dtype=x.dtype, device=x.device)
