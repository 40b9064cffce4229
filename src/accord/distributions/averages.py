"""Probabilities averaged over a moving window: what smoothing does to a cdf.

For a standard family F (symmetric about 0) and Y = Z + hU with U uniform on (−1, 1),

    P(Y ≤ z) = A(z; h) = (1/2h) ∫_{z−h}^{z+h} F(u) du,        1 − A(z; h) = A(−z; h),

so that only z ≤ 0, the lower tail, needs a formula. With a = z − h and b = z + h:

- Laplace: ½ e^z sinh(h)/h below the peak, [h + z + ½(e^{−b} − e^a)]/2h across it;
- logistic: ∫F = log(1 + e^b) − log(1 + e^a) = log1p(e^b (1 − e^{−2h})/(1 + e^a));
- uniform: ∫F = (b − a)(a + b + 2)/4 on [−1, 1];
- normal: ∫F = T(−b) − T(−a) with T(v) = φ(v) − v Φ(−v) = ∫_v^∞ Φ(−u) du, and T(−v) = v + T(v);
- Student-t: ∫F = bF(b) − aF(a) − ∫_a^b u f(u) du, the last in closed form.

The last two cancel where F hardly changes over the window; there F itself is integrated by
Gauss–Legendre, which is exact to rounding on so smooth a stretch.
"""

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from accord._numerics import StandardFamily, log_within
from accord.distributions.conversion import broadcast

_NODES, _WEIGHTS = (x.tolist() for x in np.polynomial.legendre.leggauss(12))
_STEEP = math.log(1.5)  # growth over the window above which differences keep their digits
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


def log_mean_cdf(family: StandardFamily, z: Tensor, h: Tensor) -> Tensor:
    """log A(z; h), the log-cdf of the family convolved with Uniform(−h, h); log F(z) at h = 0."""
    z, h = broadcast(z, h)
    lower = -z.abs()
    safe = torch.where(h > 0, h, 1.0)
    name = family.name.split("(")[0]
    tail = torch.where(h > 0, _LOWER_TAIL[name](family, lower, safe), family.log_cdf(lower))
    tail = tail.clamp(max=-math.log(2))  # A(0) = 1/2, and rounding must not pass it
    return torch.where(z > 0, torch.log1p(-torch.exp(tail)), tail)


def log_mean_within(family: StandardFamily, z: Tensor, half: Tensor, window: Tensor) -> Tensor:
    """log of the mean of F(u + half) − F(u − half) over |u − z| ≤ window.

    The two widths may change places, p(half, window)/half being symmetric in them; the closed form
    goes over the wider, the mean over the narrower.
    """
    z, half, window = broadcast(-z.abs(), half, window)
    wide, narrow = torch.maximum(half, window), torch.minimum(half, window)
    outer = log_mean_cdf(family, z + wide, narrow)
    drop = outer - log_mean_cdf(family, z - wide, narrow)
    difference = outer + _log1mexp(drop)
    mean = torch.where(drop > _STEEP, difference, _mean_within(family, z, wide, narrow))
    return mean + torch.where(half < window, torch.log(half / wide), 0.0)


def _mean_within(family: StandardFamily, z: Tensor, wide: Tensor, narrow: Tensor) -> Tensor:
    """Gauss–Legendre over |u − z| ≤ narrow, in panels between the kinks of F(u ± wide)."""
    kinks = {"laplace": (0.0,), "uniform": (-1.0, 1.0)}.get(family.name, ())
    edges = [z - narrow, z + narrow]
    edges += [(k + s * wide).clamp(z - narrow, z + narrow) for k in kinks for s in (-1, 1)]
    ends = torch.stack(edges).sort(dim=0).values
    terms = []
    for left, right in pairwise(ends):
        share = torch.where(narrow > 0, (right - left) / (2 * narrow), 1 / (len(ends) - 1))
        middle, radius = (left + right) / 2, (right - left) / 2
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            terms.append(
                log_within(family, middle + node * radius, wide) + torch.log(weight / 2 * share)
            )
    return torch.stack(terms).logsumexp(dim=0)


def _normal(family: StandardFamily, z: Tensor, h: Tensor) -> Tensor:
    a, b = z - h, z + h
    log_a, log_b = _log_normal_tail_area(-a), _log_normal_tail_area(b.abs())
    below = log_b + _log1mexp((log_b - log_a).clamp(min=0))
    across = torch.log((b + torch.exp(log_b) - torch.exp(log_a)).clamp(min=1e-300))
    closed = torch.where(b <= 0, below, across) - torch.log(2 * h)
    return _unless_flat(family, z, h, closed, torch.ones_like(z))


