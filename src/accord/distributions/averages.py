"""Probabilities averaged over a moving window: what smoothing does to a cdf.

For a standard family F (symmetric about 0) and Y = Z + hU with U uniform on (−1, 1),

    P(Y ≤ z) = A(z; h) = (1/2h) ∫_{z−h}^{z+h} F(u) du,        1 − A(z; h) = A(−z; h),

so that only z ≤ 0, the lower tail, needs a formula. With a = z − h and b = z + h, ∫F is

- normal: b⁺ + T(|b|) − T(|a|) with T(v) = φ(v) − v Φ(−v) = ∫_v^∞ Φ(−u) du;
- Laplace: ½ e^b (1 − e^{−2h}) below the peak, b + ½(e^{−b} − e^a) across it;
- logistic: log(1 + e^b) − log(1 + e^a) = log1p(e^b (1 − e^{−2h})/(1 + e^a));
- uniform: (b − a)(a + b + 2)/4 on [−1, 1];
- Student-t: b F(b) − a F(a) − ∫_a^b u f(u) du, the last in closed form.

The first and the last cancel where F hardly changes over the window. There the normal takes its
Taylor series in h and the Student-t Gauss–Legendre nodes, both exact to rounding on so short a
stretch. Where a probability is too small for a float, its logarithm has a form of its own.
"""

import math
from collections.abc import Callable
from typing import cast

import numpy as np
import torch
from torch import Tensor

from accord._numerics import StandardFamily, log_within
from accord._numerics.elementary import log1mexp
from accord._numerics.laplace import LaplaceFamily
from accord._numerics.logistic import LogisticFamily
from accord._numerics.normal import NormalFamily
from accord._numerics.student import StudentTFamily, StudentTKernel
from accord._numerics.uniform import UniformFamily
from accord.distributions.conversion import broadcast

_LEGENDRE = np.polynomial.legendre.leggauss(12)
_TINY = 1e-290  # below it a float loses digits, and the logarithm is computed on its own
_STEEP = math.log(1.5)  # growth over a window above which differences keep their digits
_LOG_2 = math.log(2)


def log_cdf(family: StandardFamily, z: Tensor) -> Tensor:
    """log F(z), also where F underflows."""
    with torch.no_grad():
        if isinstance(family.kernel, StudentTKernel):
            log_tail = family.kernel.log_tail(z.abs())
            value = torch.where(z > 0, torch.log1p(-log_tail.exp()), log_tail)
        else:
            tail = family.cdf(-z.abs())
            value = torch.where(z > 0, torch.log1p(-tail), torch.log(tail))
            value = _replaced(value, (tail < _TINY) & (z < 0), StandardFamily.log_cdf, family, z)
    if not z.requires_grad:
        return value
    return _linearised(value, z, torch.exp(family.log_pdf(z.detach()) - value))


def log_mean_cdf(family: StandardFamily, z: Tensor, h: Tensor) -> Tensor:
    """log A(z; h), the log-cdf of the family convolved with Uniform(−h, h); log F(z) at h = 0."""
    z, h = broadcast(z, h)
    with torch.no_grad():
        lower, width = -z.abs(), torch.where(h > 0, h, 1.0)
        mean, log_far, limit = _LOWER_TAIL[type(family)]
        log_tail = torch.log(mean(family, lower, width))
        far = lower + width < limit
        log_tail = _replaced(log_tail, far, log_far, family, lower, width).clamp(max=-_LOG_2)
        value = torch.where(z > 0, torch.log1p(-torch.exp(log_tail)), log_tail)
        value = _replaced(value, h == 0, log_cdf, family, z)
        value = torch.where(z.isinf(), torch.where(z > 0, 0.0, -torch.inf), value)
    if not (z.requires_grad or h.requires_grad):
        return value
    dz, dh = _slopes(family, z.detach(), h.detach(), value)
    return _linearised(_linearised(value, z, dz), h, dh)


def log_mean_within(family: StandardFamily, z: Tensor, half: Tensor, window: Tensor) -> Tensor:
    """log of the mean of F(u + half) − F(u − half) over |u − z| ≤ window."""
    return log_mean_between(family, z - half, z + half, z, half, window)


def log_mean_between(
    family: StandardFamily, a: Tensor, b: Tensor, z: Tensor, half: Tensor, window: Tensor
) -> Tensor:
    """log of the mean of F(b + u) − F(a + u) over |u| ≤ window, for a, b = z ∓ half.

    The two widths may change places, the mean divided by ``half`` being symmetric in them: the
    closed form goes over the wider, the mean over the narrower.
    """
    a, b, z, half, window = broadcast(a, b, z, half, window)
    flip = z > 0
    a, b, z = torch.where(flip, -b, a), torch.where(flip, -a, b), -z.abs()
    wide, narrow = torch.maximum(half, window), torch.minimum(half, window)
    inner = half < window
    low, high = torch.where(inner, z - window, a), torch.where(inner, z + window, b)
    upper = log_mean_cdf(family, high, narrow)
    drop = upper - log_mean_cdf(family, low, narrow)
    steep = drop > _STEEP
    difference = upper + log1mexp(torch.where(steep, drop, 1.0))
    mean = _replaced(difference, ~steep, _nodes_within, family, z, wide, narrow)
    return mean + torch.where(half < window, torch.log(half / wide), 0.0)


