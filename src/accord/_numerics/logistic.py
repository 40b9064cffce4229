"""The standard logistic family, F(z) = 1/(1 + exp(−z))."""

import math
from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from accord._numerics.elementary import langevin, log1mexp, log_sinhc
from accord._numerics.family import StandardFamily
from accord._numerics.kernel import Partials


@final
class LogisticFamily(StandardFamily):
    """Standard logistic, variance π²/3: p = sinh h / (cosh h + cosh z)."""

    name = "logistic"
    variance = math.pi**2 / 3

    def log_pdf(self, z: Tensor) -> Tensor:
        magnitude = z.abs()
        return -magnitude - 2 * torch.log1p(torch.exp(-magnitude))

    def cdf(self, z: Tensor) -> Tensor:
        return torch.sigmoid(z)

    def quantile(self, p: Tensor) -> Tensor:
        return torch.logit(p)

    def sample(
        self,
        shape: Sequence[int],
        generator: torch.Generator | None = None,
        *,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str | None = None,
    ) -> Tensor:
        u = torch.empty(tuple(shape), dtype=dtype, device=device)
        # the difference of two log-exponentials: no draw ever meets the open ends of (0, 1)
        return (
            u.exponential_(generator=generator).log()
            - torch.empty_like(u).exponential_(generator=generator).log()
        )

    def partials(self, z: Tensor, h: Tensor, a: Tensor, b: Tensor, *, density: bool) -> Partials:
        """With cosh h + cosh z = 2 cosh(a/2) cosh(b/2), all terms of log p have one sign:

        log p = −max(a, 0) + log(1 − e^{−2h}) − log(1 + e^{−b}) − log(1 + e^{−|a|}).
        """
        ea, eb = torch.exp(-a.abs()), torch.exp(-b)
        tails = torch.log1p(ea) + torch.log1p(eb)
        both = (1 + ea) * (1 + eb)
        peak = torch.exp(a.clamp(max=0))  # e^{z − max(z, h)}
        dz = peak * torch.expm1(-2 * z) / both
        e2h, e2z = torch.exp(-2 * h), torch.exp(-2 * z)
        ratio = peak * (4 * eb + (1 + e2h) * (1 + e2z)) / both  # ∂ log p/∂h · (1 − e^{−2h})
        dh = ratio / -torch.expm1(-2 * h)
        value = log1mexp(2 * h) - a.clamp(min=0) - tails
        hdh = torch.where(h > 1, h.clamp(max=1e30) * dh, 1 + h * (langevin(h) - torch.exp(value)))
        ds = z * dz + hdh
        if density:
            value = log_sinhc(h) - (h + a.clamp(min=0)) - tails
            dh = langevin(h) - torch.exp(value) * 2 * h
        return Partials(value, dz, dh, ds)
