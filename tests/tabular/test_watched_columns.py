"""Columns that are the same in every training row: what is said of rows with another value."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import accord
from accord import BVMRegressor, TableRegressor, guard
from accord.tables import TableError
from accord.workflows import fit_table, predict_table, table_model

CONSTANTS: dict[str, Any] = {"country": "US", "machine": 7, "heated": True, "offset": 0.0}
OTHERS = [("country", "CA"), ("machine", 9), ("heated", False), ("offset", 1e-12)]


@pytest.fixture(scope="module")
def varied() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x, kind = rng.normal(size=150), rng.choice(["a", "b"], 150)
    y = 50 + 2 * x + (kind == "b") + 0.3 * rng.normal(size=150)
    return pd.DataFrame({"x": x, "kind": kind, "y": y})


@pytest.fixture(scope="module")
def frame(varied: pd.DataFrame) -> pd.DataFrame:
    return varied.assign(**CONSTANTS)


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame) -> TableRegressor:
    return TableRegressor(effort="quick", random_state=0).fit(frame, "y")


def changed(frame: pd.DataFrame, column: str, value: Any) -> pd.DataFrame:
    """Two rows, the second with another value in a column."""
    rows = frame.iloc[[0, 0]].astype({column: object}).reset_index(drop=True)
    rows.loc[1, column] = value
    return rows.infer_objects()


@pytest.mark.parametrize(
    ("column", "value"), [*OTHERS, ("machine", 1e300), ("machine", None), ("country", None)]
)
def test_another_value_is_unusual_and_as_uncertain_as_the_target_is_spread(
    model: TableRegressor, frame: pd.DataFrame, column: str, value: Any
) -> None:
    rows = changed(frame, column, value)
    assert model.is_unusual(rows).tolist() == [False, True]
    usual, other = model.predict_uncertainty(rows).to_dict("records")
    assert other["mean"] == pytest.approx(usual["mean"], abs=0.1)
    added = np.sqrt(other["distance"] ** 2 - usual["distance"] ** 2)
    # intervals of unusual rows are as wide as other unusual rows needed them, which adds some
    assert 0.9 < added / frame["y"].std() < 1.5
    receipts = model.explain_uncertainty(rows)
    words = "missing: no training row lacks it" if value is None else "no training row has it"
    assert receipts.unlike[0] == ""
    assert receipts.unlike[1].startswith(column)
    assert words in receipts.unlike[1]
    by_column = dict(zip(receipts.names, receipts.distance_by_column[1], strict=True))
    assert sum(by_column.values()) == pytest.approx(receipts.parts.distance[1] ** 2)
    assert by_column[column] > 0.9 * receipts.parts.distance[1] ** 2


def test_several_other_values_are_no_more_uncertain_than_one(
    model: TableRegressor, frame: pd.DataFrame
) -> None:
    one = changed(frame, "machine", 9)
    both = changed(one, "country", "CA").assign(machine=9)
    distance = [model.predict_uncertainty(rows)["distance"][1] for rows in (one, both)]
    assert distance[0] == pytest.approx(distance[1])
    receipts = model.explain_uncertainty(both)
    by_column = dict(zip(receipts.names, receipts.distance_by_column[1], strict=True))
    assert by_column["machine"] == pytest.approx(by_column["country"])


def test_a_value_written_with_other_digits_is_the_same(
    model: TableRegressor, frame: pd.DataFrame
) -> None:
    rows = frame.head(20).astype({"machine": float})
    pd.testing.assert_frame_equal(
        model.predict_uncertainty(rows.assign(machine=7 * (1 + 1e-12))),
        model.predict_uncertainty(rows),
    )


def test_usual_rows_are_answered_as_without_such_columns(
    model: TableRegressor, varied: pd.DataFrame, frame: pd.DataFrame
) -> None:
    without = TableRegressor(effort="quick", random_state=0).fit(varied, "y")
    pd.testing.assert_frame_equal(
        model.predict_uncertainty(frame), without.predict_uncertainty(varied), check_exact=True
    )
    pd.testing.assert_frame_equal(
        model.predict_interval(frame), without.predict_interval(varied), check_exact=True
    )
    assert model.card_.held_out == without.card_.held_out
    assert model.card_.n_columns == without.card_.n_columns == 2
    assert (model.is_unusual(frame) == without.is_unusual(varied)).all()


def test_many_of_them_decide_nothing(varied: pd.DataFrame, model: TableRegressor) -> None:
    """Where features are many, fewer recipes are tried; these are no reason."""
    many = pd.DataFrame({f"c{place}": np.full(150, place) for place in range(300)})
    wide = TableRegressor(effort="quick", random_state=0).fit(varied.join(many), "y")
    assert set(wide.leaderboard_["name"]) == set(model.leaderboard_["name"])
    pd.testing.assert_frame_equal(
        wide.predict_uncertainty(varied.join(many)),
        model.predict_uncertainty(varied.assign(**CONSTANTS)),
        check_exact=True,
    )


def test_screening_neither_counts_nor_drops_them() -> None:
    rng = np.random.default_rng(1)
    noise = {f"noise{place}": rng.normal(size=240) for place in range(3)}
    frame = pd.DataFrame({"x": rng.normal(size=240), **noise, **CONSTANTS})
    frame["y"] = 3 * frame["x"] + 0.3 * rng.normal(size=240)
    model = TableRegressor(effort="quick", random_state=0).fit(frame, "y")
    dropped = {model.encoder_.feature_names()[place] for place in model.engine_.left_out_}
    assert dropped
    assert dropped <= set(noise)
    assert any(f"{len(dropped)} of 4 feature" in note for note in model.notes_)
    assert model.is_unusual(changed(frame, "machine", 9)).tolist() == [False, True]


def test_codes_that_one_row_has_alone_say_how_little_another_code_means() -> None:
    """Where columns are hundreds of rare codes, many rows are the only one with a code."""
    rng = np.random.default_rng(3)
    codes = pd.DataFrame(rng.random((120, 40)) < 0.01).astype(int).add_prefix("code")
    frame = codes.assign(x=rng.normal(size=120))
    frame["y"] = 3 * frame["x"] + 0.3 * rng.normal(size=120)
    model = TableRegressor(effort="quick", random_state=0).fit(frame, "y")
    constant = next(name for name in codes if not codes[name].any())
    usual, other = model.predict_uncertainty(changed(frame, constant, 1))["distance"]
    assert np.sqrt(other**2 - usual**2) < 0.2 * frame["y"].std()


def test_a_note_says_what_can_be_done(model: TableRegressor, varied: pd.DataFrame) -> None:
    said = [note for note in model.notes_ if "the same in every row" in note]
    assert said == [
        "Columns 'country', 'machine', 'heated' and 'offset' are the same in every row: nothing "
        "can be learnt of other values, and rows with one will be less certain. If they do not "
        "matter, list them in ignore (--ignore)."
    ]
    one = TableRegressor(effort="quick", time_budget=1e-3, random_state=0, ignore=["b"])
    one.fit(varied.assign(a=1, b=2), "y")
    assert any("Column 'a' is the same in every row" in note for note in one.notes_)
    assert one.schema_.names == ["x", "kind", "a"]


def test_nothing_else_is_nothing_to_predict_from(varied: pd.DataFrame) -> None:
    with pytest.raises(TableError, match=r"no column is left to predict from \('a': constant"):
        quickest().fit(varied[["y"]].assign(a=1, b="x"), "y")


def quickest(**settings: Any) -> TableRegressor:
    return TableRegressor(effort="quick", time_budget=1e-3, random_state=0, **settings)


def test_dates_go_on_by_themselves(varied: pd.DataFrame) -> None:
    model = quickest().fit(varied.assign(day="2024-05-01"), "y")
    assert "day" in model.schema_.ignored
    later = varied.head(1).assign(day="2031-01-01")
    np.testing.assert_array_equal(model.is_unusual(later), model.is_unusual(varied.head(1)))


def test_one_number_among_gaps_is_watched_too(varied: pd.DataFrame) -> None:
    part = np.where(np.arange(150) % 3 == 0, np.nan, 7.0)
    model = quickest().fit(varied.assign(part=part), "y")
    assert model.schema_.varying == ["x", "kind", "part"]
    rows = varied.iloc[[1, 1, 1]].assign(part=[7.0, 9.0, np.nan])
    assert model.is_unusual(rows).tolist()[:2] == [False, True]
    distance = model.predict_uncertainty(rows)["distance"].to_numpy()
    assert distance[1] > distance[0] + 0.8 * varied["y"].std()
    assert distance[2] < 0.5 * varied["y"].std()
    assert "part 9: no training row has it" in model.explain_uncertainty(rows).unlike[1]


def test_a_file_keeps_what_is_watched(
    model: TableRegressor, frame: pd.DataFrame, tmp_path: Path
) -> None:
    model.save(tmp_path / "m.accord")
    loaded = accord.load(tmp_path / "m.accord")
    for column, value in OTHERS:
        rows = changed(frame, column, value)
        assert loaded.is_unusual(rows).tolist() == [False, True]
        pd.testing.assert_frame_equal(
            loaded.predict_uncertainty(rows), model.predict_uncertainty(rows), check_exact=True
        )


def test_other_engines_are_as_they_were(varied: pd.DataFrame, frame: pd.DataFrame) -> None:
    engine = BVMRegressor.preset("table1", epochs=1, random_state=0)
    settings: Any = {"engine": engine, "random_state": 0}
    found = TableRegressor(**settings).fit(frame, "y")
    without = TableRegressor(**settings).fit(varied, "y")
    assert found.encoder_.feature_names() == without.encoder_.feature_names()
    for column, value in OTHERS:
        rows = changed(frame, column, value)
        np.testing.assert_array_equal(found.predict(rows), without.predict(rows))
        np.testing.assert_array_equal(found.is_unusual(rows), without.is_unusual(rows))


@pytest.mark.parametrize("fitted", [False, True])
def test_a_guard_flags_and_widens(fitted: bool) -> None:
    """Also around a pipeline that refuses rows without a value, or with an unknown category."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"x": rng.normal(size=120), "machine": 7.0})
    y = 3 * frame["x"].to_numpy() + 0.3 * rng.normal(size=120)
    regression = LinearRegression().fit(frame, y) if fitted else LinearRegression()
    found = guard(regression, fitted=fitted, random_state=0).fit(frame, y)
    rows = changed(frame, "machine", 7.5)
    assert found.is_unusual(rows).tolist() == [False, True]
    usual, other = found.predict_uncertainty(rows)["distance"]
    assert np.sqrt(other**2 - usual**2) == pytest.approx(y.std(), rel=0.1)
    assert "machine 7.5: no training row has it" in found.explain_uncertainty(rows).unlike[1]


