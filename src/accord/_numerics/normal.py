"""The normal family: log[Φ(z + h) − Φ(z − h)] in every corner."""

import math
from collections.abc import Sequence
from typing import final

import numpy as np
import torch
from torch import Tensor

from accord._numerics.family import StandardFamily
from accord._numerics.kernel import Kernel, NarrowForm, Partials, mirrored, piecewise

LOG_2 = math.log(2)
LOG_SQRT_PI = 0.5 * math.log(math.pi)
LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)

NARROW = 0.04  # up to this h and 2zh, four terms of the series reach 1e-16
NEAR_ONE = 1.99  # beyond this 2p, log p is taken from the two tails outside
QUADRATURE = 1.0  # up to this h and zh, six nodes leave less than float32 can tell
NODES, _WEIGHTS = (torch.tensor(x) for x in np.polynomial.legendre.leggauss(6))
MOMENTS = 0.5 * _WEIGHTS * torch.stack([NODES**0, NODES, NODES**2])
UNDERFLOW = 27.0  # erfc(27) and exp(−27²) are below the smallest double


def is_narrow(z: Tensor, h: Tensor) -> Tensor:
    """Where :func:`quadrature` has the digits of float32."""
    return (h <= QUADRATURE) & ((z * h).abs() <= QUADRATURE)


