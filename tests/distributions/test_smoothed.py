"""The base convolved with a box: what the ε-BVM is the likelihood of."""

import numpy as np
import pytest
import torch
from distribution_cases import FAMILIES, MEAN, SCALE, FamilyCase
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from accord._numerics import agreement_loss
from accord.distributions import Decomposed, Empirical, Mixture, Normal, Smoothed, Uniform

families = pytest.mark.parametrize("family", FAMILIES, ids=str)
EPS = np.array([0.0, 1e-4, 2.0, 50.0])


@families
def test_the_density_is_that_of_the_convolution(family: FamilyCase) -> None:
    base, eps = family.make(0.3, 1.7), 0.8
    smoothed = Smoothed(base, eps)
    for y in (-3.0, -0.2, 0.3, 1.9):
        kinks = [k for edge in family.edges if y - eps < (k := 0.3 + 1.7 * edge) < y + eps]
        area, _ = integrate.quad(base.pdf, y - eps, y + eps, points=kinks or None, epsabs=1e-12)
        np.testing.assert_allclose(smoothed.pdf(y), area / (2 * eps), rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("family", [f for f in FAMILIES if f.peer.std() < np.inf], ids=str)
def test_log_prob_is_minus_the_loss_less_log_two_eps(family: FamilyCase) -> None:
    rng = np.random.default_rng(0)
    mu, t = rng.normal(size=(2, 5000)) * 3
    scale, eps = np.exp(rng.normal(size=(2, 5000)) * 3)
    base = family.make(mu, scale)
    loss = agreement_loss(
        base._family, *map(torch.tensor, (base.location, base.variance, t, eps)), density=False
    ).numpy()
    inside = np.isfinite(loss)  # elsewhere a box against a box has no density
    value, expected = Smoothed(base, eps).log_prob(t), -loss - np.log(2 * eps)
    terms = 1 + np.abs(loss) + np.abs(np.log(2 * eps))
    assert (np.abs(value[inside] - expected[inside]) <= 4e-16 * terms[inside]).all()
    assert (value[~inside] == -np.inf).all()


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_scales_whose_squares_leave_the_range_of_floats(scale: float) -> None:
    plain, extreme = (Smoothed(Normal(0.0, s), 0.7 * s) for s in (1.0, scale))
    shifted = extreme.log_prob(1.3 * scale) + np.log(scale)
    np.testing.assert_allclose(shifted, plain.log_prob(1.3), rtol=1e-12)


@families
def test_variance_grows_by_a_third_of_eps_squared(family: FamilyCase) -> None:
    base = family.make(MEAN, SCALE)
    np.testing.assert_allclose(Smoothed(base, EPS).variance, base.variance + EPS**2 / 3)
    np.testing.assert_array_equal(Smoothed(base, EPS).mean, base.mean)


@families
def test_rows_without_tolerance_are_the_base_exactly(family: FamilyCase) -> None:
    base = family.make(MEAN, SCALE)
    smoothed = Smoothed(base, EPS)[[0]]
    y = base[[0]].quantile(0.3)
    for method in ("log_prob", "pdf", "cdf"):
        np.testing.assert_array_equal(getattr(smoothed, method)(y), getattr(base[[0]], method)(y))
    levels = [1e-9, 0.4, 0.9]
    np.testing.assert_array_equal(smoothed.quantile(levels), base[[0]].quantile(levels))
    np.testing.assert_allclose(
        smoothed.log_within_prob(y, 0.1), base[[0]].log_within_prob(y, 0.1), rtol=1e-12
    )


@families
def test_the_limit_of_small_tolerances_is_the_base(family: FamilyCase) -> None:
    base = family.make(MEAN, SCALE)
    y = base.quantile(0.8)
    for eps in (1e-5, 1e-9, 1e-200):
        smoothed = Smoothed(base, eps * SCALE)
        np.testing.assert_allclose(smoothed.log_prob(y), base.log_prob(y), rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(smoothed.cdf(y), base.cdf(y), rtol=1e-8)


def test_the_limit_of_a_narrow_base_is_the_box() -> None:
    box, smoothed = Uniform(-2.0, 2.0), Smoothed(Normal(0.0, 1e-9), 2.0)
    np.testing.assert_allclose(smoothed.quantile([0.1, 0.9]), box.quantile([0.1, 0.9]), rtol=1e-12)
    np.testing.assert_allclose(smoothed.cdf([-1.5, 1.0]), box.cdf([-1.5, 1.0]), rtol=1e-12)
    np.testing.assert_allclose(smoothed.log_prob(1.0), box.log_prob(1.0), rtol=1e-12)


def test_the_floor_of_the_standard_deviation() -> None:
    assert (Smoothed(Normal(0.0, [1e-12, 1e-3, 1.0]), 0.6).std >= 0.6 / np.sqrt(3)).all()


@settings(max_examples=40, deadline=None)
@given(
    log_ratio=st.floats(-9, 9),
    level=st.floats(1e-300, 1 - 1e-16),
    scale=st.sampled_from([1e-8, 1.0, 1e6]),
)
def test_quantiles_for_any_tolerance_and_level(
    log_ratio: float, level: float, scale: float
) -> None:
    dist = Smoothed(Normal(0.0, scale), scale * 10**log_ratio)
    q = dist.quantile(level)
    smaller = min(level, 1 - level)
    tail = dist.log_interval_prob(-np.inf, q) if level < 0.5 else dist.log_interval_prob(q, np.inf)
    # y, ε and their multiples of σ are rounded, and the tail is steep
    rounding = 4 * np.spacing(abs(q)) * np.exp(dist.log_prob(q) - tail)
    assert abs(tail - np.log(smaller)) < 1e-10 + 4 * rounding


def test_members_may_share_the_tolerances_of_the_rows() -> None:
    members = Normal(np.arange(6.0).reshape(2, 3), 1.0)
    shared, each = Smoothed(members, [0.1, 0.2, 0.3]), Smoothed(members, [[0.1, 0.2, 0.3]] * 2)
    np.testing.assert_array_equal(shared.log_prob(1.0), each.log_prob(1.0))
    np.testing.assert_array_equal(shared.tolerance, each.tolerance)


def test_a_smoothed_mixture_is_the_mixture_of_the_smoothed() -> None:
    draws = Smoothed(Empirical(MEAN), 0.5)
    boxes = Mixture(Uniform(MEAN - 0.5, MEAN + 0.5))
    np.testing.assert_allclose(draws.cdf(0.1), boxes.cdf(0.1))
    np.testing.assert_allclose(draws.pdf(0.1), boxes.pdf(0.1))
    np.testing.assert_allclose(draws.variance, boxes.variance)


@pytest.mark.parametrize(
    ("base", "message"),
    [
        (Mixture(Normal([[0.0], [1.0]], 1.0)), r"Mixture\(Smoothed\(components, tolerance\)\)"),
        (Smoothed(Normal(0.0, 1.0), 1.0), "Smooth the base once"),
        (Decomposed(Normal(0.0, 1.0), 0.5), r"Decomposed\(Smoothed\(base, tolerance\)"),
    ],
)
def test_what_cannot_be_smoothed_says_what_to_do(base: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Smoothed(base, 0.1)
