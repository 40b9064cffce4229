"""Whole models: an exported file answers as Python does, or is not written at all."""

import json
import sys
from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pandas as pd
import pytest
from export_running import answers, difference

import accord
from accord.export import NotExportableError
from accord.workflows import FitResult

# Of the target's spread plus a row's deviation: what is promised, and what models without far tails
# reach.
PROMISED, REACHED = 1e-5, 1e-8


def noisy(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    return x, 10 + 3 * np.sin(2 * x[:, 0]) + x[:, 1] + 0.5 * rng.normal(size=n)


@pytest.fixture(scope="module")
def skewed() -> accord.PortfolioRegressor:
    """A positive target with a long tail, whose logarithm is in the blend."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (150, 2))
    y = np.exp(1 + 2 * x[:, 0] + 0.4 * rng.normal(size=150))
    return accord.PortfolioRegressor(effort="quick", bounds=(0, None), random_state=0).fit(x, y)


@pytest.mark.parametrize(
    "model",
    [
        accord.BVMRegressor.preset("table1", epochs=2, random_state=0),
        accord.BVMRegressor(tolerance=0.5, epochs=3, activation="gelu", random_state=0),
        accord.BVMRegressor(tolerance="learn", epochs=3, variance_head="exp", random_state=0),
        accord.BVMRegressor(
            tolerance="10%", family="student-t", df=4, activation="tanh", epochs=3, random_state=0
        ),
        accord.BVMRegressor(tolerance="local", epochs=2, random_state=0),
        accord.DeepEnsembleRegressor(hidden=(20, 20), epochs=3, random_state=0),
    ],
    ids=["paper", "smoothed", "learnt", "student-t", "local", "deep ensemble"],
)
@pytest.mark.filterwarnings("ignore:training ended")
def test_ensembles_answer_as_in_python(model, tmp_path) -> None:
    x, y = noisy(80)
    model.fit(x, y)
    new = np.concatenate([x[:20], 6 * x[:20]])
    largest, _ = difference(model, new, tmp_path / "model.onnx", y.std())
    assert largest < REACHED


def test_the_default_on_a_table_of_every_kind(fitted: FitResult, houses, tmp_path) -> None:
    """Gaps, categories, dates; unknown categories and absurd, infinite and missing cells."""
    new = houses.head(60).copy()
    new.loc[:3, "area"] = [np.inf, -np.inf, 1e9, np.nan]
    new.loc[4:6, "town"] = ["Oslo", None, "Rome"]
    new.loc[7:8, "sold"] = [None, "2096-02-29"]
    model = fitted.model
    largest, found = difference(model, new, tmp_path / "m.onnx", houses["price"].std())
    assert largest < PROMISED
    assert {"y_noise", "y_disagreement", "y_distance"} <= set(found)
    assert found["unusual"].tolist() == model.is_unusual(new).tolist()
    assert found["unusual"][:3].all()
    growth = model.engine_.growth_(model.features(new)) > model.engine_.growth_.threshold_
    assert ((found["unusual_score"] > 1) == growth).all()


def test_columns_that_are_watched(tmp_path) -> None:
    """Numbers, truth values and categories with one value, and a number among gaps."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=80), "kind": rng.choice(["a", "b"], 80)})
    frame = frame.assign(country="US", machine=7.0, zero=0.0, heated=1.0, part=7.0)
    frame.loc[::3, "part"] = np.nan
    y = 50 + 3 * frame["x"] + rng.normal(size=80)
    model = accord.TableRegressor(effort="quick", time_budget=1e-3, random_state=0)
    model.fit(frame.assign(y=y), "y")
    new = frame.iloc[[1] * 13].reset_index(drop=True)
    new.loc[1:3, "country"] = ["CA", None, "US"]
    new.loc[3:7, "machine"] = [9.0, np.nan, np.inf, 7 * (1 + 1e-12), -1e300]
    new.loc[8, "zero"], new.loc[9, "heated"], new.loc[10, "part"] = 1e-12, 0.0, 9.0
    new.loc[11, ["country", "kind"]], new.loc[12, "part"] = ["CA", "c"], np.nan
    largest, found = difference(model, new, tmp_path / "m.onnx", y.std())
    assert largest < PROMISED
    assert found["unusual"].tolist() == model.is_unusual(new).tolist()
    same = [0, 6]
    assert found["unusual"].ravel()[[1, 2, 3, 4, 5, 7, 8, 9, 10, 11]].all()
    assert not found["unusual"].ravel()[same].any()


def test_the_metadata_says_what_goes_in(fitted: FitResult, tmp_path) -> None:
    path = tmp_path / "m.onnx"
    fitted.model.export(path, levels=[0.1, 0.5])
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    known = {entry.key: entry.value for entry in model.metadata_props}
    assert known["accord_version"] == accord.__version__
    assert known["target"] == "price"
    assert json.loads(known["levels"]) == [0.1, 0.5]
    assert json.loads(known["opset"])["ai.onnx"] == model.opset_import[0].version
    inputs = json.loads(known["inputs"])
    numbers = [column["name"] for column in inputs["numbers"]]
    assert {"area", "age", "sold"} <= set(numbers)
    dates = inputs["numbers"][numbers.index("sold")]
    assert dates["unit"] == "seconds since 1970-01-01"
    town, country = inputs["categories"]
    assert country["codes"] == {"DE": 0}
    assert town["codes"] == {"<b>Kiel</b>": 0, "Bonn": 1, "Ulm": 2}
    assert (town["missing"], town["unknown"]) == (-1, 3)


def test_inputs_can_be_made_from_the_metadata_alone(fitted: FitResult, houses, tmp_path) -> None:
    """What a program without accord does, by hand."""
    fitted.model.export(tmp_path / "m.onnx")
    known = {e.key: e.value for e in onnx.load(tmp_path / "m.onnx").metadata_props}
    inputs = json.loads(known["inputs"])
    rows = houses.head(5).assign(sold=pd.to_datetime(houses["sold"]).astype("int64") / 1e9)
    numbers = rows[[column["name"] for column in inputs["numbers"]]].to_numpy(float)
    codes = [[column["codes"][v] for v in rows[column["name"]]] for column in inputs["categories"]]
    made = {"numbers": numbers, "categories": np.array(codes).T}
    found = answers(tmp_path / "m.onnx", made)
    expected = fitted.model.predict_interval(houses.head(5))
    np.testing.assert_allclose(found["y_quantiles"][:, [0, 2]], expected, rtol=1e-6)


def test_a_skewed_target_within_bounds(skewed: accord.PortfolioRegressor, tmp_path) -> None:
    assert any(member.scale.transform == "log" for member in skewed.members_)
    x = np.random.default_rng(1).uniform(-1.5, 1.5, (50, 2))
    spread = float(np.std(np.asarray(skewed.held_out_.dist.mean)))
    largest, found = difference(skewed, x, tmp_path / "m.onnx", spread)
    assert largest < PROMISED
    assert found["y_quantiles"].min() >= 0


def test_targets_that_are_errors(tmp_path) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (120, 2))
    y = x @ [1.0, 2.0] + 0.1 * rng.normal(size=120) + 30 * (rng.random(120) < 0.05)
    model = accord.PortfolioRegressor(effort="quick", random_state=0).fit(x, y)
    assert any(member.stray.share for member in model.members_)
    assert difference(model, 2 * x, tmp_path / "m.onnx", 1.0)[0] < PROMISED


