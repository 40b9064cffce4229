"""The Student-t family with fixed degrees of freedom.

The incomplete beta function is SciPy's (Boost), so its values are computed on the processor.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import special
from torch import Tensor

from accord._numerics.family import StandardFamily
from accord._numerics.kernel import Kernel, Partials, amend, mirrored

HALF_NODES, HALF_WEIGHTS = (x[8:].tolist() for x in np.polynomial.legendre.leggauss(16))
DECAY_NODES, DECAY_WEIGHTS = (x.tolist() for x in np.polynomial.laguerre.laggauss(10))
DEEP = 1e-250  # tails below it are taken through their logarithm


@final
class StudentTKernel(Kernel):
    """f(x) = c (1 + x²/n)^{−(n+1)/2} with n degrees of freedom.

    - Narrow: p/2h = f(z) ∫ f(z + hs)/f(z) ds/2 by Gauss–Legendre, the ratio exact in hs.
    - Wide: from the tails T(x) = I_u(n/2, 1/2)/2, u = n/(n + x²), on the outside or of both ends.
    """

    def __init__(self, df: float) -> None:
        self.df = df
        self.variance = df / (df - 2) if df > 2 else math.inf
        self.log_height = _log_gamma_step(0.5 * df) - 0.5 * math.log(math.pi * df)

    def log_pdf(self, x: Tensor) -> Tensor:
        return self.log_height - 0.5 * (self.df + 1) * self._log_spread(x)

    def partials(self, z: Tensor, h: Tensor, a: Tensor, b: Tensor, *, single: bool) -> Partials:
        flip = z < 0
        x, a, b = mirrored(z, a, b)
        # f has its singularities at ±i√n, √(n + x²) away, and falls at the rate (n+1)x/(n + x²)
        away = self._away(x)
        narrow = h * math.sqrt(self.df + 1) <= 0.3 * away
        narrow &= h * (x / away) * ((self.df + 1) / away) <= 4
        beside = a > 0
        value, dz, dh, ds = (torch.empty_like(x) for _ in range(4))
        amend((value, dz, dh, ds), narrow, self._narrow, x, h)
        amend((value, dz, dh, ds), ~narrow & beside, self._beside, a, b)
        amend((value, dz, dh, ds), ~narrow & ~beside, self._across, a, b)
        return Partials(value, torch.where(flip, -dz, dz), dh, ds, narrow)

    def _narrow(self, z: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        n, away = self.df, self._away(z)
        total, slope, growth = (torch.zeros_like(z) for _ in range(3))
        for node, weight in zip(HALF_NODES, HALF_WEIGHTS, strict=True):
            sides = []
            for s in (node * h, -node * h):
                step = (2 * z + s) / away * (s / away)
                ratio = torch.exp(-0.5 * (n + 1) * torch.log1p(step))
                sides.append((ratio, ratio * self._score(z + s)))
            (up, up_score), (down, down_score) = sides
            total += 0.5 * weight * (up + down)
            slope += 0.5 * weight * (up_score + down_score)
            growth += 0.5 * weight * node * (up_score - down_score)
        dz, dh = slope / total, growth / total
        return self.log_pdf(z) + torch.log(total), dz, dh, 1 + z * dz + h * dh

    def _beside(self, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        outer = self.log_tail(a)
        value = outer + torch.log1p(-torch.exp(self.log_tail(b) - outer))
        return self._slopes(a, b, value)

    def _across(self, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        outside = torch.exp(self.log_tail(-a)) + torch.exp(self.log_tail(b))
        return self._slopes(a, b, torch.log1p(-outside))

    def _slopes(self, a: Tensor, b: Tensor, value: Tensor) -> tuple[Tensor, ...]:
        # bounds at the end of the range may meet there
        ra, rb = (torch.exp(self.log_pdf(x) - value).nan_to_num_(posinf=0.0) for x in (a, b))
        ends = (torch.where(x.isfinite(), x, 0.0) * r for x, r in ((b, rb), (a, ra)))
        return value, rb - ra, rb + ra, torch.sub(*ends)

    def _score(self, x: Tensor) -> Tensor:
        away = self._away(x)
        return -(self.df + 1) / away * (x / away)

    def _away(self, x: Tensor) -> Tensor:
        """√(n + x²), also where x² overflows."""
        return torch.hypot(x, x.new_tensor(math.sqrt(self.df)))

    def _log_spread(self, x: Tensor) -> Tensor:
        """log(1 + x²/n), also where x² overflows."""
        q = x.abs() / math.sqrt(self.df)
        return torch.where(q < 1e9, torch.log1p(q * q), 2 * torch.log(q))

    def log_tail(self, x: Tensor) -> Tensor:
        """log(1 − F(x)) for x ≥ 0; deep tails by Gauss–Laguerre.

        T(x) = u^{n/2}/(n B(n/2, 1/2)) ∫₀^∞ e^{−y} (1 − u e^{−2y/n})^{−1/2} dy with u = n/(n + x²),
        and the second factor hardly varies once T is small.
        """
        n = self.df
        log_u = -self._log_spread(x)
        u = torch.exp(log_u)
        tail = _through_numpy(self._tail, x)
        moderate = (tail >= DEEP) & (u >= DEEP)
        if bool(moderate.all()):
            return torch.log(tail)
        rest = torch.zeros_like(u)
        for node, weight in zip(DECAY_NODES, DECAY_WEIGHTS, strict=True):
            rest += weight * torch.rsqrt(1 - u * math.exp(-2 * node / n))
        deep = 0.5 * n * log_u + self.log_height - 0.5 * math.log(n) + torch.log(rest)
        return torch.where(moderate, torch.log(tail), deep)

    def _tail(self, x: NDArray[Any]) -> NDArray[Any]:
        """1 − F(x) = I_u(n/2, 1/2)/2 = [1 − I_v(1/2, n/2)]/2, by the smaller of u and v = 1 − u."""
        n = self.df

        def share(y: Any) -> Any:
            return y * y / (n + y * y)

        double: NDArray[Any] = np.piecewise(
            np.minimum(x, 1e150),
            [x < 0.5, (x >= 0.5) & (x < math.sqrt(n))],
            [
                lambda y: 1 - special.betainc(0.5, 0.5 * n, share(y)),
                lambda y: special.betaincc(0.5, 0.5 * n, share(y)),
                lambda y: special.betainc(0.5 * n, 0.5, n / (n + y * y)),
            ],
        )
        return 0.5 * double

    def tail_quantile(self, p: Tensor) -> Tensor:
        """The x ≥ 0 with 1 − F(x) = p ≤ 1/2: SciPy's, or the leading power of a deep tail, refined.

        Newton's method on log T as a function of log x, in which a power of x is a straight line.
        """
        n = self.df
        u = _through_numpy(lambda v: special.betaincinv(0.5 * n, 0.5, v), 2 * p)
        v = _through_numpy(lambda w: special.betaincinv(0.5, 0.5 * n, w), 1 - 2 * p)
        middle, outer = torch.sqrt(n * v / (1 - v)), torch.sqrt(n * (1 - u) / u)
        log_lead = 0.5 * (n - 1) * math.log(n) + self.log_height  # T(x) ~ lead · x^−n
        far = torch.exp((log_lead - torch.log(p)) / n)
        x = torch.where(p > 0.25, middle, torch.where(u > 1e-200, outer, far))
        for _ in range(3):
            log_tail = self.log_tail(x)
            step = (log_tail - torch.log(p)) / (x * torch.exp(self.log_pdf(x) - log_tail))
            x = torch.where(step.abs() < 1, x * torch.exp(step), x)
        return x


def _log_gamma_step(x: float) -> float:
    """log Γ(x + 1/2)/Γ(x), by its asymptotic series where the difference would cancel."""
    if x < 25:
        return math.lgamma(x + 0.5) - math.lgamma(x)
    u = 1 / (x * x)
    series = -1 / 8 + u * (1 / 192 + u * (-1 / 640 + u * (17 / 14336 - u * 31 / 18432)))
    return 0.5 * math.log(x) + series / x


def _through_numpy(function: Callable[[Any], Any], x: Tensor) -> Tensor:
    return torch.as_tensor(function(x.detach().cpu().numpy()), dtype=x.dtype, device=x.device)


@final
class StudentTFamily(StandardFamily):
    """The standard Student-t family."""

    def __init__(self, df: float) -> None:
        if not (math.isfinite(df) and df > 0):
            raise ValueError(
                f"df must be positive and finite, got {df}. Use the normal family for df = inf."
            )
        self.df = float(df)
        self.name = f"student-t({df:g})"
        self._density = self.kernel = StudentTKernel(self.df)
        self.variance = self.kernel.variance

    def log_pdf(self, z: Tensor) -> Tensor:
        return self._density.log_pdf(z)

    def cdf(self, z: Tensor) -> Tensor:
        return torch.exp(self.log_cdf(z))

    def quantile(self, p: Tensor) -> Tensor:
        q = p.to(torch.float64)
        tail = torch.minimum(q, 1 - q)
        return torch.copysign(self._density.tail_quantile(tail), q - 0.5).to(p.dtype)

    def sample(
        self,
        shape: Sequence[int],
        generator: torch.Generator | None = None,
        *,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str | None = None,
    ) -> Tensor:
        half = torch.full(tuple(shape), 0.5 * self.df, dtype=dtype, device=device)
        gamma = torch._standard_gamma(half, generator=generator)
        normal = torch.randn(tuple(shape), generator=generator, dtype=dtype, device=device)
        return normal * torch.sqrt(half / gamma)