def _log_normal_tail_area(v: Tensor) -> Tensor:
    """log T(v) for v ≥ 0, T(v) = φ(v)[1 − v R(v)] with Mills' ratio R; relative error below 1e-13.

    Beyond v = 20, where 1 − vR loses v² of its digits, 1 − vR = 1/v² − 3/v⁴ + 15/v⁶ − …
    """
    ratio = math.sqrt(math.pi / 2) * torch.special.erfcx(v.clamp(max=25) / math.sqrt(2))
    u = 1 / v.clamp(min=15) ** 2
    series = torch.ones_like(u)
    for k in range(10, 0, -1):
        series = 1 - (2 * k + 1) * u * series
    scaled = torch.where(v > 20, torch.log(u * series), torch.log1p(-v.clamp(max=25) * ratio))
    return scaled - v * v / 2 - _LOG_SQRT_2PI


def _laplace(_: StandardFamily, z: Tensor, h: Tensor) -> Tensor:
    a, b = z - h, z + h
    below = b + _log1mexp(2 * h) - math.log(2)
    across = torch.log(b.clamp(min=0) + (torch.expm1(-b.clamp(min=0)) - torch.expm1(a)) / 2)
    return torch.where(b <= 0, below, across) - torch.log(2 * h)


def _logistic(_: StandardFamily, z: Tensor, h: Tensor) -> Tensor:
    a, b = z - h, z + h
    log_x = b + _log1mexp(2 * h) - torch.log1p(torch.exp(a))
    log_area = torch.where(
        log_x < -37, log_x, torch.log(torch.nn.functional.softplus(log_x.clamp(min=-37)))
    )
    return log_area - torch.log(2 * h)


def _uniform(_: StandardFamily, z: Tensor, h: Tensor) -> Tensor:
    a, b = (z - h).clamp(-1, 1), (z + h).clamp(-1, 1)
    area = (b - a) * (a + b + 2) / 4 + (z + h - 1).clamp(min=0)
    return torch.log(area / (2 * h))


def _student_t(family: StandardFamily, z: Tensor, h: Tensor) -> Tensor:
    df = getattr(family, "df")  # noqa: B009
    a, b = z - h, z + h
    log_fa, log_fb = family.log_cdf(a), family.log_cdf(b)
    # ∫_a^b u f(u) du = −[(df + u²) f(u)/(df − 1)]_a^b, whose limit at df = 1 needs expm1(x)/x.
    x = (df - 1) / 2 * (torch.log1p(b * b / df) - torch.log1p(a * a / df))
    growth = torch.where(x == 0, 1.0, torch.expm1(x) / torch.where(x == 0, 1.0, x))
    moment = (df + b * b) / 2 * (torch.log1p(a * a / df) - torch.log1p(b * b / df)) * growth
    scaled = b - a * torch.exp(log_fa - log_fb) + moment * torch.exp(family.log_pdf(b) - log_fb)
    closed = torch.log(scaled.clamp(min=1e-300)) + log_fb - torch.log(2 * h)
    return _unless_flat(family, z, h, closed, torch.sqrt(df + z * z) / 2)


def _unless_flat(
    family: StandardFamily, z: Tensor, h: Tensor, closed: Tensor, reach: Tensor
) -> Tensor:
    """The closed form, or Gauss–Legendre where F is flat over the window and h below ``reach``."""
    growth = family.log_cdf(z + h) - family.log_cdf(z - h)
    flat = (growth < _STEEP) & (h < reach)
    if not bool(flat.any()):
        return closed
    center, radius = z[flat], h[flat]
    terms = [
        family.log_cdf(center + node * radius) + math.log(weight / 2)
        for node, weight in zip(_NODES, _WEIGHTS, strict=True)
    ]
    return closed.masked_scatter(flat, torch.stack(terms).logsumexp(dim=0))


def _log1mexp(x: Tensor) -> Tensor:
    """log(1 − e^{−x}) for x ≥ 0."""
    return torch.where(x < math.log(2), torch.log(-torch.expm1(-x)), torch.log1p(-torch.exp(-x)))


_LOWER_TAIL: dict[str, Callable[[StandardFamily, Tensor, Tensor], Tensor]] = {
    "normal": _normal,
    "laplace": _laplace,
    "logistic": _logistic,
    "uniform": _uniform,
    "student-t": _student_t,
}
