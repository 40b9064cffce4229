"""From a table to training rows: column types, rows and columns set aside, and the words for it."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from accord._files import OptionError
from accord.tables import (
    FurtherTraining,
    Schema,
    TableError,
    TrainingData,
    check_columns,
    conform,
    conform_rows,
    number_column,
    prepare_training,
    read_again,
    read_table,
    time_column,
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
        "same": "number",
    }
    assert data.schema.varying == ["size", "town", "street", "sold", "new"]
    assert data.schema.ignored == {
        "index": "it only counts the rows",
        "note": "60 distinct texts in 60 rows",
        "void": "every value is missing",
    }
    assert ("same", False, "constant ('7' in every row)") in data.decisions
    assert any("'void' is not used" in note for note in data.notes)


def test_a_csv_gives_what_its_frame_gives(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_csv(tmp_path / "data.csv", index=False)
    from_csv, from_frame = prepared(tmp_path / "data.csv"), prepared(frame)
    assert from_csv.schema == from_frame.schema
    pd.testing.assert_frame_equal(from_csv.X, from_frame.X)
    np.testing.assert_array_equal(from_csv.y, from_frame.y)


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
    data = prepared(frame, lower="low", upper="high")
    assert data.lower is not None
    assert data.upper is not None
    np.testing.assert_array_equal(data.lower[:4], [120, -np.inf, 90, np.nan])
    np.testing.assert_array_equal(data.upper[:4], [np.inf, 80, 100, np.nan])
    np.testing.assert_array_equal(data.y[:4], [120, 80, 95, 95])
    assert list(data.exact[:5]) == [False, False, False, True, True]
    assert "low" not in data.X
    told = "3 targets are only known by bounds: models learn from them, figures count the others."
    assert told in data.notes
    frame.loc[5, ["low", "high"]] = [2, 1]
    with pytest.raises(TableError, match="row 6 of the DataFrame has 2 and 1"):
        prepared(frame, lower="low", upper="high")


def test_a_weight_column(frame: pd.DataFrame) -> None:
    frame["w"] = np.arange(1.0, len(frame) + 1)
    frame.loc[3, "w"], frame.loc[5, "w"] = np.nan, 0.0
    data = prepared(frame, weight="w")
    assert data.weight is not None
    assert data.weight.tolist() == frame["w"].drop(index=[3, 5]).tolist()
    assert "w" not in data.X.columns
    assert "2 rows without a target value or a positive weight left out." in data.notes
    for bad, problem in ((-1.0, "weights must be non-negative, but 'w' holds -1"), (0.0, "only 0")):
        with pytest.raises(TableError, match=problem):
            prepared(frame.assign(w=bad), weight="w")


def test_a_tolerance_column(frame: pd.DataFrame) -> None:
    frame["tol"] = 0.5
    frame.loc[0, "tol"] = np.nan
    data = prepared(frame, tolerance="tol")
    assert data.tolerance is not None
    assert len(data.tolerance) == N - 1
    frame.loc[1, "tol"] = -1
    with pytest.raises(TableError, match=r"non-negative, but 'tol' holds -1"):
        prepared(frame, tolerance="tol")


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
        prepared(frame, tolerance="price")


def test_ignored_on_request(frame: pd.DataFrame) -> None:
    data = prepared(frame, ignore=["size"])
    assert "size" not in data.X
    with pytest.raises(OptionError, match="ignored column 'siz'"):
        prepared(frame, ignore=["siz"])


def test_the_schema_survives_a_dictionary(frame: pd.DataFrame) -> None:
    schema = prepared(frame).schema
    assert Schema.from_dict(schema.to_dict()) == schema


@pytest.mark.parametrize(
    ("name", "start", "used"),
    [("t", 0, True), ("week", 1, True), ("index", 0, False), ("Unnamed: 0", 7, False)],
)
def test_what_counts_up_is_a_time_unless_its_name_says_otherwise(
    frame: pd.DataFrame, name: str, start: int, used: bool
) -> None:
    frame = frame.drop(columns="index").assign(**{name: np.arange(start, start + 2 * N, 2)})
    data = prepared(frame)
    assert (name in data.X) == used
    switch = "list it in ignore" if used else "What is listed in use (--use) is used all the same"
    assert any(switch in note for note in data.notes)
    assert name in prepared(frame, use=[name]).X
    assert name not in prepared(frame, ignore=[name]).X


def test_every_column_has_a_decision_with_a_reason(frame: pd.DataFrame) -> None:
    decisions = {column: (used, why) for column, used, why in prepared(frame).decisions}
    assert set(decisions) == set(frame.columns) - {"price"}
    assert decisions["town"] == (True, "3 categories")
    assert decisions["note"] == (False, "60 distinct texts in 60 rows")
    assert all(why for _, why in decisions.values())


def test_use_overrules_but_not_the_impossible(frame: pd.DataFrame) -> None:
    assert "note" in prepared(frame, use=["note"]).X
    with pytest.raises(OptionError, match=r"'same' cannot be used: constant"):
        prepared(frame, use=["same"])
    with pytest.raises(OptionError, match="one role"):
        prepared(frame, use=["size"], ignore=["size"])


def test_prices_and_shares_as_people_write_them(frame: pd.DataFrame, tmp_path: Path) -> None:
    prices = [f"${price:,.2f}" for price in 20 * frame["price"]]
    shares = [f"{share:.1f} %" for share in 10 * frame["size"]]
    frame.assign(price=prices, size=shares).to_csv(tmp_path / "data.csv", index=False)
    data = prepared(tmp_path / "data.csv")
    np.testing.assert_allclose(data.y, 20 * frame["price"], atol=0.006)
    np.testing.assert_allclose(data.X["size"], 10 * frame["size"], atol=0.06)
    assert "In 'size': numbers without the sign %." in data.notes


def test_decimal_commas_of_a_whole_table(frame: pd.DataFrame, tmp_path: Path) -> None:
    """A column of three decimals could be thousands; the others tell."""
    rows = frame.assign(size=[f"1,{i:03d}" for i in range(100, 100 + N)])
    rows.to_csv(tmp_path / "data.csv", sep="\t", decimal=",", index=False)
    data = prepared(tmp_path / "data.csv")
    assert data.X["size"].between(1, 2).all()
    np.testing.assert_array_equal(data.y, frame["price"])


@pytest.mark.parametrize("size", [1e300, 1e-300])
def test_targets_beyond_floats_are_refused_by_column_and_row(
    frame: pd.DataFrame, size: float
) -> None:
    row = int(np.argmax(frame["price"])) + 1
    with pytest.raises(TableError, match=rf"'price' must .* in row {row}\."):
        prepared(frame.assign(price=frame["price"] * size))


def test_infinite_cells_are_named(frame: pd.DataFrame) -> None:
    frame.loc[4, "price"] = np.inf
    frame.loc[[6, 8], "size"] = -np.inf
    data = prepared(frame)
    assert "1 infinite value in 'price' (first in row 5): left out as missing." in data.notes
    # Row 5 was left out, and rows are counted as in the file all the same.
    assert "2 infinite values in 'size' (first in row 7): taken as missing." in data.notes
    assert len(data.y) == N - 1
    assert np.isfinite(data.y).all()


def test_a_target_that_looks_like_a_typo_is_named(frame: pd.DataFrame) -> None:
    frame.loc[7, "price"] = 999_999_999
    assert any("999,999,999 in row 8, far from all" in note for note in prepared(frame).notes)
    assert not any("far from all" in note for note in prepared(frame.drop(index=7)).notes)


def test_notes_of_the_file_come_first(frame: pd.DataFrame, tmp_path: Path) -> None:
    towns = np.where(frame["town"] == "Ulm", "Köln", "Bonn")
    frame.assign(town=towns).to_csv(tmp_path / "data.csv", index=False, encoding="cp1252")
    assert "read as cp1252" in prepared(tmp_path / "data.csv").notes[0]


# --- new tables --------------------------------------------------------------------------------


@pytest.fixture
def schema(frame: pd.DataFrame) -> Schema:
    return prepared(frame).schema


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["size", "town", "street", "new", "same"], r"'sold' is missing"),
        (["size", "town", "street", "sold", "new"], r"'same' is missing"),
        (
            ["Size", "town", "street", "sold", "new", "same"],
            r"'size' is missing \(the table has 'Size'\)",
        ),
        (
            ["size", "town", "street", "sold", "new", "same", "odd"],
            "'odd' is not known to the model",
        ),
        (
            ["town", "size", "street", "sold", "new", "same"],
            "'town' and 'size' stand in another order",
        ),
    ],
    ids=["missing", "watched", "renamed", "extra", "reordered"],
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
    frame.loc[5, "size"] = -1e39
    found = conform(read_table(frame).data, schema, source="new.csv")
    X, surprises, unlike = found.X, found.surprises(), found.unlike
    assert list(X.columns) == schema.names
    assert surprises.absurd == {"size": 1}
    # One of two categories is unseen in the first rows; the third has a gap, which is no surprise.
    assert np.flatnonzero(unlike).tolist() == [3, 5]
    assert X.loc[5, "size"] < -50 * frame["size"].abs().median()
    assert np.isnan(X.loc[3, "size"])  # as in training
    assert surprises.missing == {"town": 1, "size": 1}
    assert surprises.infinite == {"size": 1}
    assert surprises.unseen == {"town": 2}
    twice = surprises + surprises
    assert twice.unseen == {"town": 4}
    assert twice.sentences()[3] == (
        "4 categories not seen in training in 'town': predicted from the other columns."
    )


def test_words_among_numbers_are_missing_values(frame: pd.DataFrame) -> None:
    numbers = frame["size"].astype(str)
    numbers[7] = "?"
    data = prepared(frame.assign(size=numbers))
    assert np.isnan(data.X.loc[7, "size"])
    assert "In 'size': '?' counts as missing." in data.notes
    fresh = conform(pa.table({"size": ["?", "2"]}), _only(data.schema, "size"), source="new").X
    np.testing.assert_array_equal(fresh["size"], [np.nan, 2.0])


def test_a_word_that_training_did_not_have_is_missing_and_named(
    frame: pd.DataFrame, schema: Schema
) -> None:
    new = frame.astype({"size": object, "sold": object})
    new.loc[[4, 7], "size"] = ["rotary", "n/a?"]
    new.loc[9, "sold"] = "someday"
    found = conform(read_table(new).data, schema, source="new.csv")
    X, surprises, unlike = found.X, found.surprises(), found.unlike
    assert np.flatnonzero(X["size"].isna()).tolist() == [4, 7]
    assert np.flatnonzero(X["sold"].isna()).tolist() == [9]
    assert np.flatnonzero(unlike).tolist() == [4, 7, 9]
    assert surprises.missing == {}
    assert surprises.sentences() == [
        "2 values in 'size' are no numbers (first 'rotary' in row 5): taken as missing, and the "
        "rows as unusual.",
        "1 value in 'sold' is no date ('someday' in row 10): taken as missing, and its row as "
        "unusual.",
    ]
    later = conform_rows(read_table(new).data.slice(5), schema, source="new.csv")
    both = surprises + later.surprises(first_row=6)
    assert (both.words["size"].count, both.words["size"].row) == (3, 5)
    with pytest.raises(TableError, match="'size' must hold numbers, got 'rotary' in row 5 and 1 "):
        conform(read_table(new).data, schema, source="new.csv", strict=True)


def test_what_is_written_otherwise_is_refused_however_rare(
    frame: pd.DataFrame, schema: Schema
) -> None:
    new = frame.astype({"size": object})
    new.loc[4, "size"] = "12 kg"
    with pytest.raises(TableError, match="'size' must hold numbers, got '12 kg' in row 5"):
        conform(read_table(new).data, schema, source="new.csv")


def _only(schema: Schema, name: str) -> Schema:
    columns = tuple(column for column in schema.columns if column.name == name)
    return Schema(schema.target, columns, {})


def test_rows_of_unknown_categories_are_unlike_the_training_rows(
    frame: pd.DataFrame, schema: Schema
) -> None:
    frame.loc[0, ["town", "street"]] = ["Atlantis", "Main Street"]
    frame.loc[1, ["town", "street"]] = ["Atlantis", None]
    frame.loc[2, ["town", "street"]] = [None, None]
    frame.loc[3, "town"] = "Atlantis"
    unlike = conform(read_table(frame).data, schema, source="new.csv").unlike
    assert unlike[:5].tolist() == [True, True, False, False, False]
    assert not unlike[4:].any()


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("size", np.inf, r"'size' must be finite: row 13"),
        ("size", 1e39, r"'size' must lie near -\d.* to \d.*: row 13"),
        ("town", "Atlantis", r"'town' must hold categories that the model knows: row 13"),
    ],
)
def test_strict_refuses_by_column_and_row(
    frame: pd.DataFrame, schema: Schema, column: str, value: Any, message: str
) -> None:
    frame.loc[2, column] = value
    with pytest.raises(TableError, match=message):
        conform_rows(read_table(frame).data, schema, source="new", first_row=11, strict=True)


def test_absurd_dates_are_marked(frame: pd.DataFrame, schema: Schema) -> None:
    frame.loc[1, "sold"] = "9999-12-31"
    found = conform(read_table(frame).data, schema, source="new")
    assert found.surprises().absurd == {"sold": 1}
    assert np.flatnonzero(found.unlike).tolist() == [1]


def test_hostile_names_are_neutral_in_every_sentence(frame: pd.DataFrame) -> None:
    evil = "\x1b[2J<b>\nx"
    data = prepared(frame.rename(columns={"same": evil, "town": evil + "2"}))
    assert any("the same in every row" in note for note in data.notes)
    assert all(note.isprintable() for note in data.notes)
    with pytest.raises(TableError) as caught:
        check_columns([], data.schema, source="new")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("written", "note"),
    [
        ("${:,.2f}", "In 'y': numbers without the sign $; the comma separates thousands."),
        ("{:.1f} %", "In 'y': numbers without the sign %."),
    ],
)
def test_a_target_with_signs_is_read_and_said(written: str, note: str, tmp_path: Path) -> None:
    values = np.linspace(900, 2000, 30)
    path = tmp_path / "signs.csv"
    lines = [f'{row % 7},"{written.format(value)}"' for row, value in enumerate(values)]
    path.write_text("x,y\n" + "\n".join(lines))
    found = prepare_training(read_table(path), target="y")
    assert found.y == pytest.approx(values, abs=0.06)
    assert note in found.notes


def test_several_columns_that_follow_the_target() -> None:
    y = np.linspace(0, 1, 40) ** 2
    frame = pd.DataFrame({"a": 2 * y, "b": 3 * y, "c": np.sin(np.arange(40.0)), "y": y})
    found = prepare_training(read_table(frame), target="y")
    assert (
        "'a' and 'b' follow 'y' almost exactly. If they are not known when you predict, list them "
        "in ignore (--ignore)."
    ) in found.notes


def test_one_sentence_for_columns_that_are_read_alike(tmp_path: Path) -> None:
    path = tmp_path / "comma.csv"
    lines = [f"{row % 7},5;{row % 5},25;{row % 3};{row},5" for row in range(30)]
    path.write_text("a;b;whole;y\n" + "\n".join(lines))
    notes = prepare_training(read_table(path), target="y").notes
    assert "In 'a' and 'b': the comma is the decimal mark." in notes
    assert not any("'whole'" in note for note in notes)


def test_a_target_is_read_later_as_it_was_written_in_training(tmp_path: Path) -> None:
    path, new = tmp_path / "train.csv", tmp_path / "new.csv"
    path.write_text("x;y\n" + "\n".join(f"{row % 7};{row},{row % 10}5" for row in range(30)))
    new.write_text("x;y\n1;1,234\n2;2,500\n")
    schema = prepare_training(read_table(path), target="y").schema
    again = Schema.from_dict(schema.to_dict())
    assert again == schema
    table = read_table(new)
    found = number_column(table, "target", "y", written=again.target_cells)
    assert found.tolist() == [1.234, 2.5]
    assert number_column(table, "target", "y").tolist() == [1234.0, 2500.0]  # by itself


def test_the_cell_that_is_no_number_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "remark.csv"
    path.write_text("x,y\n" + "\n".join(f"{row},{row} or {row + 1}" for row in range(30)))
    path.write_text(path.read_text().replace("0 or 1\n", "17\n", 1))
    with pytest.raises(TableError, match="got text such as '1 or 2'"):
        prepare_training(read_table(path), target="y")


@pytest.mark.filterwarnings("error")
def test_columns_of_any_size_beside_the_target() -> None:
    y = np.linspace(0, 1, 40) ** 2
    frame = pd.DataFrame({"huge": 1e300 * y, "small": 1e-250 * y[::-1] * y, "y": y})
    notes = prepare_training(read_table(frame), target="y").notes
    assert any(note.startswith("'huge' follows 'y' almost exactly") for note in notes)


def test_further_rows_are_read_as_the_sample_was(frame: pd.DataFrame, tmp_path: Path) -> None:
    """Once the sample has told how cells are written, all rows of the file are as if read whole."""
    frame["size"] = [f"{value:.4f}".replace(".", ",") for value in frame["size"]]
    frame["least"] = np.where(np.arange(N) % 7 == 0, frame["price"] - 1, np.nan)
    frame.loc[[3, 50], "price"] = np.nan
    frame.loc[5, "town"] = None
    path = tmp_path / "t.csv"
    frame.drop(columns=["note", "street"]).to_csv(path, index=False, sep=";")
    roles = {"target": "price", "lower": "least"}
    whole = prepared(path, lower="least")
    sample = read_table(path, max_rows=40)
    further = FurtherTraining(sample, prepare_training(sample, **roles), roles)
    with read_again(sample, columns=further.columns) as batches:
        found = [further(batch) for batch in batches]
    names = found[0].schema.names
    assert set(names) >= {"size", "town", "sold", "new"}
    got = pd.concat([part.X for part in found], ignore_index=True)
    pd.testing.assert_frame_equal(got, whole.X[names], check_dtype=False)
    for name in ("y", "lower", "upper", "rows", "exact"):
        values = np.concatenate([getattr(part, name) for part in found])
        np.testing.assert_array_equal(values, getattr(whole, name), err_msg=name)


def test_only_a_sample_of_a_file_is_read_again(frame: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="only a sample of a file"), read_again(read_table(frame)):
        pass


@pytest.mark.parametrize(
    "cells", [["2024-01-02", "2023-01-01"], ["31.12.2024", "01.02.2024"], ["12.5 s", "7 s"]]
)
def test_what_orders_rows_is_read_as_any_column(cells: list[str]) -> None:
    table = read_table(pd.DataFrame({"when": [*cells, None]}))
    later, earlier, gap = time_column(table, "when")
    assert later > earlier
    assert np.isnan(gap)


def test_numbers_that_differ_beyond_their_digits_are_not_called_constant(
    frame: pd.DataFrame,
) -> None:
    data = prepared(frame.assign(account=[str(2**60 + place) for place in range(len(frame))]))
    assert "Column 'account' is not used: its numbers differ only beyond 15 digits." in data.notes


def test_a_batch_is_ordered_as_the_sample_was_read() -> None:
    sample = read_table(pd.DataFrame({"when": ["25/12/2024", "01/02/2024"]}))
    batch = read_table(pd.DataFrame({"when": ["01/02/2024", "02/01/2024"]}))
    february, january = time_column(batch, "when", sample=sample)
    assert february > january


@pytest.mark.parametrize(
    ("names", "doubted"),
    [
        (["5.1", "3.5", "1.4"], True),
        (["0", "1", "2"], False),
        (["1", "2", "3"], False),
        (["400.5", "401.0", "moisture"], False),  # a spectrum
    ],
)
def test_a_first_row_in_place_of_names_is_suspected(names: list[str], doubted: bool) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), columns=names)
    notes = prepare_training(read_table(frame), target=names[-1]).notes
    assert any("add a line with names" in note for note in notes) == doubted


@pytest.mark.parametrize("word", ["missing", "k.A.", "(null)"])
def test_a_word_in_place_of_many_quantities_is_a_gap(word: str) -> None:
    rng = np.random.default_rng(0)
    numbers = [f"{value:.3f}" for value in rng.normal(size=60)]
    size = [word if place % 3 == 0 else number for place, number in enumerate(numbers)]
    frame = pd.DataFrame({"size": size, "y": rng.normal(size=60)})
    data = prepare_training(read_table(frame), target="y")
    assert data.schema.columns[0].kind == "number"
    assert np.isnan(data.X["size"]).sum() == 20
    assert f"In 'size': '{word}' counts as missing." in data.notes


def test_few_codes_and_a_word_are_categories() -> None:
    rng = np.random.default_rng(0)
    grade = rng.choice(["1", "2", "3", "special"], 60)
    frame = pd.DataFrame({"grade": grade, "y": rng.normal(size=60)})
    assert prepare_training(read_table(frame), target="y").schema.columns[0].kind == "category"


def test_a_target_that_is_often_a_word_is_refused() -> None:
    y = ["running" if place % 3 == 0 else f"{place / 7:.3f}" for place in range(60)]
    frame = pd.DataFrame({"x": np.arange(60) ** 0.5, "y": y})
    with pytest.raises(TableError, match="'y' must hold numbers, got text such as 'running'"):
        prepare_training(read_table(frame), target="y")


def test_limits_in_the_target_are_bounds() -> None:
    frame = pd.DataFrame({"x": np.arange(30.0) ** 2, "y": ["<0.5", "1.5", "2.5"] * 10})
    with pytest.raises(
        TableError, match=r"such as '<0.5'. Write .* upper bound \(--upper-column\)"
    ):
        prepare_training(read_table(frame), target="y")


def test_limits_among_many_targets_are_no_gaps() -> None:
    y = ["<5", *(str(place) for place in range(59))]
    frame = pd.DataFrame({"x": np.arange(60.0) ** 2, "y": y})
    with pytest.raises(TableError, match=r"'<5'. Write such limits .* \(--upper-column\)"):
        prepare_training(read_table(frame), target="y")
    y = ["<5", *(str(place % 9) for place in range(59))]
    with pytest.raises(TableError, match=r"'<5'. Write such limits"):
        prepare_training(read_table(frame.assign(y=y)), target="y")


def test_what_keeps_quantities_from_being_read_is_said() -> None:
    place = np.arange(60)
    frame = pd.DataFrame(
        {
            "lead": np.where(place % 3 == 0, "<5", place.astype(str)),
            "size": [f"{n * 7} {'sqft' if n % 4 else 'm2'}" for n in place],
            "dose": [f"{n % 30}{'*' if n % 9 == 0 else ''}" for n in place],
            "town": np.where(place % 2, "Bonn", "Ulm"),
            "y": place**0.5,
        }
    )
    data = prepare_training(read_table(frame), target="y")
    assert "In 'lead': limits like <5 count as the number beside the sign." in data.notes
    assert data.X["lead"].iloc[:3].tolist() == [5, 1, 2]
    assert (
        "Column 'size' is not used: 60 distinct texts in 60 rows. If it is a quantity, write its "
        "cells alike: its numbers have more than one unit ('sqft' and 'm2')."
    ) in data.notes
    assert (
        "Column 'dose' is read as 37 categories. If it is a quantity, write its cells alike: many "
        "of its cells are numbers, but not '0*'."
    ) in data.notes
    assert not any("town" in note for note in data.notes)


def test_columns_that_are_not_used_for_one_reason_share_a_note() -> None:
    frame = pd.DataFrame({"x": np.arange(60.0) ** 2, "y": np.arange(60.0) ** 0.5})
    notes = prepare_training(read_table(frame.assign(a=None, b=None, c=None)), target="y").notes
    assert "Columns 'a', 'b' and 'c' are not used: every value is missing." in notes
    texts = {name: [f"{name}{place}" for place in range(60)] for name in "ab"}
    notes = prepare_training(read_table(frame.assign(**texts)), target="y").notes
    assert (
        "Columns 'a' and 'b' are not used: 60 distinct texts in 60 rows. What is listed in use "
        "(--use) is used all the same."
    ) in notes


def test_a_target_of_clock_times_is_told_to_be_in_seconds() -> None:
    y = [f"{place // 60}:{place % 60:02d}:00" for place in range(60)]
    frame = pd.DataFrame({"x": np.arange(60.0) ** 2, "y": y})
    data = prepare_training(read_table(frame), target="y")
    assert "In 'y': durations, in seconds." in data.notes
    assert data.y[1] == 60


def test_a_file_without_names_is_suspected(tmp_path: Path) -> None:
    rows = [
        f"{place / 7 + 1:.3f},{'red' if place % 2 else 'blue'},{place**0.5:.3f}"
        for place in range(30)
    ]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(rows))
    table = read_table(path)
    notes = prepare_training(table, target=table.data.column_names[-1]).notes
    assert any("look like values" in note for note in notes)
    with pytest.raises(OptionError, match="If these are values, add a line with names"):
        prepare_training(table, target="price")


def test_a_number_that_may_stand_for_nothing_is_pointed_out() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"wind": rng.normal(size=60), "y": rng.normal(size=60)})
    assert prepare_training(read_table(frame), target="y").notes == ()
    frame.loc[::9, "wind"] = -999
    frame.loc[3:6, "y"] = 9999
    notes = prepare_training(read_table(frame), target="y").notes
    assert sum("stands for a missing value" in note for note in notes) == 2
    assert any(note.startswith("'wind' is -999 in 7 rows, far from all others") for note in notes)


def test_how_dates_are_written_is_said_by_an_example() -> None:
    days = pd.date_range("2024-01-01", periods=40).strftime("%d.%m.%Y")
    frame = pd.DataFrame({"day": days, "y": np.arange(40.0) ** 0.5})
    data = prepare_training(read_table(frame), target="y")
    assert "In 'day': dates written like 31.01.2024." in data.notes
    assert data.decisions[0].reason == "dates written like 31.01.2024"


def test_a_target_of_lists_is_refused_in_words() -> None:
    table = pa.table({"x": np.arange(30.0), "y": [[1.0, 2.0]] * 30})
    with pytest.raises(TableError, match=r"must hold numbers, got lists .* such as '\[1.0, 2.0\]'"):
        prepare_training(read_table(table), target="y")
