"""Predictive distributions of an ensemble, from its members' moments."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from accord._types import Floats
from accord.distributions import (
    Decomposed,
    Distribution,
    Mixture,
    Smoothed,
    gaussian_match,
)
from accord.training import Activation, Heads, Scaling, raw_outputs

Combine = Literal["mixture", "moments"]


def member_moments(
    parameters: Sequence[NDArray[Any]],
    x: Floats,
    heads: Heads,
    scalings: tuple[Scaling, Scaling],
    *,
    activation: Activation,
    device: str,
) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each member in target units.

    ``scalings`` are those of features and targets.

    **Shape**: x (N, d) → (M, N, T) each.
    """
    x_scaling, y_scaling = scalings

    def transform(raw: torch.Tensor) -> torch.Tensor:
        return torch.cat(heads(raw), -1)

    outputs = raw_outputs(parameters, x_scaling.scaled(x), activation, device, transform)
    mean, variance = np.split(outputs, 2, axis=-1)
    return y_scaling.shift + y_scaling.scale * mean, y_scaling.scale * np.sqrt(variance)


def ensemble_distribution(
    members: Distribution, *, tolerance: Floats | None = None, combine: Combine = "mixture"
) -> Distribution:
    """The members' uniform mixture, each smoothed by the tolerance.

    With ``combine="moments"``, the Gaussian with the mixture's moments, as the paper evaluates it.

    **Shape**: members (M, N) or (M, N, T); tolerance broadcasts against them.
    """
    if tolerance is not None and np.any(tolerance):
        members = Smoothed(members, np.broadcast_to(tolerance, members.shape))
    mixture = Mixture(members)
    if combine == "mixture":
        return mixture
    return Decomposed(gaussian_match(mixture), mixture.disagreement, mixture.distance)