def test_a_file_is_predicted_with_a_sentence(frame: pd.DataFrame, tmp_path: Path) -> None:
    fitted = fit_table(table_model(effort="quick", time_budget=1e-3), frame, "y")
    assert not {*CONSTANTS} & {effect.name for effect in fitted.effects}
    assert not {*CONSTANTS} & {curve.column for curve in fitted.dependence}
    assert not {*CONSTANTS} & set(fitted.leaks.alone)
    described = {column.name: column for column in fitted.columns()}
    assert not described["machine"].used
    assert "watched" in described["machine"].done
    changed(frame, "machine", 9).assign(country=["CA", "US"]).to_csv(
        tmp_path / "new.csv", index=False
    )
    found = predict_table(
        fitted.model, tmp_path / "new.csv", output=tmp_path / "out.csv", explain=True
    )
    assert any(
        note == "2 values other than the one of training in 'country' and 'machine': nothing was "
        "learnt of such values."
        for note in found.warnings
    )
    written = pd.read_csv(tmp_path / "out.csv")
    assert written["unusual"].tolist() == [True, True]
    assert "country CA: no training row has it" in written["unlike"][0]
    assert "machine 9: no training row has it" in written["unlike"][1]
    assert written["distance_from_machine"][1] > 10 * written["distance_from_country"][1]
    with pytest.raises(TableError, match="'machine' must hold the one value of training: row 2"):
        predict_table(fitted.model, tmp_path / "new.csv", output=tmp_path / "b.csv", strict=True)
    frame.drop(columns="machine").to_csv(tmp_path / "less.csv", index=False)
    with pytest.raises(TableError, match="'machine' is missing"):
        predict_table(fitted.model, tmp_path / "less.csv", output=tmp_path / "c.csv")
