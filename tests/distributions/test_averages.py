"""The averaged cdf against mpmath, over narrow and wide windows and far tails."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from distribution_cases import FAMILIES, FamilyCase
from mpmath import mp, mpf

from accord._numerics import StandardFamily, log_cdf, log_mean_between, log_mean_cdf

families = pytest.mark.parametrize("family", FAMILIES, ids=str)
DIGITS = 60


def standard(family: FamilyCase) -> StandardFamily:
    return family.make(0.0, 1.0)._family


def within(family: FamilyCase, z, half, window) -> torch.Tensor:
    """log of the mean of F(u + half) − F(u − half) over |u − z| ≤ window."""
    return log_mean_between(standard(family), z - half, z + half, z, half, window)


def tensors(*arrays: np.ndarray) -> list[torch.Tensor]:
    return [torch.as_tensor(x, dtype=torch.float64) for x in arrays]


def draw(family: FamilyCase, n: int, *, seed: int) -> tuple[np.ndarray, ...]:
    """Centres z ≤ 0 and two widths, logarithmically over the range where the family has mass."""
    rng = np.random.default_rng(seed)
    reach = 0.0 if family.name == "uniform" else 4.0
    z = np.where(rng.random(n) < 0.3, rng.uniform(-1, 0, n), -(10 ** rng.uniform(-4, reach, n)))
    return z, 10 ** rng.uniform(-8, 4, n), 10 ** rng.uniform(-8, 4, n)


def exactly(function: Callable[..., mpf], *columns: np.ndarray) -> np.ndarray:
    """log of an mpmath function per row."""
    with mp.workdps(DIGITS):
        lists = (np.asarray(column).tolist() for column in columns)
        rows = (function(*map(mpf, row)) for row in zip(*lists, strict=True))
        return np.array([float(mp.log(p)) if p > 0 else -np.inf for p in rows])


@families
def test_the_antiderivative_is_that_of_the_cdf(family: FamilyCase) -> None:
    """The reference of this file against quadrature."""
    with mp.workdps(20):
        for low, high in ((-9.0, -1.3), (-0.4, 0.9), (-3.0, 7.0)):
            ends = sorted({low, high, *(x for x in (0.0, *family.edges) if low < x < high)})
            area = mp.quad(family.mp_cdf, ends)
            difference = family.mp_area(mpf(high)) - family.mp_area(mpf(low))
            assert abs(difference - area) < 1e-15 * (1 + area)


@families
def test_the_averaged_cdf(family: FamilyCase) -> None:
    z, h, _ = draw(family, 300, seed=1)

    def mean(z: mpf, h: mpf) -> mpf:
        return (family.mp_area(z + h) - family.mp_area(z - h)) / (2 * h)

    value = log_mean_cdf(standard(family), *tensors(z, h)).numpy()
    np.testing.assert_allclose(value, exactly(mean, z, h), rtol=2e-13, atol=2e-13)


@families
def test_the_averaged_cdf_and_density_themselves(family: FamilyCase) -> None:
    """As far as they are numbers: of both sides, for narrow, wide and no windows."""
    z, h, _ = draw(family, 300, seed=5)
    z, h = np.where(np.arange(300) % 3 == 0, -z, z), np.where(np.arange(300) % 7 == 0, 0.0, h)

    def mean(z: mpf, h: mpf) -> mpf:
        area = family.mp_area
        return (area(z + h) - area(z - h)) / (2 * h) if h else family.mp_cdf(z)

    def density(z: mpf, h: mpf) -> mpf:
        z, h = -abs(z), h or mpf(10) ** -25  # the lower side, where 60 digits are enough
        return (family.mp_cdf(z + h) - family.mp_cdf(z - h)) / (2 * h)

    value, slope = standard(family).mean_cdf_and_pdf(*tensors(z, h))
    for found, expected in ((value, exactly(mean, z, h)), (slope, exactly(density, z, h))):
        exact = np.exp(expected)
        np.testing.assert_allclose(
            np.where(exact > 1e-290, found.numpy(), 0.0),
            np.where(exact > 1e-290, exact, 0.0),
            rtol=1e-11,
        )


@families
def test_the_upper_side_is_the_complement_of_the_lower(family: FamilyCase) -> None:
    z, h = tensors(*draw(family, 300, seed=2)[:2])
    lower, upper = (log_mean_cdf(standard(family), x, h) for x in (z, -z))
    torch.testing.assert_close(upper, torch.log1p(-lower.exp()), rtol=1e-15, atol=0)


@families
def test_the_averaged_interval(family: FamilyCase) -> None:
    z, half, window = draw(family, 300, seed=3)

    def mean(z: mpf, half: mpf, window: mpf) -> mpf:
        corners = ((1, 1), (1, -1), (-1, 1), (-1, -1))
        total = sum(s * t * family.mp_area(z + s * half + t * window) for s, t in corners)
        return total / (2 * window)

    value = within(family, *tensors(z, half, window)).numpy()
    np.testing.assert_allclose(value, exactly(mean, z, half, window), rtol=1e-11, atol=1e-11)


@families
def test_without_a_window_it_is_the_family_itself(family: FamilyCase) -> None:
    z, half = tensors(*draw(family, 100, seed=4)[:2])
    zero = torch.zeros_like(z)
    torch.testing.assert_close(
        log_mean_cdf(standard(family), z, zero), log_cdf(standard(family), z), rtol=0, atol=0
    )
    between = exactly(lambda z, h: family.mp_cdf(z + h) - family.mp_cdf(z - h), z, half)
    value = within(family, z, half, zero).numpy()
    np.testing.assert_allclose(value, between, rtol=1e-12, atol=1e-12)


@families
def test_slopes_by_finite_differences(family: FamilyCase) -> None:
    z, h = tensors(np.array([-2.5, -0.3, 0.0, 0.4, 1.1]), np.array([0.3, 2.0, 1e-4, 0.9, 0.05]))
    z.requires_grad_(), h.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda z, h: log_mean_cdf(standard(family), z, h).exp(), (z, h), eps=1e-5, atol=1e-6
    )
    assert torch.autograd.gradcheck(
        lambda z: log_cdf(standard(family), z).exp(), (z,), eps=1e-5, atol=1e-6
    )
