"""The Gaussian process against scikit-learn's, with the same kernel."""

import math

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from accord.persistence import load, save
from accord.portfolio.covariance import Covariance
from accord.portfolio.encoding import ScaledRows
from accord.portfolio.folds import at_most
from accord.portfolio.gaussian_process import GaussianProcess, GaussianProcessModel
from accord.portfolio.recipes import GaussianProcessRecipe

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(60, 3)), 2 * RNG.normal(size=(25, 3))
Z = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=60)
LENGTHS, NOISE = np.array([[0.7, 2.0, 5.0], [3.0, 0.4, 1.5]]), 0.02
AMPLITUDES = np.array([1.8, 0.3])
AMPLITUDE = AMPLITUDES.sum()
# the jitter that keeps rows at the same place possible
DIAGONAL = NOISE + 1e-6 * AMPLITUDE


def peer() -> GaussianProcessRegressor:
    first, second = (
        ConstantKernel(amplitude) * Matern(lengths, nu=2.5)
        for lengths, amplitude in zip(LENGTHS, AMPLITUDES, strict=True)
    )
    kernel = first + second
    return GaussianProcessRegressor(kernel, alpha=DIAGONAL, optimizer=None)


COVARIANCE = Covariance(LENGTHS, AMPLITUDES, NOISE)


def test_mean_and_deviation_of_every_fold() -> None:
    folds = [np.arange(0, 40), np.arange(20, 60)]
    own = GaussianProcess(COVARIANCE, X, Z, folds)
    for number, rows in enumerate(folds):
        (mean,), (std,) = own.predict(NEW, number)
        expected, latent = peer().fit(X[rows], Z[rows]).predict(NEW, return_std=True)
        np.testing.assert_allclose(mean, expected, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(std, np.sqrt(latent**2 + NOISE), rtol=1e-8)


def test_more_rows_than_are_multiplied_at_a_time() -> None:
    x = RNG.normal(size=(600, 3))
    z = np.sin(2 * x[:, 0])
    (mean,), (std,) = GaussianProcess(COVARIANCE, x, z, [np.arange(600)]).predict(NEW)
    expected, latent = peer().fit(x, z).predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(std, np.sqrt(latent**2 + NOISE), rtol=1e-6)


def test_one_inverse_for_all_folds_keeps_its_digits() -> None:
    # hardly any noise and rows that are close together: a covariance of condition 1e8
    x, kernel = RNG.normal(size=(400, 2)), Covariance(np.full((2, 2), 3.0), AMPLITUDES, 1e-5)
    folds = [np.flatnonzero(np.arange(400) % 5 != fold) for fold in range(5)]
    z = np.sin(2 * x[:, 0])
    mean, std = GaussianProcess(kernel, x, z, folds).predict(NEW[:, :2])
    alone = [GaussianProcess(kernel, x, z, [rows]).predict(NEW[:, :2]) for rows in folds]
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


def test_far_away_it_knows_nothing() -> None:
    own = GaussianProcess(COVARIANCE, X, Z, [np.arange(60)])
    (mean,), (std,) = own.predict(np.full((1, 3), 1e6))
    assert mean[0] == pytest.approx(0.0, abs=1e-12)
    assert std[0] == pytest.approx(math.sqrt(AMPLITUDE + NOISE))


def test_repeated_rows_are_possible() -> None:
    x, z = np.repeat(X[:10], 5, axis=0), np.repeat(Z[:10], 5)
    process = GaussianProcess(Covariance(LENGTHS, AMPLITUDES, 1e-5), x, z, [np.arange(50)])
    (mean,), _ = process.predict(X[:10])
    np.testing.assert_allclose(mean, Z[:10], atol=0.01)


def test_no_rows_are_answered_with_nothing() -> None:
    (mean,), (std,) = GaussianProcess(COVARIANCE, X, Z, [np.arange(60)]).predict(X[:0])
    assert mean.shape == std.shape == (0,)


def test_each_row_left_out_is_predicted_by_the_others() -> None:
    """Also with folds that share an inverse, and rows beside those that are conditioned on."""
    folds = [np.arange(60)[:45], np.arange(60)[15:]]
    own = GaussianProcess(COVARIANCE, X, Z, folds)
    for fold, rows in enumerate(folds):
        errors, std = own.left_out(fold)
        for place in (0, 20, 44):
            others = np.delete(rows, place)
            alone = GaussianProcess(COVARIANCE, X, Z, [others])
            (mean,), (deviation,) = alone.predict(X[rows[place]][None])
            assert Z[rows[place]] - errors[place] == pytest.approx(mean[0], abs=1e-5)
            assert std[place] == pytest.approx(deviation[0], rel=1e-4)


@pytest.mark.parametrize("n", [120, 300], ids=["a kernel for each fold", "one kernel"])
def test_rows_that_are_not_conditioned_on_are_predicted_as_new_ones(n: int) -> None:
    x = np.random.default_rng(1).normal(size=(n, 2))
    rows = ScaledRows(x, np.sin(2 * x[:, 0]), np.ones(n), {})
    folds = [np.arange(n)[: n // 2], np.arange(n)[n // 3 :]]
    model = GaussianProcessModel(GaussianProcessRecipe(rows=90))
    model.fit(rows, folds, seed=0, listener=None)
    unseen = np.setdiff1d(np.arange(n), at_most(np.arange(n), 90, 0))
    part = model.components(x[unseen])
    for figure in ("mean", "std"):
        found = model.left_out(rows, folds, figure, 0)
        assert not np.isnan(found[0, : n // 2]).any()
        assert not np.isnan(found[1, n // 3 :]).any()
        expected = getattr(part, figure)[:, :, 0]
        np.testing.assert_allclose(found[:, unseen], expected, rtol=1e-9)


@pytest.mark.parametrize("n", [120, 300], ids=["a kernel for each fold", "one kernel"])
def test_the_same_kernels_of_fewer_rows(n: int) -> None:
    x = np.random.default_rng(1).normal(size=(n, 2))
    rows = ScaledRows(x, np.sin(2 * x[:, 0]), np.ones(n), {})
    folds = [np.arange(n)[: n // 2], np.arange(n)[n // 3 :]]
    model = GaussianProcessModel(GaussianProcessRecipe())
    model.fit(rows, folds, seed=0, listener=None)
    fewer = model.of_fewer(80, rows, folds, seed=0)
    assert sum(len(np.unique(process.rows_, axis=0)) for process in fewer.processes_) <= 2 * 80
    for own, other in zip(model.processes_, fewer.processes_, strict=True):
        np.testing.assert_array_equal(own.covariance_.lengths, other.covariance_.lengths)
    assert (fewer.components(NEW[:, :2]).std > 0.99 * model.components(NEW[:, :2]).std).all()


def test_means_take_no_inverse() -> None:
    own = GaussianProcess(COVARIANCE, X, Z, [np.arange(60)[:45], np.arange(60)[15:]])
    expected, _ = own.predict(NEW)
    own.forget()
    np.testing.assert_allclose(own.means(NEW), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(own.means(NEW, 1), expected[[1]], rtol=1e-9, atol=1e-9)
    assert "factor" not in vars(own)
