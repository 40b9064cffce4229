"""What a model can do once it predicts distributions, whatever it was asked with."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from accord import Normal, PredictiveModel
from accord.distributions import Distribution

X = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [5.0, 5.0, 5.0]}, index=["i", "j", "k"])


class Known(PredictiveModel):
    """Predicts the features themselves, one or several, with deviation 2."""

    def __init__(self, *targets: str) -> None:
        self.target_names_ = list(targets)

    def predict_dist(self, X: Any) -> Distribution:
        values = pa.table(X).to_pandas()[["a", "b"]].to_numpy()
        return Normal(values if self.target_names_ else values[:, 0], 2.0)

    def save(self, path: str | Path) -> None:
        raise NotImplementedError


def others() -> list[Any]:
    polars = pytest.importorskip("polars")
    return [pa.Table.from_pandas(X, preserve_index=False), polars.from_pandas(X)]


def test_a_frame_is_answered_with_one_of_its_library() -> None:
    expected = Known().predict_interval(X)
    assert expected.index.tolist() == ["i", "j", "k"]
    assert list(expected) == ["lower", "upper"]
    for frame in others():
        for answer in ("predict_interval", "predict_uncertainty"):
            assert type(getattr(Known(), answer)(frame)) is type(frame)
        np.testing.assert_array_equal(Known().predict_interval(frame), expected)
        assert pa.table(Known().predict_quantiles(frame, 0.5)).column_names == ["0.5"]


def test_several_targets_have_columns_each() -> None:
    expected = Known("up", "down").predict_interval(X)
    assert expected["down"]["lower"].tolist() == pytest.approx([5 - 1.96 * 2] * 3, abs=1e-3)
    for frame in others():
        found = pa.table(Known("up", "down").predict_interval(frame))
        assert found.column_names == ["up lower", "up upper", "down lower", "down upper"]
        np.testing.assert_array_equal(found.to_pandas(), expected)


def test_intervals_have_the_coverage_of_the_model_unless_asked_for_another() -> None:
    model = Known()
    pd.testing.assert_frame_equal(model.predict_interval(X), model.predict_interval(X, 0.95))
    model.coverage = 0.5
    pd.testing.assert_frame_equal(model.predict_interval(X), model.predict_interval(X, 0.5))
    with pytest.raises(ValueError, match=r"coverage must lie strictly between 0 and 1, got 95"):
        model.predict_interval(X, 95)
