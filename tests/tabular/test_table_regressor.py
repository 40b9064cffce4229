"""One estimator from a table to an answer."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score

import accord
from accord import (
    BVMRegressor,
    MSEEnsembleRegressor,
    PBPRegressor,
    PortfolioRegressor,
    TableRegressor,
)
from accord._files import OptionError
from accord.agreement import Within
from accord.tables import TableError
from accord.workflows import FitResult


@pytest.fixture(scope="module")
def model(fitted: FitResult) -> TableRegressor:
    return fitted.model


def quick(**settings: object) -> TableRegressor:
    return TableRegressor(**{"effort": "quick", "random_state": 0, **settings})  # type: ignore[arg-type]


def test_columns_are_used_or_not_with_a_reason(model: TableRegressor) -> None:
    schema = model.schema_
    assert schema.varying == ["area", "age", "town", "sold", "<script>alert(1)</script>"]
    assert schema.names == [*schema.varying, "country"]
    assert set(schema.ignored) == {"house"}
    lines = str(schema).splitlines()
    assert lines[0] == "price: the target"
    assert "area: number" in lines
    assert "country: category, only watched ('DE' in every row)" in lines
    assert model.card_.n_columns == 5


def test_results_print_in_a_line(model: TableRegressor, houses: pd.DataFrame) -> None:
    found = model.held_out_
    assert re.fullmatch(
        r"<Assessment of [\d,]+ rows: [\d.]+ % in their 95 % interval, mean width [\d.,]+>",
        repr(found),
    )
    assert repr(found[np.empty(0, np.intp)]) == "<Assessment of 0 rows>"
    receipts = model.explain_uncertainty(houses.head(2))
    assert repr(receipts).startswith("<Receipts of 2 rows: text(0)")


def test_every_answer_has_a_row_for_each_row(model: TableRegressor, houses: pd.DataFrame) -> None:
    some = houses.iloc[10:15]
    mean, std = model.predict(some, return_std=True)
    assert mean.shape == std.shape == (5,)
    interval = model.predict_interval(some, coverage=0.9)
    assert list(interval.index) == list(some.index)
    assert (interval["lower"] < interval["upper"]).all()
    assert model.predict_quantiles(some, [0.1, 0.5]).columns.tolist() == ["0.1", "0.5"]
    assert model.predict_dist(some).shape == (5,)
    assert model.is_unusual(some).dtype == bool


def test_the_parts_of_the_uncertainty_add_up(model: TableRegressor, houses: pd.DataFrame) -> None:
    parts = model.predict_uncertainty(houses)
    assert parts.columns.tolist() == ["mean", "noise", "disagreement", "distance", "total"]
    squares = parts[["noise", "disagreement", "distance"]].pow(2).sum(axis=1)
    np.testing.assert_allclose(squares, parts["total"] ** 2, rtol=1e-6)


def test_columns_are_found_by_name(model: TableRegressor, houses: pd.DataFrame) -> None:
    mixed = houses[list(reversed(houses.columns))].assign(more=1)
    np.testing.assert_array_equal(model.predict(mixed), model.predict(houses))
    with pytest.raises(TableError, match="'area' is missing"):
        model.predict(houses.drop(columns="area"))


def test_a_far_row_is_unusual(model: TableRegressor, houses: pd.DataFrame) -> None:
    far = houses.iloc[:2].copy()
    far.loc[far.index[1], ["area", "age"]] = [5000.0, 900.0]
    assert model.is_unusual(far)[1]


def test_a_saved_model_predicts(
    model: TableRegressor, model_file: Path, houses: pd.DataFrame
) -> None:
    loaded = accord.load(model_file)
    assert isinstance(loaded, TableRegressor)
    np.testing.assert_array_equal(loaded.predict(houses), model.predict(houses))
    np.testing.assert_array_equal(loaded.is_unusual(houses), model.is_unusual(houses))
    assert loaded.card_ == model.card_
    assert loaded.notes_ == model.notes_
    assert not hasattr(loaded, "held_out_")


def test_target_values_serve_as_well_as_a_name(houses: pd.DataFrame, tmp_path: Path) -> None:
    houses = houses.iloc[:30]
    model = quick().fit(houses, "price")
    by_values = quick().fit(houses.drop(columns="price"), houses["price"])
    np.testing.assert_array_equal(by_values.predict(houses), model.predict(houses))
    houses.to_csv(tmp_path / "houses.csv", index=False)
    by_file = quick().fit(tmp_path / "houses.csv", "price")
    np.testing.assert_allclose(by_file.predict(houses), model.predict(houses), rtol=1e-6)


def test_an_array_has_no_names_to_find_columns_by(model: TableRegressor) -> None:
    with pytest.raises(ValueError, match=r"must come with the names .* array of shape \(2, 3\)\."):
        model.predict(np.zeros((2, 3)))


def test_arrays_and_cross_validation(houses: pd.DataFrame) -> None:
    X, y = houses.drop(columns="price").iloc[:60], houses["price"].iloc[:60]
    assert np.isfinite(cross_val_score(quick(), X, y, cv=2)).all()
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(40, 2))
    model = quick().fit(numbers, numbers[:, 0])
    assert model.predict_interval(numbers).shape == (40, 2)


def test_fitting_leaves_the_settings_alone(houses: pd.DataFrame) -> None:
    model = quick(ignore=["town"], bounds=(0, None))
    before = model.get_params()
    model.fit(houses.iloc[:30], "price")
    assert model.get_params() == before == clone(model).get_params()
    assert "town" in model.schema_.ignored


def test_bounds_are_detected_and_overruled(houses: pd.DataFrame) -> None:
    small = houses.iloc[:30]
    found = quick().fit(small, "price")
    assert found.bounds_ == (0.0, None)
    assert any("intervals stay at or above 0" in note for note in found.notes_)
    assert quick(bounds=None).fit(small, "price").bounds_ is None
    below = small.assign(price=small["price"] - 1000)
    assert quick().fit(below, "price").bounds_ is None
    for wrong in ((1, 0), 3, ("a", None)):
        with pytest.raises(ValueError, match="bound"):
            quick(bounds=wrong).fit(small, "price")


def test_bounds_that_targets_contradict_are_refused(houses: pd.DataFrame) -> None:
    high = float(houses["price"].median())
    message = r"bounds must contain all targets, got \(0.0, .*lie outside, the first in row \d+: "
    with pytest.raises(ValueError, match=message):
        quick(bounds=(0, high)).fit(houses, "price")
    X, y = np.zeros((20, 1)), np.arange(20.0)
    with pytest.raises(ValueError, match="9 of 20 lie outside, the first at index 11: 11"):
        PortfolioRegressor(bounds=(None, 10.0)).fit(X, y)


def test_columns_without_names_are_called_by_their_numbers() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 3)))
    by_number = quick(time_budget=1e-3).fit(frame, 2)
    assert (by_number.schema_.target, by_number.schema_.names) == ("2", ["0", "1"])
    assert by_number.predict(frame[[0, 1]]).shape == (40,)


def test_a_target_is_called_as_the_frame_calls_it() -> None:
    values = np.random.default_rng(0).normal(size=(40, 2))
    levels = pd.DataFrame(values, columns=pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")]))
    assert quick(time_budget=1e-3).fit(levels, ("a", "y")).schema_.target == "('a', 'y')"
    numbered = pd.DataFrame(values)
    assert quick(time_budget=1e-3).fit(numbered, numbered.columns[1]).schema_.target == "1"


def test_targets_of_no_known_type_are_named(houses: pd.DataFrame) -> None:
    with pytest.raises(TableError, match=r"'y' of the DataFrame holds .* \(complex128\)"):
        quick().fit(houses[["area"]], houses["price"].to_numpy() + 1j)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (csr_array(np.ones((2, 3))), "got a sparse csr_array. Call its method toarray"),
        ({"area": [1.0]}, "Make a frame of them"),
        ([{"area": 1.0}], "Make a frame of them"),
    ],
    ids=["sparse", "mapping", "records"],
)
def test_rows_in_a_form_that_is_none(model: TableRegressor, rows: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        model.predict(rows)


def test_one_row_of_a_frame_is_no_frame(model: TableRegressor, houses: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match=re.escape("Take one row of a frame as frame.iloc[[0]]")):
        model.predict(houses.iloc[0])
    assert model.predict(houses.iloc[[0]]).shape == (1,)


def test_levels_are_shares(model: TableRegressor, houses: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match=r"got 95.0 at index 1. Write 0.95 for the 95 % quantile"):
        model.predict_quantiles(houses.head(1), [0.05, 95])


def test_a_word_among_numbers_is_a_gap_that_warns(
    model: TableRegressor, houses: pd.DataFrame
) -> None:
    new = houses.head(5).astype({"area": object})
    new.loc[2, "area"] = None
    expected = model.predict(new)
    new.loc[2, "area"] = "rotary"
    with pytest.warns(UserWarning, match="'area' is no number \\('rotary' in row 3\\)"):
        np.testing.assert_allclose(model.predict(new), expected, rtol=1e-6)
    with pytest.warns(UserWarning, match="'rotary'"):
        assert model.is_unusual(new)[2]
    with pytest.raises(TableError, match="'area' must hold numbers, got 'rotary' in row 1"):
        model.predict(new.iloc[2:3])


def test_infinite_cells_are_gaps_in_training_and_afterwards(
    model: TableRegressor, houses: pd.DataFrame
) -> None:
    new = houses.head(3).copy()
    new.loc[1, "area"] = np.nan
    expected = model.predict_interval(new)
    new.loc[1, "area"] = np.inf
    np.testing.assert_allclose(model.predict_interval(new), expected, rtol=1e-6)
    assert model.is_unusual(new)[1]


def test_an_unfitted_model_says_so(houses: pd.DataFrame) -> None:
    for ask in (TableRegressor.predict, TableRegressor.predict_dist, TableRegressor.is_unusual):
        with pytest.raises(NotFittedError):
            ask(TableRegressor(), houses)


def test_targets_may_be_one_column(houses: pd.DataFrame) -> None:
    X, y = houses[["area", "town"]], houses[["price"]]
    one, other = (quick(time_budget=1e-3).fit(X, own) for own in (y, y["price"]))
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


def test_targets_in_another_order_than_the_rows_are_refused(houses: pd.DataFrame) -> None:
    """Paired by place, as arrays are, they would be other rows' targets without a word."""
    X, y = houses.drop(columns="price"), houses["price"]
    with pytest.raises(ValueError, match=r"target must have the rows of X in their order"):
        TableRegressor(effort="quick").fit(X, y.sample(frac=1, random_state=0))
    with pytest.raises(ValueError, match=r"weight must have the rows of X in their order"):
        TableRegressor(effort="quick").fit(X, y, sample_weight=y.sort_values())


