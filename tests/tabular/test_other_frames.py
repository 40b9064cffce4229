"""Frames of other libraries: the same model as from pandas, answers in the frame's own kind."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

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


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "arrow"])
def test_a_guard_of_a_frame_of_another_library(make: Any) -> None:
    """Its model finds columns by their names, as in a frame of pandas."""
    frame = houses()
    X, y = frame.drop(columns="price"), frame["price"]
    other = make(X)
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["town", "heating"]),
        ("passthrough", ["area", "rooms"]),
    )
    inner = make_pipeline(columns, HistGradientBoostingRegressor(max_iter=5))
    expected = accord.guard(inner, random_state=0).fit(X, y)
    model = accord.guard(inner, random_state=0).fit(other, y)
    for answer in (model.predict(other), model.predict(X), expected.predict(other)):
        np.testing.assert_allclose(answer, expected.predict(X))
    assert type(model.predict_interval(other)) is type(other)
    assert model.is_unusual(other).tolist() == expected.is_unusual(X).tolist()
    np.testing.assert_allclose(
        model.explain_uncertainty(other).parts.std, expected.explain_uncertainty(X).parts.std
    )
