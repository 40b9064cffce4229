"""The normal family: log[Φ(z + h) − Φ(z − h)] in every corner."""

import math
from typing import final

import torch
from torch import Tensor

from accord._numerics.family import StandardFamily, register_family, replaced
from accord._numerics.kernel import Kernel, Partials, amend

LOG_2 = math.log(2)
LOG_SQRT_PI = 0.5 * math.log(math.pi)
LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)

SQRT_HALF = math.sqrt(0.5)
PEAK = math.exp(-LOG_SQRT_2PI)
NARROW = 0.04  # up to this h and 2zh, four terms of the series reach 1e-16
UNDERFLOW = 27.0  # erfc(27) and exp(−27²) are below the smallest normal double


def gaussian_nll(mu: Tensor, var: Tensor, t: Tensor) -> Tensor:
    """−log N(t; μ, var) = ½[log 2π var + (t − μ)²/var], under autograd."""
    return 0.5 * (torch.log(var) + (t - mu).square() / var) + LOG_SQRT_2PI


def gaussian_nll_slopes(mu: Tensor, var: Tensor, t: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same with its derivatives by μ and var, for a training step that needs no autograd."""
    error = mu - t
    by_mu = error / var
    loss = torch.log(var).addcmul_(error, by_mu).mul_(0.5).add_(LOG_SQRT_2PI)
    by_var = var.reciprocal().addcmul_(by_mu, by_mu, value=-1).mul_(0.5)
    return loss, by_mu, by_var


@final
class ErrorFunctionKernel(Kernel):
    """f(x) = exp(−x²)/√π, the normal density in units of √2 σ: 2p = erf(b) − erf(a).

    This difference, its logarithm and the closed-form slopes f(a)/p and f(b)/p serve wherever 2p is
    neither small nor near 2. Other elements go to the form that is exact there:

    - narrow, h → 0: a series in h;
    - a tail: exp(−a²) taken out, what is left is a difference of two values of erfcx;
    - p near 1: log1p of the two tails outside the interval.
    """

    unit = math.sqrt(2)
    variance = 0.5
    has_single_form = True

    def partials(self, z: Tensor, h: Tensor, a: Tensor, b: Tensor, *, single: bool) -> Partials:
        double_p = torch.erf(b).sub_(torch.erf(a))
        out = _plain(a, b, double_p)
        least, most = _range_of_difference(double_p.dtype, single)
        lowest, highest = (x.item() for x in torch.aminmax(double_p))
        if highest > most:
            near = double_p > most
            if single:  # float32 has no use for the slopes at the edge of underflow
                amend(out[:1], near, _log_near_one, a, b)
            else:
                amend(out, near, _near_one, a, b)
        if lowest >= least:
            return Partials(*out, narrow=None)
        small = double_p < least
        narrow = small & (h <= NARROW) & (2 * z.abs() * h <= NARROW)
        amend(out, narrow, _narrow, z, h)
        amend(out, small & ~narrow, _tail, z, h, a, b)
        return Partials(*out, narrow=narrow)


def _range_of_difference(dtype: torch.dtype, single: bool) -> tuple[float, float]:
    """Where 2p, a difference of values of erf, has the wanted digits, and 2 − 2p has them too."""
    if dtype == torch.float32:  # a device without float64
        return 0.08, 1.9
    return (1e-9, 2 - 1e-8) if single else (1e-4, 1.99)


def _plain(a: Tensor, b: Tensor, double_p: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """log p and its slopes by 2p; the exponents are kept from underflow, which is slow."""
    weight = double_p.reciprocal().mul_(TWO_OVER_SQRT_PI)
    ra, rb = (torch.mul(x, x).neg_().clamp_(min=-700).exp_().mul_(weight) for x in (a, b))
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
    """Both bounds on one side of 0: 2p = exp(−c²) [erfcx(c) − exp(−4|x|h) erfcx(d)], c < d."""
    near, far = torch.minimum(a.abs(), b.abs()), torch.maximum(a.abs(), b.abs())
    decay = torch.exp(-4 * x.abs() * h)
    bracket = torch.special.erfcx(near) - decay * torch.special.erfcx(far)
    value = torch.log(bracket) - near * near - LOG_2
    inner = TWO_OVER_SQRT_PI / bracket
    outer = decay * inner
    dz = torch.copysign(inner - outer, -x)
    return value, dz, outer + inner, _product(far, outer) - near * inner


def _near_one(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """a < 0 < b: p = 1 − [erfc(−a) + erfc(b)]/2."""
    (ta, fa), (tb, fb) = _outside(-a), _outside(b)
    tails = ta + tb
    weight = TWO_OVER_SQRT_PI / (2 - tails)
    ra, rb = fa * weight, fb * weight
    return torch.log1p(-0.5 * tails), rb - ra, rb + ra, _product(b, rb) - _product(a, ra)


def _log_near_one(a: Tensor, b: Tensor) -> tuple[Tensor]:
    """That logarithm where 1 − p < 1e-8, for float32, whose range ends before erfc(15)."""
    tails = (torch.erfc(x.clamp(max=15.0)) for x in (-a, b))
    return (torch.add(*tails).mul_(-0.5),)


def _outside(x: Tensor) -> tuple[Tensor, Tensor]:
    """erfc(x) and exp(−x²), spared the underflow, which is slow."""
    inside = x < UNDERFLOW
    y = torch.where(inside, x, 0.0)
    return torch.erfc(y) * inside, torch.exp(-y * y) * inside


def _product(bound: Tensor, density: Tensor) -> Tensor:
    """bound · density, which is 0 at an infinite bound."""
    return torch.where(density > 0, bound, 0.0) * density


# ∫Φ over a window is b⁺ + T(|b|) − T(|a|) with T(v) = φ(v) − v Φ(−v) = ∫_v^∞ Φ(−u) du. It cancels
# where Φ hardly changes: there its Taylor series in h takes over. Where a probability is too small
# for a float, T(v) = φ(v) R(v).
def _is_narrow(z: Tensor, h: Tensor) -> Tensor:
    """Where nine terms of the normal's Taylor series in h suffice."""
    return (h < 0.5) & (z * h > -0.5)


def _normal_series(z: Tensor, h: Tensor) -> Tensor:
    """[A(z; h) − Φ(z)]/φ(z) = −Σ_k He_{2k−1}(z) h^{2k}/(2k+1)!, with He_n hⁿ by recurrence."""
    w, v = z * h, h * h
    even, odd, total = torch.ones_like(w), w, torch.zeros_like(w)
    for k in range(1, 10):
        total = total - odd / math.factorial(2 * k + 1)
        even = w * odd - (2 * k - 1) * v * even
        odd = w * even - 2 * k * v * odd
    return h * total


def _excess_ratio(v: Tensor) -> Tensor:
    """R(v) for |v| > 8, where 30 terms reach 1e-14 at worst."""
    u, series = 1 / (v * v), torch.ones_like(v)
    for k in range(30, 0, -1):
        series = 1 - (2 * k + 1) * u * series
    return u * series


# Up to this h, and this |z|h, five terms of the series reach 1e-15.
_SHORT_WINDOW, _SHORT_STEP = 0.1, 0.3
# Below it T(v) has lost digits.
_FAR_TAIL = -6.0


def _mean_over_window(z: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """Means of Φ and φ over z ± h, from that over −|z| ± h: ∫Φ(u) du = u Φ(u) + φ(u)."""
    area, mass, lower = torch.zeros_like(z), torch.zeros_like(z), -z.abs()
    for bound, side in ((lower + h, 1), (lower - h, -1)):
        below = torch.erfc(-SQRT_HALF * bound).mul_(0.5)
        mass.add_(below, alpha=side)
        area.add_((bound * bound).mul_(-0.5).exp_().mul_(PEAK).addcmul_(bound, below), alpha=side)
    width = 2 * h
    mean = area.div_(width)
    return torch.where(z > 0, 1 - mean, mean), mass.div_(width)


def _mean_by_series(z: Tensor, h: Tensor, cdf: Tensor, pdf: Tensor) -> tuple[Tensor, Tensor]:
    """Φ − φ Σ_k He_{2k−1}(z) h^{2k}/(2k+1)! and φ (1 + Σ_k He_{2k}(z) h^{2k}/(2k+1)!)."""
    w, v = z * h, h * h
    even, odd = torch.ones_like(w), w
    below, beside = torch.zeros_like(w), torch.ones_like(w)
    for k in range(1, 6):
        share = 1 / math.factorial(2 * k + 1)
        below = below.add_(odd, alpha=share)
        even = (w * odd).addcmul_(v, even, value=1 - 2 * k)
        beside = beside.add_(even, alpha=share)
        odd = (w * even).addcmul_(v, odd, value=-2 * k)
    return torch.addcmul(cdf, pdf, below.mul_(h), value=-1), beside.mul_(pdf)


@final
class NormalFamily(StandardFamily):
    """The standard normal family."""

    name = "normal"
    variance = 1.0
    kernel = ErrorFunctionKernel()
    takes_normal_noise = True

    def log_pdf(self, z: Tensor) -> Tensor:
        return -0.5 * z * z - LOG_SQRT_2PI

    def pdf(self, z: Tensor) -> Tensor:
        return (z * z).mul_(-0.5).exp_().mul_(PEAK)

    def cdf(self, z: Tensor) -> Tensor:
        return 0.5 * torch.erfc(-SQRT_HALF * z)

    def quantile(self, p: Tensor) -> Tensor:
        z: Tensor = torch.special.ndtri(p)
        return z

    def log_mean_lower(self, z: Tensor, h: Tensor) -> Tensor:
        a, b = z - h, z + h
        area = b.clamp(min=0) + self._excess(b.abs()) - self._excess(-a)
        value = torch.log(area / (2 * h))
        value = replaced(value, _is_narrow(z, h), self._log_taylor, z, h)
        return replaced(value, b < -8.0, self._log_far, z, h)

    def mean_cdf_and_pdf(self, z: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """By ∫Φ and ∫φ over the window where it is wide, else by their Taylor series in h.

        Where a mean is far down the tail, its logarithm is computed.
        """
        x, w = z.reshape(-1), h.expand_as(z).reshape(-1)
        wide = (w > _SHORT_WINDOW) | (x.abs() * w > _SHORT_STEP)
        if bool(wide.all()):
            mean, density = _mean_over_window(x, w)
        else:
            mean, density = self.cdf(x), self.pdf(x)
            amend((mean, density), (w > 0) & ~wide, _mean_by_series, x, w, mean, density)
            amend((mean, density), wide, _mean_over_window, x, w)
        far = wide & (x + w < _FAR_TAIL)
        amend((mean,), far, lambda *x: (torch.exp(self.log_mean_lower(*x)),), x, w)
        return mean.view(z.shape), density.view(z.shape)

    def _log_taylor(self, z: Tensor, h: Tensor) -> Tensor:
        return torch.log(self.cdf(z) + torch.exp(self.log_pdf(z)) * _normal_series(z, h))

    def _excess(self, v: Tensor) -> Tensor:
        """T(v) for v ≥ 0; its relative error grows as v² units of rounding."""
        return torch.exp(self.log_pdf(v)) - v * self.cdf(-v)

    def _log_far(self, z: Tensor, h: Tensor) -> Tensor:
        """For b < −8, from R(v) = 1/v² − 3/v⁴ + 15/v⁶ − …"""
        area = _excess_ratio(z + h) - _excess_ratio(z - h) * torch.exp(2 * h * z)
        wide = self.log_pdf(z + h) + torch.log(area / (2 * h))
        log_f = self.log_cdf(z)
        taylor = torch.exp(self.log_pdf(z) - log_f) * _normal_series(z, h)
        return torch.where(_is_narrow(z, h), log_f + torch.log1p(taylor), wide)

    def draws(self, like: Tensor, generator: torch.Generator | None) -> Tensor:
        return torch.empty_like(like).normal_(generator=generator)


NORMAL: StandardFamily = NormalFamily()
register_family("normal", lambda _: NORMAL)
