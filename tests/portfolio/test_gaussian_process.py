"""The Gaussian process against scikit-learn's, with the same kernel."""

import math

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from accord._types import Floats
from accord.persistence import load, save
from accord.portfolio.encoding import ScaledRows
from accord.portfolio.gaussian_process import (
    GaussianProcess,
    GaussianProcessModel,
    negative_log_evidence,
)
from accord.portfolio.recipes import GaussianProcessRecipe

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(60, 3)), 2 * RNG.normal(size=(25, 3))
Z = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=60)
LENGTHS, AMPLITUDE, NOISE = np.array([0.7, 2.0, 5.0]), 1.8, 0.02
# the jitter that keeps rows at the same place possible
DIAGONAL = NOISE + 1e-6 * AMPLITUDE


def peer() -> GaussianProcessRegressor:
    kernel = ConstantKernel(AMPLITUDE) * Matern(LENGTHS, nu=2.5)
    return GaussianProcessRegressor(kernel, alpha=DIAGONAL, optimizer=None)


def process() -> GaussianProcess:
    own = GaussianProcess()
    own.lengths_, own.amplitude_, own.noise_ = LENGTHS, AMPLITUDE, NOISE
    return own


def test_mean_and_deviation_of_every_fold() -> None:
    folds = [np.arange(0, 40), np.arange(20, 60)]
    own = process().condition(X, Z, folds)
    for number, rows in enumerate(folds):
        (mean,), (std,) = own.predict(NEW, number)
        expected, latent = peer().fit(X[rows], Z[rows]).predict(NEW, return_std=True)
        np.testing.assert_allclose(mean, expected, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(std, np.sqrt(latent**2 + NOISE), rtol=1e-8)


def test_more_rows_than_are_multiplied_at_a_time() -> None:
    x = RNG.normal(size=(600, 3))
    z = np.sin(2 * x[:, 0])
    (mean,), (std,) = process().condition(x, z, [np.arange(600)]).predict(NEW)
    expected, latent = peer().fit(x, z).predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(std, np.sqrt(latent**2 + NOISE), rtol=1e-6)


def test_one_inverse_for_all_folds_keeps_its_digits() -> None:
    # hardly any noise and rows that are close together: a covariance of condition 1e8
    x, own = RNG.normal(size=(400, 2)), process()
    own.lengths_, own.noise_ = np.array([3.0, 3.0]), 1e-5
    folds = [np.flatnonzero(np.arange(400) % 5 != fold) for fold in range(5)]
    mean, std = own.condition(x, np.sin(2 * x[:, 0]), folds).predict(NEW[:, :2])
    alone = [own.condition(x, np.sin(2 * x[:, 0]), [rows]).predict(NEW[:, :2]) for rows in folds]
    np.testing.assert_allclose(mean, np.concatenate([m for m, _ in alone]), atol=1e-8)
    np.testing.assert_allclose(std, np.concatenate([s for _, s in alone]), rtol=1e-6)


def test_the_inverse_is_made_again_and_not_saved(tmp_path) -> None:
    rows = ScaledRows(np.repeat(X, 5, axis=0) + 0.01, np.repeat(Z, 5), np.ones(300), {})
    folds = [np.flatnonzero(np.arange(300) % 3 != fold) for fold in range(3)]
    recipe = GaussianProcessRecipe()
    model = GaussianProcessModel(recipe).fit(rows, folds, seed=0, listener=None)
    save(model, tmp_path / "model.accord")
    assert (tmp_path / "model.accord").stat().st_size < 300 * 300
    again = load(tmp_path / "model.accord", GaussianProcessModel)
    for fold in (None, 1):
        found, expected = again.components(NEW, fold), model.components(NEW, fold)
        np.testing.assert_array_equal(found.mean, expected.mean)
        np.testing.assert_array_equal(found.std, expected.std)


def log_parameters(lengths: Floats) -> Floats:
    return np.log([*lengths, AMPLITUDE, NOISE])


def test_evidence() -> None:
    found, _ = negative_log_evidence(X, Z, log_parameters(LENGTHS))
    expected = -peer().fit(X, Z).log_marginal_likelihood_value_
    assert found + 30 * math.log(2 * math.pi) == pytest.approx(expected, rel=1e-8)


def test_slope_of_the_evidence_by_lengths_and_amplitude() -> None:
    # scikit-learn knows no slope by alpha, and its jitter does not grow with the amplitude
    fitted = peer().fit(X, Z)
    theta = fitted.kernel_.theta
    _, expected = fitted.log_marginal_likelihood(theta, eval_gradient=True)
    _, slope = negative_log_evidence(X, Z, log_parameters(LENGTHS))
    np.testing.assert_allclose(slope[:3], -expected[1:], rtol=1e-8)
    assert slope[3] == pytest.approx(-expected[0], rel=1e-3)


@pytest.mark.parametrize("lengths", [LENGTHS, np.array([1.7])], ids=["each", "shared"])
def test_slope_of_the_evidence_against_differences(lengths: Floats) -> None:
    at, step = log_parameters(lengths), 1e-5
    _, slope = negative_log_evidence(X, Z, at)
    for place, unit in enumerate(np.eye(len(at))):
        above, below = (negative_log_evidence(X, Z, at + s * step * unit)[0] for s in (1, -1))
        assert slope[place] == pytest.approx((above - below) / (2 * step), rel=1e-5, abs=1e-5)


def test_slope_of_the_evidence_of_rows_at_the_same_place() -> None:
    # where the distance is 0 it has no slope, but its square has
    x, z = np.repeat(X, 2, axis=0), np.repeat(Z, 2)
    at, step = log_parameters(LENGTHS), 1e-5
    _, slope = negative_log_evidence(x, z, at)
    above, below = (negative_log_evidence(x, z, at + s * step * np.eye(5)[0])[0] for s in (1, -1))
    assert slope[0] == pytest.approx((above - below) / (2 * step), rel=1e-5)


def test_the_kernel_that_is_learnt_tells_features_apart() -> None:
    x = RNG.normal(size=(200, 3))
    z = np.sin(3 * x[:, 0]) + 0.1 * RNG.normal(size=200)
    own = GaussianProcess().learn_kernel(x, z, seed=0)
    assert own.lengths_[0] < own.lengths_[1:].min() / 4
    assert own.noise_ == pytest.approx(0.01, rel=0.5)


def test_rows_held_out_are_predicted_no_better_than_fresh_ones() -> None:
    """So many lengths, learnt from all rows, fit the noise of those that are held out."""
    n, rng = 260, np.random.default_rng(0)
    x = rng.normal(size=(n + 500, 60))
    z = (x[:, 0] + 0.5 * x[:, 1] ** 2 + 0.5 * rng.normal(size=n + 500)) / 1.34
    held_out = np.array_split(rng.permutation(n), 8)
    folds = [np.setdiff1d(np.arange(n), own) for own in held_out]
    rows = ScaledRows(x[:n], z[:n], np.ones(n), {})
    model = GaussianProcessModel(GaussianProcessRecipe())
    model.fit(rows, folds, seed=0, listener=None)
    own = [model.components(x[rows], fold).center - z[rows] for fold, rows in enumerate(held_out)]
    fresh = [model.components(x[n:], fold).center - z[n:] for fold in range(len(folds))]
    assert np.std(np.concatenate(own)) > 0.9 * np.std(np.concatenate(fresh))


def test_many_features_that_go_together_share_a_length() -> None:
    # a spectrum: 200 channels of two smooth shapes, and a target in their small difference
    channels = np.linspace(0, 1, 200)
    amounts = RNG.normal(size=(160, 2))
    shapes = np.stack([1 + 0 * channels, 1 + 0.05 * np.sin(6 * channels)])
    x = (lambda raw: (raw - raw.mean(0)) / raw.std(0))(amounts @ shapes)
    z = (amounts[:, 1] - amounts[:, 1].mean()) / amounts[:, 1].std()
    own = GaussianProcess().learn_kernel(x[:120], z[:120], seed=0)
    assert len(set(own.lengths_)) == 1
    (mean,), _ = own.condition(x, z, [np.arange(120)]).predict(x[120:])
    assert np.sqrt(np.mean((mean - z[120:]) ** 2)) < 0.1


def test_far_away_it_knows_nothing() -> None:
    own = process().condition(X, Z, [np.arange(60)])
    (mean,), (std,) = own.predict(np.full((1, 3), 1e6))
    assert mean[0] == pytest.approx(0.0, abs=1e-12)
    assert std[0] == pytest.approx(math.sqrt(AMPLITUDE + NOISE))


def test_repeated_rows_are_possible() -> None:
    x, z = np.repeat(X[:10], 5, axis=0), np.repeat(Z[:10], 5)
    own = process()
    own.noise_ = 1e-5
    (mean,), _ = own.condition(x, z, [np.arange(50)]).predict(X[:10])
    np.testing.assert_allclose(mean, Z[:10], atol=0.01)


def test_no_rows_are_answered_with_nothing() -> None:
    (mean,), (std,) = process().condition(X, Z, [np.arange(60)]).predict(X[:0])
    assert mean.shape == std.shape == (0,)
