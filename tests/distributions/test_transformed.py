"""Transformed and clipped distributions, and mixtures of several families."""

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from accord.distributions import (
    Clipped,
    Decomposed,
    Laplace,
    Log,
    Mixture,
    Normal,
    Smoothed,
    StudentT,
    Transformed,
    concatenated,
)

MU, SIGMA = np.array([0.2, 1.0, -0.5]), np.array([0.3, 0.5, 0.2])
MIXED = Mixture(
    [Normal(np.stack([MU, MU + 0.4]), np.stack([SIGMA, SIGMA])), Laplace(MU[None], 0.1)],
    weights=np.array([[0.5, 0.2, 0.3], [0.3, 0.3, 0.3], [0.2, 0.5, 0.4]]),
)
BASES = {
    "normal": Normal(MU, SIGMA),
    "mixture": Mixture(Normal(np.stack([MU, MU + 0.4]), np.stack([SIGMA, SIGMA]))),
    "two families": MIXED,
    "smoothed": Smoothed(Normal(MU, SIGMA), 0.4),
    "decomposed": Decomposed(Normal(MU, SIGMA), 0.5 * SIGMA, 0.2 * SIGMA),
}
TRANSFORMS = {
    "log": Log(),
    "log, then straight": Log(straight_from=2.5),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_transform_is_undone_and_has_its_slope(transform) -> None:
    z = torch.linspace(-3, 3, 61, dtype=torch.float64, requires_grad=True)
    y = transform.forward(z)
    (slope,) = torch.autograd.grad(y.sum(), z)
    np.testing.assert_allclose(transform.inverse(y).detach(), z.detach(), atol=1e-12)
    np.testing.assert_allclose(transform.log_slope(z).detach(), slope.log(), atol=1e-12)


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
class TestTransformed:
    def test_density_is_the_slope_of_the_cdf(self, base, transform) -> None:
        dist = Transformed(base, transform)
        y = dist.quantile(0.6)
        step = 1e-5
        slope = (dist.cdf(y + step) - dist.cdf(y - step)) / (2 * step)
        np.testing.assert_allclose(dist.pdf(y), slope, rtol=1e-5)

    def test_tail_and_density_together_are_those_by_logarithms(self, base, transform) -> None:
        dist = Transformed(base, transform).moved(0.5, 2.0)
        # the ends, the bound, and beyond it: there is nothing below, and all of it above
        beside = np.full((4, 3), [[-np.inf], [0.0], [0.5], [np.inf]])
        y = torch.from_numpy(np.concatenate([dist.quantile([1e-9, 0.3, 0.9]).T, beside]))
        for sign in (1.0, -1.0):
            tail, density = dist._tail_and_density(y, torch.full_like(y, sign))
            expected = dist._log_tail(y, torch.full_like(y, sign)).exp()
            np.testing.assert_allclose(tail, expected, rtol=1e-11)
            np.testing.assert_allclose(density, dist._log_prob(y).exp(), rtol=1e-11)

    def test_quantiles_invert_the_cdf(self, base, transform) -> None:
        dist = Transformed(base, transform)
        for p in (0.01, 0.5, 0.99):
            np.testing.assert_allclose(dist.cdf(dist.quantile(p)), p, rtol=1e-10)

    def test_moments_by_integration(self, base, transform) -> None:
        dist = Transformed(base, transform)
        low, high = dist.quantile(1e-13), dist.quantile(1 - 1e-13)
        for row in range(2):
            y = np.linspace(low[row], high[row], 400_001)
            density = dist[row].pdf(y[:, None] if dist[row].shape else y)
            mean = integrate.simpson(y * density, x=y)
            variance = integrate.simpson((y - mean) ** 2 * density, x=y)
            np.testing.assert_allclose(dist.mean[row], mean, rtol=2e-6)
            np.testing.assert_allclose(dist.variance[row], variance, rtol=2e-5)

    def test_parts_add_up(self, base, transform) -> None:
        dist = Transformed(base, transform)
        parts = dist.noise**2 + dist.disagreement**2 + dist.distance**2
        np.testing.assert_allclose(parts, dist.variance, rtol=1e-12)
        np.testing.assert_allclose(dist.epistemic**2, parts - dist.aleatoric**2, atol=1e-12)


def test_log_normal_moments() -> None:
    dist = Transformed(Normal(MU, SIGMA), Log())
    np.testing.assert_allclose(dist.mean, np.exp(MU + SIGMA**2 / 2), rtol=1e-8)
    variance = np.expm1(SIGMA**2) * np.exp(2 * MU + SIGMA**2)
    np.testing.assert_allclose(dist.variance, variance, rtol=5e-8)
    assert (dist.log_prob(-1.0) == -np.inf).all()
    assert (dist.cdf(-1.0) == 0).all()


def test_moved_transformed_is_the_moved_variable() -> None:
    dist = Transformed(MIXED, Log()).moved(3.0, 2.0)
    plain = Transformed(MIXED, Log())
    np.testing.assert_allclose(dist.quantile(0.3), 3 + 2 * plain.quantile(0.3), rtol=1e-12)
    np.testing.assert_allclose(dist.mean, 3 + 2 * plain.mean, rtol=1e-12)
    np.testing.assert_allclose(dist.pdf(5.0), plain.pdf(1.0) / 2, rtol=1e-12)


def test_the_density_between_bounds_is_that_of_scipys_truncated_normal() -> None:
    mean, std = np.array([0.0, 3.0, -4.0]), np.array([1.0, 2.0, 1.0])
    dist = Clipped(Normal(mean, std), lower=0.0, upper=5.0)
    peer = stats.truncnorm((0 - mean) / std, (5 - mean) / std, mean, std)
    y = np.array([0.5, 4.0, 0.3])
    np.testing.assert_allclose(dist.pdf(y), peer.pdf(y), rtol=1e-9)
    assert dist.pdf([[-1.0] * 3, [5.1] * 3]).tolist() == [[0.0] * 3] * 2


def test_bounds_that_cut_nothing_change_nothing() -> None:
    base = Mixture(Normal(np.stack([MU, MU + 0.4]), np.stack([SIGMA, SIGMA])))
    dist = Clipped(base, -50.0)
    np.testing.assert_array_equal(dist.mean, base.mean)
    np.testing.assert_array_equal(dist.disagreement, base.disagreement)
    np.testing.assert_allclose(dist.quantile(0.2), base.quantile(0.2), rtol=1e-12)
    np.testing.assert_allclose(dist.log_prob(0.7), base.log_prob(0.7), rtol=1e-12)


def test_a_row_far_outside_keeps_the_scale_of_its_density_at_the_bound() -> None:
    dist = Clipped(Normal([-1e9, 0.0], 2.0), lower=0.0)
    y = np.array([0.0, 0.5, 7.0])[:, None]
    half_normal = np.broadcast_to(2 * stats.norm(0, 2).pdf(y), (3, 2))
    np.testing.assert_allclose(dist.pdf(np.repeat(y, 2, axis=1)), half_normal, rtol=1e-6)


def test_parts_of_nested_mixtures() -> None:
    """Networks with mixture heads: the head's spread is noise, that between networks is not."""
    mean = np.array([[[0.0], [4.0]], [[2.0], [6.0]]])  # (components, networks, rows)
    head = Mixture(Normal(mean, 1.0), spread="noise")
    np.testing.assert_allclose(head.noise, np.sqrt([[2.0], [2.0]]))
    ensemble = Mixture(head)
    np.testing.assert_allclose(ensemble.noise**2, 2.0)
    np.testing.assert_allclose(ensemble.disagreement**2, 4.0)
    np.testing.assert_allclose(ensemble.mean, 3.0)
    flat = Mixture(Normal(mean.reshape(4, 1), 1.0))
    for p in (0.05, 0.5, 0.8):
        np.testing.assert_allclose(ensemble.quantile(p), flat.quantile(p), rtol=1e-12)
    np.testing.assert_allclose(ensemble.log_prob(2.5), flat.log_prob(2.5), rtol=1e-12)


def test_weights_by_row() -> None:
    weights = np.array([[0.1, 1.0, 0.0], [0.9, 0.0, 1.0]])
    dist = Mixture(Normal([[0.0] * 3, [5.0] * 3], 1.0), weights)
    np.testing.assert_allclose(dist.mean, [4.5, 0.0, 5.0], atol=1e-12)
    np.testing.assert_allclose(dist[1:].quantile(0.5), [0.0, 5.0], atol=1e-9)
    draws = dist.sample(20_000, random_state=0)
    np.testing.assert_allclose(draws.mean(0), dist.mean, atol=0.05)
    np.testing.assert_allclose((draws < 2.5).mean(0), dist.cdf(2.5), atol=0.01)


def test_several_families_equal_their_parts() -> None:
    y = np.array([0.1, 0.9, -0.6])
    members = [Normal(MU, SIGMA), Normal(MU + 0.4, SIGMA), Laplace(MU, 0.1)]
    density = sum(w * m.pdf(y) for w, m in zip(MIXED.weights, members, strict=True))
    np.testing.assert_allclose(MIXED.pdf(y), density, rtol=1e-12)
    below = sum(w * m.cdf(y) for w, m in zip(MIXED.weights, members, strict=True))
    np.testing.assert_allclose(MIXED.cdf(y), below, rtol=1e-12)
    draws = MIXED.sample(40_000, random_state=1)
    np.testing.assert_allclose(draws.mean(0), MIXED.mean, atol=0.01)
    np.testing.assert_allclose(draws.std(0), MIXED.std, rtol=0.02)
    joined = concatenated([MIXED, MIXED[1:]])
    np.testing.assert_allclose(joined.cdf(0.3)[3:], MIXED.cdf(0.3)[1:])


def test_distance_is_a_part_of_its_own() -> None:
    far = Mixture(Smoothed(Normal(np.stack([MU, MU + 1]), 1.0), [0.0, 3.0, 6.0], distance=True))
    np.testing.assert_allclose(far.noise, 1.0)
    np.testing.assert_allclose(far.disagreement, 0.5)
    np.testing.assert_allclose(far.distance**2, [0.0, 3.0, 12.0])
    np.testing.assert_allclose(far.epistemic**2, 0.25 + far.distance**2)
    np.testing.assert_allclose(far.tolerance_variance, [0.0, 3.0, 12.0])
    np.testing.assert_allclose(far.rescaled(2.0).distance, 2 * far.distance)


def test_newton_reaches_far_tails_and_separate_modes() -> None:
    modes = Mixture(Normal([[-1000.0], [0.0], [1000.0]], [[0.1], [1.0], [10.0]]))
    for p in (1e-14, 1e-3, 0.33, 0.34, 0.5, 0.66, 0.67, 0.999):
        np.testing.assert_allclose(modes.cdf(modes.quantile(p)), p, rtol=1e-9)
    heavy = Mixture(StudentT(1.5, [[0.0], [3.0]], 1.0))  # no variance
    np.testing.assert_allclose(heavy.cdf(heavy.quantile(0.99)), 0.99, rtol=1e-12)


def test_a_wide_logarithm_has_a_mean_within_reason() -> None:
    """An exponential has 1e78 where the largest target was 10; a straight line has about 80."""
    wide = Normal([1.0], 19.0)
    assert Transformed(wide, Log()).mean[0] > 1e20
    straight = Transformed(wide, Log(straight_from=10.0))
    draws = straight.sample(200_000, random_state=0)
    assert straight.mean[0] == pytest.approx(draws.mean(), rel=0.02)
    assert straight.std[0] == pytest.approx(draws.std(), rel=0.02)


def test_moments_of_a_logarithm_that_goes_on_straight() -> None:
    """Exact on either side of where the straight line begins, against quadrature."""
    dist = Transformed(Normal([0.9], 0.8), Log(straight_from=3.0))
    ends = np.array([0.0, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 10.0, 30.0])
    node, weight = np.polynomial.legendre.leggauss(60)
    half = np.diff(ends)[:, None] / 2
    y = (ends[:-1, None] + half + half * node).ravel()
    mass = (half * weight).ravel() * dist.pdf(y[:, None])[:, 0]
    mean = (y * mass).sum()
    np.testing.assert_allclose(mass.sum(), 1.0, rtol=1e-9)
    np.testing.assert_allclose(dist.mean, mean, rtol=1e-8)
    np.testing.assert_allclose(dist.variance, (np.square(y - mean) * mass).sum(), rtol=1e-7)