def quadrature(z: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """log(p/2h) and its slopes: p/2h = f(z) S₀, Sⱼ = ½ ∫ uʲ exp(−hu (2z + hu)) du over (−1, 1).

    Six nodes of Gauss and Legendre leave 1e-8 for h and |z|h up to 1. The slopes are ratios of the
    same integrals.
    """
    shift = torch.outer(NODES.to(h), h)
    weights = torch.add(shift, z, alpha=2).mul_(shift).neg_().exp_()
    s0, s1, s2 = (MOMENTS.to(h) @ weights).unbind()
    r1, r2 = s1 / s0, s2 / s0
    value = torch.log(s0).sub_(LOG_SQRT_PI).sub_(z * z)
    dz = torch.addcmul(z, h, r1).mul_(-2)
    dh = (z * r1).addcmul_(h, r2).mul_(-2)
    return value, dz, dh, torch.addcmul(1 + z * dz, h, dh)


@final
class ErrorFunctionKernel(Kernel):
    """f(x) = exp(−x²)/√π, the normal density in units of √2 σ: 2p = erf(b) − erf(a).

    This difference, its logarithm and the closed-form slopes f(a)/p and f(b)/p serve wherever 2p is
    neither small nor near 2. The few other elements go to the form that is exact there:

    - narrow, h → 0: a series in h;
    - a tail: exp(−a²) taken out, what is left is a difference of two values of erfcx;
    - p near 1: log1p of the two tails outside the interval.
    """

    unit = math.sqrt(2)
    variance = 0.5
    narrow_form = NarrowForm(is_narrow, quadrature)

    def partials(self, z: Tensor, h: Tensor, a: Tensor, b: Tensor, *, single: bool) -> Partials:
        if single:
            return _single(z, h, a, b)
        double_p = torch.erf(b).sub_(torch.erf(a))
        lowest, highest = (x.item() for x in torch.aminmax(double_p))
        # erf rounds by 1e-16, so this share of 2p is what remains to its digits
        enough = 1e-4
        if lowest >= enough and highest <= NEAR_ONE:
            return Partials(*_plain(a, b, double_p), narrow=None)
        flip = z < 0
        x, a, b = mirrored(z, a, b)
        small, near = double_p < enough, double_p > NEAR_ONE
        narrow = small & (h <= NARROW) & (2 * x * h <= NARROW)
        pieces = (
            (~(small | near), lambda _x, _h, a, b, p: _plain(a, b, p)),
            (narrow, lambda x, h, _a, _b, _p: _narrow(x, h)),
            (small & ~narrow, lambda x, h, a, b, _p: _tail(x, h, a, b)),
            (near, lambda _x, _h, a, b, _p: _near_one(a, b)),
        )
        value, dz, dh, ds = piecewise(pieces, x, h, a, b, double_p)
        return Partials(value, torch.where(flip, -dz, dz), dh, ds, narrow)


def _single(z: Tensor, h: Tensor, a: Tensor, b: Tensor) -> Partials:
    """All regimes to the digits of float32, in as few operations as a training step can bear.

    Two forms cover everything: a quadrature where the interval is narrow, and the tails of the
    normal where it is wide.
    """
    narrow = is_narrow(z, h)
    flip = z < 0
    x, a, b = mirrored(z, a, b)
    value, dz, dh, ds = _wide(a, b)
    if (far := a > 0.9 * UNDERFLOW).any():
        tail = zip(_tail(x, h, a, b), (value, dz, dh, ds), strict=True)
        value, dz, dh, ds = (torch.where(far, t, w) for t, w in tail)
    dz = torch.where(flip, -dz, dz)
    if not narrow.any():
        return Partials(value, dz, dh, ds, narrow=narrow)
    # the unused branch is kept within its range: underflow and overflow are slow
    close = quadrature(z * narrow, h * narrow)
    pairs = zip(close, (value, dz, dh, ds), strict=True)
    value, dz, dh, ds = (torch.where(narrow, c, w) for c, w in pairs)
    return Partials(value, dz, dh, ds, narrow)


def _wide(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """|a| ≤ b: 2p = erfc(a) − erfc(b), by complements where p is near 1."""
    (ta, fa), (tb, fb) = _outside(a.abs()), _outside(b)
    above = a > 0
    q = 0.5 * torch.where(above, ta - tb, ta + tb)
    value = torch.where(above, torch.log(q.clamp(min=1e-300)), torch.log1p(-q.clamp(max=0.9999)))
    weight = 0.5 * TWO_OVER_SQRT_PI / torch.where(above, q, 1 - q).clamp(min=1e-300)
    ra, rb = fa * weight, fb * weight
    return value, rb - ra, rb + ra, _product(b, rb) - _product(a, ra)


def _plain(a: Tensor, b: Tensor, double_p: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    weight = double_p.reciprocal().mul_(TWO_OVER_SQRT_PI)
    ra = torch.mul(a, a).neg_().exp_().mul_(weight)
    rb = torch.mul(b, b).neg_().exp_().mul_(weight)
    value = torch.log(double_p).sub_(LOG_2)
    dz, dh = rb - ra, rb + ra
    return value, dz, dh, rb.mul_(b).sub_(ra.mul_(a))


def _narrow(x: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """p/2h = f(x) J with J = Σ_k q_2k/(2k+1)! and q_n = Hₙ(x) hⁿ, Hermite's polynomials.

    q_{n+1} = 2xh q_n − 2n h² q_{n−1}, and by q_n′ = 2n h q_{n−1} the derivatives of J are sums over
    the same terms. Each even q is kept as h times a factor, so that no slope is divided by h.
    """
    odd, even = 2 * x * h, torch.ones_like(x)
    series, slope, growth = torch.zeros_like(x), torch.zeros_like(x), torch.zeros_like(x)
    for n in (2, 4, 6, 8):
        factor = 2 * (x * odd - (n - 1) * h * even)
        even = h * factor
        c = 1 / math.factorial(n + 1)
        series += c * even
        slope += c * n * odd
        growth += c * n * factor
        odd = 2 * h * (x * even - n * h * odd)
    value = torch.log1p(series) - x * x - LOG_SQRT_PI
    dz = 2 * (h * slope / (1 + series) - x)
    dh = growth / (1 + series)
    return value, dz, dh, 1 + x * dz + h * dh


def _tail(x: Tensor, h: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """a > 0: 2p = exp(−a²) [erfcx(a) − exp(−4xh) erfcx(b)], as b² − a² = 4xh."""
    decay = torch.exp(-4 * x * h)
    bracket = torch.special.erfcx(a) - decay * torch.special.erfcx(b)
    value = torch.log(bracket) - a * a - LOG_2
    ra = TWO_OVER_SQRT_PI / bracket
    rb = decay * ra
    return value, rb - ra, rb + ra, _product(b, rb) - a * ra


def _near_one(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """a < 0 < b: p = 1 − [erfc(−a) + erfc(b)]/2."""
    (ta, fa), (tb, fb) = _outside(-a), _outside(b)
    double_q = ta + tb
    weight = TWO_OVER_SQRT_PI / (2 - double_q)
    ra, rb = fa * weight, fb * weight
    return torch.log1p(-0.5 * double_q), rb - ra, rb + ra, _product(b, rb) - _product(a, ra)


def _outside(x: Tensor) -> tuple[Tensor, Tensor]:
    """erfc(x) and exp(−x²), whose underflow is spared: it is slow."""
    inside = x < UNDERFLOW
    y = torch.where(inside, x, 0.0)
    return torch.erfc(y) * inside, torch.exp(-y * y) * inside


def _product(bound: Tensor, density: Tensor) -> Tensor:
    """bound · density, which is 0 at an infinite bound."""
    return torch.where(density > 0, bound, 0.0) * density


@final
class NormalFamily(StandardFamily):
    """The standard normal family."""

    name = "normal"
    variance = 1.0
    kernel = ErrorFunctionKernel()

    def log_pdf(self, z: Tensor) -> Tensor:
        return -0.5 * z * z - LOG_SQRT_2PI

    def cdf(self, z: Tensor) -> Tensor:
        return 0.5 * torch.erfc(-math.sqrt(0.5) * z)

    def quantile(self, p: Tensor) -> Tensor:
        z: Tensor = torch.special.ndtri(p)
        return z

    def sample(
        self,
        shape: Sequence[int],
        generator: torch.Generator | None = None,
        *,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str | None = None,
    ) -> Tensor:
        return torch.randn(tuple(shape), generator=generator, dtype=dtype, device=device)
