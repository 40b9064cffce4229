"""What distributions without closed forms share: moments by quadrature, landmarks, parts.

With u = Φ(s), E[g(Y)] = ∫ g(Q(Φ(s))) φ(s) ds: whatever the distribution, the nodes lie where its
mass is, and the integrand is smooth where its quantile function is. Gauss–Legendre in ten panels
between s = ±9, beyond which less than 1e-18 of the probability lies.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.special import ndtr
from torch import Tensor

from accord.distributions.distribution import Distribution, Pointwise, Variances

# Tail probabilities: where the mass is, and so far out that what lies beyond never counts.
NEAR_LEVELS = (1e-16, 1e-9, 1e-4, 0.02, 0.2)
FAR_LEVELS = (1e-100, 1e-30)

PANELS = (-9.0, -5.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 5.0, 9.0)
_PER_PANEL = 6


def _score_nodes() -> tuple[Any, Any]:
    """Normal scores, and weights that add to 1."""
    node, weight = np.polynomial.legendre.leggauss(_PER_PANEL)
    ends = np.array(PANELS)
    middle, half = (ends[1:] + ends[:-1]) / 2, np.diff(ends) / 2
    scores = (middle[:, None] + half[:, None] * node).ravel()
    weights = (half[:, None] * weight).ravel() * np.exp(-(scores**2) / 2)
    return scores, weights / weights.sum()


SCORES, WEIGHTS = _score_nodes()


def score_levels(like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Probabilities below and above each node, and its weight, ``(K,)``."""
    parts = ndtr(SCORES), ndtr(-SCORES), WEIGHTS
    return tuple(torch.from_numpy(x).to(like) for x in parts)  # type: ignore[return-value]


def mean_and_variance(values: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Of weighted values along the first axis; taken about one of them, so that nothing cancels."""
    column = weights.to(values).reshape(-1, *(1 for _ in values.shape[1:]))
    center = values[len(values) // 2]
    offset = values - center
    mean = (column * offset).sum(0)
    return center + mean, (column * (offset - mean) ** 2).sum(0)


def quantile_rows(dist: Distribution, levels: Sequence[float]) -> Tensor:
    """Quantiles of a flat batch at a few levels, ``(K, n)``."""
    p = torch.tensor(levels, dtype=torch.float64, device=dist._reference.device)
    return dist._quantiles(p, 1 - p).movedim(-1, 0).detach()


def spread_landmarks(dist: Distribution, *, far: bool) -> Tensor:
    """`Distribution._landmarks` from quantiles on both sides, for a density without symmetry."""
    below = FAR_LEVELS + NEAR_LEVELS if far else NEAR_LEVELS
    p = torch.tensor(below, dtype=torch.float64, device=dist._reference.device)
    lower, upper = dist._quantiles(p, 1 - p), dist._quantiles(1 - p, p)
    middle = quantile_rows(dist, (0.5,))
    return torch.cat([lower.movedim(-1, 0), middle, upper.movedim(-1, 0)]).detach()


def shared_parts(variance: Tensor, parts: Variances) -> Variances:
    """A variance divided in the proportions of other parts; all noise where there are none."""
    total = parts[0] + parts[1] + parts[2]
    known = (total > 0) & total.isfinite()
    scale = torch.where(known, variance / torch.where(known, total, 1.0), 0.0)
    disagreement, distance = parts[1] * scale, parts[2] * scale
    disagreement, distance = (torch.where(known, x, 0.0) for x in (disagreement, distance))
    return variance - disagreement - distance, disagreement, distance


def moments_by_quantiles(
    dist: Distribution, function: Pointwise, parts_of: Distribution | None = None
) -> tuple[Tensor, Variances]:
    """`Distribution._moments_through` for any distribution.

    The parts of the variance have the proportions of ``parts_of``, unless given its own.
    """
    p, q, weights = score_levels(dist._reference.double())
    points = dist._quantiles(p, q).movedim(-1, 0)
    mean, variance = mean_and_variance(function(points), weights)
    return mean, shared_parts(variance, (dist if parts_of is None else parts_of)._variances())
