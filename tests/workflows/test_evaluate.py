"""New labelled rows: whether the model holds, and whether the data have drifted."""

import numpy as np
import pandas as pd
import pytest

from accord.tables import OptionError, TableError
from accord.tabular import TableProfile
from accord.workflows import FitResult, evaluate_table, measure_drift


def fresh(n: int, *, seed: int, shift: float = 0.0) -> pd.DataFrame:
    """Further houses of the same kind, or larger ones."""
    rng = np.random.default_rng(seed)
    area, age = rng.uniform(40, 200, n) + shift, rng.uniform(0, 80, n)
    town = rng.choice(["Ulm", "Bonn", "<b>Kiel</b>"], n, p=[0.5, 0.4, 0.1])
    frame = pd.DataFrame({"area": area, "age": age, "town": town})
    frame["sold"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.uniform(0, 745, n), "D")
    frame["<script>alert(1)</script>"] = rng.normal(size=n)
    noise = rng.normal(0, 10 + area / 10)
    frame["price"] = 2 * area - age / 2 + 20 * (town == "Ulm") + noise
    return frame


def test_rows_of_the_same_kind_hold_and_have_not_drifted(fitted: FitResult) -> None:
    result = evaluate_table(fitted.model, fresh(300, seed=5))
    assert result.verdict.level == "good"
    assert result.verdict.headline.startswith("The 95 % intervals hold and are")
    assert result.found.covered > 0.9
    assert result.drift.drifted == []
    assert "distributed as in training" in result.drift.sentences()[0]


def test_larger_houses_are_noticed(fitted: FitResult) -> None:
    result = evaluate_table(fitted.model, fresh(300, seed=5, shift=150.0))
    assert result.verdict.level != "good"
    assert "area" in result.drift.drifted
    assert "town" not in result.drift.drifted
    assert result.drift.unusual > 0.3
    assert result.drift.target.drifted
    assert "the data have drifted" in result.verdict.headline
    assert result.unusual_rows[0].peculiar[0][0] == "area"


def test_the_training_table_itself_is_no_test(fitted: FitResult, houses: pd.DataFrame) -> None:
    result = evaluate_table(fitted.model, houses)
    assert result.verdict.level == "caution"
    assert "trained on: they cannot test it" in result.verdict.headline
    assert "About 100 % of these rows were trained on" in result.warnings[0]
    sold = houses.assign(sold=pd.to_datetime(houses["sold"]))
    mixed = evaluate_table(fitted.model, pd.concat([sold.iloc[:50], fresh(100, seed=3)]))
    assert "About 33 % of these rows were trained on" in mixed.warnings[0]
    assert not evaluate_table(fitted.model, fresh(50, seed=3)).warnings


def test_rows_without_a_target_are_left_out(fitted: FitResult) -> None:
    frame = fresh(50, seed=1)
    frame.loc[:9, "price"] = np.nan
    result = evaluate_table(fitted.model, frame)
    assert len(result.found) == 40
    assert "10 rows without a target value left out." in result.warnings
    with pytest.raises(TableError, match="at least 10 rows with a target, got 5"):
        evaluate_table(fitted.model, fresh(5, seed=1))


def test_the_target_must_be_there(fitted: FitResult) -> None:
    with pytest.raises(OptionError, match="'price' is not in the DataFrame"):
        evaluate_table(fitted.model, fresh(50, seed=1).drop(columns="price"))


def test_drift_is_called_rarely_where_there_is_none() -> None:
    rng = np.random.default_rng(0)

    def table(n: int) -> pd.DataFrame:
        return pd.DataFrame(
            {
                "normal": rng.normal(size=n),
                "integer": rng.integers(0, 4, n).astype(float),
                "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.random(n)),
                "letters": rng.choice(["a", "b", "c"], n).astype(object),
            }
        )

    usual, target = (
        TableProfile(table(400)),
        TableProfile(pd.DataFrame({"y": rng.normal(size=400)})),
    )
    calls = 0
    for _ in range(100):
        drift = measure_drift(
            table(200),
            usual,
            rng.normal(size=200),
            target,
            unusual=np.zeros(200, dtype=bool),
            unusual_expected=0.05,
        )
        calls += bool(drift.drifted)
    assert calls <= 5


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("normal", lambda c: c + 1),
        ("normal", lambda c: c * 3),
        ("gaps", lambda c: c.where(c.index % 2 == 0)),
        ("letters", lambda c: c.where(c != "a", "z")),
    ],
    ids=["moved", "wider", "more gaps", "another letter"],
)
def test_drift_is_found(column: str, change: object) -> None:
    assert callable(change)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "normal": rng.normal(size=400),
            "gaps": np.where(rng.random(400) < 0.2, np.nan, rng.random(400)),
            "letters": rng.choice(["a", "b", "c"], 400).astype(object),
        }
    )
    target = TableProfile(pd.DataFrame({"y": [0.0, 1.0]}))
    drift = measure_drift(
        frame.assign(**{column: change(frame[column])}),
        TableProfile(frame),
        np.array([0.0, 1.0]),
        target,
        unusual=np.zeros(400, dtype=bool),
        unusual_expected=0.05,
    )
    assert drift.drifted == [column]


def test_drift_sentences_do_not_contradict_themselves() -> None:
    from accord.workflows import ColumnDrift, Drift

    same = ColumnDrift("x", 0.02, 0.8, False)
    one = Drift((same,), same, unusual=0.05, unusual_expected=0.05, n_rows=200)
    assert one.sentences()[0] == "The only column is distributed as in training."
    assert not one.any
    mixed = Drift((same, same), same, unusual=0.4, unusual_expected=0.05, n_rows=200)
    assert mixed.any
    assert "each by itself" in mixed.sentences()[0]
    assert "their combinations of values are new" in mixed.sentences()[1]