def test_groups_are_held_out_together() -> None:
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(12), 10)
    own = rng.normal(size=12)[person]  # what only rows of the same person reveal
    frame = pd.DataFrame({"person": [f"p{p}" for p in person], "x": own, "y": 5 * own})
    frame["y"] = rng.normal(size=12)[person] + rng.normal(0, 0.05, 120)
    alone = quick().fit(frame[["x", "y"]], "y").held_out_.figures()["rmse"]
    together = quick(group="person").fit(frame, "y")
    assert "person" in together.schema_.ignored
    assert together.held_out_.figures()["rmse"] > alone
    assert together.held_out_.separate_rows < 60 < len(together.held_out_)
    with pytest.raises(TableError, match="at least 2 groups"):
        quick(group="person").fit(frame.assign(person="one"), "y")


@pytest.mark.parametrize("as_file", [False, True], ids=["frame", "file"])
def test_rows_without_a_group_are_pointed_out(as_file: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "who": np.repeat(list("abcdef"), 10)})
    frame["y"] = frame["x"] + 0.1 * rng.normal(size=60)
    frame.loc[[3, 40], "who"] = None
    frame.to_csv(tmp_path / "table.csv", index=False)
    rows = tmp_path / "table.csv" if as_file else frame
    model = quick(group="who", time_budget=1e-3).fit(rows, "y")
    assert "2 rows without a value of 'who': each is held out alone." in model.notes_
    assert model.held_out_.alike[3] != model.held_out_.alike[40]


