"""Joint distributions: moments, densities and draws agree with each other and with scipy."""

import numpy as np
import pytest
import torch
from scipy.stats import kstest, multivariate_normal

from accord.distributions import JointMixture, JointSmoothed, MultivariateNormal

MEAN = np.array([[0.0, 1.0, -1.0], [2.0, 0.0, 0.5]])
COVARIANCE = np.array([[1.0, 0.7, 0.2], [0.7, 2.0, -0.3], [0.2, -0.3, 0.5]])


def pair(correlation: float, *, n: int = 1) -> MultivariateNormal:
    rest = (1 - correlation**2) ** 0.5
    return MultivariateNormal(np.zeros((n, 2)), [[1.0, 0.0], [correlation, rest]])


def test_moments_density_and_draws_of_the_normal_one() -> None:
    law = MultivariateNormal.from_covariance(MEAN, np.stack([COVARIANCE] * 2))
    np.testing.assert_allclose(law.covariance, np.stack([COVARIANCE] * 2))
    value = MEAN + 0.3
    expected = [
        multivariate_normal(m, COVARIANCE).logpdf(v) for m, v in zip(MEAN, value, strict=True)
    ]
    np.testing.assert_allclose(law.log_prob(value), expected)
    draws = law.sample(40_000, random_state=0)
    assert draws.shape == (40_000, 2, 3)
    np.testing.assert_allclose(np.cov(draws[:, 1].T), COVARIANCE, atol=0.04)
    np.testing.assert_allclose(law.marginals.std, np.sqrt(np.diag(COVARIANCE)) * np.ones((2, 1)))
    sums = law.projected([1.0, 2.0, -1.0])
    np.testing.assert_allclose(sums.mean, draws.mean(0) @ [1, 2, -1], atol=0.05)
    np.testing.assert_allclose(sums.std, (draws @ [1, 2, -1]).std(0), rtol=0.02)


def test_rows_are_selected_with_their_covariance() -> None:
    factors = np.stack([np.eye(3), np.linalg.cholesky(COVARIANCE)])
    law = MultivariateNormal(MEAN, factors)
    np.testing.assert_allclose(law[1:].covariance[0], COVARIANCE)
    np.testing.assert_allclose(law[1:].mean, MEAN[1:])


def test_tensors_in_tensors_out_with_gradients() -> None:
    mean = torch.zeros(1, 2, requires_grad=True)
    law = MultivariateNormal(mean, torch.eye(2))
    law.log_prob(torch.ones(1, 2)).sum().backward()
    assert mean.grad is not None
    np.testing.assert_allclose(mean.grad, [[1.0, 1.0]])


@pytest.mark.parametrize("figure", ["box", "ellipsoid"])
class TestSmoothed:
    def test_density_integrates_to_one_and_marginals_are_its_integrals(self, figure: str) -> None:
        law = JointSmoothed(pair(0.8), [0.9, 0.5], figure=figure)  # type: ignore[arg-type]
        grid = np.linspace(-6.0, 6.0, 121)
        step = grid[1] - grid[0]
        points = np.stack(np.meshgrid(grid, grid, indexing="ij"), -1).reshape(-1, 1, 2)
        density = np.exp(law.log_prob(points)).reshape(121, 121)
        assert density.sum() * step**2 == pytest.approx(1.0, abs=1e-4)
        for output in (0, 1):
            alone = density.sum(1 - output) * step
            marginal = law.marginals[:, output].pdf(grid[:, None])[:, 0]
            np.testing.assert_allclose(marginal, alone, atol=1e-4)

    def test_draws_have_its_moments(self, figure: str) -> None:
        law = JointSmoothed(pair(0.8), [0.9, 2.5], figure=figure)  # type: ignore[arg-type]
        draws = law.sample(60_000, random_state=1)[:, 0]
        np.testing.assert_allclose(np.cov(draws.T), law.covariance[0], atol=0.05)
        np.testing.assert_allclose(law.marginals.std, law.std)
        assert (
            kstest(draws[:, 1], lambda x: law.marginals[:, 1].cdf(x[:, None])[:, 0]).pvalue > 1e-3
        )


def test_a_mixture_adds_the_covariance_of_its_members_means() -> None:
    means = np.array([[[0.0, 0.0]], [[2.0, 1.0]]])
    mixture = JointMixture(MultivariateNormal(means, np.eye(2)), weights=[3.0, 1.0])
    np.testing.assert_allclose(mixture.mean, [[0.5, 0.25]])
    away = np.array([2.0, 1.0])
    np.testing.assert_allclose(mixture.covariance[0], np.eye(2) + 3 / 16 * np.outer(away, away))
    expected = np.log(
        0.75 * multivariate_normal([0, 0]).pdf([1, 1])
        + 0.25 * multivariate_normal([2, 1]).pdf([1, 1])
    )
    np.testing.assert_allclose(mixture.log_prob([[1.0, 1.0]]), expected)
    np.testing.assert_allclose(mixture.log_prob([[[1.0, 1.0]], [[1.0, 1.0]]]), [[expected[()]]] * 2)
    draws = mixture.sample(40_000, random_state=0)[:, 0]
    np.testing.assert_allclose(np.cov(draws.T), mixture.covariance[0], atol=0.04)
    assert (
        kstest(draws[:, 0], lambda x: mixture.marginals[:, 0].cdf(x[:, None])[:, 0]).pvalue > 1e-3
    )


@pytest.mark.parametrize("kind", ["normal", "smoothed", "mixture"])
def test_levels_are_uniform_and_boxes_cover(kind: str) -> None:
    n = 400
    law = pair(0.9, n=n)
    if kind == "smoothed":
        law = JointSmoothed(law, 1.0, figure="ellipsoid")
    if kind == "mixture":
        law = JointMixture(
            MultivariateNormal(np.array([[[0.0]], [[3.0]]]) * np.ones((2, n, 2)), law.cholesky[0])
        )
    y = law.sample(1, random_state=5)[0]
    assert kstest(law.level(y), "uniform").pvalue > 1e-3
    box = law.box(0.8)
    inside = ((y >= box[..., 0]) & (y <= box[..., 1])).all(-1)
    assert inside.mean() == pytest.approx(0.8, abs=4 * (0.16 / n) ** 0.5 + 0.011)


@pytest.mark.parametrize(
    ("mean", "cholesky", "words"),
    [
        ([[0.0, 0.0]], np.eye(3), "D × D"),
        ([[0.0, 0.0]], [[1.0, 0.5], [0.5, 1.0]], "lower triangular"),
        ([[0.0, 0.0]], [[1.0, 0.0], [0.5, 0.0]], "must be positive"),
    ],
)
def test_bad_factors_are_refused(mean: object, cholesky: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        MultivariateNormal(mean, cholesky)


def test_bad_covariances_and_values_are_refused() -> None:
    with pytest.raises(ValueError, match="positive definite"):
        MultivariateNormal.from_covariance([[0.0, 0.0]], [[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ValueError, match="must end in the shape"):
        pair(0.5, n=3).log_prob(np.zeros(2))
