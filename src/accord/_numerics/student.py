"""The Student-t family with fixed degrees of freedom.

Its tail, T(x) = 1 − F(x) for x ≥ 0, is found by quadrature. With n degrees of freedom,
x = √n tan θ and u = n/(n + x²) = cos² θ,

    T(x) = 1/2 − f(0) √n ∫₀^θ cosⁿ⁻¹ φ dφ
         = f(0) u^{n/2}/√n · ∫₀^∞ e^{−y} (1 − u e^{−2y/n})^{−1/2} dy.

The first is smooth up to where T is a few per cent, for Gauss and Legendre's rule; from there on
the second factor of the other varies little, for Gauss and Laguerre's, and T may be as small as it
likes, since its logarithm is what is computed. Below one degree of freedom the first integrand has
a pole nearby; there SciPy's incomplete beta function takes its place.

Where only T itself is wanted, for few degrees of freedom, polynomials do: quantiles of mixtures ask
for millions of values (:class:`ElementaryTail`, :class:`TailPolynomials`).
"""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any, final

import numpy as np
import torch
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray
from scipy import special
from torch import Tensor

from accord._numerics.family import (
    STEEP,
    StandardFamily,
    log_mean_by_nodes,
    register_family,
    replaced,
)
from accord._numerics.kernel import Kernel, Partials, amend, mirrored

_Nodes = tuple[Tensor, Tensor]


def _rules(n_legendre: int, n_laguerre: int) -> tuple[_Nodes, _Nodes]:
    """Nodes in (0, 1) and weights that add to 1; nodes in (0, ∞) and weights that do."""
    s, weight = np.polynomial.legendre.leggauss(n_legendre)
    y, decay = np.polynomial.laguerre.laggauss(n_laguerre)
    return (
        (torch.tensor(0.5 + 0.5 * s)[:, None], torch.tensor(0.5 * weight)),
        (torch.tensor(y)[:, None], torch.tensor(decay)),
    )


TAIL_EXACT, TAIL_SINGLE = _rules(20, 40), _rules(12, 16)  # T to 1e-13, and to 1e-9


@final
class StudentTTail:
    """The logarithm of the tail for fixed degrees of freedom."""

    def __init__(self, df: float) -> None:
        self.df = df
        self.log_height = log_gamma_step(0.5 * df) - 0.5 * math.log(math.pi * df)
        self.border = math.sqrt(df * math.expm1(4 / df)) if df > 0.01 else math.inf

    def log(self, x: Tensor, *, single: bool = False) -> Tensor:
        """log T(x), elementwise; ``single`` asks for the digits of float32 only."""
        legendre, laguerre = TAIL_SINGLE if single else TAIL_EXACT
        flat = x.reshape(-1)
        out = torch.empty_like(flat)
        near = flat < self.border
        amend((out,), near, lambda y: (self._log_near(y, legendre),), flat)
        amend((out,), ~near, lambda y: (self._log_far(y, laguerre),), flat)
        return out.view(x.shape)

    def log_spread(self, x: Tensor) -> Tensor:
        """log(1 + x²/n), also where x² overflows."""
        q = x.abs() / math.sqrt(self.df)
        return torch.where(q < 1e9, torch.log1p(q * q), 2 * torch.log(q))

    def _log_near(self, x: Tensor, rule: _Nodes) -> Tensor:
        n = self.df
        if n < 1:
            return torch.log(through_numpy(self._by_scipy, x))
        node, weight = (r.to(x) for r in rule)
        theta = torch.atan(x / math.sqrt(n))
        powers = torch.sin(node * theta).square_().neg_().log1p_().mul_(0.5 * (n - 1)).exp_()
        inside = theta * (weight @ powers) * (math.exp(self.log_height) * math.sqrt(n))
        return torch.log(0.5 - inside)

    def _log_far(self, x: Tensor, rule: _Nodes) -> Tensor:
        node, weight = (r.to(x) for r in rule)
        log_u = -self.log_spread(x)
        factors = torch.exp(log_u - 2 / self.df * node).neg_().add_(1.0).rsqrt_()
        log_scale = self.log_height - 0.5 * math.log(self.df)
        return torch.log(weight @ factors) + 0.5 * self.df * log_u + log_scale

    def _by_scipy(self, x: NDArray[Any]) -> NDArray[Any]:
        """½ I_u(n/2, ½) = ½ − ½ I_v(½, n/2), by the smaller of u and v = 1 − u."""
        n = self.df
        v = x * x / (n + x * x)
        inner = 0.5 - 0.5 * special.betainc(0.5, 0.5 * n, np.minimum(v, 0.5))
        outer = 0.5 * special.betainc(0.5 * n, 0.5, np.minimum(n / (n + x * x), 0.5))
        return np.asarray(np.where(v < 0.5, inner, outer))