def test_far_rows_differ_by_little_of_their_own_deviation(tmp_path) -> None:
    """However many spreads of the target that is."""
    rng = np.random.default_rng(604)
    x, far = rng.uniform(-2, 2, (600, 4)), rng.uniform(-10, 10, (40, 4))
    y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.2 * rng.normal(size=600)
    model = accord.PortfolioRegressor(effort="quick", random_state=3).fit(x, y)
    assert any("corrected" in member.name for member in model.members_)
    assert np.median(model.predict_dist(far).std) > 1.5 * y.std()
    assert difference(model, far, tmp_path / "m.onnx", 0.0)[0] < PROMISED


def test_one_row_is_answered_as_among_a_thousand(skewed, tmp_path) -> None:
    x = np.random.default_rng(2).uniform(-1, 1, (1_000, 2))
    skewed.export(tmp_path / "m.onnx")
    together = answers(tmp_path / "m.onnx", {"X": x})
    for row in (0, 7, 999):
        alone = answers(tmp_path / "m.onnx", {"X": x[row : row + 1]})
        for name, values in alone.items():
            np.testing.assert_allclose(values[0], together[name][row], rtol=1e-9, atol=1e-9)


def test_ranks_narrow_usual_rows_more_than_far_ones(skewed, tmp_path) -> None:
    """Where held-out rows need little, levels differ from row to row, in the file as in Python."""
    exact = copy(skewed)
    widening = skewed.widening_
    exact.widening_ = replace(widening, levels=0.2 * widening.levels)
    x = np.random.default_rng(3).uniform(-1, 1, (20, 2)) * np.repeat([1.0, 6.0], 10)[:, None]
    exact.export(tmp_path / "m.onnx", levels=[0.05, 0.5, 0.95])
    found = answers(tmp_path / "m.onnx", {"X": x})["y_quantiles"]
    expected = np.asarray(exact.predict_dist(x).quantile([0.05, 0.5, 0.95]))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    width = np.ptp(expected, axis=1) / np.ptp(np.asarray(skewed.predict_interval(x, 0.9)), axis=1)
    assert width[10:].mean() > 1.5 * width[:10].mean()


