"""From a table to training rows: column types, rows and columns set aside, and the words for it."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from accord.tables import (
    OptionError,
    Schema,
    TableError,
    TrainingData,
    check_columns,
    conform,
    make_preprocessor,
    prepare_training,
    read_table,
)

N = 60


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "index": np.arange(N),
            "size": rng.normal(size=N),
            "town": rng.choice(["Ulm", "Bonn", "Kiel"], N),
            "street": rng.choice([f"s{i}" for i in range(25)], N),
            "note": [f"text {i}" for i in range(N)],
            "sold": pd.date_range("2020-01-01", periods=N, freq="36h").astype(str),
            "new": rng.random(N) > 0.5,
            "same": 7,
            "void": [None] * N,
            "price": rng.normal(size=N) * 10 + 100,
        }
    )


def prepared(source: Any, **options: Any) -> TrainingData:
    return prepare_training(read_table(source), **{"target": "price", **options})


def test_columns_are_typed_or_set_aside_with_a_reason(frame: pd.DataFrame) -> None:
    data = prepared(frame)
    kinds = {column.name: column.kind for column in data.schema.columns}
    assert kinds == {
        "size": "number",
        "town": "category",
        "street": "category",
        "sold": "date",
        "new": "boolean",
    }
    assert data.schema.ignored == {
        "index": "it only counts the rows",
        "note": "60 distinct texts in 60 rows",
        "same": "constant ('7.0' in every row)",
        "void": "every value is missing",
    }
    assert any("'void' is not used" in note for note in data.notes)


def test_a_csv_gives_what_its_frame_gives(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_csv(tmp_path / "data.csv", index=False)
    from_csv, from_frame = prepared(tmp_path / "data.csv"), prepared(frame)
    assert from_csv.schema == from_frame.schema
    pd.testing.assert_frame_equal(from_csv.X, from_frame.X)
    np.testing.assert_array_equal(from_csv.y, from_frame.y)


def test_preprocessing_gives_finite_numbers_whatever_comes(frame: pd.DataFrame) -> None:
    frame.loc[3, ["size", "town", "sold"]] = None
    data = prepared(frame)
    pipeline = make_preprocessor(data.schema, random_state=0)
    matrix = pipeline.fit_transform(data.X, data.y)
    assert np.isfinite(matrix).all()
    strange = data.X.iloc[:2].copy()
    strange.loc[0, "town"] = "Atlantis"
    strange.loc[1, ["size", "town", "street", "new"]] = [np.nan, None, None, np.nan]
    strange["sold"] = pd.NaT
    assert np.isfinite(pipeline.transform(strange)).all()
    assert pipeline.transform(strange).shape == (2, matrix.shape[1])


def test_rows_without_a_target_are_left_out_and_counted(frame: pd.DataFrame) -> None:
    frame.loc[[2, 5], "price"] = np.nan
    data = prepared(frame)
    assert len(data.X) == len(data.y) == N - 2
    assert "2 rows without a target value left out." in data.notes
    assert set(data.rows) == set(range(1, N + 1)) - {3, 6}


def test_censored_rows(frame: pd.DataFrame) -> None:
    frame["low"] = np.nan
    frame["high"] = np.nan
    frame.loc[0, ["price", "low"]] = [np.nan, 120.0]  # at least 120
    frame.loc[1, "high"] = 80.0  # at most 80
    frame.loc[2, ["low", "high"]] = [90.0, 100.0]
    frame.loc[3, ["price", "low", "high"]] = [np.nan, 95.0, 95.0]
    data = prepared(frame, lower_column="low", upper_column="high")
    assert data.lower is not None
    assert data.upper is not None
    np.testing.assert_array_equal(data.lower[:4], [120, -np.inf, 90, np.nan])
    np.testing.assert_array_equal(data.upper[:4], [np.inf, 80, 100, np.nan])
    np.testing.assert_array_equal(data.y[:4], [120, 80, 95, 95])
    assert list(data.exact[:5]) == [False, False, False, True, True]
    assert "low" not in data.X
    frame.loc[5, ["low", "high"]] = [2, 1]
    with pytest.raises(TableError, match="row 6 of the DataFrame has 2 and 1"):
        prepared(frame, lower_column="low", upper_column="high")


def test_a_tolerance_column(frame: pd.DataFrame) -> None:
    frame["tol"] = 0.5
    frame.loc[0, "tol"] = np.nan
    data = prepared(frame, tolerance_column="tol")
    assert data.tolerance is not None
    assert len(data.tolerance) == N - 1
    frame.loc[1, "tol"] = -1
    with pytest.raises(TableError, match=r"non-negative, but 'tol' holds -1"):
        prepared(frame, tolerance_column="tol")


def test_a_copy_of_the_target_is_pointed_out(frame: pd.DataFrame) -> None:
    frame["price in cents"] = frame["price"] * 100
    assert any("'price in cents' follows 'price'" in note for note in prepared(frame).notes)


def test_an_absent_target_names_near_matches(frame: pd.DataFrame) -> None:
    with pytest.raises(OptionError, match=r"'Prize' is not in .* Did you mean 'price'\?"):
        prepared(frame, target="Prize")
    with pytest.raises(OptionError, match="Its columns are"):
        prepared(frame, target="zzzz")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([5.0] * N, r"constant \(5 in every row\)"),
        (["cheap", "dear"] * (N // 2), "must hold numbers, got text such as 'cheap'"),
        (["2020-01-01"] * N, "got dates"),
        ([None] * N, "empty in every row"),
        ([1.0] + [None] * (N - 1), "at least 20 rows with a target, got 1"),
    ],
    ids=["constant", "text", "dates", "empty", "one value"],
)
def test_targets_that_cannot_be_learnt(
    frame: pd.DataFrame, values: list[Any], message: str
) -> None:
    with pytest.raises(TableError, match=message):
        prepared(frame.assign(price=values))


def test_one_row(frame: pd.DataFrame) -> None:
    with pytest.raises(TableError, match="at least 20 rows"):
        prepared(frame.iloc[:1])


def test_nothing_left_to_predict_from(frame: pd.DataFrame) -> None:
    with pytest.raises(TableError, match="no column is left"):
        prepared(frame[["same", "void", "price"]])


def test_roles_need_columns_of_their_own(frame: pd.DataFrame) -> None:
    with pytest.raises(OptionError, match="a column of its own"):
        prepared(frame, tolerance_column="price")


def test_ignored_on_request(frame: pd.DataFrame) -> None:
    data = prepared(frame, ignore=["size"])
    assert "size" not in data.X
    with pytest.raises(OptionError, match="ignored column 'siz'"):
        prepared(frame, ignore=["siz"])


def test_the_schema_survives_a_dictionary(frame: pd.DataFrame) -> None:
    schema = prepared(frame).schema
    assert Schema.from_dict(schema.to_dict()) == schema


# --- new tables --------------------------------------------------------------------------------


@pytest.fixture
def schema(frame: pd.DataFrame) -> Schema:
    return prepared(frame).schema


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["size", "town", "street", "new"], r"'sold' is missing"),
        (["Size", "town", "street", "sold", "new"], r"'size' is missing \(is it 'Size' for 'size'"),
        (["size", "town", "street", "sold", "new", "odd"], "'odd' is not known to the model"),
        (["town", "size", "street", "sold", "new"], "'town' and 'size' stand in another order"),
    ],
    ids=["missing", "renamed", "extra", "reordered"],
)
def test_columns_that_do_not_fit_are_named(
    schema: Schema, columns: list[str], message: str
) -> None:
    with pytest.raises(TableError, match=message):
        check_columns(columns, schema, source="new.csv")


def test_known_columns_may_be_there_or_not(schema: Schema) -> None:
    check_columns(["price", "void", *schema.names], schema, source="new.csv")
    check_columns([*reversed(schema.names), "odd"], schema, source="new.csv", by_name=True)
    with pytest.raises(TableError, match="odd"):
        check_columns([*schema.names, "odd"], schema, source="new.csv")


def test_wrongly_typed_columns_are_all_named(frame: pd.DataFrame, schema: Schema) -> None:
    wrong = frame.assign(size="big", sold="soon")
    with pytest.raises(TableError, match=r"'size' must hold numbers.*'sold' must hold dates"):
        conform(pa.Table.from_pandas(wrong), schema, source="new.csv")


def test_surprises_are_counted(frame: pd.DataFrame, schema: Schema) -> None:
    frame.loc[[0, 1], "town"] = "Atlantis"
    frame.loc[2, "town"] = None
    frame.loc[3, "size"] = np.inf
    frame.loc[4, "size"] = np.nan
    X, surprises = conform(read_table(frame).data, schema, source="new.csv")
    assert list(X.columns) == schema.names
    assert surprises.missing == {"town": 1, "size": 1}
    assert surprises.infinite == {"size": 1}
    assert surprises.unseen == {"town": 2}
    twice = surprises + surprises
    assert twice.unseen == {"town": 4}
    assert twice.sentences()[2] == (
        "4 categories not seen in training in 'town': predicted as a rare one."
    )


def test_words_among_numbers_are_missing_values(frame: pd.DataFrame) -> None:
    numbers = frame["size"].astype(str)
    numbers[7] = "?"
    data = prepared(frame.assign(size=numbers))
    assert np.isnan(data.X.loc[7, "size"])
    assert "In 'size', '?' is not a number: taken as missing." in data.notes
    fresh, _ = conform(pa.table({"size": ["?", "2"]}), _only(data.schema, "size"), source="new")
    np.testing.assert_array_equal(fresh["size"], [np.nan, 2.0])


def _only(schema: Schema, name: str) -> Schema:
    columns = tuple(column for column in schema.columns if column.name == name)
    return Schema(schema.target, columns, {})


def test_ten_thousand_columns_are_prepared(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(30, 10_000)).round(3)).add_prefix("x")
    wide.assign(price=rng.normal(size=30)).to_csv(tmp_path / "wide.csv", index=False)
    data = prepared(tmp_path / "wide.csv")
    assert make_preprocessor(data.schema).fit_transform(data.X, data.y).shape == (30, 10_000)