_LARGEST_ROOT = math.sqrt(np.finfo(np.float64).max)


@final
class ElementaryTail:
    """T(x) itself for an even number n of degrees of freedom, up to 12; no digit is lost.

    With u = n/(n + x²), 2T = 1 − √(1 − u) P(u), where P(u) = Σ_k C(2k, k) (u/4)ᵏ over k < n/2 has
    the first terms of the series of 1/√(1 − u). Hence 1 − (1 − u) P² = u^{n/2} Q(u), Q a polynomial
    with positive coefficients, and 2T = u^{n/2} Q(u) / (1 + √(1 − u) P(u)).
    """

    def __init__(self, df: float) -> None:
        self.df, half = df, round(df) // 2
        first = np.array([math.comb(2 * k, k) / 4**k for k in range(half)])
        product = np.polynomial.polynomial.polymul([1.0, -1.0], np.convolve(first, first))
        self.first = [float(c) for c in first[::-1]]
        # Q(u) u^{n/2}, the highest power first
        self.rest = [*(float(-c) for c in product[: half - 1 : -1]), *[0.0] * half]

    def __call__(self, x: Tensor) -> Tensor:
        """T(x) for x ≥ 0, elementwise, without a gradient."""
        q = x / math.sqrt(self.df)
        u = (q * q).add_(1.0).reciprocal_()  # 0 where q² overflows, as T is
        q.clamp_(max=_LARGEST_ROOT)  # √(1 − u) = q√u is to be a number there, too
        below = q.mul_(torch.sqrt(u)).mul_(_horner(self.first, u)).add_(1.0)
        return _horner(self.rest, u).div_(below).mul_(0.5)


@final
class TailPolynomials:
    """T(x) itself, to 1e-12 of its value, for 1 to 12 degrees of freedom n.

    With v = x²/(n + x²) = 1 − u, ½ − T = √v H(v) and T = u^{n/2} G(u). H and G are power series
    that converge up to 1: on [0, ½], where the smaller of u and v is, polynomials of degree 18.
    """

    LEAST_DF, MOST_DF = 1.0, 12.0

    def __init__(self, df: float) -> None:
        self.df, half = df, 0.5 * df
        height = 0.5 / special.beta(0.5, half)  # of √v for v → 0, half of it
        self.near = _polynomial(lambda v: 2 * height * special.hyp2f1(0.5, 1 - half, 1.5, v))
        self.far = _polynomial(lambda u: height / half * special.hyp2f1(half, 0.5, half + 1, u))

    def __call__(self, x: Tensor) -> Tensor:
        """T(x) for x ≥ 0, elementwise, without a gradient."""
        q = x.reshape(-1) / math.sqrt(self.df)
        out = torch.empty_like(q)
        near = q < 1
        amend((out,), near, self._near, q)
        amend((out,), ~near, self._far, q)
        return out.view(x.shape)

    def _near(self, q: Tensor) -> tuple[Tensor]:
        v = q * q
        v.div_(1 + v)
        return (0.5 - torch.sqrt(v) * _horner(self.near, 4 * v - 1),)

    def _far(self, q: Tensor) -> tuple[Tensor]:
        u = 1 / (1 + q * q)  # 0 where q² overflows, as T is
        return (u.pow(0.5 * self.df) * _horner(self.far, 4 * u - 1),)


@cache
def tail_polynomials(df: float) -> ElementaryTail | TailPolynomials | None:
    """Made once per number of degrees of freedom; None where they are not exact enough."""
    if not TailPolynomials.LEAST_DF <= df <= TailPolynomials.MOST_DF:
        return None
    return ElementaryTail(df) if df % 2 == 0 else TailPolynomials(df)


def _polynomial(function: Callable[[NDArray[Any]], NDArray[Any]]) -> list[float]:
    """Coefficients in 4s − 1, the highest first, of a function on [0, ½]."""
    series = Chebyshev.interpolate(function, 18, domain=(0.0, 0.5))
    powers = np.polynomial.chebyshev.cheb2poly(series.coef)
    return [float(c) for c in powers[::-1]]


def _horner(coefficients: list[float], t: Tensor) -> Tensor:
    """Σ_k c_k tᵏ, the coefficient of the highest power first."""
    value = torch.full_like(t, coefficients[0])
    for coefficient in coefficients[1:]:
        value.mul_(t).add_(coefficient)
    return value


def log_gamma_step(x: float) -> float:
    """log Γ(x + 1/2)/Γ(x), by its asymptotic series at an argument of 25 or more.

    From there down by the recurrence: a difference of two values of lgamma would cancel.
    """
    down = 0.0
    while x < 25:
        down += math.log1p(-0.5 / (x + 0.5))  # x/(x + 1/2)
        x += 1
    u = 1 / (x * x)
    series = -1 / 8 + u * (1 / 192 + u * (-1 / 640 + u * (17 / 14336 - u * 31 / 18432)))
    return 0.5 * math.log(x) + series / x + down


