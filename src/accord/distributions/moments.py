"""Moments of functions of a random variable, by quadrature between its quantiles.

With u = Φ(s), E[g(Y)] = ∫ g(Q(Φ(s))) φ(s) ds: whatever the distribution, the nodes lie where its
mass is, and the integrand is smooth where its quantile function is. Gauss–Legendre in ten panels
between s = ±9, beyond which less than 1e-18 of the probability lies.
"""

from typing import Any

import numpy as np
import torch
from scipy.special import ndtr
from torch import Tensor

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
