"""The metrics as scikit-learn scorers, and the summary of a report."""

import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from accord import Laplace, Normal, metrics
from accord.metrics import scorers

RNG = np.random.default_rng(2)
X = RNG.normal(size=(90, 2))
Y = X @ [1.0, -2.0] + 0.5 * RNG.normal(size=90)


class LaplaceLine(RegressorMixin, BaseEstimator):
    """Any estimator that has predict_dist."""

    def __init__(self, scale=0.5):
        self.scale = scale

    def fit(self, X, y):
        self.line_ = LinearRegression().fit(X, y)
        return self

    def predict(self, X):
        return self.line_.predict(X)

    def predict_dist(self, X):
        return Laplace(self.predict(X), np.full(len(X), self.scale))


NAMED = {
    "crps": (scorers.crps_scorer, metrics.crps, -1),
    "ece": (scorers.ece_scorer, metrics.ece, -1),
    "ence": (scorers.ence_scorer, metrics.ence, -1),
    "gaussian_nll": (scorers.gaussian_nll_scorer, metrics.gaussian_nll, -1),
    "mae": (scorers.mae_scorer, metrics.mae, -1),
    "mce": (scorers.mce_scorer, metrics.mce, -1),
    "nll": (scorers.nll_scorer, metrics.nll, -1),
    "r2": (scorers.r2_scorer, metrics.r2, 1),
    "rmse": (scorers.rmse_scorer, metrics.rmse, -1),
}


@pytest.mark.parametrize("name", NAMED)
def test_scorer_is_the_signed_metric(name) -> None:
    scorer, metric, sign = NAMED[name]
    model = LaplaceLine().fit(X, Y)
    assert scorer(model, X, Y) == sign * metric(y_true=Y, dist=model.predict_dist(X))


def test_cross_validation_with_several_scorers() -> None:
    named = {name: scorer for name, (scorer, _, _) in NAMED.items()}
    found = cross_validate(LaplaceLine(), X, Y, cv=3, scoring=named)
    assert all(np.isfinite(found[f"test_{name}"]).all() for name in named)


def test_grid_search_prefers_the_honest_scale() -> None:
    grid = {"scale": [0.05, 0.4, 4.0]}
    search = GridSearchCV(LaplaceLine(), grid, scoring=scorers.nll_scorer, cv=3).fit(X, Y)
    assert search.best_params_ == {"scale": 0.4}


def test_estimators_with_return_std_are_gaussian() -> None:
    model = BayesianRidge().fit(X, Y)
    mean, std = model.predict(X, return_std=True)
    expected = -metrics.crps(y_true=Y, mean=mean, std=std)
    assert scorers.crps_scorer(model, X, Y) == expected
    assert cross_val_score(
        GaussianProcessRegressor(alpha=0.3, optimizer=None), X, Y, scoring=scorers.nll_scorer, cv=2
    ).shape == (2,)


def test_pipelines_are_followed_to_their_last_step() -> None:
    pipe = make_pipeline(StandardScaler(), LaplaceLine()).fit(X, Y)
    # A linear model does not mind the scaling of its features.
    direct = scorers.nll_scorer(LaplaceLine().fit(X, Y), X, Y)
    assert scorers.nll_scorer(pipe, X, Y) == pytest.approx(direct)


def test_scorers_with_options() -> None:
    model = LaplaceLine().fit(X, Y)
    dist = model.predict_dist(X)
    score = scorers.interval_scorer(0.8)(model, X, Y)
    assert score == -metrics.interval_score(y_true=Y, dist=dist, coverage=0.8)
    found = metrics.coverage(y_true=Y, dist=dist, coverage=0.8)
    assert scorers.coverage_scorer(0.8)(model, X, Y) == -abs(found - 0.8)
    agreed = metrics.agreement(y_true=Y, dist=dist, rule=0.3)
    assert scorers.agreement_scorer(0.3)(model, X, Y) == agreed


def test_scorers_survive_pickling() -> None:
    assert pickle.loads(pickle.dumps(scorers.nll_scorer)) == scorers.nll_scorer


def test_an_estimator_without_uncertainty_is_refused() -> None:
    with pytest.raises(TypeError, match="got LinearRegression"):
        scorers.nll_scorer(LinearRegression().fit(X, Y), X, Y)


def test_summary_holds_the_metrics() -> None:
    dist = Normal(Y + 0.1, np.ones(90))
    report = metrics.summary(y_true=Y, dist=dist, coverage=0.9)
    assert report["rows"] == 90
    for name in ("rmse", "mae", "r2", "nll", "gaussian_nll", "crps", "ece", "mce", "ence"):
        assert report[name] == getattr(metrics, name)(y_true=Y, dist=dist)
    for name in ("coverage", "interval_width", "interval_score"):
        expected = getattr(metrics, name)(y_true=Y, dist=dist, coverage=0.9)
        assert report[name] == pytest.approx(expected)
    assert report["sharpness"] == 1.0


def test_summary_of_few_rows_leaves_out_what_it_cannot_state() -> None:
    report = metrics.summary(y_true=[1.0], dist=Normal([1.5], [1.0]))
    missing = {name for name, value in report.items() if np.isnan(value)}
    assert missing == {"r2", "ece", "mce", "ence"}
    assert report["rmse"] == 0.5