def test_time_orders_what_is_held_out() -> None:
    rng = np.random.default_rng(0)
    t = np.arange(100.0)
    walk = np.cumsum(rng.normal(size=100))  # neighbours in time tell almost all
    frame = pd.DataFrame({"t": rng.permutation(t), "x": rng.normal(size=100)})
    frame["y"] = walk[frame["t"].to_numpy(int)]
    mixed = quick().fit(frame, "y").held_out_.figures()["rmse"]
    in_blocks = quick(time="t").fit(frame, "y").held_out_.figures()["rmse"]
    assert in_blocks > mixed
    with pytest.raises(OptionError, match="time column 'when' is not in"):
        quick(time="when").fit(frame, "y")
    with pytest.raises(TableError, match="must hold numbers or dates"):
        quick(time="word").fit(frame.assign(word=["a", "b"] * 50), "y")


def test_training_rows_are_recognised(model: TableRegressor, model_file: Path) -> None:
    loaded = accord.load(model_file)
    data = model.training_
    assert loaded.seen_in_training(data.X, data.y) == 1
    assert loaded.seen_in_training(data.X, data.y + 1) == 0
    assert loaded.seen_in_training(data.X.iloc[:0], data.y[:0]) == 0


def test_weights_say_which_rows_count() -> None:
    """Two laws at the same x: the weights decide between them, given by name or as values."""
    rng = np.random.default_rng(0)
    x, high = rng.uniform(0, 1, 240), np.arange(240) % 2 == 1
    y = 10 * x + np.where(high, 20.0, 0.0) + rng.normal(0, 1, 240)
    weight = np.where(high, 1.0, 0.01)
    frame = pd.DataFrame({"x": x, "w": weight, "y": y})
    plain = quick().fit(frame[["x", "y"]], "y")
    named = quick().fit(frame, "y", sample_weight="w")
    given = quick().fit(frame[["x"]], y, sample_weight=weight)
    new = pd.DataFrame({"x": [0.2, 0.5, 0.8]})
    law = 20 + 10 * new["x"].to_numpy()
    np.testing.assert_allclose(named.predict(new), law, atol=2.0)
    assert np.all(plain.predict(new) < law - 6)
    np.testing.assert_allclose(named.predict(new), given.predict(new), rtol=1e-6)
    assert [column.name for column in named.schema_.columns] == ["x"]


