"""The meta-estimator: every method behind one interface, in scikit-learn, saved and loaded."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from accord import load
from accord.calibration import Conformal, LikelihoodRatio, Recalibrated, VarianceScaling
from accord.distributions import (
    Laplace,
    Mixture,
    Normal,
    Smoothed,
    StudentT,
    concatenated,
    predictive_of,
)
from accord.estimators import BVMRegressor, DeepEnsembleRegressor
from accord.splits import OutlierSplit

METHODS = ("variance", "isotonic", "layers", "conformal")
QUICK = DeepEnsembleRegressor(n_members=2, epochs=3, random_state=0)


def data(n, seed=0):
    """Skewed noise that grows with x: a Bayesian ridge regression is wrong about it."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, X[:, 0] + (0.2 + np.abs(X[:, 1])) * (rng.exponential(size=n) - 1)


@parametrize_with_checks(
    [Recalibrated(BayesianRidge(), method=method, cv=2) for method in ("variance", "conformal")]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("cv", [5, 0.3, "prefit"])
def test_intervals_of_new_rows_cover(method, cv):
    """500 rows, of which at least 150 calibrate: 3 standard errors are .08."""
    X, y = data(500)
    model = BayesianRidge().fit(*data(500, seed=1)) if cv == "prefit" else BayesianRidge()
    recalibrated = Recalibrated(model, method=method, cv=cv, random_state=0).fit(X, y)
    X_new, y_new = data(2000, seed=2)
    low, high = recalibrated.predict_interval(X_new, coverage=0.9).T
    assert np.mean((y_new >= low) & (y_new <= high)) == pytest.approx(0.9, abs=0.08)


def test_every_answer_has_its_shape():
    X, y = data(100)
    model = Recalibrated(QUICK, method="isotonic", cv=2).fit(X, y)
    mean, std = model.predict(X[:7], return_std=True)
    assert mean.shape == std.shape == (7,)
    assert model.predict_quantiles(X[:7], [0.1, 0.5, 0.9]).shape == (7, 3)
    parts = model.predict_uncertainty(X[:7])
    np.testing.assert_allclose(
        parts["noise"] ** 2 + parts["disagreement"] ** 2, parts["total"] ** 2
    )
    assert np.isfinite(model.log_score(X, y))
    assert np.all(parts["disagreement"] > 0)


def test_held_out_rows_are_not_trained_on():
    """A model that repeats its training targets would seem perfect on them."""

    class Parrot(BayesianRidge):
        def fit(self, X, y):
            self.seen_ = dict(zip(X[:, 0], y, strict=True))
            self.n_features_in_ = X.shape[1]
            return self

        def predict(self, X, return_std=False):
            mean = np.array([self.seen_.get(x, 0.0) for x in X[:, 0]])
            return mean, np.ones(len(X))

    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(200, 1)), 5 * rng.normal(size=200)
    for cv in (4, 0.5):
        model = Recalibrated(Parrot(), cv=cv, random_state=0).fit(X, y)
        assert model.calibrator_.factor_[0] == pytest.approx(5, rel=0.2)
    assert len(Recalibrated(Parrot(), cv=4).fit(X, y).model_.seen_) == 200
    assert len(Recalibrated(Parrot(), cv=0.5).fit(X, y).model_.seen_) == 100


def test_prefit_model_stays_as_it_is():
    X, y = data(100)
    model = BayesianRidge().fit(X, y)
    before = model.coef_.copy()
    recalibrated = Recalibrated(model, cv="prefit").fit(*data(50, seed=1))
    assert recalibrated.model_ is model
    np.testing.assert_array_equal(model.coef_, before)


def test_folds_equal_a_calibration_by_hand():
    X, y = data(60)
    splitter = OutlierSplit(n_splits=2, random_state=0)
    recalibrated = Recalibrated(BayesianRidge(), cv=splitter).fit(X, y)
    errors = []
    for train, test in splitter.split(X):
        mean, std = BayesianRidge().fit(X[train], y[train]).predict(X[test], return_std=True)
        errors.append((y[test] - mean) / std)
    expected = np.sqrt(np.mean(np.concatenate(errors) ** 2))
    assert recalibrated.calibrator_.factor_[0] == pytest.approx(expected)


