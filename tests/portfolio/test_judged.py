"""One estimator with evidence about it: who saw which rows, and what predicts in the end."""

from typing import Any, Self

import numpy as np
import pytest

from accord.distributions import Distribution, Normal
from accord.estimators import BVMRegressor, DeepEnsembleRegressor, DistributionalRegressor
from accord.portfolio import JudgedModel
from accord.trust import Proximity

N = 60
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 2))
Y = X[:, 0] + 0.1 * rng.normal(size=N)


class Nearest(DistributionalRegressor):
    """The target of the nearest training row; its distance is the standard deviation."""

    def fit(self, X: Any, y: Any, *, y_lower: Any = None, y_upper: Any = None) -> Self:
        self.x_, self.y_ = self._checked_pair(X, y)
        self.lower_ = y_lower
        return self

    def _predictive(self, X: Any) -> Distribution:
        distance = np.linalg.norm(X[:, None] - self.x_[None], axis=2)
        return Normal(self.y_[distance.argmin(1), 0], 1e-9 + distance.min(1))


def test_each_row_is_judged_once_by_a_copy_that_had_not_seen_it() -> None:
    model = JudgedModel(Nearest(), random_state=0).fit(X, Y)
    rows = np.concatenate([part.rows for part in model.judged_])
    assert sorted(rows) == list(range(N))
    for part in (*model.judged_, *model.shifted_):
        assert np.min(part.dist.std) > 1e-6
    # what predicts has seen them all
    assert np.max(model.predict_dist(X).std) < 1e-6
    assert model.leaderboard_[0].nll == pytest.approx(
        -np.mean(np.concatenate([p.dist.log_prob(Y[p.rows]) for p in model.judged_]))
    )


def test_the_unusual_rows_are_the_farthest_and_predicted_without_each_other() -> None:
    x = np.vstack([X[:54], 50 + 0.01 * X[54:]])
    model = JudgedModel(Nearest(), random_state=0).fit(x, Y)
    (shifted,) = model.shifted_
    assert set(range(54, 60)) <= set(shifted.rows)
    far = np.isin(shifted.rows, range(54, 60))
    assert np.min(shifted.dist.std[far]) > 40


def test_an_estimator_that_knows_distances_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = JudgedModel(BVMRegressor(epochs=2, random_state=0), random_state=0).fit(X, Y)
    new = 2 * np.random.default_rng(1).normal(size=(30, 2))
    expected, unusual = model.predict_dist(new), model.is_unusual(new)
    asked = []
    search = Proximity.distance

    def counted(proximity: Proximity, x: Any, **options: Any) -> Any:
        asked.append(len(x))
        return search(proximity, x, **options)

    monkeypatch.setattr(Proximity, "distance", counted)
    dist, flags = model.answer(new)
    assert asked == [30]
    np.testing.assert_array_equal(dist.mean, expected.mean)
    np.testing.assert_array_equal(dist.interval(0.9), expected.interval(0.9))
    np.testing.assert_array_equal(flags, unusual)
    assert 0 < flags.sum() < 30


def test_groups_are_held_out_together() -> None:
    groups = np.arange(N) % 10
    model = JudgedModel(Nearest(), random_state=0).fit(X, Y, groups=groups)
    folds = [set(groups[part.rows]) for part in model.judged_]
    assert sum(len(fold) for fold in folds) == 10


def test_censored_rows_teach_but_are_not_judged() -> None:
    lower, upper = np.full(N, np.nan), np.full(N, np.nan)
    lower[:20], upper[:20] = Y[:20], np.inf
    model = JudgedModel(Nearest(), random_state=0).fit(X, Y, y_lower=lower, y_upper=upper)
    judged = np.concatenate([part.rows for part in (*model.judged_, *model.shifted_)])
    assert judged.min() == 20
    np.testing.assert_array_equal(model.estimator_.lower_, lower)
    with pytest.raises(ValueError, match=r"must take y_tolerance.*Nearest.*Use a BVMRegressor"):
        JudgedModel(Nearest()).fit(X, Y, y_tolerance=np.ones(N))


@pytest.mark.parametrize(
    "estimator",
    [
        BVMRegressor.preset("table1", epochs=2, random_state=0),
        DeepEnsembleRegressor(epochs=2, random_state=0),
    ],
)
def test_predicts_as_the_estimator_by_itself(estimator: DistributionalRegressor) -> None:
    judged = JudgedModel(estimator, random_state=0).fit(X, Y)
    assert not hasattr(estimator, "parameters_")
    alone = estimator.fit(X, Y)  # type: ignore[attr-defined]
    dist = judged.predict_dist(X)
    np.testing.assert_allclose(dist.mean, alone.predict_dist(X).mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(dist.std, alone.predict_dist(X).std, rtol=1e-4, atol=1e-5)


def test_a_far_row_is_unusual() -> None:
    model = JudgedModel(Nearest(), random_state=0).fit(X, Y)
    dist, unusual = model.answer(np.array([[0.0, 0.0], [30.0, 0.0]]))
    assert unusual.tolist() == [False, True]
    assert dist.shape == (2,)
    assert model.is_unusual(X).mean() < 0.1
