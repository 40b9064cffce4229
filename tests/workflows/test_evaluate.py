"""New labelled rows: whether the model holds."""

import numpy as np
import pandas as pd
import pytest

from accord._files import OptionError
from accord.tables import TableError
from accord.tabular import TableProfile
from accord.workflows import FitResult, evaluate_table
from accord.workflows.explain import unused_columns


def fresh(n: int, *, seed: int, shift: float = 0.0) -> pd.DataFrame:
    """Further houses of the same kind, or larger ones."""
    rng = np.random.default_rng(seed)
    area, age = rng.uniform(40, 200, n) + shift, rng.uniform(0, 80, n)
    town = rng.choice(["Ulm", "Bonn", "<b>Kiel</b>"], n, p=[0.5, 0.4, 0.1])
    frame = pd.DataFrame({"area": area, "age": age, "town": town})
    frame["sold"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.uniform(0, 745, n), "D")
    frame["<script>alert(1)</script>"] = rng.normal(size=n)
    frame["country"] = "DE"
    noise = rng.normal(0, 10 + area / 10)
    frame["price"] = 2 * area - age / 2 + 20 * (town == "Ulm") + noise
    return frame


def test_rows_of_the_same_kind_hold(fitted: FitResult) -> None:
    result = evaluate_table(fitted.model, fresh(300, seed=5))
    assert result.verdict.level == "good"
    assert result.verdict.headline.startswith("The 95 % intervals hold and are")
    assert result.found.covered > 0.9


def test_larger_houses_are_noticed(fitted: FitResult) -> None:
    result = evaluate_table(fitted.model, fresh(300, seed=5, shift=150.0))
    assert result.unusual.mean() > 0.3
    assert result.unusual_rows[0].peculiar[0][0] == "area"


def test_a_column_that_no_model_looks_at_is_no_reason(
    fitted: FitResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, noise = fitted.model, "<script>alert(1)</script>"
    rows = fresh(2, seed=5, shift=250.0).assign(**{noise: 99.0})
    assert {name for name, _ in model.profile_.peculiarities(rows)[0]} >= {"area", noise}
    place = model.encoder_.feature_names().index(noise)
    monkeypatch.setattr(model.engine_, "left_out_", np.array([place]))
    assert unused_columns(model) == [noise]
    peculiar = model.profile_.peculiarities(rows, unused=unused_columns(model))
    assert [name for name, _ in peculiar[0]] == ["area"]


def test_a_gap_is_named_where_nothing_else_is_peculiar() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"size": rng.normal(size=100), "age": rng.normal(size=100)})
    table.loc[::8, "size"] = np.nan
    rows = pd.DataFrame({"size": [np.nan, 0.1, np.nan], "age": [0.1, 0.1, 9.0]})
    found = TableProfile(table).peculiarities(rows)
    assert found == [(("size", "missing"),), (), (("age", "9"),)]
    assert TableProfile(table).peculiarities(rows, unused=["size"])[0] == ()


def test_one_of_two_common_values_is_not_peculiar() -> None:
    switch = np.repeat([1.0, 2.0], [53, 47])
    table = pd.DataFrame({"switch": switch, "size": np.linspace(0, 1, 100)})
    rows = pd.DataFrame({"switch": [2.0, 3.0], "size": [0.9, 4.0]})
    found = TableProfile(table).peculiarities(rows)
    assert found[0] == ()
    assert [name for name, _ in found[1]] == ["size", "switch"]


def test_the_training_table_itself_is_no_test(fitted: FitResult, houses: pd.DataFrame) -> None:
    result = evaluate_table(fitted.model, houses)
    assert result.verdict.level == "caution"
    assert "trained on: they cannot test it" in result.verdict.headline
    assert "About 100 % of the rows equal training rows" in result.warnings[0]
    sold = houses.assign(sold=pd.to_datetime(houses["sold"]))
    mixed = evaluate_table(fitted.model, pd.concat([sold.iloc[:50], fresh(100, seed=3)]))
    assert "About 33 % of the rows equal training rows" in mixed.warnings[0]
    assert not evaluate_table(fitted.model, fresh(50, seed=3)).warnings


def test_rows_without_a_target_are_left_out(fitted: FitResult) -> None:
    frame = fresh(50, seed=1)
    frame.loc[:9, "price"] = np.nan
    result = evaluate_table(fitted.model, frame)
    assert len(result.found) == 40
    assert "10 rows without a target value left out." in result.warnings
    with pytest.raises(TableError, match="at least 10 rows with a target, got 5"):
        evaluate_table(fitted.model, fresh(5, seed=1))


def test_copies_are_no_further_evidence(fitted: FitResult) -> None:
    frame = fresh(60, seed=7)
    once = evaluate_table(fitted.model, frame).found
    copied = evaluate_table(fitted.model, pd.concat([frame] * 3)).found
    assert copied.covered == once.covered
    np.testing.assert_allclose(copied.covered_range, once.covered_range, atol=0.01)


def test_the_target_must_be_there(fitted: FitResult) -> None:
    with pytest.raises(OptionError, match="'price' is not in the DataFrame"):
        evaluate_table(fitted.model, fresh(50, seed=1).drop(columns="price"))