def test_same_seed_same_numbers():
    X, y = data(80)
    one, two = (
        Recalibrated(QUICK, method="layers", cv=2, random_state=1).fit(X, y) for _ in range(2)
    )
    np.testing.assert_array_equal(one.predict_interval(X), two.predict_interval(X))


def test_a_method_may_be_given_as_an_object():
    X, y = data(100)
    method = Conformal(symmetric=False)
    model = Recalibrated(BayesianRidge(), method=method, cv=0.5, random_state=0).fit(X, y)
    assert model.calibrator_.symmetric is False
    assert not hasattr(method, "scores_")
    assert clone(model).method.symmetric is False


def test_several_outputs_and_data_frames():
    X, y = data(80)
    frame = pd.DataFrame(X, columns=["a", "b"], index=range(100, 180))
    targets = pd.DataFrame({"u": y, "v": 10 * y}, index=frame.index)
    model = Recalibrated(QUICK, method="conformal", cv=2).fit(frame, targets)
    interval = model.predict_interval(frame[:5], coverage=0.8)
    assert list(interval.index) == list(range(100, 105))
    assert list(interval.columns) == [(t, side) for t in "uv" for side in ("lower", "upper")]
    assert model.predict(frame).shape == (80, 2)


def test_pipelines_that_need_names_and_types():
    X, y = data(120)
    frame = pd.DataFrame({"x": X[:, 0], "kind": np.where(X[:, 1] > 0, "p", "q")})
    encode = ColumnTransformer([("x", StandardScaler(), ["x"]), ("k", OneHotEncoder(), ["kind"])])
    model = Recalibrated(make_pipeline(encode, QUICK), cv=2, random_state=0).fit(frame, y)
    assert model.predict_interval(frame[:3]).shape == (3, 2)
    bare = Recalibrated(make_pipeline(BayesianRidge()), cv=2).fit(X, y)
    assert bare.predict(X).shape == (120,)


def test_gaussian_process_can_be_recalibrated():
    X, y = data(60)
    process = GaussianProcessRegressor(RBF(1.0) + WhiteKernel(0.1), optimizer=None)
    assert np.isfinite(Recalibrated(process, cv=3).fit(X, y).log_score(X, y))


def test_works_in_search_and_cross_validation():
    X, y = data(80)
    model = Recalibrated(BayesianRidge(), cv=2)
    search = GridSearchCV(model, {"method": ["variance", "isotonic"]}, cv=2).fit(X, y)
    assert search.best_params_["method"] in ("variance", "isotonic")
    assert cross_val_score(model, X, y, cv=2).shape == (2,)
    assert model.set_params(model__alpha_1=1e-3).model.alpha_1 == 1e-3


@pytest.mark.parametrize("method", [*METHODS, "weighted-conformal"])
def test_saved_and_loaded_to_the_bit(method, tmp_path):
    X, y = data(60)
    extra = {"X_new": X + 0.1} if method == "weighted-conformal" else {}
    model = Recalibrated(QUICK, method=method, cv=2, random_state=0).fit(X, y, **extra)
    model.save(tmp_path / "model.accord")
    again = load(tmp_path / "model.accord")
    np.testing.assert_array_equal(
        again.predict_quantiles(X, [0.2, 0.9]), model.predict_quantiles(X, [0.2, 0.9])
    )
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.filterwarnings("ignore:.*conformal bounds are infinite")
def test_shifted_rows_are_covered_with_weights():
    """Noise grows with x; new rows lie where it is large. 400 rows calibrate: ± .08."""
    rng = np.random.default_rng(4)
    X, X_new = rng.normal(size=(800, 1)), rng.normal(1.0, 0.8, size=(2000, 1))
    y, y_new = (np.exp(rows[:, 0]) * rng.normal(size=len(rows)) for rows in (X, X_new))

    def coverage(method, **options):
        model = Recalibrated(BayesianRidge(), method=method, cv=0.5, random_state=0)
        model.set_params(**{k: v for k, v in options.items() if k != "X_new"})
        model.fit(X, y, **{k: v for k, v in options.items() if k == "X_new"})
        low, high = model.predict_interval(X_new, coverage=0.8).T
        return np.mean((y_new >= low) & (y_new <= high))

    def known(rows):
        x = np.asarray(rows)[:, 0]
        return np.exp(0.5 * x**2 - 0.5 * ((x - 1) / 0.8) ** 2) / 0.8

    assert coverage("conformal") < 0.7
    assert coverage("weighted-conformal", X_new=X_new[:300]) == pytest.approx(0.8, abs=0.08)
    assert coverage("weighted-conformal", ratio=known) == pytest.approx(0.8, abs=0.08)
    estimated = LikelihoodRatio()
    assert coverage("weighted-conformal", ratio=estimated, X_new=X_new) > 0.72
    assert not hasattr(estimated, "classifier_")


