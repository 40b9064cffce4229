"""Where a distribution lives: points between which its density is smooth and comparable."""

import torch
from torch import Tensor

from accord.distributions import (
    Decomposed,
    Distribution,
    Empirical,
    Mixture,
    Smoothed,
    Uniform,
)

# Tail probabilities: where the mass is, and so far out that what lies beyond never counts.
_NEAR = (1e-16, 1e-9, 1e-4, 0.02, 0.2)
_FAR = (1e-100, 1e-30)


def landmarks(law: Distribution, *, far: bool = True) -> Tensor:
    """Quantiles from the median far into both tails, with every kink of the density among them.

    A mixture has those of its components, a smoothed law those of its base at y ± ε. The families
    are symmetric, so the upper tail mirrors the lower one, where probabilities keep their digits.
    Draws have too many kinks to list; their quantiles show where they are.

    Args:
        law: the distribution.
        far: whether to go further out than probabilities of 1e-16.

    **Shape**: (L, n) for a law of shape (n,), unsorted.
    """
    match law:
        case Mixture():
            return landmarks(law.components, far=far).flatten(0, 1)
        case Decomposed():
            return landmarks(law.base, far=far)
        case Smoothed():
            eps = torch.as_tensor(law.tolerance)
            inner = landmarks(law.base, far=far)
            return torch.cat([inner - eps, inner + eps])
        case Uniform():
            return _quantiles(law, (0.0, 0.25, 0.5, 0.75, 1.0))
        case Empirical():
            return _quantiles(law, tuple(k / 32 for k in range(33)))
    below = _quantiles(law, _FAR + _NEAR if far else _NEAR)
    middle = _quantiles(law, (0.5,))
    return torch.cat([below, middle, 2 * middle - below])


def _quantiles(law: Distribution, levels: tuple[float, ...]) -> Tensor:
    return torch.as_tensor(law.quantile(list(levels))).movedim(-1, 0)
