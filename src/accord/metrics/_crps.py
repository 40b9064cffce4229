"""The continuous ranked probability score of each kind of distribution, per row.

    CRPS(F, t) = ∫ (F(x) − 1{x ≥ t})² dx = E|X − t| − ½ E|X − X'|,    X, X' ~ F independent

(Gneiting and Raftery, 2007). Single families have textbook forms (Jordan, Krüger and Lerch, 2019).
Mixtures of Gaussians, each convolved with Uniform(−ε_m, ε_m), are what the library predicts with:
for them both expectations are box averages of E|N(d, s²)|, in closed form.
"""

import numpy as np
import torch

from accord.distributions import Decomposed, Distribution, Empirical, LocationScale
from accord.metrics._crps_gaussians import boxed_gaussians, crps_boxed_gaussians
from accord.metrics._crps_quadrature import crps_quadrature
from accord.metrics.inputs import FloatArray, as_array


def crps_of(dist: Distribution, y: FloatArray) -> FloatArray:
    """The score of one distribution per entry of ``y``, by the best route its class allows."""
    if isinstance(dist, Decomposed):
        return crps_of(dist.base, y)
    boxed = boxed_gaussians(dist)
    if boxed is not None:
        return crps_boxed_gaussians(boxed, y)
    if isinstance(dist, Empirical):
        return crps_samples(as_array("draws", dist.draws), y)
    closed_form = _standard_score(dist, y)
    return crps_quadrature(dist, y) if closed_form is None else closed_form


def _standard_score(dist: Distribution, y: FloatArray) -> FloatArray | None:
    """scale · CRPS(F₀, z), z = (t − μ) / scale, for the families with a closed form."""
    if not isinstance(dist, LocationScale):
        return None
    scale = as_array("scale", dist.scale)
    z = (y - as_array("location", dist.location)) / scale
    score = dist._family.crps(torch.from_numpy(z))
    return None if score is None else np.asarray(scale * score.numpy())


def crps_samples(draws: FloatArray, y: FloatArray) -> FloatArray:
    """The score of the draws' own step function, S⁻¹ Σ|x_i − t| − ½ S⁻² Σ|x_i − x_j|.

    Sorting turns the double sum into Σ(2i − S − 1) x₍ᵢ₎ / S².

    **Shape**: ``draws`` (S, ...), ``y`` (...); result (...).
    """
    n = len(draws)
    offsets = np.sort(draws - y, axis=0)
    rank = (2 * np.arange(1, n + 1) - n - 1).reshape((-1,) + (1,) * y.ndim)
    spread = (rank * offsets).sum(axis=0) / n**2
    return np.asarray(np.abs(offsets).mean(axis=0) - spread)
