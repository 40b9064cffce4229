"""The appendix's expansion of the loss, checked numerically.

With z = (t − μ)/σ, the paper expands the density form of the loss around ε = 0,

    −log g(ε) ≈ ½ log 2πσ² + z²/2 − (ε/σ)²/6 · (z² − 1),

and concludes from it that the minimiser is μ = t, σ = ε/√3, so that σ grows with ε. The exact loss
is compared here with the expansion, and its own minimisers with that conclusion: for a single
point, where there is none, and for data with noise, N(0, s²), where it is σ² ≈ s² − ε²/3.
"""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from accord.losses import bvm_loss

__all__ = ["checked", "expansion", "loss", "population_std"]

Array = NDArray[np.float64]
_Z = np.linspace(0.0, 3.0, 61)
_SIGMA = np.geomspace(1e-3, 10.0, 201)
_EPS = np.geomspace(0.01, 3.0, 61)


def loss(z: Array, eps: float, sigma: float = 1.0) -> Array:
    """The exact loss in density form, −log g(ε), at standardised errors z."""
    mean = torch.zeros(len(z), dtype=torch.float64)
    target = torch.from_numpy(np.ascontiguousarray(z * sigma))
    variance = torch.full_like(mean, sigma**2)
    value: Array = bvm_loss(mean, variance, target, eps, density=True).numpy()
    return value


def expansion(z: Array, eps: float, sigma: float = 1.0) -> Array:
    """The paper's second-order expansion of the same."""
    return 0.5 * math.log(2 * math.pi * sigma**2) + z**2 / 2 - (eps / sigma) ** 2 / 6 * (z**2 - 1)


def population_std(eps: float, noise: float = 1.0) -> float:
    """The σ that minimises the expected loss of targets N(μ, noise²), by quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    weights = weights / weights.sum()

    def expected(log_sigma: float) -> float:
        sigma = math.exp(log_sigma)
        return float(weights @ loss(noise * nodes / sigma, eps, sigma))

    bounds = (math.log(noise) - 6, math.log(noise) + 2)
    return math.exp(minimize_scalar(expected, bounds=bounds, method="bounded").x)


def checked() -> tuple[dict[str, float], dict[str, Array]]:
    """Measures and curves of the whole check, σ = s = 1 unless it is what varies.

    - ``error``: largest |expansion − loss| over |z| ≤ 3, by ε; ``order``: its power of ε near 0;
    - ``loss_by_sigma`` and ``expansion_by_sigma``: at μ = t and ε = 1, by σ;
    - ``population``: the σ that noisy data lead to, by ε, and ``smoothed`` with ε²/3 added.
    """
    errors = np.array([np.abs(expansion(_Z, eps) - loss(_Z, eps)).max() for eps in _EPS])
    at_target = np.zeros(1)
    exact = np.array([loss(at_target, 1.0, sigma)[0] for sigma in _SIGMA])
    expanded = np.array([expansion(at_target, 1.0, sigma)[0] for sigma in _SIGMA])
    grid = np.linspace(0.0, 2.0, 21)[1:]
    population = np.array([population_std(eps) for eps in grid])
    measures = {
        "order": float(np.polyfit(np.log(_EPS[:12]), np.log(errors[:12]), 1)[0]),
        **{f"error_at_{eps:g}": _at(eps, _EPS, errors) for eps in (0.1, 0.5, 1.0, 2.0)},
        "expansion_minimiser": float(_SIGMA[expanded.argmin()]),
        "exact_at_minimiser": float(loss(at_target, 1.0, 3**-0.5)[0]),
        "exact_at_zero": float(exact[0]),
        **{f"population_at_{eps:g}": population_std(eps) for eps in (0.5, 1.0, 1.5)},
    }
    curves = {
        "eps": _EPS,
        "error": errors,
        "sigma": _SIGMA,
        "loss_by_sigma": exact,
        "expansion_by_sigma": expanded,
        "population_eps": grid,
        "population": population,
        "smoothed": np.sqrt(population**2 + grid**2 / 3),
    }
    return measures, curves


def _at(eps: float, grid: Array, values: Array) -> float:
    return float(np.exp(np.interp(math.log(eps), np.log(grid), np.log(values))))
