"""How new rows differ from those in training, column by column."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from accord.tabular import TableProfile
from accord.workflows import ColumnDrift, Drift, measure_drift


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

    usual = TableProfile(table(400))
    target = TableProfile(pd.DataFrame({"y": rng.normal(size=400)}))
    calls = 0
    for _ in range(100):
        drift = measure_drift(
            table(200),
            usual,
            unusual=np.zeros(200, dtype=bool),
            y=rng.normal(size=200),
            usual_target=target,
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
    drift = measure_drift(
        frame.assign(**{column: change(frame[column])}),
        TableProfile(frame),
        unusual=np.zeros(400, dtype=bool),
    )
    assert drift.drifted == [column]
    assert drift.target is None


def test_drift_sentences_do_not_contradict_themselves() -> None:
    same = ColumnDrift("x", 0.02, 0.8, False)
    one = Drift((same,), same, unusual=0.05, unusual_expected=0.05, n_rows=200)
    assert one.sentences()[0] == "The only column has the same distribution as in training."
    assert not one.any
    mixed = Drift((same, same), same, unusual=0.4, unusual_expected=0.05, n_rows=200)
    assert mixed.any
    assert "each by itself" in mixed.sentences()[0]
    assert "their combinations of values are new" in mixed.sentences()[1]
    moved = Drift((replace(same, drifted=True),), same, 0.4, 0.05, n_rows=200)
    assert "combinations" not in moved.sentences()[1]


def test_new_categories_are_no_drift_where_most_are_nobody_elses() -> None:
    rng = np.random.default_rng(0)

    def table(n: int) -> pd.DataFrame:
        names = [f"s{place}" for place in rng.zipf(1.6, n)]  # a few are common, most are rare
        return pd.DataFrame({"shop": pd.Series(names, dtype=object)})

    calls = 0
    for _ in range(100):
        usual, new = table(300), table(200)
        unusual = ~new["shop"].isin(usual["shop"]).to_numpy()
        assert 0.03 < unusual.mean() < 0.4
        calls += measure_drift(new, TableProfile(usual), unusual=unusual).any
    assert calls <= 5
    changed = table(200).assign(shop="s1")
    found = measure_drift(changed, TableProfile(usual), unusual=np.zeros(200, dtype=bool))
    assert found.drifted == ["shop"]


def test_copies_of_rows_do_not_make_a_drift() -> None:
    rng = np.random.default_rng(0)
    calls = [
        measure_drift(
            pd.DataFrame({"x": np.repeat(rng.normal(size=100), 8)}),
            TableProfile(pd.DataFrame({"x": np.repeat(rng.normal(size=60), 5)})),
            unusual=np.zeros(800, dtype=bool),
            separate=(1 / 8, 1 / 5),
        ).any
        for _ in range(100)
    ]
    assert np.mean(calls) <= 0.05


def test_few_training_rows_do_not_know_how_many_are_unusual() -> None:
    few, many = (TableProfile(pd.DataFrame({"x": np.linspace(0, 1, n)})) for n in (25, 2_000))
    rows = pd.DataFrame({"x": np.linspace(0, 1, 2_000)})
    unusual = np.arange(2_000) < 300
    assert not measure_drift(rows, few, unusual=unusual).any
    assert measure_drift(rows, many, unusual=unusual).any
