"""Sums with known distributions: what a prediction becomes when noise is added to it.

Y + W for independent Y and W, W symmetric about 0:

    Normal + Normal noise = Normal,               σ² → σ² + s²
    any family + Uniform noise on ±h = Smoothed(family, h)
    Uniform + Normal noise = Smoothed(Normal, h)
    Smoothed(Normal, ε) + Normal noise = Smoothed(Normal, ε)  with σ² → σ² + s²

and mixtures of these, component by component. A family with a sum of its own registers it with
`register_sum`, beside its class.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from accord.distributions.batch import Values
from accord.distributions.distribution import Distribution
from accord.distributions.families import LocationScale, Normal, Uniform
from accord.distributions.mixture import Mixture
from accord.distributions.smoothed import Smoothed
from accord.distributions.wrapped import Decomposed

Sum = Callable[[Any, Any], Distribution | None]
"""(distribution of Y, distribution of the noise about any centre) → distribution of the sum."""

_SUMS: dict[tuple[type[Any], type[Any]], Sum] = {}


def register_sum(law: type[Any], noise: type[Any]) -> Callable[[Sum], Sum]:
    """Register the function that adds noise of one class to distributions of another.

    It answers None where it knows no sum. Subclasses are served, too; the nearest class counts.
    """

    def register(function: Sum) -> Sum:
        _SUMS[law, noise] = function
        return function

    return register


def with_noise(law: Distribution, noise: Distribution) -> Distribution | None:
    """The distribution of Y + W, W the noise with its centre taken out; None if it is not known.

    The noise must be symmetric, so that it does not matter whether it is added or subtracted.

    **Shape**: law (n,) or (M, n), noise (n,).

    >>> with_noise(Normal([1.0], 3.0), Normal([7.0], 4.0))
    Normal(mean=[1.], std=[5.])
    """
    for pair in product(type(law).__mro__, type(noise).__mro__):
        if pair in _SUMS:
            return _SUMS[pair](law, noise)
    return None


@register_sum(Distribution, Decomposed)
def _decomposed_noise(law: Distribution, noise: Decomposed) -> Distribution | None:
    return with_noise(law, noise.base)


@register_sum(Decomposed, Distribution)
def _decomposed(law: Decomposed, noise: Distribution) -> Distribution | None:
    return with_noise(law.base, noise)


@register_sum(Mixture, Distribution)
def _by_component(law: Mixture, noise: Distribution) -> Distribution | None:
    wider = [with_noise(group, noise) for group in law.groups]
    known = [group for group in wider if group is not None]
    return Mixture(known, law.weights) if len(known) == len(wider) else None


@register_sum(Normal, Normal)
def _two_normals(law: Normal, noise: Normal) -> Normal:
    return _wider(law, noise.std)


@register_sum(LocationScale, Uniform)
def _family_and_box(law: LocationScale, noise: Uniform) -> Smoothed:
    return Smoothed(law, noise.scale)


@register_sum(Uniform, Normal)
def _box_and_normal(law: Uniform, noise: Normal) -> Smoothed:
    mean = np.asarray(law.mean)
    return Smoothed(Normal(mean, np.broadcast_to(noise.std, mean.shape)), law.scale)


@register_sum(Smoothed, Normal)
def _smoothed_and_normal(law: Smoothed, noise: Normal) -> Smoothed | None:
    if not isinstance(law.base, Normal):
        return None
    return Smoothed(_wider(law.base, noise.std), law.tolerance)


@register_sum(Normal, Smoothed)
def _normal_and_smoothed(law: Normal, noise: Smoothed) -> Smoothed | None:
    if not isinstance(noise.base, Normal):
        return None
    return Smoothed(_wider(law, noise.base.std), noise.tolerance)


def _wider(law: Normal, std: Values) -> Normal:
    return Normal(law.mean, np.hypot(law.std, std))
