"""The rows of several distributions one after another."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from accord.distributions.distribution import Distribution
from accord.distributions.families import LocationScale
from accord.distributions.mixture import Mixture
from accord.distributions.smoothed import Smoothed


def concatenated(parts: Sequence[Distribution]) -> Distribution:
    """The rows of several distributions of one kind, one after another.

    Example:
        >>> from accord.distributions import Normal
        >>> concatenated([Normal([0.0, 1.0], 1.0), Normal([2.0], 3.0)])
        Normal(mean=[0., 1., 2.], std=[1., 1., 3.])
    """
    if len(parts) == 1:
        return parts[0]
    if len({_kinds(part) for part in parts}) > 1:
        parts = [_smoothed(part) for part in parts]
    if len({_kinds(part) for part in parts}) > 1:
        raise ValueError(_UNLIKE)
    columns = iter(list(zip(*(_tensors(part) for part in parts), strict=True)))
    whole = parts[0]._map(lambda _, lead: torch.cat(next(columns), dim=lead))
    # What is not held per row (weights of members, degrees of freedom) must agree as well.
    expected = torch.cat([part._variance() for part in parts]).sqrt()
    if not torch.allclose(whole._variance().sqrt(), expected, rtol=1e-6, atol=0.0, equal_nan=True):
        raise ValueError(_UNLIKE)
    return whole


_UNLIKE = (
    "the distributions must be of one kind, got different ones. "
    "Predict them with models of one kind."
)


def _kinds(dist: Distribution) -> tuple[Any, ...]:
    """A distribution's class, and those of its parts with the number of members."""
    inner = dist._inner()
    members = tuple(part.shape[0] for part in inner if len(part.shape) > len(dist.shape))
    return (type(dist), members, *(kind for part in inner for kind in _kinds(part)))


def _smoothed(dist: Distribution) -> Distribution:
    """With tolerance 0 where there is none: a fold may have found that the best."""
    if isinstance(dist, Mixture):
        return dist._replace(_groups=tuple(_smoothed(group) for group in dist.groups))
    return Smoothed(dist, 0.0) if isinstance(dist, LocationScale) else dist


def _tensors(dist: Distribution) -> list[Tensor]:
    """Every tensor that a distribution holds per row, in the order of its ``_map``."""
    found: list[Tensor] = []

    def note(tensor: Tensor, _: int) -> Tensor:
        found.append(tensor)
        return tensor

    dist._map(note)
    return found
