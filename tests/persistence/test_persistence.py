"""Model files: equal to the bit after loading, whole or absent, and independent of module names."""

import json
import os
import sys
import types
import zipfile
from inspect import isabstract
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import accord
from accord import BVMRegressor, PredictiveModel
from accord.agreement import (
    Asymmetric,
    AtLeast,
    AtMost,
    ErrorInside,
    Exact,
    Inside,
    Rule,
    Share,
    Within,
    WithinRelative,
)
from accord.persistence import ModelFileError, read_metadata, read_version, save
from accord.persistence import encoding as registry

Data = tuple[NDArray[np.float64], NDArray[np.float64]]


@pytest.fixture(scope="module")
def data() -> Data:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3))
    return x, x[:, 0] + 0.1 * rng.normal(size=120)


@pytest.fixture(scope="module")
def model(data: Data) -> BVMRegressor:
    return BVMRegressor(epochs=3, n_members=2, random_state=0).fit(*data)


def test_predictions_are_equal_to_the_bit(model: BVMRegressor, data: Data, tmp_path: Path) -> None:
    model.save(tmp_path / "m.accord")
    loaded = accord.load(tmp_path / "m.accord")
    x = np.vstack([data[0], 10 + data[0]])
    for method in ("predict", "predict_interval"):
        np.testing.assert_array_equal(getattr(loaded, method)(x), getattr(model, method)(x))
    assert loaded.get_params().keys() == model.get_params().keys()
    assert loaded.hidden == model.hidden
    np.testing.assert_array_equal(loaded.tolerance_curve_.values, model.tolerance_curve_.values)


@pytest.mark.parametrize("random_state", [np.random.RandomState(3), np.random.default_rng(3)])
def test_random_generators_go_on_where_they_were(random_state: Any, tmp_path: Path) -> None:
    random_state.normal()  # a half-used pair of normal draws is part of the state
    save(BayesianRidge(), tmp_path / "m.accord", metadata={"random": random_state})
    again = read_metadata_with_arrays(tmp_path / "m.accord")["random"]
    np.testing.assert_array_equal(again.normal(size=5), random_state.normal(size=5))


def read_metadata_with_arrays(path: Path) -> Any:
    """The metadata by the way of a model: that may hold arrays."""
    from accord.persistence.archive import _opened, _read_array
    from accord.persistence.encoding import Decoder

    with _opened(path) as (archive, manifest):
        return Decoder(lambda n: _read_array(archive, n)).decode(manifest["metadata"])


def test_a_whole_pipeline(data: Data, tmp_path: Path) -> None:
    pipeline = make_pipeline(StandardScaler(), BVMRegressor(epochs=2, tolerance=0.0)).fit(*data)
    save(pipeline, tmp_path / "pipeline.accord")
    loaded = accord.load(tmp_path / "pipeline.accord", Pipeline)
    np.testing.assert_array_equal(loaded.predict(data[0]), pipeline.predict(data[0]))


def test_values_of_every_kind_come_back_as_they_were(tmp_path: Path) -> None:
    shared = [1.0]
    scaler = StandardScaler()
    scaler.things = {
        "floats": (0.1, float("inf"), -0.0, 1e300),
        "counts": [1, True, None, 2**70],
        "numpy": (np.float32(0.1), np.bool_(True), np.int64(-3)),
        "texts": np.array(["a", None, "ü\x00"], dtype=object),
        "dates": np.array(["2020-01-01", "NaT"], dtype="datetime64[us]"),
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "empty": np.zeros((0, 3)),
        "one": np.array(2.5),
        "keys": {1: "a", (2, 3): "b"},
        "a key": {"is": "mine"},
        "dtype": np.dtype("float32"),
        "twice": (shared, shared),
    }
    save(scaler, tmp_path / "m.accord")
    things = accord.load(tmp_path / "m.accord", StandardScaler).things
    for name, value in scaler.things.items():
        assert type(things[name]) is type(value)
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(things[name], value)
            assert things[name].dtype == value.dtype
            assert things[name].flags.f_contiguous == value.flags.f_contiguous
        else:
            assert things[name] == value
    assert [type(item) for item in things["numpy"]] == [np.float32, np.bool_, np.int64]
    assert np.signbit(things["floats"][2])


