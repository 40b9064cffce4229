"""Numbers from columns: no gaps, no leaks, and every feature knows its column."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import accord
from accord.persistence import save
from accord.tables import (
    CellFormat,
    Column,
    Schema,
    TableEncoder,
    conform,
    prepare_training,
    read_table,
)

N = 200


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": np.where(rng.random(N) < 0.1, np.nan, rng.normal(50, 10, N)),
            "town": rng.choice(["Ulm", "Bonn", "Kiel", None], N, p=[0.5, 0.3, 0.1, 0.1]),
            "street": rng.choice([f"s{i}" for i in range(40)], N),
            "sold": pd.date_range("2020-01-01", periods=N, freq="36h").astype(str),
            "opened": [f"{i % 24:02d}:30" for i in range(N)],
            "price": rng.normal(size=N) * 10 + 100,
        }
    )


def prepared(frame: pd.DataFrame, **options: Any) -> Any:
    return prepare_training(read_table(frame), **{"target": "price", **options})


def encoder_of(frame: pd.DataFrame, kind: Any, categories: tuple[str, ...] = ()) -> TableEncoder:
    (name,) = frame.columns
    schema = Schema("y", (Column(name, CellFormat(kind), categories),), {})
    return TableEncoder(schema, random_state=0)


def test_the_matrix_is_finite_whatever_comes(frame: pd.DataFrame) -> None:
    data = prepared(frame)
    encoder = TableEncoder(data.schema, random_state=0)
    matrix = encoder.fit_transform(data.X, data.y)
    assert matrix.dtype == np.float64
    assert np.isfinite(matrix).all()
    odd = pd.DataFrame(
        {
            "size": ["inf", "1e39", "", "-1e300"],
            "town": ["Atlantis", "", "NA", "Ulm"],
            "street": ["new", "", "s1", "other"],
            "sold": ["9999-12-31", "", "1800-01-01", "2020-02-29"],
            "opened": ["", "00:00", "23:59:59", "12:00"],
        }
    )
    X = conform(read_table(odd).data, data.schema, source="odd").X
    assert np.isfinite(encoder.transform(X)).all()
    assert encoder.transform(X).shape == (4, matrix.shape[1])


def test_new_rows_get_what_equal_training_rows_got(frame: pd.DataFrame) -> None:
    data = prepared(frame, ignore=["street"])  # whose training rows are encoded by the others
    encoder = TableEncoder(data.schema)
    np.testing.assert_array_equal(encoder.fit_transform(data.X, data.y), encoder.transform(data.X))


def test_every_feature_names_its_column(frame: pd.DataFrame) -> None:
    data = prepared(frame)
    encoder = TableEncoder(data.schema).fit(data.X, data.y)
    names, labels = encoder.feature_names(), encoder.feature_labels()
    assert len(names) == len(labels) == encoder.transform(data.X).shape[1]
    assert set(names) == set(data.schema.names)
    assert {"size", "size is missing", "town = Ulm", "town is missing"} <= set(labels)
    for place, name in enumerate(names):  # a changed column changes its own features only
        changed = data.X.copy()
        changed[name] = changed[name].iloc[::-1].to_numpy()
        moved = (encoder.transform(changed) != encoder.transform(data.X)).any(axis=0)
        assert set(np.array(names)[moved]) == {name}, place


def test_numbers_are_standardised_and_gaps_filled_by_the_median() -> None:
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0, 10.0, np.nan]})
    matrix = encoder_of(X, "number").fit_transform(X, np.zeros(5))
    np.testing.assert_allclose(matrix.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(matrix.std(axis=0), 1)
    filled = np.array([1.0, 2.0, 3.0, 10.0, 2.5])
    np.testing.assert_allclose(matrix[:, 0], (filled - filled.mean()) / filled.std())


@pytest.mark.parametrize("size", [1e300, 1e-300, 1e-150, 1e150])
def test_the_unit_of_a_number_does_not_matter(size: float) -> None:
    a = np.random.default_rng(0).normal(size=50)
    y = np.zeros(50)
    X = pd.DataFrame({"a": a})
    expected = encoder_of(X, "number").fit_transform(X, y)
    found = encoder_of(X, "number").fit_transform(X * size, y)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_rare_and_unseen_categories_share_a_column() -> None:
    values = ["a"] * 5 + ["b"] * 5 + ["c"] + ["{d}"] * 3
    X = pd.DataFrame({"x": np.array(values, dtype=object)})
    encoder = encoder_of(X, "category", ("a", "b", "c", "{d}")).fit(X, np.zeros(len(X)))
    assert encoder.feature_labels() == ["x = a", "x = b", "x = {d}", "x is another or unseen"]
    new = pd.DataFrame({"x": np.array(["a", "c", "unseen", None], dtype=object)})
    assert encoder.transform(new).argmax(axis=1).tolist() == [0, 3, 3, 3]


def test_many_categories_do_not_leak_the_target() -> None:
    """Categories that mean nothing must not look useful in the rows they were learnt from."""
    rng = np.random.default_rng(0)
    names = tuple(f"c{i}" for i in range(200))
    X = pd.DataFrame({"x": rng.choice(names, 600).astype(object)})
    encoder = encoder_of(X, "category", names)
    drawn = [rng.normal(size=600) for _ in range(8)]
    found = [(encoder.fit_transform(X, y)[:, 0], y) for y in drawn]
    varying = [(own, y) for own, y in found if np.ptp(own) > 0]  # by chance, some mean something
    assert varying
    assert all(abs(np.corrcoef(own, y)[0, 1]) < 0.15 for own, y in varying)
    X_useful = pd.DataFrame({"x": rng.choice(names[:30], 600).astype(object)})
    effect = {name: float(i) for i, name in enumerate(names)}
    y = X_useful["x"].map(effect).to_numpy(dtype=float) + rng.normal(size=600)
    own = encoder.fit_transform(X_useful, y)[:, 0]
    assert np.corrcoef(own, y)[0, 1] > 0.95


def test_many_categories_that_say_nothing_are_no_features() -> None:
    """New rows would all be as if their category were unknown, unlike the training rows."""
    x = np.repeat(np.array([f"c{place}" for place in range(30)], dtype=object), 10)
    X = pd.DataFrame({"x": x, "a": np.arange(300.0)})
    y = np.tile(np.arange(10.0), 30)  # the same mean in every category
    names = tuple(dict.fromkeys(x))
    columns = (
        Column("x", CellFormat("category"), names),
        Column("a", CellFormat("number")),
    )
    encoder = TableEncoder(Schema("y", columns, {}), random_state=0)
    assert encoder.fit_transform(X, y).shape == (300, 1)
    assert encoder.feature_names() == ["a"]
    assert encoder.transform(X.assign(x="new")).shape == (300, 1)


def test_few_rows_are_drawn_to_the_overall_mean() -> None:
    names = tuple(f"c{i}" for i in range(25))
    rng = np.random.default_rng(0)
    x = np.repeat(np.array(names, dtype=object), 20)
    y = np.repeat(rng.normal(size=25), 20) + rng.normal(size=500)
    x[-1], y[-1] = "single", 100.0
    X = pd.DataFrame({"x": x})
    encoder = encoder_of(X, "category", (*names, "single")).fit(X, y)
    means = dict(zip(encoder.blocks_[0]["categories"], encoder.blocks_[0]["means"], strict=True))
    assert means["single"] < 60
    assert means["c3"] == pytest.approx(y[x == "c3"].mean(), abs=2.0)


def test_models_are_told_how_well_a_category_is_known() -> None:
    """The share of its own deviation that a mean keeps: most of 20 rows, some of 1, none of 0."""
    rng = np.random.default_rng(0)
    names = tuple(f"c{place}" for place in range(60))
    x = np.array(np.repeat(names[:40], 20).tolist() + list(names[40:]), dtype=object)
    effect = dict(zip(names, rng.normal(size=60), strict=True))
    y = np.array([effect[name] for name in x]) + rng.normal(size=len(x))
    X = pd.DataFrame({"x": x})
    encoder = encoder_of(X, "category", names)
    own = encoder.fit_transform(X, y)[:, 1]
    assert len(np.unique(own[-20:])) == 1  # of a row alone, the others know nothing
    new = pd.DataFrame({"x": np.array(["c0", "c50", "new"], dtype=object)})
    share = encoder.blocks_[0]["centre"][1] + (
        encoder.blocks_[0]["scale"][1] * encoder.transform(new)[:, 1]
    )
    np.testing.assert_allclose(share, [20 / 21, 1 / 2, 0], atol=0.1)  # τ² = σ² = 1


def test_new_rows_of_frequent_categories_are_told_as_training_rows_were() -> None:
    """Else models learn by heart codes that no new row has: means of five folds differ from all."""
    rng = np.random.default_rng(0)
    names = tuple(f"c{place}" for place in range(40))
    x = np.repeat(np.array(names, dtype=object), [60] * 20 + [6] * 20)
    X, y = pd.DataFrame({"x": x}), np.repeat(rng.normal(size=40), [60] * 20 + [6] * 20)
    encoder = encoder_of(X, "category", names)
    own = encoder.fit_transform(X, y + rng.normal(size=len(x)))
    new = encoder.transform(X)
    np.testing.assert_array_equal(own[:1200], new[:1200])
    assert not np.isclose(own[1200:, 0], new[1200:, 0]).any()  # few rows would leak their targets


def test_a_date_is_a_moment_and_its_places_in_the_calendar() -> None:
    days = pd.date_range("2020-01-01", "2023-12-31", freq="D")
    X = pd.DataFrame({"d": days.to_numpy(dtype="datetime64[us]")})
    encoder = encoder_of(X, "date").fit(X, np.zeros(len(X)))
    labels = encoder.feature_labels()
    assert "place of d in the day (sine)" not in labels  # midnight on every day
    matrix = pd.DataFrame(encoder.transform(X), columns=labels, index=days)
    new_year = matrix.filter(like="year")
    ends = new_year.loc["2020-12-31"].to_numpy(), new_year.loc["2021-01-01"].to_numpy()
    np.testing.assert_allclose(*ends, atol=0.03)
    week = matrix.filter(like="week")
    np.testing.assert_allclose(week.loc["2021-03-01"], week.loc["2021-03-08"], atol=1e-9)
    assert matrix["d"].is_monotonic_increasing


def test_midnight_is_near_midnight() -> None:
    X = pd.DataFrame({"t": np.arange(0.0, 86_400, 600)})
    encoder = encoder_of(X, "time").fit(X, np.zeros(len(X)))
    circle = [label.startswith("time of day") for label in encoder.feature_labels()]
    late, early = encoder.transform(pd.DataFrame({"t": [86_390.0, 10.0]}))[:, circle]
    np.testing.assert_allclose(late, early, atol=0.01)


def test_constant_columns_are_left_out() -> None:
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [7.0, 7.0, 7.0], "c": ["x", "x", "x"]})
    kinds: Any = {"a": "number", "b": "number", "c": "category"}
    columns = tuple(Column(name, CellFormat(kind), ("x",)) for name, kind in kinds.items())
    encoder = TableEncoder(Schema("y", columns, {})).fit(X, np.zeros(3))
    assert encoder.feature_names() == ["a"]


def test_columns_with_one_value_are_watched_where_asked_for() -> None:
    X = pd.DataFrame({"c": ["x"] * 3, "b": [7.0] * 3, "a": [1.0, 2.0, 3.0], "g": [5, None, 5]})
    columns = (
        Column("c", CellFormat("category"), ("x",), constant=True),
        Column("b", CellFormat("number"), (), 7.0, 7.0, constant=True),
        Column("a", CellFormat("number"), (), 1.0, 3.0),
        Column("g", CellFormat("number"), (), 5.0, 5.0),
    )
    schema = Schema("y", columns, {})
    watching, plain = TableEncoder(schema, watch=True), TableEncoder(schema)
    known = watching.fit_transform(X, np.zeros(3))
    np.testing.assert_array_equal(known[:, :2], plain.fit_transform(X, np.zeros(3)))
    assert plain.feature_names() == ["a", "g"]
    assert watching.feature_names() == ["a", "g", "b", "g", "c"]
    assert watching.feature_labels()[2] == "b is another than in training"
    assert watching.watching.tolist() == [2, 3, 4]
    assert plain.watching.tolist() == []
    assert not known[:, 2:].any()
    new = pd.DataFrame({"c": ["y", None, "x"], "b": [7.0, 8.0, None], "a": 2.0, "g": [None, 6, 5]})
    np.testing.assert_array_equal(watching.transform(new)[:, 2:], [[0, 0, 1], [1, 1, 1], [1, 0, 0]])
    found = [(places.tolist(), values.tolist()) for places, values in watching.blanks()[-3:]]
    assert found == [([2], [1.0]), ([3], [1.0]), ([4], [1.0])]
    assert len(watching.blanks()) == len(plain.blanks()) + 3


def test_the_same_seed_gives_the_same_numbers(frame: pd.DataFrame) -> None:
    data = prepared(frame)
    one, same, other = (
        TableEncoder(data.schema, random_state=seed).fit_transform(data.X, data.y)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_it_is_saved_as_plain_numbers(frame: pd.DataFrame, tmp_path: Path) -> None:
    data = prepared(frame)
    encoder = TableEncoder(data.schema, random_state=0).fit(data.X, data.y)
    save(encoder, tmp_path / "encoder.accord")
    loaded = accord.load(tmp_path / "encoder.accord", TableEncoder)
    np.testing.assert_array_equal(loaded.transform(data.X), encoder.transform(data.X))
    assert loaded.feature_labels() == encoder.feature_labels()
    assert loaded.schema == encoder.schema


def test_ten_thousand_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(30, 10_000)).round(3)).add_prefix("x")
    wide.assign(price=rng.normal(size=30)).to_csv(tmp_path / "wide.csv", index=False)
    data = prepare_training(read_table(tmp_path / "wide.csv"), target="price")
    assert TableEncoder(data.schema).fit_transform(data.X, data.y).shape == (30, 10_000)


def test_numbers_that_some_rows_lack_are_named_by_their_features() -> None:
    frame = pd.DataFrame({"whole": np.arange(60.0), "k": ["a", "b", "c"] * 20})
    frame["some"] = frame["whole"].mask(np.arange(60) < 5)
    data = prepare_training(read_table(frame.assign(y=np.arange(60.0) % 25)), target="y")
    encoder = TableEncoder(data.schema, random_state=0).fit(data.X, data.y)
    labels = encoder.feature_labels()
    whole, (features, values), _ = encoder.blanks()
    assert [labels[place] for place in whole[0]] == ["whole"]
    assert [labels[place] for place in features] == ["some", "some is missing"]
    matches = (encoder.transform(data.X)[:, features] == values).all(axis=1)
    np.testing.assert_array_equal(matches, np.arange(60) < 5)


def test_unknown_categories_are_named_by_their_features() -> None:
    frame = pd.DataFrame(
        {
            "town": ["Ulm", "Bonn", "Kiel"] * 20,
            "street": [f"s{place % 25}" for place in range(60)],
            "x": np.arange(60.0),
        }
    )
    table = frame.assign(y=np.arange(60.0) % 25)
    data = prepare_training(read_table(table), target="y")
    encoder = TableEncoder(data.schema, random_state=0).fit(data.X, data.y)
    unknown = encoder.transform(data.X.assign(town="Rome", street="new"))
    labels = encoder.feature_labels()
    *_, (town, of_town), (street, of_street) = encoder.blanks()
    assert [labels[place] for place in town] == ["town = Bonn", "town = Kiel", "town = Ulm"]
    assert [labels[place] for place in street] == [
        "mean target of street",
        "how well the mean target of street is known",
    ]
    np.testing.assert_array_equal(unknown[:, town], np.tile(of_town, (60, 1)))
    np.testing.assert_array_equal(unknown[:, street], np.tile(of_street, (60, 1)))
