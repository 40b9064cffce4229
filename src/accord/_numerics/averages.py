"""Probabilities averaged over a moving window: what smoothing does to a cdf.

For a standard family F (symmetric about 0) and Y = Z + hU with U uniform on (−1, 1),

    P(Y ≤ z) = A(z; h) = (1/2h) ∫_{z−h}^{z+h} F(u) du,        1 − A(z; h) = A(−z; h),

so that only z ≤ 0, the lower tail, needs a formula: each family has its own.
"""

import math

import numpy as np
import torch
from torch import Tensor

from accord._numerics.family import STEEP, StandardFamily, replaced
from accord._numerics.interval import log_within
from accord._numerics.kernel import log1mexp

_LOG_2 = math.log(2)
_LEGENDRE = np.polynomial.legendre.leggauss(12)


def log_cdf(family: StandardFamily, z: Tensor) -> Tensor:
    """log F(z), also where F underflows."""
    with torch.no_grad():
        value = family.log_lower(z)
    if not z.requires_grad:
        return value
    return _linearised(value, z, torch.exp(family.log_pdf(z.detach()) - value))


def log_mean_cdf(family: StandardFamily, z: Tensor, h: Tensor) -> Tensor:
    """log A(z; h), the log-cdf of the family convolved with Uniform(−h, h); log F(z) at h = 0."""
    z, h = torch.broadcast_tensors(z, h)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        lower, width = -z.abs(), torch.where(h > 0, h, 1.0)
        log_tail = family.log_mean_lower(lower, width).clamp(max=-_LOG_2)
        value = torch.where(z > 0, torch.log1p(-torch.exp(log_tail)), log_tail)
        value = replaced(value, h == 0, family.log_lower, z)
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
    given = (a, b, z, half, window)
    a, b, z, half, window = torch.broadcast_tensors(*given)  # type: ignore[no-untyped-call]
    flip = z > 0
    a, b, z = torch.where(flip, -b, a), torch.where(flip, -a, b), -z.abs()
    wide, narrow = torch.maximum(half, window), torch.minimum(half, window)
    inner = half < window
    low, high = torch.where(inner, z - window, a), torch.where(inner, z + window, b)
    upper = log_mean_cdf(family, high, narrow)
    drop = upper - log_mean_cdf(family, low, narrow)
    steep = drop > STEEP
    difference = upper + log1mexp(torch.where(steep, drop, 1.0))
    mean = replaced(difference, ~steep, lambda *x: _nodes_within(family, *x), z, wide, narrow)
    return mean + torch.where(half < window, torch.log(half / wide), 0.0)


def _nodes_within(family: StandardFamily, z: Tensor, wide: Tensor, narrow: Tensor) -> Tensor:
    """Gauss–Legendre over |u − z| ≤ narrow, in panels between the kinks of F(u ± wide)."""
    offsets = [
        (kink + side * wide - z).clamp(-narrow, narrow) for kink in family.kinks for side in (-1, 1)
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
