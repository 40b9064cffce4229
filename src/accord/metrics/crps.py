"""The continuous ranked probability score of each kind of distribution, per row.

    CRPS(F, t) = ∫ (F(x) − 1{x ≥ t})² dx = E|X − t| − ½ E|X − X'|,    X, X' ~ F independent

(Gneiting and Raftery, 2007). Single families have textbook forms (Jordan, Krüger and Lerch, 2019).
Mixtures of Gaussians, each convolved with Uniform(−ε_m, ε_m), are what the library predicts with:
for them both expectations are box averages of E|N(d, s²)|, in closed form.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from scipy import special

from accord._types import Floats
from accord.distributions import (
    Decomposed,
    Distribution,
    Empirical,
    LocationScale,
    Mixture,
    Normal,
    Smoothed,
)
from accord.metrics.inputs import as_array

_SQRT_2PI = np.sqrt(2 * np.pi)


class BoxedGaussians(NamedTuple):
    """A mixture of Gaussians, member m convolved with Uniform(−half_width, half_width).

    **Shape**: members first, (M, ...) each.
    """

    mean: Floats
    std: Floats
    half_width: Floats
    weights: Floats


def boxed_gaussians(dist: Distribution) -> BoxedGaussians | None:
    """The distribution as such a mixture, or None where it is none."""
    if isinstance(dist, Decomposed):
        return boxed_gaussians(dist.base)
    if isinstance(dist, Mixture):
        return _of_members(dist)
    parts = _parts(dist)
    if parts is None:
        return None
    mean, std, half_width = (part[None] for part in parts)
    return BoxedGaussians(mean, std, half_width, np.ones(mean.shape))


def _of_members(dist: Mixture) -> BoxedGaussians | None:
    """The members' own mixtures, each weighted, in one."""
    weights = as_array("weights", dist.weights)
    weights = weights.reshape(
        len(weights), *(1,) * (len(dist.shape) + 1 - weights.ndim), *weights.shape[1:]
    )
    found, start = [], 0
    for group in dist.groups:
        inner = boxed_gaussians(group)
        if inner is None:
            return None
        outer = weights[start : start + group.shape[0]]
        start += group.shape[0]
        parts = (*inner[:3], inner.weights * outer)
        found.append([part.reshape(-1, *dist.shape) for part in parts])
    return BoxedGaussians(*(np.concatenate(part) for part in zip(*found, strict=True)))


def _parts(dist: Distribution) -> tuple[Floats, Floats, Floats] | None:
    """Mean, standard deviation and half-width of a Gaussian, smoothed or not."""
    base, eps = (dist.base, dist.tolerance) if isinstance(dist, Smoothed) else (dist, None)
    if not isinstance(base, Normal):
        return None
    mean, std = as_array("mean", base.mean), as_array("std", base.std)
    return mean, std, np.zeros(mean.shape) if eps is None else as_array("tolerance", eps)


def crps_boxed_gaussians(mixture: BoxedGaussians, y: Floats) -> Floats:
    """Σ_i w_i E|X_i − t| − ½ Σ_ij w_i w_j E|X_i − X_j|, exact; O(M²) per row, no large temporaries.

    **Shape**: ``y`` (...), members (M, ...); result (...).
    """
    mu, sigma, eps, w = mixture
    score = np.zeros(y.shape)
    for i in range(len(mu)):
        score += w[i] * mean_distance(mu[i] - y, sigma[i], eps[i], np.zeros(()))
        for j in range(i + 1):
            spread = np.hypot(sigma[i], sigma[j])
            # Pairs i ≠ j stand for (i, j) and (j, i).
            weight = 0.5 * w[i] * w[j] * (1 if i == j else 2)
            score -= weight * mean_distance(mu[i] - mu[j], spread, eps[i], eps[j])
    return score


# E|d + sZ + U_a + U_b| with Z standard normal and U_h ~ Uniform(−h, h). With z = d/s and
# P(z) = 2Φ(z) − 1, E|z + Z| and its antiderivatives are
#     F0 = zP + 2φ,    F1 = ½(z² + 1)P + zφ,    F2 = (z³ + 3z)P/6 + (z² + 2)φ/3,
# and the average over a box is [F(z + h) − F(z − h)] / 2h with the next F. For a narrow box that
# quotient cancels, but there F is smooth on the scale of the box: five Gauss–Legendre nodes average
# it with an error of at most 4e-10 h¹⁰ max|F⁽¹⁰⁾| < 4e-14 for h ≤ ¼. The quotients lose at
# most 1e-12 of the result, 1e-11 where one box is ten thousand times wider than the other.
_NARROW = 0.25
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)
# Nine deviations outside the boxes E|·| is |d| to the last bit.
_FAR = 9.0