def test_levels_beyond_all_ranks(skewed, tmp_path) -> None:
    """A level that no held-out row vouches for is taken as in Python, at an end if need be."""
    skewed.export(tmp_path / "m.onnx", levels=[1e-6, 1 - 1e-6])
    x = np.zeros((1, 2))
    found = answers(tmp_path / "m.onnx", {"X": x})["y_quantiles"]
    expected = np.asarray(skewed.predict_dist(x).quantile([1e-6, 1 - 1e-6]))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_what_cannot_be_exported_is_named_and_nothing_written(tmp_path) -> None:
    x, y = noisy(40)
    dropout = accord.MCDropoutRegressor(epochs=1, random_state=0).fit(x, y)
    two = accord.BVMRegressor(tolerance=0.5, epochs=1).fit(x, np.column_stack([y, y]))
    ruled = accord.BVMRegressor(rule="within -1 +2", epochs=1).fit(x, np.column_stack([y, y]))
    cases = (
        (dropout, ["MCDropoutRegressor"]),
        (two, ["2 targets"]),
        (ruled, ["2 targets", "smoothed by a rule"]),
    )
    for model, words in cases:
        with pytest.raises(NotExportableError) as caught:
            model.export(tmp_path / "m.onnx")
        assert all(word in str(caught.value) for word in words)
        assert "Nothing was written" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_the_parts_of_a_blend_are_all_named(skewed, tmp_path, monkeypatch) -> None:
    class Oracle:
        """A kind of model that no graph is known for."""

    first = skewed.members_[0]
    strange = [replace(first, name=f"oracle {number}", model=Oracle()) for number in (0, 1)]
    monkeypatch.setattr(skewed, "members_", strange)
    with pytest.raises(NotExportableError, match=r"oracle 0.*Oracle.*oracle 1.*Oracle"):
        skewed.export(tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_levels_are_probabilities(skewed, tmp_path) -> None:
    with pytest.raises(ValueError, match="levels"):
        skewed.export(tmp_path / "m.onnx", levels=[50])
    with pytest.raises(ValueError, match="levels must hold at least one probability, got none"):
        skewed.export(tmp_path / "m.onnx", levels=[])
    assert list(tmp_path.iterdir()) == []


def test_without_onnx_the_remedy_is_named(skewed, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"accord\[export\]"):
        skewed.export(tmp_path / "m.onnx")


def test_a_real_set(data_folder: Path, tmp_path) -> None:
    """Rows of Yacht that the model has not seen, at the levels of the report."""
    frame = accord.datasets.load("yacht").frame.sample(frac=1, random_state=0)
    target = str(frame.columns[-1])
    model = accord.TableRegressor(effort="quick", random_state=0).fit(frame.head(150), target)
    largest, _ = difference(model, frame.tail(60), tmp_path / "m.onnx", frame[target].std())
    assert largest < PROMISED


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "boston",
        "concrete",
        "diabetes",
        "energy",
        "google",
        "kin8nm",
        "naval",
        "power",
        "protein",
        "wine",
        "yacht",
    ],
)
def test_every_set(name: str, data_folder: Path, tmp_path) -> None:
    frame = accord.datasets.load(name).frame.sample(frac=1, random_state=0).head(1_500)
    target, n = str(frame.columns[-1]), len(frame) * 9 // 10
    model = accord.TableRegressor(effort="standard", random_state=0).fit(frame.head(n), target)
    largest, _ = difference(model, frame.iloc[n:], tmp_path / "m.onnx", frame[target].std())
    assert largest < PROMISED