def test_an_object_that_occurs_twice_is_one_object(tmp_path: Path) -> None:
    scaler, array = StandardScaler(), np.arange(3.0)
    scaler.parts = [array, array, scaler]
    save(scaler, tmp_path / "m.accord")
    loaded = accord.load(tmp_path / "m.accord", StandardScaler)
    assert loaded.parts[0] is loaded.parts[1]
    assert loaded.parts[2] is loaded


def test_a_file_outlives_the_renaming_of_a_module(
    model: BVMRegressor, data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.save(tmp_path / "m.accord")
    with zipfile.ZipFile(tmp_path / "m.accord") as archive:
        manifest = archive.read("manifest.json").decode()
    assert "accord.estimators" not in manifest
    assert json.loads(manifest)["model"]["type"] == "BVMRegressor"

    class Renamed(BVMRegressor):
        pass

    elsewhere = types.ModuleType("accord.elsewhere")
    elsewhere.Renamed = Renamed  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "accord.elsewhere", elsewhere)
    monkeypatch.setitem(registry.TYPES, "BVMRegressor", "accord.elsewhere:Renamed")
    registry.class_of.cache_clear()
    try:
        loaded = accord.load(tmp_path / "m.accord")
    finally:
        registry.class_of.cache_clear()
    assert type(loaded) is Renamed
    np.testing.assert_array_equal(loaded.predict(data[0]), model.predict(data[0]))


@pytest.mark.parametrize("name", registry.TYPES)
def test_every_type_on_the_list_is_where_the_list_says(name: str) -> None:
    cls = registry.class_of(name)
    assert isinstance(cls, type)
    assert registry.name_of(cls) == name


def test_every_public_estimator_is_on_the_list() -> None:
    public = [getattr(accord, name) for name in accord.__all__]
    for package in (accord.estimators, accord.calibration):
        public += [getattr(package, name) for name in package.__all__]
    estimators = {
        item
        for item in public
        if isinstance(item, type) and issubclass(item, BaseEstimator) and not isabstract(item)
    }
    assert BVMRegressor in estimators
    assert {registry.name_of(cls) for cls in estimators} <= set(registry.TYPES)


def test_metadata_without_loading(model: BVMRegressor, tmp_path: Path) -> None:
    metadata = {"rows": 120, "loss": float("nan"), "range": [0.5, 2.5]}
    save(model, tmp_path / "m.accord", metadata=metadata)
    found = read_metadata(tmp_path / "m.accord")
    assert found["rows"] == 120
    assert found["range"] == [0.5, 2.5]
    assert np.isnan(found["loss"])
    assert read_version(tmp_path / "m.accord") == accord.__version__


def test_the_fitted_state_is_numpy(model: BVMRegressor) -> None:
    assert all(isinstance(block, np.ndarray) for block in model.parameters_)


@pytest.mark.parametrize("extra", [object(), open, np.array([object()]), b"bytes", {1, 2}])
def test_what_cannot_be_loaded_is_not_saved(tmp_path: Path, extra: Any) -> None:
    pipeline = make_pipeline(StandardScaler())
    pipeline.extra = extra
    with pytest.raises(TypeError, match=r"types that accord knows, got |holds no code, got "):
        save(pipeline, tmp_path / "m.accord")
    assert os.listdir(tmp_path) == []


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "m.accord"
    path.write_text("old")
    path.chmod(0o600)
    save(StandardScaler(), path)
    assert isinstance(accord.load(path, StandardScaler), StandardScaler)
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["m.accord"]