def mean_distance(d: Floats, s: Floats, a: Floats, b: Floats) -> Floats:
    """E|d + sZ + U_a + U_b|, Z standard normal, U_h uniform on (−h, h); h = 0 is no box.

    **Shape**: arguments broadcast; ``s`` > 0, ``a``, ``b`` ≥ 0.
    """
    z, wide, slim = np.broadcast_arrays(d / s, np.maximum(a, b) / s, np.minimum(a, b) / s)
    if not wide.any():
        return np.asarray(s * _antiderivative(z, 0))
    out: Floats = np.abs(z)
    near = out - wide - slim <= _FAR
    is_wide, is_slim = near & (wide > _NARROW), near & (slim > _NARROW)
    for region, average in (
        (near & ~is_wide, _both_narrow),
        (is_wide & ~is_slim, _one_narrow),
        (is_slim, _both_wide),
    ):
        if region.any():
            out[region] = average(z[region], wide[region], slim[region])
    return np.asarray(s * out)


def _both_narrow(z: Floats, wide: Floats, slim: Floats) -> Floats:
    return _nodes_average(
        lambda u: _nodes_average(lambda v: _antiderivative(v, 0), u, slim), z, wide
    )


def _one_narrow(z: Floats, wide: Floats, slim: Floats) -> Floats:
    def box(v: Floats) -> Floats:
        return (_antiderivative(v + wide, 1) - _antiderivative(v - wide, 1)) / (2 * wide)

    return _nodes_average(box, z, slim)


def _both_wide(z: Floats, wide: Floats, slim: Floats) -> Floats:
    def difference(v: Floats) -> Floats:
        return _antiderivative(v + slim, 2) - _antiderivative(v - slim, 2)

    return (difference(z + wide) - difference(z - wide)) / (4 * wide * slim)


def _nodes_average(f: Callable[[Floats], Floats], z: Floats, half_width: Floats) -> Floats:
    if not half_width.any():
        return f(z)
    average = np.zeros_like(z)
    for x, w in zip(_NODES, _WEIGHTS, strict=True):
        average += 0.5 * w * f(z + half_width * x)
    return average


def _antiderivative(z: Floats, order: int) -> Floats:
    p: Floats = special.erf(z / np.sqrt(2))
    phi: Floats = np.exp(-0.5 * z * z) / _SQRT_2PI
    if order == 0:
        return z * p + 2 * phi
    if order == 1:
        return 0.5 * (z * z + 1) * p + z * phi
    return (z**3 + 3 * z) / 6 * p + (z * z + 2) / 3 * phi


_PANEL_NODES, _PANEL_WEIGHTS = np.polynomial.legendre.leggauss(12)


def crps_quadrature(dist: Distribution, y: Floats) -> Floats:
    """∫ (F(x) − 1{x ≥ t})² dx by Gauss–Legendre panels between quantiles and the observation.

    The error is below 1e-8 standard deviations for the families of the library, their mixtures and
    their smoothed forms, whose kinks all lie between panels; a cdf with jumps costs accuracy.

    **Shape**: ``y`` and the result have the shape of ``dist``.
    """
    edges = np.sort(np.concatenate([_edges(dist), y[None]]), axis=0)
    score = np.zeros(y.shape)
    column = (-1,) + (1,) * y.ndim
    nodes, weights = _PANEL_NODES.reshape(column), _PANEL_WEIGHTS.reshape(column)
    for left, right in pairwise(edges):
        centre, half = (left + right) / 2, (right - left) / 2
        cdf = as_array("cdf", dist.cdf(centre + half * nodes))
        score += half * (weights * (cdf - (centre >= y)) ** 2).sum(axis=0)
    return score


def _edges(dist: Distribution) -> Floats:
    """Points between which the cdf is smooth; **Shape** (E, *shape)."""
    marks = dist._exact()._landmarks(far=False)
    return as_array("landmarks", marks.reshape(-1, *dist.shape))


def crps_of(dist: Distribution, y: Floats) -> Floats:
    """The score of one distribution per entry of ``y``, by the best route its class allows."""
    if isinstance(dist, Decomposed):
        return crps_of(dist.base, y)
    boxed = boxed_gaussians(dist)
    if boxed is not None:
        return crps_boxed_gaussians(boxed, y)
    if isinstance(dist, Empirical):
        return crps_samples(as_array("draws", dist.draws), y)
    closed_form = _standard_score(dist, y)
    return crps_quadrature(dist, y) if closed_form is None else closed_form


def _standard_score(dist: Distribution, y: Floats) -> Floats | None:
    """scale · CRPS(F₀, z), z = (t − μ) / scale, for the families with a closed form."""
    if not isinstance(dist, LocationScale):
        return None
    scale = as_array("scale", dist.scale)
    z = (y - as_array("location", dist.location)) / scale
    score = dist._family.crps(torch.from_numpy(z))
    return None if score is None else np.asarray(scale * score.numpy())


def crps_samples(draws: Floats, y: Floats) -> Floats:
    """The score of the draws' own step function, S⁻¹ Σ|x_i − t| − ½ S⁻² Σ|x_i − x_j|.

    Sorting turns the double sum into Σ(2i − S − 1) x₍ᵢ₎ / S².

    **Shape**: ``draws`` (S, ...), ``y`` (...); result (...).
    """
    n = len(draws)
    offsets = np.sort(draws - y, axis=0)
    rank = (2 * np.arange(1, n + 1) - n - 1).reshape((-1,) + (1,) * y.ndim)
    spread = (rank * offsets).sum(axis=0) / n**2
    return np.asarray(np.abs(offsets).mean(axis=0) - spread)