def test_weights_reach_another_engine_or_are_refused() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (60, 1))
    y = np.where(np.arange(60) % 2, 20.0, 0.0) + x[:, 0]
    weight = np.where(y >= 20, 1.0, 1e-3)
    model = TableRegressor(engine=MSEEnsembleRegressor(epochs=60, random_state=0))
    assert np.all(model.fit(x, y, sample_weight=weight).predict(x) > 15)
    with pytest.raises(ValueError, match=r"must take sample_weight in its fit, got a PBPRegressor"):
        TableRegressor(engine=PBPRegressor()).fit(x, y, sample_weight=weight)


def test_censored_rows_pull_predictions_beyond_their_bound() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 200)
    life = 10 + 10 * x + rng.normal(0, 1, 200)
    frame = pd.DataFrame({"x": x, "price": np.minimum(life, 16)})
    bound = np.where(life > 16, 16.0, np.nan)
    naive = quick().fit(frame, "price")
    aware = quick().fit(frame, "price", y_lower=bound)
    late = pd.DataFrame({"x": [0.95]})
    upper = [model.predict_quantiles(late, 0.9).iloc[0, 0] for model in (naive, aware)]
    assert upper[1] > upper[0]
    assert len(aware.held_out_) < len(naive.held_out_)
    assert any("censored" in limit for limit in aware.card_.limits)


