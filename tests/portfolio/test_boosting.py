"""Boosted trees as arrays: the sums are scikit-learn's own."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.ensemble._hist_gradient_boosting import binning

from accord.portfolio.boosting import BoostingModel, Trees, _booster
from accord.portfolio.encoding import FeatureEncoding, ScaledRows
from accord.portfolio.recipes import BoostingRecipe

RNG = np.random.default_rng(0)
X = np.column_stack(
    [RNG.normal(size=500), RNG.integers(0, 4, 500), np.exp(3 * RNG.normal(size=500))]
)
Y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.2 * RNG.normal(size=500)
# training rows, values exactly at thresholds, and values outside
ASKED = np.concatenate([X, np.full((1, 3), -1e12), np.full((1, 3), 1e12), np.round(X)])


@pytest.mark.parametrize("leaf", [1, 8, 100])
def test_sums_are_those_of_scikit_learn(leaf: int) -> None:
    booster = _booster("squared_error", 80, 0.1, leaf, 0).fit(X, Y)
    np.testing.assert_allclose(Trees(booster)(ASKED), booster.predict(ASKED), rtol=1e-9)


def test_a_logarithmic_link_is_left_to_the_caller() -> None:
    booster = _booster("gamma", 60, 0.1, 8, 0).fit(X, np.exp(Y / 3))
    np.testing.assert_allclose(np.exp(Trees(booster)(ASKED)), booster.predict(ASKED), rtol=1e-9)


def test_a_tree_without_a_split() -> None:
    booster = _booster("squared_error", 3, 0.1, 300, 0).fit(X, Y)
    trees = Trees(booster)
    np.testing.assert_allclose(trees(X[:5]), booster.predict(X[:5]), rtol=1e-12)
    assert np.ptp(trees(X)) == 0


def test_chunks_and_no_rows() -> None:
    booster = HistGradientBoostingRegressor(max_iter=5, max_depth=5, max_leaf_nodes=None)
    trees = Trees(booster.fit(X, Y))
    many = np.tile(X, (9, 1))
    np.testing.assert_array_equal(trees(many), np.tile(trees(X), 9))
    assert trees(X[:0]).shape == (0,)


def test_the_deviation_follows_the_noise() -> None:
    """Noise of deviation 0.1 on one side and 1 on the other."""
    x = RNG.uniform(-1, 1, size=(2000, 1))
    z = np.where(x[:, 0] < 0, 0.1, 1.0) * RNG.normal(size=2000)
    folds = [np.flatnonzero(np.arange(2000) % 4 != own) for own in range(4)]
    rows = ScaledRows(x, z, np.ones(2000), {})
    model = BoostingModel(BoostingRecipe()).fit(rows, folds, seed=0, listener=None)
    part = model.components(np.array([[-0.5], [0.5]]))
    assert part.std.shape == (4, 2, 1)
    quiet, loud = part.std.mean(axis=(0, 2))
    assert quiet == pytest.approx(0.1, rel=0.3)
    assert loud == pytest.approx(1.0, rel=0.3)


def test_counted_steps_are_those_of_every_fold_and_all_its_rows_are_learnt_from() -> None:
    x = RNG.uniform(-1, 1, size=(2000, 3))
    z = np.sin(4 * x[:, 0]) + x[:, 1] ** 2 + 0.1 * RNG.normal(size=2000)
    folds = [np.flatnonzero(np.arange(2000) % 4 != own) for own in range(4)]
    rows, recipe = ScaledRows(x, z, np.ones(2000), {}), BoostingRecipe(trees=400, counted=True)
    model = BoostingModel(recipe).fit(rows, folds, seed=0, listener=None)
    (steps,) = {len(trees.value) for trees in model.mean_}
    assert 30 < steps < 400
    booster, encoded = _booster("squared_error", steps, 0.08, 8, 0), model.encoding_(x)
    booster.set_params(early_stopping=False).fit(encoded[folds[1]], z[folds[1]])
    np.testing.assert_allclose(model.mean_[1](encoded), booster.predict(encoded), rtol=1e-9)
    other = model.fit_again(rows, [folds[0][:500]], seed=1, listener=None)
    assert len(other.mean_[0].value) == steps


def test_equal_weights_take_no_search_for_each_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than 255 values in a column: with weights, scikit-learn seeks each edge by itself."""
    weight, folds = np.ones(500), [np.arange(0, 500), np.arange(50, 450)]
    booster = _booster("squared_error", 200, 0.08, 8, 0)
    encoded = FeatureEncoding().fit(X)(X)
    by_hand = [Trees(booster.fit(encoded[own], Y[own], sample_weight=weight[own])) for own in folds]
    monkeypatch.setattr(binning, "_weighted_percentile", None)
    for each in (weight, 3 * weight):
        model = BoostingModel(BoostingRecipe()).fit(
            ScaledRows(X, Y, each, {}), folds, seed=0, listener=None
        )
        for own, theirs in zip(model.mean_, by_hand, strict=True):
            np.testing.assert_array_equal(own(encoded), theirs(encoded))
