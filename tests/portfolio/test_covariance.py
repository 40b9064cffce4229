"""The likelihood by which kernels are learnt, against scikit-learn's and differences."""

import math

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from accord._types import Floats
from accord.portfolio.covariance import Covariance, negative_log_evidence
from accord.portfolio.gaussian_process import GaussianProcess

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Z = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=60)
LENGTHS, NOISE = np.array([[0.7, 2.0, 5.0], [3.0, 0.4, 1.5]]), 0.02
AMPLITUDES = np.array([1.8, 0.3])


def peer() -> GaussianProcessRegressor:
    first, second = (
        ConstantKernel(amplitude) * Matern(lengths, nu=2.5)
        for lengths, amplitude in zip(LENGTHS, AMPLITUDES, strict=True)
    )
    # with the jitter that keeps rows at the same place possible
    alpha = NOISE + 1e-6 * AMPLITUDES.sum()
    return GaussianProcessRegressor(first + second, alpha=alpha, optimizer=None)


def test_covariances() -> None:
    expected = peer().kernel(X, 2 * X[:7])
    np.testing.assert_allclose(
        Covariance(LENGTHS, AMPLITUDES, NOISE)(X, 2 * X[:7]), expected, atol=1e-9
    )


def log_parameters(lengths: Floats) -> Floats:
    return np.log([*lengths.ravel(), *AMPLITUDES, NOISE])


def test_evidence() -> None:
    found, _ = negative_log_evidence(X, Z, log_parameters(LENGTHS), kernels=2)
    expected = -peer().fit(X, Z).log_marginal_likelihood_value_
    assert found + 30 * math.log(2 * math.pi) == pytest.approx(expected, rel=1e-8)


def test_slope_of_the_evidence_by_lengths_and_amplitudes() -> None:
    # scikit-learn knows no slope by alpha, and its jitter does not grow with the amplitude
    fitted = peer().fit(X, Z)
    theta = fitted.kernel_.theta
    _, expected = fitted.log_marginal_likelihood(theta, eval_gradient=True)
    _, slope = negative_log_evidence(X, Z, log_parameters(LENGTHS), kernels=2)
    np.testing.assert_allclose(slope[:6], -expected[[1, 2, 3, 5, 6, 7]], rtol=1e-8)
    np.testing.assert_allclose(slope[6:8], -expected[[0, 4]], rtol=1e-3)


@pytest.mark.parametrize("lengths", [LENGTHS, np.array([[1.7], [0.3]])], ids=["each", "shared"])
def test_slope_of_the_evidence_against_differences(lengths: Floats) -> None:
    at, step = log_parameters(lengths), 1e-5
    _, slope = negative_log_evidence(X, Z, at, kernels=2)
    for place, unit in enumerate(step * np.eye(len(at))):
        above, below = (negative_log_evidence(X, Z, at + s * unit, kernels=2)[0] for s in (1, -1))
        assert slope[place] == pytest.approx((above - below) / (2 * step), rel=1e-5, abs=1e-5)


def test_slope_of_the_evidence_of_rows_at_the_same_place() -> None:
    # where the distance is 0 it has no slope, but its square has
    x, z = np.repeat(X, 2, axis=0), np.repeat(Z, 2)
    at, step = log_parameters(LENGTHS), 1e-5
    _, slope = negative_log_evidence(x, z, at, kernels=2)
    unit = step * np.eye(len(at))[0]
    above, below = (negative_log_evidence(x, z, at + s * unit, kernels=2)[0] for s in (1, -1))
    assert slope[0] == pytest.approx((above - below) / (2 * step), rel=1e-5)


def test_the_kernel_that_is_learnt_tells_features_apart() -> None:
    x = RNG.normal(size=(200, 3))
    z = np.sin(3 * x[:, 0]) + 0.1 * RNG.normal(size=200)
    own = Covariance.learnt(x, z, seed=0)
    assert own.lengths[0, 0] < own.lengths[0, 1:].min() / 4
    assert own.noise == pytest.approx(0.01, rel=0.5)


def test_many_features_that_go_together_share_a_length() -> None:
    # a spectrum: 200 channels of two smooth shapes, and a target in their small difference
    channels = np.linspace(0, 1, 200)
    amounts = RNG.normal(size=(160, 2))
    shapes = np.stack([1 + 0 * channels, 1 + 0.05 * np.sin(6 * channels)])
    x = (lambda raw: (raw - raw.mean(0)) / raw.std(0))(amounts @ shapes)
    z = (amounts[:, 1] - amounts[:, 1].mean()) / amounts[:, 1].std()
    own = Covariance.learnt(x[:120], z[:120], seed=0)
    assert len(set(own.lengths.ravel())) == 1
    (mean,), _ = GaussianProcess(own, x, z, [np.arange(120)]).predict(x[120:])
    assert np.sqrt(np.mean((mean - z[120:]) ** 2)) < 0.1