def test_folds_may_disagree_about_the_tolerance():
    parts = [
        Mixture(Normal(np.zeros((2, 3)), 1.0)),
        Mixture(Smoothed(Normal(np.ones((2, 4)), 1.0), 0.5)),
    ]
    whole = concatenated(parts)
    np.testing.assert_allclose(whole.mean, [0, 0, 0, 1, 1, 1, 1])
    np.testing.assert_allclose(whole.std, np.concatenate([part.std for part in parts]))
    np.testing.assert_allclose(whole.log_prob(0.3)[3:], parts[1].log_prob(0.3))


@pytest.mark.parametrize(
    "parts",
    [
        [Normal([0.0], 1.0), Laplace([0.0], 1.0)],
        [Mixture(Normal(np.zeros((2, 3)), 1.0)), Mixture(Normal(np.zeros((3, 3)), 1.0))],
        [StudentT(4.0, [0.0], 1.0), StudentT(9.0, [0.0], 1.0)],
    ],
)
def test_folds_of_different_kinds_are_refused(parts):
    with pytest.raises(ValueError, match="of one kind"):
        concatenated(parts)


@pytest.mark.slow
def test_the_bvm_ensemble_is_recalibrated():
    X, y = data(150)
    model = Recalibrated(BVMRegressor(random_state=0), method="conformal", cv=3).fit(X, y)
    X_new, y_new = data(1000, seed=5)
    low, high = model.predict_interval(X_new, coverage=0.9).T
    assert np.mean((y_new >= low) & (y_new <= high)) == pytest.approx(0.9, abs=0.06)


X30, Y30 = data(30)


@pytest.mark.parametrize(
    ("options", "fit_options", "error", "message"),
    [
        ({"method": "platt"}, {}, ValueError, "method must be one of 'variance'"),
        ({"cv": 1}, {}, ValueError, "cv must be at least 2, got 1"),
        ({"cv": 1.5}, {}, ValueError, "cv must lie strictly between 0 and 1"),
        ({"cv": "loo"}, {}, ValueError, "cv must be one of 'prefit', got 'loo'"),
        ({"cv": None}, {}, TypeError, "cv must be a number of folds"),
        ({"method": "weighted-conformal"}, {}, ValueError, "X_new=None"),
        ({}, {"X_new": X30}, ValueError, "belong to method 'weighted-conformal'"),
        ({"ratio": np.exp}, {}, ValueError, "belong to method 'weighted-conformal'"),
        ({"model": LinearRegression()}, {}, TypeError, "must offer predict_dist"),
    ],
)
def test_bad_options(options, fit_options, error, message):
    with pytest.raises(error, match=message):
        Recalibrated(**{"model": BayesianRidge(), **options}).fit(X30, Y30, **fit_options)


def test_unfitted_models_are_told():
    with pytest.raises(Exception, match="not fitted"):
        Recalibrated(BayesianRidge(), cv="prefit").fit(X30, Y30)
    with pytest.raises(Exception, match="not fitted"):
        Recalibrated(BayesianRidge()).predict(X30)
    with pytest.raises(Exception, match="not fitted"):
        VarianceScaling()(Normal([0.0], 1.0))


def test_predictions_of_any_model():
    mean, std = BayesianRidge().fit(X30, Y30).predict(X30, return_std=True)
    dist = predictive_of(BayesianRidge().fit(X30, Y30), X30)
    np.testing.assert_array_equal(dist.mean, mean)
    np.testing.assert_array_equal(dist.std, std)
