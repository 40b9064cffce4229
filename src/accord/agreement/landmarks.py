"""Where a distribution lives: points between which its density is smooth and comparable."""

import torch
from torch import Tensor

from accord.distributions import Decomposed, Distribution, Mixture, Smoothed, Uniform

# Tail probabilities: close where the mass is, far enough out that what lies beyond never counts.
_TAILS = (1e-100, 1e-30, 1e-16, 1e-9, 1e-5, 1e-3, 0.02, 0.1, 0.25)


def landmarks(law: Distribution) -> Tensor:
    """Quantiles from the median far into both tails, with every kink of the density among them.

    A mixture has those of its components, a smoothed law those of its base at y ± ε; all known
    families are symmetric, so the upper tail mirrors the lower one, where probabilities keep their
    digits.

    **Shape**: (L, n) for a law of shape (n,), unsorted.
    """
    match law:
        case Mixture():
            return landmarks(law.components).flatten(0, 1)
        case Decomposed():
            return landmarks(law.base)
        case Smoothed():
            eps = torch.as_tensor(law.tolerance)
            inner = landmarks(law.base)
            return torch.cat([inner - eps, inner + eps])
        case Uniform():
            return _quantiles(law, (0.0, 0.25, 0.5, 0.75, 1.0))
    below = _quantiles(law, _TAILS)
    middle = _quantiles(law, (0.5,))
    return torch.cat([below, middle, 2 * middle - below])


def _quantiles(law: Distribution, levels: tuple[float, ...]) -> Tensor:
    return torch.as_tensor(law.quantile(list(levels))).movedim(-1, 0)