def through_numpy(function: Callable[..., NDArray[Any]], *tensors: Tensor) -> Tensor:
    """A function of NumPy arrays on tensors, without its gradient."""
    arrays = [tensor.detach().cpu().numpy() for tensor in tensors]
    return torch.as_tensor(function(*arrays)).to(tensors[0])


def _legendre(n_nodes: int) -> tuple[Tensor, Tensor]:
    """Nodes in (−1, 1) as a column, and weights that add to 1."""
    node, weight = np.polynomial.legendre.leggauss(n_nodes)
    return torch.tensor(node)[:, None], torch.tensor(0.5 * weight)


EXACT, SINGLE = _legendre(16), _legendre(9)  # the mean over a narrow interval to 1e-15, and 1e-9


@final
class StudentTKernel(Kernel):
    """f(x) = c (1 + x²/n)^{−(n+1)/2} with n degrees of freedom.

    - Narrow: p/2h = f(z) ∫ f(z + hs)/f(z) ds/2 by Gauss–Legendre, the ratio exact in hs.
    - Wide: from the tails T(x) = 1 − F(x) of both ends, or outside them.
    """

    def __init__(self, df: float) -> None:
        self.df = df
        self.variance = df / (df - 2) if df > 2 else math.inf
        self._tail = StudentTTail(df)
        self.log_height = self._tail.log_height

    def log_pdf(self, x: Tensor) -> Tensor:
        return self.log_height - 0.5 * (self.df + 1) * self._tail.log_spread(x)

    def log_tail(self, x: Tensor) -> Tensor:
        """log(1 − F(x)) for x ≥ 0."""
        return self._tail.log(x)

    def partials(self, z: Tensor, h: Tensor, a: Tensor, b: Tensor, *, single: bool) -> Partials:
        flip = z < 0
        x, a, b = mirrored(z, a, b)
        # f has its singularities at ±i√n, √(n + x²) away, and falls at the rate (n+1)x/(n + x²)
        away = self._away(x)
        narrow = h * math.sqrt(self.df + 1) <= 0.3 * away
        narrow &= h * (x / away) * ((self.df + 1) / away) <= 4
        beside = a > 0
        value, dz, dh, ds = (torch.empty_like(x) for _ in range(4))
        amend((value, dz, dh, ds), narrow, partial(self._narrow, single), x, h)
        for mask, form in ((beside, self._beside), (~beside, self._across)):
            amend((value, dz, dh, ds), mask & ~narrow, partial(form, single), a, b)
        return Partials(value, torch.where(flip, -dz, dz), dh, ds, narrow)

    def _narrow(self, single: bool, z: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        """With s = h·node, 1 + step = (n + (z + s)²)/(n + z²); slopes are means of the score."""
        node, weight = (r.to(z) for r in (SINGLE if single else EXACT))
        away = self._away(z)
        s = node * h
        step = (2 * z + s).div_(away).mul_(s / away)
        ratio = torch.log1p(step).mul_(-0.5 * (self.df + 1)).exp_()
        score = (z + s).div_(away).mul_(ratio).div_(step.add_(1.0))
        total, rate = weight @ ratio, -(self.df + 1) / away
        dz = (weight @ score) / total * rate
        dh = ((weight * node[:, 0]) @ score) / total * rate
        return self.log_pdf(z) + torch.log(total), dz, dh, 1 + z * dz + h * dh

    def _beside(self, single: bool, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        near, far = (self._tail.log(x, single=single) for x in (a, b))
        value = near + torch.log1p(-torch.exp(far - near))
        return self._slopes(a, b, value)

    def _across(self, single: bool, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        left, right = (torch.exp(self._tail.log(x, single=single)) for x in (-a, b))
        return self._slopes(a, b, torch.log1p(-(left + right)))

    def _slopes(self, a: Tensor, b: Tensor, value: Tensor) -> tuple[Tensor, ...]:
        # bounds at the end of the range may meet there
        ra, rb = (torch.exp(self.log_pdf(x) - value).nan_to_num_(posinf=0.0) for x in (a, b))
        ends = (torch.where(x.isfinite(), x, 0.0) * r for x, r in ((b, rb), (a, ra)))
        return value, rb - ra, rb + ra, torch.sub(*ends)

    def _away(self, x: Tensor) -> Tensor:
        """√(n + x²), also where x² overflows."""
        return torch.hypot(x, x.new_tensor(math.sqrt(self.df)))

    def tail_quantile(self, p: Tensor) -> Tensor:
        """The x ≥ 0 with 1 − F(x) = p ≤ 1/2: SciPy's, or the leading power of a deep tail, refined.

        Newton's method on log T as a function of log x, in which a power of x is a straight line.
        """
        n = self.df
        u = through_numpy(lambda v: special.betaincinv(0.5 * n, 0.5, v), 2 * p)
        v = through_numpy(lambda w: special.betaincinv(0.5, 0.5 * n, w), 1 - 2 * p)
        middle, outer = torch.sqrt(n * v / (1 - v)), torch.sqrt(n * (1 - u) / u)
        log_lead = 0.5 * (n - 1) * math.log(n) + self._tail.log_height  # T(x) ~ lead · x^−n
        far = torch.exp((log_lead - torch.log(p)) / n)
        x = torch.where(p > 0.25, middle, torch.where(u > 1e-200, outer, far))
        for _ in range(3):
            log_tail = self.log_tail(x)
            step = (log_tail - torch.log(p)) / (x * torch.exp(self.log_pdf(x) - log_tail))
            x = torch.where(step.abs() < 1, x * torch.exp(step), x)
        return x


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
        self.has_mean = self.df > 1
        self._polynomials = tail_polynomials(self.df)

    def log_pdf(self, z: Tensor) -> Tensor:
        return self._density.log_pdf(z)

    def pdf(self, z: Tensor) -> Tensor:
        # where z² overflows, the density is 0
        power = (z * z).div_(self.df).log1p_().mul_(-0.5 * (self.df + 1))
        return power.exp_().mul_(math.exp(self._density.log_height))

    def cdf(self, z: Tensor) -> Tensor:
        if self._polynomials is None or z.requires_grad:
            return torch.exp(self.log_cdf(z))
        tail = self._polynomials(z.abs())
        return torch.where(z > 0, 1 - tail, tail)

    def quantile(self, p: Tensor) -> Tensor:
        q = p.to(torch.float64)
        tail = torch.minimum(q, 1 - q)
        return torch.copysign(self._density.tail_quantile(tail), q - 0.5).to(p.dtype)

    def log_lower(self, z: Tensor) -> Tensor:
        log_tail = self._density.log_tail(z.abs())
        return torch.where(z > 0, torch.log1p(-log_tail.exp()), log_tail)

    def log_mean_lower(self, z: Tensor, h: Tensor) -> Tensor:
        """∫F = b F(b) − a F(a) − ∫u f(u) du relative to F(b), with ∫u f(u) du in closed form.

        That is −(df + u²) f(u)/(df − 1), and between a and b ½(df + b²) f(b) (l_a − l_b)
        (1 − e^{−x})/x with l = log(1 + u²/df) and x = ½(df − 1)(l_a − l_b), for df = 1 too. It
        cancels where F hardly changes over the window: Gauss–Legendre nodes are exact there.
        """
        df, a, b = self.df, z - h, z + h
        log_fa, log_fb = self.log_lower(a), self.log_lower(b)
        growth = torch.log1p(a * a / df) - torch.log1p(b * b / df)
        x = (df - 1) / 2 * growth
        safe = torch.where(x == 0, 1.0, x)
        moment = (df + b * b) / 2 * growth * torch.where(x == 0, 1.0, -torch.expm1(-safe) / safe)
        area = b - a * torch.exp(log_fa - log_fb) + moment * torch.exp(self.log_pdf(b) - log_fb)
        value = torch.log(area / (2 * h)) + log_fb
        flat = (log_fb - log_fa < STEEP) & (h < 0.5 * torch.sqrt(df + z * z))
        return replaced(value, flat, partial(log_mean_by_nodes, self), z, h)

    def crps(self, z: Tensor) -> Tensor | None:
        if not self.has_mean:
            return None  # E|X| is infinite, though the score is not
        df = self.df
        pairs = float(special.beta(0.5, df - 0.5) / special.beta(0.5, df / 2) ** 2)
        spread = 2 * math.sqrt(df) / (df - 1) * pairs
        pdf = torch.exp(self.log_pdf(z))
        return z * (2 * self.cdf(z) - 1) + 2 * pdf * (df + z * z) / (df - 1) - spread

    def draws(self, like: Tensor, generator: torch.Generator | None) -> Tensor:
        half = torch.full_like(like, 0.5 * self.df)
        gamma = torch._standard_gamma(half, generator=generator)
        normal = torch.empty_like(like).normal_(generator=generator)
        return normal * torch.sqrt(half / gamma)


@cache
def student_t(df: float) -> StandardFamily:
    """The Student-t family with ``df`` degrees of freedom; made once."""
    return StudentTFamily(df)


def _from_name(df: float | None) -> StandardFamily:
    if df is None:
        raise ValueError("family 'student-t' needs degrees of freedom, got df=None. Pass df=5.")
    return student_t(df)


register_family("student-t", _from_name, takes_df=True)
