"""Weights, tolerances, bounds and groups on their way through pipelines and searches."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from accord import BVMRegressor, PortfolioRegressor, TableRegressor
from accord.metrics import scorers

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = X[:, 0] + 0.2 * RNG.normal(size=N)
WEIGHT = RNG.integers(0, 3, N).astype(float)
TOLERANCE = RNG.uniform(0.05, 0.5, N)
LOWER = np.where(RNG.random(N) < 0.2, Y - 0.3, np.nan)
GROUPS = np.arange(N) % 6


@pytest.fixture(autouse=True)
def _routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def bvm() -> BVMRegressor:
    """Small and quick; whether its own ``score`` is weighted is stated, too."""
    model = BVMRegressor(tolerance=0.1, n_members=2, epochs=4, random_state=0)
    return model.set_score_request(sample_weight=False)


def test_a_search_over_a_pipeline_passes_weights_and_tolerances_on() -> None:
    """The best model is the one that a direct fit with the same weights gives, and no other."""
    model = bvm().set_fit_request(sample_weight=True, y_tolerance=True)
    grid = {"bvmregressor__epochs": [4]}
    scorer = scorers.nll_scorer.set_score_request(sample_weight=True)
    search = GridSearchCV(make_pipeline(PolynomialFeatures(2), model), grid, cv=2, scoring=scorer)
    search.fit(X, Y, sample_weight=WEIGHT, y_tolerance=TOLERANCE)
    wider = PolynomialFeatures(2).fit_transform(X)
    direct = bvm().fit(wider, Y, sample_weight=WEIGHT, y_tolerance=TOLERANCE)
    without = bvm().fit(wider, Y, y_tolerance=TOLERANCE)
    np.testing.assert_allclose(search.predict(X), direct.predict(wider))
    assert np.abs(search.predict(X) - without.predict(wider)).max() > 1e-3


def test_folds_get_their_own_rows_of_the_metadata() -> None:
    """Rows of weight 0 in every fold might as well not be there."""
    weight = np.where(np.arange(N) < N // 2, 1.0, 0.0)
    model = bvm().set_fit_request(sample_weight=True)
    folds = [(np.arange(N), np.arange(10)), (np.arange(10, N), np.arange(10))]
    given = {"cv": folds, "return_estimator": True, "params": {"sample_weight": weight}}
    found = cross_validate(model, X, Y, **given)["estimator"]
    for fitted, (train, _) in zip(found, folds, strict=True):
        direct = bvm().fit(X[train], Y[train], sample_weight=weight[train])
        np.testing.assert_allclose(fitted.predict(X), direct.predict(X))


def test_scorers_are_weighted_when_asked() -> None:
    scorer = scorers.nll_scorer.set_score_request(sample_weight=True)
    model = bvm().set_fit_request(sample_weight=False)
    folds = [(np.arange(40), np.arange(40, N))]
    given = {"cv": folds, "scoring": scorer, "return_estimator": True}
    found = cross_validate(model, X, Y, **given, params={"sample_weight": WEIGHT})
    test = folds[0][1]
    weighted = scorer(found["estimator"][0], X[test], Y[test], sample_weight=WEIGHT[test])
    plain = scorer(found["estimator"][0], X[test], Y[test])
    assert found["test_score"][0] == pytest.approx(weighted)
    assert weighted != pytest.approx(plain)


def test_what_nobody_asked_for_is_refused() -> None:
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
        cross_validate(bvm(), X, Y, cv=2, params={"sample_weight": WEIGHT}, error_score="raise")


def test_groups_and_censored_targets_reach_a_portfolio() -> None:
    model = PortfolioRegressor(effort="quick", time_budget=1.0, random_state=0)
    asked = model.set_fit_request(groups=True, y_lower=True, y_upper=True, sample_weight=True)
    pipeline = make_pipeline(PolynomialFeatures(2), asked)
    upper = np.where(np.isnan(LOWER), np.nan, np.inf)
    metadata = {"groups": GROUPS, "y_lower": LOWER, "y_upper": upper}
    pipeline.fit(X, Y, **metadata, sample_weight=WEIGHT + 1)
    held_out = [set(GROUPS[part.rows]) for part in pipeline[-1].judged_]
    assert sum(map(len, held_out)) == len(set().union(*held_out))  # no group in two parts


def test_a_table_model_in_a_search() -> None:
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(kind=np.where(GROUPS > 2, "old", "new"))
    model = TableRegressor(engine=bvm(), random_state=0).set_fit_request(y_tolerance=True)
    search = GridSearchCV(model, {"coverage": [0.9]}, cv=2).fit(frame, Y, y_tolerance=TOLERANCE)
    direct = clone(model).set_params(coverage=0.9).fit(frame, Y, y_tolerance=TOLERANCE)
    np.testing.assert_allclose(search.predict(frame), direct.predict(frame))
    assert np.isfinite(search.best_score_)
