"""Bayesian lines against scikit-learn's, and on tables where a line is the answer."""

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge

from accord.portfolio import PortfolioRegressor
from accord.portfolio.encoding import FeatureEncoding, ScaledRows
from accord.portfolio.models import model_for
from accord.portfolio.recipes import RidgeRecipe, recipes_for
from accord.portfolio.ridge import Line, RidgeModel

RNG = np.random.default_rng(0)
NEW = RNG.normal(size=(40, 30))


@pytest.mark.parametrize(("n", "d"), [(200, 5), (60, 30), (20, 30)])
@pytest.mark.parametrize("weighted", [False, True])
def test_mean_and_deviation_are_those_of_the_largest_evidence(
    n: int, d: int, weighted: bool
) -> None:
    x = RNG.normal(size=(n, d)) * np.linspace(0.2, 3, d)
    z = x @ RNG.normal(size=d) / np.sqrt(d) + 0.3 * RNG.normal(size=n)
    weight = RNG.uniform(0.5, 1.5, n) if weighted else np.ones(n)
    new = 0.5 * NEW[:, :d] * np.linspace(0.2, 3, d)
    mean, std = Line.fitted(x, z, weight).predict(new)
    peer = BayesianRidge(tol=1e-9, max_iter=5_000).fit(
        x, z, sample_weight=weight * n / weight.sum()
    )
    # scikit-learn leaves the uncertainty around the centre of the rows, as this does
    covariance = np.asarray(peer.sigma_)
    away = new - np.average(x, axis=0, weights=weight)
    expected = np.sqrt(1 / peer.alpha_ + np.einsum("ij,jk,ik->i", away, covariance, away))
    np.testing.assert_allclose(mean, peer.predict(new), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(std, expected, rtol=1e-2)


def test_an_exact_line_is_found() -> None:
    x = RNG.normal(size=(100, 3))
    mean, std = Line.fitted(x, 2 * x[:, 0] - x[:, 2] + 5, np.ones(100)).predict(NEW[:, :3])
    np.testing.assert_allclose(mean, 2 * NEW[:, 0] - NEW[:, 2] + 5, rtol=1e-6, atol=1e-6)
    assert np.all(std < 1e-3)


def test_of_few_rows_directions_that_none_has_are_as_uncertain_as_before() -> None:
    x = np.column_stack([RNG.normal(size=(8, 9)), np.zeros(8)])
    line = Line.fitted(x, x[:, 0] + 0.1 * RNG.normal(size=8), np.ones(8))
    _, std = line.predict(np.vstack([line.center, line.center + np.eye(10)[9]]))
    assert std[1] ** 2 - std[0] ** 2 == pytest.approx(line.across, rel=1e-6)


def test_of_many_rows_what_none_has_is_left_to_the_distance() -> None:
    x = np.column_stack([RNG.normal(size=50), np.zeros(50)])
    line = Line.fitted(x, x[:, 0] + 0.1 * RNG.normal(size=50), np.ones(50))
    _, std = line.predict(np.array([[0.0, 0.0], [0.0, 1.0]]))
    assert std[1] == pytest.approx(std[0], rel=1e-9)


def test_features_that_go_together_are_not_trusted_apart() -> None:
    """Their difference, tiny in all rows, may have a huge weight; a row with more of it has not."""
    a, c = np.random.default_rng(7).normal(size=(2, 500))
    x = np.column_stack([a, a + 0.05 * c])
    line = Line.fitted(x, c, np.ones(500))
    np.testing.assert_allclose(line.predict(x)[0], c, atol=0.01)
    mean, std = line.predict(np.array([[1.0, 21.0]]))
    assert abs(mean[0]) < 2 * np.abs(c).max() < 10  # and not 400
    assert std[0] > 5  # nor sure of it


def test_a_line_in_long_tails_stays_straight() -> None:
    """Networks bound a feature at a few deviations; rows far out must not bend the line."""
    x = RNG.lognormal(size=(400, 2))
    z = x[:, 0] - x[:, 1]
    z /= z.std()
    rows = ScaledRows(x, z, np.ones(400), {})
    recipe = RidgeRecipe("ridge", "linear")
    model = model_for(recipe).fit(rows, [np.arange(400)], seed=0, listener=None)
    assert isinstance(model, RidgeModel)
    bent = FeatureEncoding().fit(x)(x)  # as networks see it
    plain = Line.fitted(bent, z, np.ones(400)).predict(bent)[0]
    assert np.sqrt(np.mean((model.components(x).center - z) ** 2)) < 0.05
    assert np.sqrt(np.mean((plain - z) ** 2)) > 0.2


def test_an_exact_line_goes_on_just_beyond_the_rows() -> None:
    """A bent line would lose to a sum of curves, which is level from the last row on."""
    x = RNG.uniform(-3, 3, size=(300, 2))
    model = PortfolioRegressor(effort="quick", random_state=0).fit(x, 2 * x[:, 0] - x[:, 1] + 3)
    new = np.array([[3.1, 0.0], [-1.0, -3.1]])
    np.testing.assert_allclose(model.predict(new), 2 * new[:, 0] - new[:, 1] + 3, atol=1e-4)


def test_a_line_that_leaves_the_targets_far_behind_says_so() -> None:
    # ten features that are each a little beyond what rows had, and all push the same way
    x = RNG.uniform(-1, 1, size=(200, 10))
    line = Line.fitted(x, x.sum(axis=1) + 0.1 * RNG.normal(size=200), np.ones(200))
    seen = np.abs(x.sum(axis=1)).max()
    (inside, beyond), (sure, unsure) = line.predict(np.array([[0.5] * 10, [2.0] * 10]))
    assert inside == pytest.approx(5.0, abs=0.2)
    assert sure == pytest.approx(0.1, rel=0.3)
    assert seen < beyond < 2.2 * seen
    assert seen < unsure < 2.2 * seen  # the line itself would say 20
    assert line.predict(np.full((1, 10), 1e3))[1][0] < 2.2 * seen


@pytest.mark.parametrize("weighted", [False, True])
def test_a_sparse_line_finds_the_few_features_that_count(weighted: bool) -> None:
    rng = np.random.default_rng(1)
    x, new = 3 * rng.normal(size=(105, 200)) + 1, 3 * rng.normal(size=(1_000, 200)) + 1
    x[:, 7] = 2.0  # a constant
    z, truth = (
        each[:, 3] - 0.5 * each[:, 50] + 0.5 * rng.normal(size=len(each)) for each in (x, new)
    )
    weight = rng.uniform(0.5, 1.5, 105) if weighted else np.ones(105)
    line, ridge = Line.sparse(x, z, weight, seed=0), Line.fitted(x, z, weight)
    sparse_error, ridge_error = (
        np.sqrt(np.mean((each.predict(new)[0] - truth) ** 2)) for each in (line, ridge)
    )
    assert sparse_error < 0.6 < 1.5 < ridge_error
    slope = line.directions @ line.slope
    np.testing.assert_allclose(slope[[3, 50]], [1.0, -0.5], atol=0.1)
    _, std = line.predict(new)
    assert 0.45 < np.median(std) < 0.7


def test_nothing_to_find_is_a_level_line() -> None:
    rng = np.random.default_rng(2)
    x, z = rng.normal(size=(60, 40)), rng.normal(size=60)
    mean, std = Line.sparse(x, z, np.ones(60), seed=0).predict(rng.normal(size=(10, 40)))
    assert np.abs(mean - z.mean()).max() < 0.5
    assert np.all((std > 0.6) & (std < 1.6))


def test_the_default_finds_few_columns_among_many() -> None:
    rng = np.random.default_rng(0)
    x, new = rng.normal(size=(120, 200)), rng.normal(size=(1_000, 200))
    y, truth = (3 * each[:, 0] + 0.5 * rng.normal(size=len(each)) for each in (x, new))
    model = PortfolioRegressor(effort="quick", random_state=0).fit(x, y)
    assert np.sqrt(np.mean((model.predict(new) - truth) ** 2)) < 0.65
    lower, upper = model.predict_interval(new, coverage=0.9).T
    assert 0.85 < np.mean((lower <= truth) & (truth <= upper)) < 0.97


def test_the_default_finds_a_linear_table() -> None:
    rng, weight = np.random.default_rng(3), np.array([1.0, -2.0, 1.0, 0.5, 0.0])
    x = np.column_stack([rng.lognormal(size=(400, 2)), rng.normal(size=(400, 3))])
    y = x @ weight + 0.5 * rng.normal(size=400)
    model = PortfolioRegressor(effort="quick", random_state=0).fit(x[:200], y[:200])
    assert sum(e.weight for e in model.leaderboard_ if e.name in ("ridge", "additive")) > 0.5
    within = np.all((x >= x[:200].min(axis=0)) & (x <= x[:200].max(axis=0)), axis=1)
    error = (model.predict(x) - x @ weight)[200:][within[200:]]
    assert np.sqrt(np.mean(error**2)) < 0.25


def test_wide_tables_have_lines_but_no_curves_and_very_wide_ones_neither() -> None:
    def names(n: int, d: int) -> set[str]:
        found = recipes_for("quick", np.zeros((n, d)), np.arange(n) + 0.0)
        return {r.name for r in found if isinstance(r, RidgeRecipe)}

    assert names(200, 19) == names(29, 20) == {"ridge", "additive"}
    assert names(200, 20) == {"ridge", "additive", "sparse"}
    assert names(5_000, 400) == {"ridge", "sparse"}
    assert names(160, 3_000) == {"ridge", "sparse"}
    assert names(800, 1_600) == names(300, 6_000) == {"sparse"}  # its vectors are few
    assert names(20_000, 2_000) == set()
