"""The standard normal family: log[Φ(z + h) − Φ(z − h)] in every corner."""

import math
from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from accord._numerics.family import StandardFamily
from accord._numerics.kernel import Partials

SQRT_HALF = math.sqrt(0.5)
LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
INV_SQRT_2PI = 1 / math.sqrt(2 * math.pi)
FAR = 25.0  # beyond it Mills' asymptotic series has an error below 1e-16
NARROW = 0.5  # h and zh below it: the series in h takes over


@final
class NormalFamily(StandardFamily):
    """Standard normal."""

    name = "normal"
    variance = 1.0

    def log_pdf(self, z: Tensor) -> Tensor:
        return -0.5 * z * z - LOG_SQRT_2PI

    def cdf(self, z: Tensor) -> Tensor:
        return 0.5 * torch.special.erfc(-SQRT_HALF * z)

    def quantile(self, p: Tensor) -> Tensor:
        return torch.special.ndtri(p)

    def sample(
        self,
        shape: Sequence[int],
        generator: torch.Generator | None = None,
        *,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str | None = None,
    ) -> Tensor:
        return torch.randn(tuple(shape), generator=generator, dtype=dtype, device=device)

    def partials(self, z: Tensor, h: Tensor, a: Tensor, b: Tensor, *, density: bool) -> Partials:
        narrow = (h <= NARROW) & (z * h <= NARROW)
        wide = self._middle(a, b)
        far = a > FAR
        if bool(far.any()):
            wide = tuple(torch.where(far, x, y) for x, y in zip(self._far(a, b), wide, strict=True))
        value, ra, rb = wide
        dz, dh, ds = rb - ra, rb + ra, b * rb - a.clamp(min=-1e100) * ra
        if density:
            value, dh = value - torch.log(2 * h), dh - 1 / h
        series = self._narrow(z, h, density=density)
        return Partials(
            *(torch.where(narrow, x, y) for x, y in zip(series, (value, dz, dh, ds), strict=True))
        )

    def _middle(self, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        ca = torch.special.erfc(SQRT_HALF * a.abs())
        cb = torch.special.erfc(SQRT_HALF * b)
        above = a > 0
        s = 0.5 * torch.where(above, ca - cb, ca + cb)
        value = torch.where(above, torch.log(s), torch.log1p(-s))
        p = torch.where(above, s, 1 - s)
        ra = INV_SQRT_2PI * torch.exp(-0.5 * a * a) / p
        rb = INV_SQRT_2PI * torch.exp(-0.5 * b * b) / p
        return value, ra, rb

    def _far(self, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        decay = torch.exp(-0.5 * (b - a) * (b + a))
        m = _mills(a) - decay * torch.where(b < torch.inf, _mills(b), 0.0)
        value = -0.5 * a * a - LOG_SQRT_2PI + torch.log(m)
        ra = 1 / m
        return value, ra, decay * ra

    def _narrow(self, z: Tensor, h: Tensor, *, density: bool) -> tuple[Tensor, ...]:
        """J = Σ He_{2k}(z) h^{2k} / (2k+1)! with q_n = He_n(z) hⁿ by recurrence."""
        w, v = z * h, h * h
        before, q = torch.ones_like(w), w
        j, jz, jh = torch.ones_like(w), torch.zeros_like(w), torch.zeros_like(w)
        for k in range(1, 9):
            n = 2 * k
            odd, even = q, w * q - (n - 1) * v * before
            c = 1 / math.factorial(n + 1)
            j, jz, jh = j + c * even, jz + n * c * odd, jh + n * c * even
            before, q = even, w * even - n * v * odd
        # jz lacks a factor h, and jh is h dJ/dh: both over J are kept free of division by h
        gz = h * jz / j - z
        hh = jh / j
        value = -0.5 * z * z - LOG_SQRT_2PI + torch.log(j)
        dh = _over(h, jh, z) / j
        ds = 1 + z * gz + hh
        if not density:
            value, dh = value + torch.log(2 * h), (1 + hh) / h
        return value, gz, dh, ds


def _over(h: Tensor, jh: Tensor, z: Tensor) -> Tensor:
    """jh/h, with its limit h(z² − 1)/3 where h is too small to divide by."""
    return torch.where(h > 1e-100, jh / h, h * (z * z - 1) / 3)


MILLS = (-135135.0, 10395.0, -945.0, 105.0, -15.0, 3.0, -1.0, 1.0)


def _mills(x: Tensor) -> Tensor:
    """(1 − Φ(x))/φ(x) for x ≥ 25 by its asymptotic series, to 1e-16."""
    u = 1 / (x * x)
    series = torch.full_like(u, MILLS[0])
    for c in MILLS[1:]:
        series = torch.addcmul(torch.full_like(u, c), u, series)
    return series / x
