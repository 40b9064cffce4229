"""Adaptive quadrature: exact where it should be, honest about its error elsewhere."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate as reference

from accord.agreement.quadrature import NODES, WEIGHTS, integrate
from accord.agreement.rules import Rule
from accord.agreement.tracing import search
from accord.distributions import Normal, StudentT


def edges(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)[:, None]


@pytest.mark.parametrize("degree", range(0, 23, 2))
def test_kronrod_rule_is_exact_for_polynomials(degree: int) -> None:
    assert float((WEIGHTS * NODES**degree).sum()) == pytest.approx(2 / (degree + 1), abs=1e-15)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.exp(-x * x / 2),
        lambda x: np.exp(-np.abs(x - 0.123)),
        lambda x: 1.0 * (x > 0.7123),
        lambda x: 1 / (1e-4 + (x - 0.5) ** 2),
        lambda x: np.sqrt(np.abs(x)),
    ],
    ids=["smooth", "kink", "jump", "narrow peak", "infinite slope"],
)
def test_value_and_stated_error(function) -> None:
    found = integrate(
        lambda x, rows: torch.log(torch.as_tensor(function(x.numpy()))), edges(-3.0, 1.0, 4.0)
    )
    points = [0.0, 0.123, 0.5, 0.7123]
    expected, _ = reference.quad(function, -3, 4, points=points, epsabs=1e-13, limit=500)
    gap = abs(float(found.log_value.exp()) - expected)
    assert gap <= float(found.error) + 1e-13
    assert float(found.error) < 1e-9 * expected + 1e-14


def test_each_row_has_its_own_integrand() -> None:
    means = torch.tensor([0.0, 5.0, -30.0], dtype=torch.float64)
    scales = torch.tensor([1.0, 1e-3, 10.0], dtype=torch.float64)
    panels = means + scales * edges(-40.0, -3.0, 0.5, 40.0)

    def log_density(x, rows):
        z = (x - means[rows]) / scales[rows]
        return -z * z / 2 - scales[rows].log() - math.log(2 * math.pi) / 2

    np.testing.assert_allclose(integrate(log_density, panels).log_value, 0, atol=1e-12)


def test_tiny_integrals_keep_relative_precision() -> None:
    found = integrate(lambda x, rows: -x * x / 2 - 5000, edges(-8.0, 0.0, 8.0))
    assert float(found.log_value) == pytest.approx(math.log(2 * math.pi) / 2 - 5000, rel=1e-14)


def test_zero_integrand() -> None:
    found = integrate(lambda x, rows: torch.full_like(x, -math.inf), edges(0.0, 1.0))
    assert float(found.log_value) == -math.inf
    assert float(found.error) == 0


def test_search_finds_several_stretches() -> None:
    rule = Rule.from_callable(lambda y_hat, y: np.sin(y_hat * y) > 0.5)
    y = torch.tensor([3.0, 1.0], dtype=torch.float64)
    allowed = search(rule, y, Normal([0.0, 0.0], [1.0, 0.5])).intervals
    first = np.array([math.pi / 6, 5 * math.pi / 6])
    for row, datum in enumerate((3.0, 1.0)):
        lower = allowed.lower[:, row].numpy()
        upper = allowed.upper[:, row].numpy()
        near = np.argmin(np.abs(lower - first[0] / datum))
        np.testing.assert_allclose([lower[near], upper[near]], first / datum, atol=1e-12)


def test_search_extends_to_infinity() -> None:
    rule = Rule.from_callable(lambda y_hat, y: np.abs(y_hat - y) > 1)
    y = torch.tensor([0.3], dtype=torch.float64)
    allowed = search(rule, y, StudentT(2, [0.0], 1.0)).intervals
    np.testing.assert_allclose(allowed.lower[:, 0], [-math.inf, 1.3])
    np.testing.assert_allclose(allowed.upper[:, 0], [-0.7, math.inf])
