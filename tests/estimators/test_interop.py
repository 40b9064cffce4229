"""BVMRegressor as the model of other libraries' adapters."""

import numpy as np
import pandas as pd
import pytest

from accord import BVMRegressor, TableRegressor


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(400, 2))
    return x, x[:, 0] ** 2 + 0.1 * rng.normal(size=400)


def make_model():
    return BVMRegressor(epochs=10, tolerance=0.02, random_state=0)


def test_mapie_conformalises_it(data):
    mapie = pytest.importorskip("mapie.regression", reason="needs mapie")
    x, y = data
    conformal = mapie.SplitConformalRegressor(
        estimator=make_model().fit(x[:200], y[:200]), confidence_level=0.9, prefit=True
    ).conformalize(x[200:300], y[200:300])
    point, bounds = conformal.predict_interval(x[300:])
    assert point.shape == (100,)
    inside = (bounds[:, 0, 0] <= y[300:]) & (y[300:] <= bounds[:, 1, 0])
    assert inside.mean() > 0.8


def test_mapie_trains_it_fold_by_fold(data):
    mapie = pytest.importorskip("mapie.regression", reason="needs mapie")
    x, y = data
    conformal = mapie.CrossConformalRegressor(
        estimator=make_model(), confidence_level=0.9, cv=4, random_state=0
    ).fit_conformalize(x[:300], y[:300])
    _, bounds = conformal.predict_interval(x[300:])
    inside = (bounds[:, 0, 0] <= y[300:]) & (y[300:] <= bounds[:, 1, 0])
    assert inside.mean() > 0.8


def test_mapie_conformalises_a_table_model(data):
    mapie = pytest.importorskip("mapie.regression", reason="needs mapie")
    x, y = data
    frame = pd.DataFrame(x, columns=["a", "b"]).assign(kind=np.where(x[:, 1] > 0, "old", "new"))
    model = TableRegressor(engine=make_model(), random_state=0).fit(frame[:200], y[:200])
    conformal = mapie.SplitConformalRegressor(
        estimator=model, confidence_level=0.9, prefit=True
    ).conformalize(frame[200:300], y[200:300])
    point, bounds = conformal.predict_interval(frame[300:])
    np.testing.assert_allclose(point, model.predict(frame[300:]))
    inside = (bounds[:, 0, 0] <= y[300:]) & (y[300:] <= bounds[:, 1, 0])
    assert inside.mean() > 0.8


@pytest.mark.filterwarnings("ignore")  # the adapter's own
def test_skpro_wraps_it(data):
    adapters = pytest.importorskip("skpro.regression.adapters.sklearn", reason="needs skpro")
    x, y = data
    frame, target = pd.DataFrame(x, columns=["a", "b"]), pd.DataFrame({"y": y})
    wrapped = adapters.SklearnProbaReg(make_model()).fit(frame, target)
    mean, std = make_model().fit(x, y).predict(x, return_std=True)
    dist = wrapped.predict_proba(frame)
    np.testing.assert_allclose(dist.mean().to_numpy()[:, 0], mean)
    np.testing.assert_allclose(dist.var().to_numpy()[:, 0], std**2)


def test_a_polars_frame_is_answered_with_one() -> None:
    polars = pytest.importorskip("polars")
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    other = polars.from_pandas(frame)
    model = BVMRegressor(n_members=1, epochs=1, random_state=0).fit(other, frame["a"])
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert isinstance(model.predict_uncertainty(other), polars.DataFrame)
    np.testing.assert_array_equal(model.predict_interval(other), model.predict_interval(frame))
