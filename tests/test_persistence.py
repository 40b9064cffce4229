"""Model files: equal to the bit after loading, whole or absent, and nothing in them runs."""

import json
import os
import zipfile

import numpy as np
import pytest
import skops.io
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import accord
from accord import BVMRegressor
from accord.persistence import FORMAT, ModelFileError, read_metadata, save


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3))
    return x, x[:, 0] + 0.1 * rng.normal(size=120)


@pytest.fixture(scope="module")
def model(data):
    return BVMRegressor(epochs=3, n_members=2, random_state=0).fit(*data)


@pytest.fixture
def path(model, tmp_path):
    model.save(tmp_path / "model.skops")
    return tmp_path / "model.skops"


def rewritten(path, target, change):
    """A copy of a model file with some entries changed."""
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as copy:
        entries = change({name: source.read(name) for name in source.namelist()})
        for name, content in entries.items():
            copy.writestr(name, content)
    return target


def test_predictions_are_equal_to_the_bit(model, path, data):
    loaded = accord.load(path)
    x = np.vstack([data[0], 10 + data[0]])
    for method in ("predict", "predict_interval"):
        np.testing.assert_array_equal(getattr(loaded, method)(x), getattr(model, method)(x))
    assert loaded.get_params().keys() == model.get_params().keys()
    np.testing.assert_array_equal(loaded.tolerance_curve_.values, model.tolerance_curve_.values)


def test_a_whole_pipeline(data, tmp_path):
    pipeline = make_pipeline(StandardScaler(), BVMRegressor(epochs=2, tolerance=0.0)).fit(*data)
    save(pipeline, tmp_path / "pipeline.skops")
    loaded = accord.load(tmp_path / "pipeline.skops")
    np.testing.assert_array_equal(loaded.predict(data[0]), pipeline.predict(data[0]))


def test_metadata_without_loading(model, tmp_path):
    save(model, tmp_path / "m.skops", metadata={"rows": 120})
    assert read_metadata(tmp_path / "m.skops") == {"rows": 120}


def test_fitted_state_is_numpy(model):
    assert all(isinstance(block, np.ndarray) for block in model.parameters_)


def test_nothing_is_left_behind_when_saving_fails(tmp_path, model):
    class Foreign:
        pass

    model = make_pipeline(StandardScaler(), model)
    model.extra = Foreign()
    with pytest.raises(TypeError, match="Foreign"):
        save(model, tmp_path / "m.skops")
    assert os.listdir(tmp_path) == []


def test_a_malicious_file_is_refused_and_runs_nothing(tmp_path, path):
    marker = tmp_path / "owned"
    evil = {
        "__class__": "system",
        "__module__": "os",
        "__loader__": "FunctionNode",
        "content": {"module_path": "os", "function": "system"},
        "__id__": 1,
    }

    def poison(entries):
        schema = json.loads(entries["schema.json"])
        schema["content"] = evil
        entries["schema.json"] = json.dumps(schema).encode()
        import hashlib

        seal = json.loads(entries["accord.json"])
        seal["sha256"]["schema.json"] = hashlib.sha256(entries["schema.json"]).hexdigest()
        entries["accord.json"] = json.dumps(seal).encode()
        return entries

    bad = rewritten(path, tmp_path / "evil.skops", poison)
    with pytest.raises(ModelFileError, match=r"refused|not a model"):
        accord.load(bad)
    assert not marker.exists()


def test_unknown_types_are_named(tmp_path, path):
    class Unknown:
        def __init__(self):
            self.value = 1

    skops.io.dump(Unknown(), tmp_path / "foreign.skops")
    with pytest.raises(ModelFileError, match="not a model saved by accord"):
        accord.load(tmp_path / "foreign.skops")


def test_one_changed_byte_is_noticed(tmp_path, path):
    def flip(entries):
        name = next(n for n in entries if n.endswith(".npy"))
        content = bytearray(entries[name])
        content[-1] ^= 1
        entries[name] = bytes(content)
        return entries

    with pytest.raises(ModelFileError, match="altered or damaged"):
        accord.load(rewritten(path, tmp_path / "altered.skops", flip))


@pytest.mark.parametrize("keep", [0, 100, 0.5, 0.99])
def test_truncated_files(tmp_path, path, keep):
    content = path.read_bytes()
    size = int(keep * len(content)) if isinstance(keep, float) else keep
    short = tmp_path / "short.skops"
    short.write_bytes(content[:size])
    with pytest.raises(ModelFileError, match="damaged"):
        accord.load(short)


def test_a_newer_format_is_refused(tmp_path, path):
    def newer(entries):
        seal = json.loads(entries["accord.json"])
        seal["format"], seal["accord"] = FORMAT + 1, "9.0"
        entries["accord.json"] = json.dumps(seal).encode()
        return entries

    with pytest.raises(ModelFileError, match=r"written by accord 9\.0.*Upgrade"):
        accord.load(rewritten(path, tmp_path / "newer.skops", newer))


def test_absent_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="must exist"):
        accord.load(tmp_path / "nothing.skops")
