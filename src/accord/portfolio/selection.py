"""Which models a portfolio blends, and with what weights: greedy selection with replacement.

Starting from the best model, the one whose addition raises the out-of-fold log-likelihood of the
blended density most is added again and again (Caruana et al., Ensemble selection from libraries of
models, 2004). Weights are the shares of the rounds.
"""

import numpy as np

from accord._types import Floats
from accord.portfolio.components import mean_score

_ROUNDS = 20
# A model that brings less than this, in nats per row, is not worth its cost in prediction.
_LEAST_GAIN = 0.002


def greedy_weights(log_density: Floats, weight: Floats) -> Floats:
    """Weights of the models, which sum to 1, from their log densities of held-out rows.

    **Shape**: log_density (C, N), weight (N,) → (C,).

    >>> good, bad = np.full(50, -1.0), np.full(50, -5.0)
    >>> greedy_weights(np.stack([bad, good]), np.ones(50))
    array([0., 1.])
    """
    weights = _selected(log_density, weight)
    for model in np.argsort(weights):
        if weights[model] == 0 or weights[model] == 1:
            continue
        without = np.where(np.arange(len(weights)) == model, 0.0, weights)
        without /= without.sum()
        if (
            _score(log_density, weights, weight) - _score(log_density, without, weight)
            < _LEAST_GAIN
        ):
            weights = without
    return weights


def _selected(log_density: Floats, weight: Floats) -> Floats:
    top = log_density.max(axis=0)
    density = np.exp(log_density - top)
    counts = np.zeros(len(density))
    blend = np.zeros(density.shape[1])
    for n_chosen in range(_ROUNDS):
        trials = (blend * n_chosen + density) / (n_chosen + 1)
        with np.errstate(divide="ignore"):
            scores = [mean_score(np.log(trial) + top, weight) for trial in trials]
        best = int(np.argmax(scores))
        counts[best] += 1
        blend = trials[best]
    weights: Floats = counts / _ROUNDS
    return weights


def blended(log_density: Floats, weights: Floats) -> Floats:
    """log Σ_c w_c q_c of each row.

    **Shape**: log_density (C, N), weights (C,) → (N,).
    """
    used = weights > 0
    top = log_density[used].max(axis=0)
    mixed = weights[used] @ np.exp(log_density[used] - top)
    return np.asarray(np.log(mixed) + top)


def _score(log_density: Floats, weights: Floats, weight: Floats) -> float:
    return mean_score(blended(log_density, weights), weight)
