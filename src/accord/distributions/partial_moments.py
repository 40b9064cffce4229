"""Moments of what lies beyond a bound, in closed form: what truncation takes away.

For z = (b − μ)/s, the standard normal has E[Z; Z ≤ z] = −φ(z) and E[Z²; Z ≤ z] = Φ(z) − zφ(z);
Student's t with ν degrees of freedom −(ν + z²)/(ν − 1)·f(z) and
ν((ν − 1)/(ν − 2)·F_{ν−2}(z√((ν−2)/ν)) − F_ν(z)).
"""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import special
from torch import Tensor

from accord._types import Floats
from accord.distributions.decomposed import Decomposed
from accord.distributions.distribution import Distribution
from accord.distributions.families import Normal, StudentT
from accord.distributions.mixture import Mixture
from accord.distributions.transformed import Log, Transformed


class Beyond(NamedTuple):
    """Probability beyond a bound, and ∫ (y − c) f and ∫ (y − c)² f over it.

    **Shape**: that of the distribution.
    """

    mass: Floats
    first: Floats
    second: Floats


def beyond(dist: Distribution, bound: Any, center: Any, *, above: bool) -> Beyond | None:
    """What lies below ``bound``, or above it, about ``center``; None without a closed form.

    **Shape**: bound and center that of ``dist``, or of its trailing axes.
    """
    if isinstance(dist, Decomposed):
        return beyond(dist._base, bound, center, above=above)
    if isinstance(dist, Mixture):
        return _of_mixture(dist, bound, center, above)
    if isinstance(dist, Normal | StudentT):
        return _of_curve(dist, _array(bound), _array(center), above)
    if isinstance(dist, Transformed) and isinstance(dist._base, Normal):
        return _of_logarithm(dist, _array(bound), _array(center), above)
    return None


def _of_mixture(dist: Mixture, bound: Any, center: Any, above: bool) -> Beyond | None:
    groups = [beyond(group, bound, center, above=above) for group in dist._groups]
    known = [group for group in groups if group is not None]
    if len(known) < len(groups):
        return None
    weights = _array(dist._weights)
    weights = weights.reshape(*weights.shape, *(1,) * (known[0].mass.ndim - weights.ndim))
    columns = (np.concatenate(column) for column in zip(*known, strict=True))
    return Beyond(*((weights * column).sum(axis=0) for column in columns))


def _of_curve(dist: Normal | StudentT, bound: Floats, center: Floats, above: bool) -> Beyond | None:
    df = dist.df if isinstance(dist, StudentT) else math.inf
    if df <= 2:  # no variance
        return None
    location, scale = _array(dist._location), _array(dist._scale)
    sign = -1.0 if above else 1.0  # the upper tail is the mirror image of the lower one
    z = sign * (bound - location) / scale
    mass, first, second = _standard_normal(z) if math.isinf(df) else _standard_student(z, df)
    offset, first = location - center, sign * scale * first
    return Beyond(
        mass, offset * mass + first, offset**2 * mass + 2 * offset * first + scale**2 * second
    )


def _standard_normal(z: Floats) -> tuple[Floats, Floats, Floats]:
    mass, density = special.ndtr(z), np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    return mass, -density, mass - np.where(np.isinf(z), 0.0, z) * density


def _standard_student(z: Floats, df: float) -> tuple[Floats, Floats, Floats]:
    mass = special.stdtr(df, z)
    finite = np.where(np.isinf(z), 0.0, z)
    height = math.exp(math.lgamma(df / 2 + 0.5) - math.lgamma(df / 2)) / math.sqrt(math.pi * df)
    # (ν + z²) f(z), the powers joined
    product = df * height * np.exp((1 - df) / 2 * np.log1p(finite**2 / df))
    first = np.where(np.isinf(z), 0.0, -product / (df - 1))
    narrower = special.stdtr(df - 2, z * math.sqrt((df - 2) / df))
    return mass, first, df * ((df - 1) / (df - 2) * narrower - mass)


def _of_logarithm(dist: Transformed, bound: Floats, center: Floats, above: bool) -> Beyond | None:
    """Y = shift + stretch · e^Z with a normal Z."""
    base = dist._base
    if not isinstance(dist._transform, Log) or not isinstance(base, Normal):
        return None
    stretch = _array(dist._stretch)
    shift = _array(dist._shift) - stretch * dist._transform.shift
    location, scale = _array(base._location), _array(base._scale)
    with np.errstate(divide="ignore"):
        z = (np.log(np.maximum((bound - shift) / stretch, 0.0)) - location) / scale
    tail = (lambda x: special.ndtr(-x)) if above else special.ndtr
    mass = tail(z)
    first = stretch * np.exp(location + scale**2 / 2) * tail(z - scale)
    second = stretch**2 * np.exp(2 * (location + scale**2)) * tail(z - 2 * scale)
    offset = shift - center
    return Beyond(mass, offset * mass + first, offset**2 * mass + 2 * offset * first + second)


def _array(values: Any) -> Floats:
    tensor = values.detach() if isinstance(values, Tensor) else torch.as_tensor(values)
    return np.asarray(tensor.cpu().numpy(), dtype=np.float64)