def test_a_model_may_say_what_has_to_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models whose input is no matrix check themselves instead of answering a trial row."""
    save(StandardScaler(), tmp_path / "m.accord")

    def check(self: StandardScaler) -> None:
        raise ValueError("widening must be at least 1, got -5.")

    monkeypatch.setattr(StandardScaler, "_check_loaded", check, raising=False)
    with pytest.raises(ModelFileError, match="widening must be at least 1, got -5"):
        accord.load(tmp_path / "m.accord")


def test_a_file_holds_what_it_is_said_to_hold(model: BVMRegressor, tmp_path: Path) -> None:
    model.save(tmp_path / "m.accord")
    assert isinstance(accord.load(tmp_path / "m.accord", BVMRegressor), BVMRegressor)
    assert isinstance(accord.load(tmp_path / "m.accord", object), BVMRegressor)
    with pytest.raises(ModelFileError, match="must hold a TableRegressor, got a BVMRegressor"):
        accord.load(tmp_path / "m.accord", accord.TableRegressor)
    save(StandardScaler(), tmp_path / "scaler.accord")
    with pytest.raises(ModelFileError, match=r"got a StandardScaler\. Pass kind=StandardScaler"):
        accord.load(tmp_path / "scaler.accord")


def test_every_regressor_on_the_list_is_a_predictive_model() -> None:
    ours = {n: registry.class_of(n) for n, at in registry.TYPES.items() if at.startswith("accord")}
    regressors = [kind for name, kind in ours.items() if name.endswith("Regressor")]
    assert len(regressors) >= 11
    assert all(issubclass(kind, PredictiveModel) for kind in [*regressors, accord.Recalibrated])
    assert not issubclass(accord.TrustScore, PredictiveModel)


def test_an_absent_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="must exist"):
        accord.load(tmp_path / "nothing.accord")
    with pytest.raises(FileNotFoundError, match="must exist"):
        accord.load(tmp_path)


def test_a_model_too_large_to_describe_is_refused_when_it_is_saved(tmp_path: Path) -> None:
    scaler = StandardScaler()
    scaler.numbers = list(range(1_100_000))
    with pytest.raises(ValueError, match=r"cannot be saved: .* at most"):
        save(scaler, tmp_path / "m.accord")
    assert issubclass(ModelFileError, ValueError)


RULES = [
    Exact(),
    Within(0.5),
    WithinRelative(0.05),
    Asymmetric(below=0.1, above=np.inf),
    ErrorInside(-np.inf, 0.2),
    AtLeast(),
    AtMost(),
    Inside(-1.0, 2.0),
    Within(np.array([0.1, 0.2])),
    ~(Within(0.3) | ErrorInside(0.9, 1.1)) & AtLeast(),
    Share(Within(0.5), 0.95),
]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_rule_comes_back_as_it_was(rule: Rule, tmp_path: Path) -> None:
    save(BVMRegressor(rule=rule), tmp_path / "m.accord")
    loaded = accord.load(tmp_path / "m.accord").rule
    assert loaded == rule
    assert repr(loaded) == repr(rule)
    y_hat, y = np.array([1.2, -0.4]), np.array([1.0, 1.0])
    np.testing.assert_array_equal(loaded(y_hat, y), rule(y_hat, y))


def test_every_rule_but_callables_is_on_the_list() -> None:
    assert {name for name in _final_names(Rule) if name not in registry.TYPES} == {"Custom"}


def _final_names(rule: type[Rule]) -> set[str]:
    below = [_final_names(kind) for kind in rule.__subclasses__()]
    return set[str]().union(*below) or {rule.__name__}


@pytest.mark.parametrize("wrap", [lambda f: f, Rule.from_callable, lambda f: Within(1.0) & f])
def test_a_callable_rule_is_refused_with_what_to_do(wrap: Any, data: Data, tmp_path: Path) -> None:
    rule = wrap(lambda y_hat, y: abs(y_hat - y) < 0.5)
    settings: dict[str, Any] = {"epochs": 1, "n_members": 2, "random_state": 0}
    model = BVMRegressor(rule=rule, predictive="model", **settings).fit(*data)
    with pytest.raises(TypeError, match=r"holds no code.*<lambda>.*in words.*set_params"):
        model.save(tmp_path / "m.accord")
    assert not (tmp_path / "m.accord").exists()
    predicted = model.predict(data[0])
    model.set_params(rule=None).save(tmp_path / "m.accord")
    np.testing.assert_array_equal(accord.load(tmp_path / "m.accord").predict(data[0]), predicted)