def test_settings_that_cannot_be(houses: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="effort"):
        quick(effort="huge").fit(houses, "price")
    with pytest.raises(ValueError, match=r"coverage .* got 95\. Write 0.95 for 95 %"):
        quick(coverage=95).fit(houses, "price")
    with pytest.raises(TypeError, match="random_state must be a whole number or None, got a Gen"):
        quick(random_state=np.random.default_rng(0)).fit(houses, "price")
    with pytest.raises(TypeError, match="tolerance must be a number, got None"):
        quick(tolerance=None).fit(houses, "price")
    with pytest.raises(ValueError, match="tolerance must be finite, got inf"):
        quick(tolerance=float("inf")).fit(houses, "price")
    with pytest.raises(ValueError, match="such as '1%', or 'choose', got 'local'"):
        quick(tolerance="local").fit(houses, "price")
    with pytest.raises(TypeError, match="ignore must be a list"):
        quick(ignore="town").fit(houses, "price")
    with pytest.raises(ValueError, match="one value per row"):
        quick().fit(houses, [1.0, 2.0])
    with pytest.raises(TypeError, match=r"y must be the name of the target column, .* got None"):
        quick().fit(houses, None)
    with pytest.raises(TypeError, match=r"time_budget must be a number, got '5m'. Give seconds"):
        quick(time_budget="5m").fit(houses, "price")


def test_copies_groups_and_times_are_pointed_out(houses: pd.DataFrame) -> None:
    some = houses.iloc[:30].assign(agent=[f"a{i % 6}" for i in range(30)])
    frame = pd.concat([some, some.iloc[:4]], ignore_index=True)
    model = quick().fit(frame, "price")
    notes = " ".join(model.notes_)
    assert "4 rows repeat another one in every column: copies were held out together." in notes
    folds = [set(part.rows.tolist()) for part in model.engine_.judged_]
    assert all((i in fold) == (30 + i in fold) for fold in folds for i in range(4))
    assert (
        "'sold' looks like a time. If new rows will be later than these, name it as time" in notes
    )
    assert {(s.column, s.role) for s in model.suspects_} >= {("sold", "time")}
    named = quick(time="sold").fit(frame, "price")
    assert "looks like a time" not in " ".join(named.notes_)
    assert "copies were held out together" not in " ".join(named.notes_)


def test_a_column_can_be_insisted_on(houses: pd.DataFrame) -> None:
    frame = houses.iloc[:30].assign(id=np.arange(30.0))
    assert "id" in quick().fit(frame, "price").schema_.ignored
    assert "id" in quick(use=["id"]).fit(frame, "price").schema_.names
    with pytest.raises(TypeError, match="use must be a list"):
        quick(use="id").fit(frame, "price")


def test_a_typing_error_is_named_by_row_and_value(houses: pd.DataFrame) -> None:
    frame = houses.iloc[:40].copy()
    frame.loc[frame.index[7], "price"] = 999_999_999.0
    notes = " ".join(quick().fit(frame, "price").notes_)
    assert "999,999,999 in row 8" in notes
    assert "(row 7" not in notes


def test_one_model_in_eight_threads(fitted: FitResult, houses: pd.DataFrame) -> None:
    """Preprocessing, prediction and flags at once: the same answers as one after the other."""
    model, expected = fitted.model, fitted.model.predict_interval(houses)
    unusual = model.is_unusual(houses)
    with ThreadPoolExecutor(8) as pool:
        intervals = [pool.submit(model.predict_interval, houses) for _ in range(8)]
        flags = [pool.submit(model.is_unusual, houses) for _ in range(8)]
        for interval in intervals:
            pd.testing.assert_frame_equal(interval.result(timeout=120), expected, rtol=1e-12)
        for flag in flags:
            assert (flag.result(timeout=120) == unusual).all()


