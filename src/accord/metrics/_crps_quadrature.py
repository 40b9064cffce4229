"""The continuous ranked probability score of any distribution with a cdf, by quadrature."""

from itertools import pairwise

import numpy as np

from accord.distributions import Distribution
from accord.metrics.inputs import FloatArray, as_array

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def crps_quadrature(dist: Distribution, y: FloatArray) -> FloatArray:
    """∫ (F(x) − 1{x ≥ t})² dx by Gauss–Legendre panels between quantiles and the observation.

    The error is below 1e-8 standard deviations for the families of the library, their mixtures and
    their smoothed forms, whose kinks all lie between panels; a cdf with jumps costs accuracy.

    **Shape**: ``y`` and the result have the shape of ``dist``.
    """
    edges = np.sort(np.concatenate([_edges(dist), y[None]]), axis=0)
    score = np.zeros(y.shape)
    column = (-1,) + (1,) * y.ndim
    nodes, weights = _NODES.reshape(column), _WEIGHTS.reshape(column)
    for left, right in pairwise(edges):
        centre, half = (left + right) / 2, (right - left) / 2
        cdf = as_array("cdf", dist.cdf(centre + half * nodes))
        score += half * (weights * (cdf - (centre >= y)) ** 2).sum(axis=0)
    return score


def _edges(dist: Distribution) -> FloatArray:
    """Points between which the cdf is smooth; **Shape** (E, *shape)."""
    marks = dist._exact()._landmarks(far=False)
    return as_array("landmarks", marks.reshape(-1, *dist.shape))
