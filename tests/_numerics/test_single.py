"""The quadrature behind the float32 loss, against one with many more nodes."""

import math

import numpy as np
import pytest
import torch

from accord._numerics import agreement_slopes
from accord._numerics.normal import NormalFamily
from accord._numerics.single import DENSITY_LIMITS, _rules

NODES, WEIGHTS = np.polynomial.legendre.leggauss(100)


def exact_sums(
    w: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """S₀, S₁, S₂ and E of the module's docstring."""
    density = np.exp(-np.multiply.outer(w, NODES) - 0.5 * np.multiply.outer(v, NODES**2))
    s0, s1, s2 = ((density * WEIGHTS * NODES**j).sum(-1) / 2 for j in range(3))
    return s0, s1, s2, np.exp(-v / 2) * np.cosh(w)


@pytest.mark.parametrize("place", range(len(DENSITY_LIMITS)), ids=str)
def test_a_rule_holds_up_to_its_limit(place: int) -> None:
    rule = _rules(torch.device("cpu"), True)[place]
    grid = np.linspace(-rule.limit, rule.limit, 61), np.linspace(0, rule.limit, 41)
    w, v = (x.ravel() for x in np.meshgrid(*grid))
    exponents = rule.exponents.double() @ torch.tensor(np.stack([w, v]))
    s0, s1, s2, ends = (rule.sums.double() @ exponents.exp2() * math.sqrt(2 * math.pi)).numpy()
    exact = exact_sums(w, v)
    # as stated, and as much again for nodes and weights in float32
    error = 1.2e-7 * max(1.0, rule.limit)
    np.testing.assert_allclose(s0, exact[0], rtol=error)
    np.testing.assert_allclose(w * s1 / s0, w * exact[1] / exact[0], rtol=0, atol=error)
    np.testing.assert_allclose(v * s2 / s0, v * exact[2] / exact[0], rtol=0, atol=4 * error)
    np.testing.assert_allclose(2 * ends / s0, exact[3] / exact[0], rtol=error)


def test_rules_made_in_training_serve_autograd() -> None:
    _rules.cache_clear()
    mu, var, t, eps = (torch.full((3,), x) for x in (0.0, 1.0, 0.5, 0.1))
    with torch.inference_mode():
        trained = agreement_slopes(NormalFamily(), mu, var, t, eps, density=True)
    slopes = agreement_slopes(NormalFamily(), mu.requires_grad_(), var, t, eps, density=True)
    (grad,) = torch.autograd.grad(slopes.loss.sum(), mu)
    torch.testing.assert_close(grad, trained.mu)


def test_the_slope_by_the_variance_follows_by_parts() -> None:
    """wS₁ + vS₂ = S₀ − E, for which no sum of squares is needed."""
    w, v = (x.ravel() for x in np.meshgrid(np.linspace(-9, 9, 31), np.linspace(0, 9, 31)))
    s0, s1, s2, ends = exact_sums(w, v)
    np.testing.assert_allclose((w * s1 + v * s2) / s0, 1 - ends / s0, rtol=0, atol=1e-12)
