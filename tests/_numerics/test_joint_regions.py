"""Probabilities of regions of jointly normal outputs, against references that share no code."""

import math

import mpmath
import numpy as np
import pytest
import torch
from scipy.stats import chi2, multivariate_normal, ncx2

from accord._numerics import (
    Region,
    log_normal_density,
    log_normal_in,
    log_normal_in_any,
    normal_probability,
    training_points,
)


def tensor(values: object) -> torch.Tensor:
    return torch.as_tensor(np.asarray(values, dtype=float))


def box(*half: float) -> Region:
    h = tensor(half)
    return Region(-h, h)


def ellipsoid(*axes: float) -> Region:
    a = tensor(axes)
    return Region(torch.full_like(a, -torch.inf), torch.full_like(a, torch.inf), (a,))


def random_normal(d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(d, d))
    return rng.normal(size=d), factor @ factor.T + 0.2 * np.eye(d)


@pytest.mark.parametrize("d", [2, 3, 4, 5, 7])
def test_boxes_against_genz(d: int) -> None:
    """Genz's algorithm in scipy, which uses points of its own; the stated error holds."""
    mean, covariance = random_normal(d, seed=d)
    half = np.linspace(0.5, 1.5, d)
    law = multivariate_normal(mean, covariance, abseps=1e-7, releps=1e-7, maxpts=10**5, seed=0)
    expected = law.cdf(half, lower_limit=-half)
    cholesky = tensor(np.linalg.cholesky(covariance))
    log_p, error = normal_probability(
        [Region(tensor([-half]), tensor([half]))],
        tensor([mean]),
        cholesky[None],
        n_points=2**14,
        seed=0,
    )
    assert float(error[0]) < 1e-5
    assert float(log_p.exp()[0]) == pytest.approx(expected, abs=4 * float(error[0]) + 1e-6)


@pytest.mark.parametrize("d", [2, 3, 5, 6])
@pytest.mark.parametrize("away", [0.0, 1.0, 3.0])
def test_balls_against_the_noncentral_chi_square(d: int, away: float) -> None:
    radius, shift = 1.3, np.full((1, d), away / math.sqrt(d))
    expected = ncx2.cdf(radius**2, d, away**2) if away else chi2.cdf(radius**2, d)
    region = ellipsoid(*[radius] * d)
    rows = Region(region.lower[None], region.upper[None], (region.ellipsoids[0][None],))
    log_p, error = normal_probability(
        [rows], tensor(shift), torch.eye(d).double()[None], n_points=2**14, seed=0
    )
    assert float(log_p.exp()[0]) == pytest.approx(expected, abs=4 * float(error[0]) + 1e-10)
    assert float(error[0]) < 5e-3 * expected


@pytest.mark.parametrize("correlation", [-0.9, 0.0, 0.8, 0.99])
def test_two_outputs_far_in_the_tail_against_mpmath(correlation: float) -> None:
    """Where P is 1e-30 and less, the logarithm still has its digits."""
    covariance = np.array([[1.0, correlation], [correlation, 1.0]])
    shift, half = np.array([9.0, 8.5]), np.array([0.4, 0.2])

    def density(e1: mpmath.mpf, e2: mpmath.mpf) -> mpmath.mpf:
        a, b, rest = e1 - shift[0], e2 - shift[1], 1 - mpmath.mpf(correlation) ** 2
        square = (a * a - 2 * correlation * a * b + b * b) / rest
        return mpmath.exp(-square / 2) / (2 * mpmath.pi * mpmath.sqrt(rest))

    expected = mpmath.log(mpmath.quad(density, [-half[0], half[0]], [-half[1], half[1]]))
    found = log_normal_in(
        box(*half), tensor(shift), tensor(np.linalg.cholesky(covariance)), training_points(2)
    )
    assert float(found) == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize("width", [1e-9, 1e-3])
@pytest.mark.parametrize("d", [2, 3, 6])
def test_a_narrow_region_is_its_volume_times_the_density(d: int, width: float) -> None:
    mean, covariance = random_normal(d, seed=10 + d)
    cholesky = tensor(np.linalg.cholesky(covariance))
    log_p = log_normal_in(box(*[width] * d), tensor(mean), cholesky, training_points(d))
    expected = multivariate_normal(mean, covariance).logpdf(np.zeros(d)) + d * math.log(2 * width)
    assert float(log_p) == pytest.approx(expected, abs=1e-5)
    assert float(log_normal_density(tensor(mean), cholesky)) == pytest.approx(
        expected - d * math.log(2 * width)
    )