def _nodes_within(family: StandardFamily, z: Tensor, wide: Tensor, narrow: Tensor) -> Tensor:
    """Gauss–Legendre over |u − z| ≤ narrow, in panels between the kinks of F(u ± wide)."""
    kinks = {LaplaceFamily: (0.0,), UniformFamily: (-1.0, 1.0)}.get(type(family), ())
    offsets = [
        (kink + side * wide - z).clamp(-narrow, narrow) for kink in kinks for side in (-1, 1)
    ]
    ends = torch.stack([-narrow, *offsets, narrow]).sort(dim=0).values
    middle, radius = (ends[1:] + ends[:-1]) / 2, (ends[1:] - ends[:-1]) / 2
    share = torch.where(narrow > 0, radius / narrow, 1 / len(middle))
    nodes, log_weights = _nodes(z)
    points = z + (middle + nodes * radius)
    return torch.logsumexp(log_within(family, points, wide) + log_weights + share.log(), dim=(0, 1))


def _nodes(like: Tensor) -> tuple[Tensor, Tensor]:
    """Gauss–Legendre nodes on (−1, 1) and the logarithms of their shares, before two more axes."""
    nodes, weights = (torch.from_numpy(x).to(like).reshape(-1, 1, 1) for x in _LEGENDRE)
    return nodes, torch.log(weights / 2)


def _normal(family: StandardFamily, z: Tensor, h: Tensor) -> Tensor:
    a, b = z - h, z + h
    area = b.clamp(min=0) + _normal_excess(family, b.abs()) - _normal_excess(family, -a)
    return _replaced(area / (2 * h), _is_narrow(z, h), _normal_taylor, family, z, h)


def _is_narrow(z: Tensor, h: Tensor) -> Tensor:
    """Where nine terms of the normal's Taylor series in h suffice."""
    return (h < 0.5) & (z * h > -0.5)


def _normal_taylor(family: StandardFamily, z: Tensor, h: Tensor) -> Tensor:
    return family.cdf(z) + torch.exp(family.log_pdf(z)) * _normal_series(z, h)


def _normal_series(z: Tensor, h: Tensor) -> Tensor:
    """[A(z; h) − Φ(z)]/φ(z) = −Σ_k He_{2k−1}(z) h^{2k}/(2k+1)!, with He_n hⁿ by recurrence."""
    w, v = z * h, h * h
    even, odd, total = torch.ones_like(w), w, torch.zeros_like(w)
    for k in range(1, 10):
        total = total - odd / math.factorial(2 * k + 1)
        even = w * odd - (2 * k - 1) * v * even
        odd = w * even - 2 * k * v * odd
    return h * total


def _normal_excess(family: StandardFamily, v: Tensor) -> Tensor:
    """T(v) for v ≥ 0; its relative error grows as v² units of rounding."""
    return torch.exp(family.log_pdf(v)) - v * family.cdf(-v)


def _log_far_normal(family: StandardFamily, z: Tensor, h: Tensor) -> Tensor:
    """log A for b < −8, from T(v) = φ(v) R(v) with R(v) = 1/v² − 3/v⁴ + 15/v⁶ − …"""
    area = _excess_ratio(z + h) - _excess_ratio(z - h) * torch.exp(2 * h * z)
    wide = family.log_pdf(z + h) + torch.log(area / (2 * h))
    log_f = family.log_cdf(z)
    taylor = torch.exp(family.log_pdf(z) - log_f) * _normal_series(z, h)
    return torch.where(_is_narrow(z, h), log_f + torch.log1p(taylor), wide)


def _excess_ratio(v: Tensor) -> Tensor:
    """R(v) for |v| > 8, where 30 terms reach 1e-14 at worst."""
    u, series = 1 / (v * v), torch.ones_like(v)
    for k in range(30, 0, -1):
        series = 1 - (2 * k + 1) * u * series
    return u * series


def _laplace(_: StandardFamily, z: Tensor, h: Tensor) -> Tensor:
    a, b = z - h, z + h
    below = -0.5 * torch.exp(b.clamp(max=0)) * torch.expm1(-2 * h)
    over = b.clamp(min=0)
    across = over + 0.5 * (torch.expm1(-over) - torch.expm1(a))
    return torch.where(b <= 0, below, across) / (2 * h)


def _log_far_laplace(_: StandardFamily, z: Tensor, h: Tensor) -> Tensor:
    return z + h + log1mexp(2 * h) - torch.log(4 * h)