def test_another_engine_in_place_of_the_portfolio(houses: pd.DataFrame, tmp_path: Path) -> None:
    engine = BVMRegressor.preset("table1", epochs=1, hidden=(4,), rule=Within(5.0))
    model = TableRegressor(engine=engine, random_state=3).fit(houses, "price")
    assert not hasattr(engine, "parameters_")
    assert model.engine_.estimator_.random_state == 3
    assert model.bounds_ is None
    assert "Within(5.0)" in model.card_.settings["engine"]
    model.save(tmp_path / "m.accord")
    loaded = accord.load(tmp_path / "m.accord")
    np.testing.assert_array_equal(loaded.predict(houses), model.predict(houses))
    np.testing.assert_array_equal(loaded.is_unusual(houses), model.is_unusual(houses))
    assert loaded.engine.rule == Within(5.0)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"tolerance": "1%"}, "tolerance must be left out.*Give it to the engine"),
        ({"bounds": (0, None)}, "bounds must be left out.*Leave it out"),
        ({"time_budget": 5.0}, "time_budget must be left out"),
    ],
)
def test_settings_of_the_portfolio_are_refused_for_another_engine(
    settings: dict[str, object], words: str, houses: pd.DataFrame
) -> None:
    with pytest.raises(ValueError, match=words):
        quick(engine=BVMRegressor(), **settings).fit(houses, "price")
    with pytest.raises(TypeError, match="predicts distributions, got LinearRegression"):
        quick(engine=LinearRegression()).fit(houses, "price")


def test_receipts_know_all_rows_where_no_model_looks_at_gaps(
    model: TableRegressor, houses: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A feature that says where values are missing is constant if it does not matter."""
    proximity = model.engine_.proximity_
    labels = model.encoder_.feature_labels()
    gaps = [place for place, label in enumerate(labels) if label.endswith(" is missing")]
    assert gaps
    references = proximity.references()
    references[:, gaps] = references[0, gaps]
    monkeypatch.setattr(type(proximity), "references", lambda self: references)
    far = houses.head(3).assign(area=1e4, age=500.0)
    assert all("no training row" in words for words in model.explain_uncertainty(far).unlike)


def test_receipts_say_nothing_of_training_rows_by_a_number_that_was_left_out(
    model: TableRegressor, houses: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A feature that does not matter is constant in the rows among which neighbours are sought."""
    proximity = model.engine_.proximity_
    references = proximity.references()
    feature = model.encoder_.measured()["area"][0]
    references[:, feature] = np.median(references[:, feature])
    monkeypatch.setattr(type(proximity), "references", lambda self: references)
    far = houses.head(3).assign(area=1e4)
    for words in model.explain_uncertainty(far).unlike:
        assert "area differs from the nearest training rows" in words


def test_an_unknown_category_is_as_wide_as_it_is_wrong_and_flagged() -> None:
    """Also where another column matters far more than the category does."""
    rng = np.random.default_rng(4)

    def rows(n: int) -> pd.DataFrame:
        frame = pd.DataFrame({"area": rng.uniform(40, 200, n), "town": rng.choice(list("ABC"), n)})
        effect = frame["town"].map({"A": 0.0, "B": 20.0, "C": -5.0})
        return frame.assign(price=2 * frame["area"] + effect + rng.normal(0, 5, n))

    model = quick().fit(rows(200), "price")
    new = rows(2_000)
    asked = new.drop(columns="price").assign(town="Z")
    dist, interval = model.predict_dist(asked), model.predict_interval(asked, coverage=0.95)
    inside = (interval["lower"] <= new["price"]) & (new["price"] <= interval["upper"])
    assert inside.mean() > 0.9
    assert np.mean(dist.std) > 0.8 * np.sqrt(np.mean((dist.mean - new["price"]) ** 2))
    assert model.is_unusual(asked).all()
    assert model.is_unusual(new.drop(columns="price")).mean() < 0.15


@pytest.mark.parametrize("how", [{"ignore": ["price"]}, {"group": "price"}])
def test_the_target_has_no_other_role(how: dict[str, Any], houses: pd.DataFrame) -> None:
    with pytest.raises(OptionError, match="target must not be ignored or name groups, got 'price'"):
        quick(**how).fit(houses, "price")