@pytest.mark.parametrize(
    ("region", "rtol"),
    [
        (box(0.5, 0.8), 1e-4),
        (ellipsoid(0.7, 1.2), 1e-4),
        # the section has a kink where the rim of one meets the side of the other
        (box(0.5, 0.8).cut(ellipsoid(0.6, 0.9)), 1e-2),
    ],
    ids=["box", "ellipsoid", "both"],
)
def test_gradients_by_finite_differences(region: Region, rtol: float) -> None:
    torch.manual_seed(0)
    shift = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    raw = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)

    def log_p(m: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        zero = torch.zeros_like(a[:, 0])
        rows = [torch.stack([a[:, 0].exp(), zero], -1), torch.stack([a[:, 1], a[:, 2].exp()], -1)]
        return log_normal_in(region, m, torch.stack(rows, -2), training_points(2))

    # points move with the parameters in the differences, and not in the gradient: both are within
    # the error of the integral
    assert torch.autograd.gradcheck(log_p, (shift, raw), atol=2e-5, rtol=rtol)


def test_open_sides_have_finite_gradients() -> None:
    lower, upper = tensor([-math.inf, 0.0]), tensor([0.5, math.inf])
    shift = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    cholesky = tensor([[1.0, 0.0], [0.8, 0.6]]).requires_grad_()
    log_p = log_normal_in(Region(lower, upper), shift, cholesky, training_points(2))
    # P(e1 ≤ ½, e2 ≥ 0) = P(e2 ≥ 0) − P(e1 > ½, e2 ≥ 0); the last by the signs of both
    both = multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]]).cdf([-0.5, 0.0])
    assert float(log_p.detach().exp()) == pytest.approx(0.5 - both, abs=1e-4)
    log_p.backward()
    assert shift.grad is not None
    assert bool(shift.grad.isfinite().all())
    assert cholesky.grad is not None
    assert bool(cholesky.grad.isfinite().all())


def test_nothing_agrees_with_an_empty_region() -> None:
    """A box beyond the ellipsoid: log 0, and no NaN on the way back."""
    region = Region(tensor([2.0, -1.0]), tensor([3.0, 1.0])).cut(ellipsoid(1.0, 1.0))
    shift = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    log_p = log_normal_in(region, shift, torch.eye(2).double(), training_points(2))
    assert float(log_p.detach()) == -math.inf
    log_p.backward()
    assert shift.grad is not None
    assert bool((shift.grad == 0).all())


@pytest.mark.parametrize(("d", "within"), [(2, 1e-6), (3, 1e-3), (4, 0.01)])
@pytest.mark.parametrize("radius", [3.0, 8.0, 20.0])
def test_outside_a_ball_has_its_digits_far_out(d: int, within: float, radius: float) -> None:
    """In judging and in training; up to e⁻²⁰⁰."""
    regions = [region.map(lambda x: x[None]) for region in ellipsoid(*[radius] * d).complement()]
    shift, cholesky = torch.zeros(1, d).double(), torch.eye(d).double()[None]
    expected = chi2.logsf(radius**2, d)
    judged, _ = normal_probability(regions, shift, cholesky)
    trained = log_normal_in_any(regions, shift, cholesky)
    assert judged.item() == pytest.approx(expected, abs=within)
    assert trained.item() == pytest.approx(expected, abs=within)


@pytest.mark.parametrize("radius", [2.0, 6.0, 10.0])
def test_outside_a_disc_does_not_depend_on_the_direction(radius: float) -> None:
    """Off its middle, with unequal scales: in standard errors the disc is the same."""
    found = []
    for angle in (0.0, 0.4, 1.2):
        scale = tensor([1.0, 0.3])
        regions = [
            region.map(lambda x: x[None])
            for region in ellipsoid(*(radius * scale).tolist()).complement()
        ]
        shift = scale * tensor([2 * math.cos(angle), 2 * math.sin(angle)])
        found.append(normal_probability(regions, shift[None], torch.diag(scale)[None])[0].item())
    assert found == pytest.approx([found[0]] * 3, abs=1e-6)