def _logistic(_: StandardFamily, z: Tensor, h: Tensor) -> Tensor:
    a, b = z - h, z + h
    # beyond b = 40, ∫F is b to the last digit, and e^b would overflow further on
    odds = -torch.exp(b.clamp(max=40)) * torch.expm1(-2 * h) / (1 + torch.exp(a))
    return (torch.log1p(odds) + (b - 40).clamp(min=0)) / (2 * h)


def _log_far_logistic(_: StandardFamily, z: Tensor, h: Tensor) -> Tensor:
    return z + h + log1mexp(2 * h) - torch.log(2 * h)


def _uniform(_: StandardFamily, z: Tensor, h: Tensor) -> Tensor:
    # relative to z, so that b − a is 2h to the last digit inside
    a, b = torch.maximum(-h, -1 - z), torch.minimum(h, 1 - z).clamp(min=-h)
    area = (b - a).clamp(min=0) * (2 * (1 + z) + a + b) / 4 + (z + h - 1).clamp(min=0)
    return area / (2 * h)


def _log_student_t(family: StandardFamily, z: Tensor, h: Tensor) -> Tensor:
    """∫F relative to F(b), from ∫u f(u) du = −(df + u²) f(u)/(df − 1).

    Between a and b the latter is ½(df + b²) f(b) (l_a − l_b) (1 − e^{−x})/x with l = log(1 + u²/df)
    and x = ½(df − 1)(l_a − l_b), which holds for df = 1 too.
    """
    df, a, b = cast(StudentTFamily, family).df, z - h, z + h
    log_fa, log_fb = log_cdf(family, a), log_cdf(family, b)
    growth = torch.log1p(a * a / df) - torch.log1p(b * b / df)
    x = (df - 1) / 2 * growth
    safe = torch.where(x == 0, 1.0, x)
    moment = (df + b * b) / 2 * growth * torch.where(x == 0, 1.0, -torch.expm1(-safe) / safe)
    area = b - a * torch.exp(log_fa - log_fb) + moment * torch.exp(family.log_pdf(b) - log_fb)
    value = torch.log(area / (2 * h)) + log_fb
    flat = (log_fb - log_fa < _STEEP) & (h < 0.5 * torch.sqrt(df + z * z))
    return _replaced(value, flat, _nodes_cdf, family, z, h)


def _nodes_cdf(family: StandardFamily, z: Tensor, h: Tensor) -> Tensor:
    """log A by Gauss–Legendre."""
    nodes, log_weights = _nodes(z)
    return torch.logsumexp(log_cdf(family, z + nodes * h) + log_weights, dim=(0, 1))


def _slopes(
    family: StandardFamily, z: Tensor, h: Tensor, log_mean: Tensor
) -> tuple[Tensor, Tensor]:
    """∂ log A/∂z = q/A with the smoothed density q, and ∂ log A/∂h = [½(F(a) + F(b)) − A]/hA."""
    dz = torch.exp(log_within(family, z, h, density=True) - log_mean)
    low, high = z - h, z + h
    edges = 0.5 * (torch.exp(log_cdf(family, low)) + torch.exp(log_cdf(family, high)))
    wide = (edges - torch.exp(log_mean)) / torch.where(h > 0, h, 1.0)
    # the limit for small h, h f'(z)/3
    narrow = (torch.exp(family.log_pdf(high)) - torch.exp(family.log_pdf(low))) / 6
    dh = torch.where(h < 1e-3, narrow, wide) * torch.exp(-log_mean)
    return dz, dh


def _linearised(value: Tensor, argument: Tensor, slope: Tensor) -> Tensor:
    """``value`` with the given derivative by ``argument``."""
    known = slope.isfinite() & argument.isfinite()
    change = torch.where(known, argument - argument.detach(), 0.0)
    return value + torch.where(known, slope, 0.0) * change


def _replaced(
    values: Tensor,
    where: Tensor,
    function: Callable[..., Tensor],
    family: StandardFamily,
    *arguments: Tensor,
) -> Tensor:
    """``values`` with ``function`` of the arguments in the places marked, computed only there."""
    if not bool(where.any()):
        return values
    part = function(family, *(argument[where] for argument in arguments))
    return values.masked_scatter(where, part)


def _later(_: StandardFamily, z: Tensor, __: Tensor) -> Tensor:
    return torch.ones_like(z)


# A for z ≤ 0, log A where that would lose its digits, and the b = z + h below which it would.
_Tail = Callable[[StandardFamily, Tensor, Tensor], Tensor]
_LOWER_TAIL: dict[type[StandardFamily], tuple[_Tail, _Tail, float]] = {
    NormalFamily: (_normal, _log_far_normal, -8.0),
    LaplaceFamily: (_laplace, _log_far_laplace, -600.0),
    LogisticFamily: (_logistic, _log_far_logistic, -600.0),
    UniformFamily: (_uniform, _later, -math.inf),
    StudentTFamily: (_later, _log_student_t, math.inf),
}
