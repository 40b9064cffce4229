"""Predictive distributions of any model, and of the folds that held rows out."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from accord.calibration.calibrator import as_floats
from accord.calibration.reshaped import Reshaped
from accord.distributions import Decomposed, Distribution, Mixture, Smoothed
from accord.distributions.families import LocationScale


def concatenated(parts: Sequence[Distribution]) -> Distribution:
    """The rows of several distributions of one kind, one after another.

    Example:
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
    expected = np.concatenate([as_floats(part.std) for part in parts])
    if not np.allclose(as_floats(whole.std), expected, rtol=1e-6):
        raise ValueError(_UNLIKE)
    return whole


_UNLIKE = (
    "the folds' predictions must be of one kind, got different ones. "
    "Use cv='prefit' or a held-out fraction such as cv=0.2."
)


def _kinds(dist: Distribution) -> tuple[Any, ...]:
    """A distribution's class, that of its parts, and the number of members."""
    match dist:
        case Mixture():
            return Mixture, len(dist.components), *_kinds(dist.components)
        case Smoothed() | Decomposed() | Reshaped():
            return type(dist), *_kinds(dist.base)
    return (type(dist),)


def _smoothed(dist: Distribution) -> Distribution:
    """With tolerance 0 where there is none: a fold may have found that the best."""
    match dist:
        case Mixture():
            return Mixture(_smoothed(dist.components), dist.weights)
        case LocationScale():
            return Smoothed(dist, 0.0)
    return dist


def _tensors(dist: Distribution) -> list[Tensor]:
    """Every tensor that a distribution holds per row, in the order of its ``_map``."""
    found: list[Tensor] = []

    def note(tensor: Tensor, _: int) -> Tensor:
        found.append(tensor)
        return tensor

    dist._map(note)
    return found
