"""Frames of other libraries: the same model as from pandas, answers in the frame's own kind."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import accord

pl = pytest.importorskip("polars")


def engine() -> accord.DeepEnsembleRegressor:
    return accord.DeepEnsembleRegressor(n_members=2, epochs=3, random_state=0)


def houses(n: int = 80) -> pd.DataFrame:
    """Numbers, texts, categories, dates, booleans; gaps in most of them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "area": rng.uniform(40, 200, n),
            "rooms": rng.integers(1, 7, n),
            "town": rng.choice(["Ulm", "Bonn", "Kiel"], n),
            "heating": pd.Categorical(rng.choice(["gas", "oil"], n)),
            "sold": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
            "garden": rng.random(n) < 0.5,
        }
    )
    frame.loc[rng.random(n) < 0.1, ["area", "town", "sold"]] = None
    frame["price"] = 2 * frame["area"].fillna(100) + 9 * frame["rooms"] + rng.normal(0, 5, n)
    return frame


@pytest.fixture(scope="module")
def by_pandas() -> accord.TableRegressor:
    return accord.TableRegressor(engine=engine(), random_state=0).fit(houses(), "price")


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "arrow"])
def test_a_frame_of_another_library(make: Any, by_pandas: accord.TableRegressor) -> None:
    """Fitted from it and asked with it, in any combination, the answers are the same."""
    frame = houses()
    other = make(frame)
    model = accord.TableRegressor(engine=engine(), random_state=0).fit(other, "price")
    np.testing.assert_allclose(model.predict(other), by_pandas.predict(frame))
    np.testing.assert_allclose(model.predict(frame), by_pandas.predict(other))
    assert model.is_unusual(other).tolist() == by_pandas.is_unusual(frame).tolist()
    for name, options in (
        ("predict_interval", {"coverage": 0.8}),
        ("predict_quantiles", {"alpha": [0.1, 0.5]}),
        ("predict_uncertainty", {}),
    ):
        answer = getattr(model, name)(other, **options)
        assert type(answer) is type(other)
        expected = getattr(by_pandas, name)(frame, **options)
        answered = answer.to_pandas()
        assert list(answered.columns) == list(expected.columns)
        np.testing.assert_allclose(answered, expected)


def test_targets_as_a_polars_series(by_pandas: accord.TableRegressor) -> None:
    frame = pl.from_pandas(houses())
    model = accord.TableRegressor(engine=engine(), random_state=0)
    model.fit(frame.drop("price"), frame["price"])
    assert model.schema_.target == "price"
    np.testing.assert_allclose(model.predict(frame), by_pandas.predict(houses()))


def test_a_query_that_has_not_run_is_no_table() -> None:
    with pytest.raises(TypeError, match=r"got a LazyFrame.*collect"):
        accord.TableRegressor(engine=engine()).fit(pl.from_pandas(houses()).lazy(), "price")
