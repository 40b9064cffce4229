"""Errors of the mean: the same numbers as scikit-learn's."""

import numpy as np
import pytest
from sklearn import metrics as reference

from accord import Normal, metrics

RNG = np.random.default_rng(0)
SHAPES = [(50,), (50, 3)]


@pytest.fixture(params=SHAPES, ids=str)
def pair(request: pytest.FixtureRequest) -> tuple[np.ndarray, np.ndarray]:
    y = RNG.normal(size=request.param)
    return y, y + 0.3 * RNG.normal(size=request.param)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (metrics.rmse, reference.root_mean_squared_error),
        (metrics.squared_error, reference.mean_squared_error),
        (metrics.mae, reference.mean_absolute_error),
        (metrics.r2, reference.r2_score),
    ],
)
def test_as_scikit_learn(ours, theirs, pair) -> None:
    y, mean = pair
    assert ours(y_true=y, mean=mean) == pytest.approx(theirs(y, mean), abs=1e-10)
    assert ours(y_true=y, dist=Normal(mean, np.ones_like(y))) == ours(y_true=y, mean=mean)


def test_per_sample_values_average_to_the_metric(pair) -> None:
    y, mean = pair
    for metric in (metrics.mae, metrics.squared_error):
        values = metric(y_true=y, mean=mean, average=False)
        assert values.shape == y.shape
        assert values.mean() == pytest.approx(metric(y_true=y, mean=mean))


def test_r2_of_a_constant_target() -> None:
    assert metrics.r2(y_true=[2.0, 2.0], mean=[2.0, 2.0]) == 1.0
    assert metrics.r2(y_true=[2.0, 2.0], mean=[2.0, 3.0]) == 0.0


def test_too_few_rows_for_r2() -> None:
    with pytest.raises(ValueError, match="R² needs at least 2 values, got 1"):
        metrics.r2(y_true=[1.0], mean=[1.0])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"y_true": [1.0, np.nan], "mean": [1.0, 1.0]}, ValueError, "y_true must be finite"),
        ({"y_true": [1.0, 2.0], "mean": [1.0, np.inf]}, ValueError, "mean must be finite"),
        ({"y_true": [1.0, 2.0], "mean": [1.0]}, ValueError, "must have the same shape"),
        ({"y_true": [1.0, 2.0], "mean": [[1.0], [2.0]]}, ValueError, "must have the same shape"),
        ({"y_true": [], "mean": []}, ValueError, "y_true must not be empty"),
        ({"y_true": 1.0, "mean": 1.0}, ValueError, r"y_true must have shape \(N,\)"),
        ({"y_true": ["a"], "mean": [1.0]}, TypeError, "y_true must be numbers"),
        ({"y_true": [1.0]}, TypeError, "mean= or dist=, got neither"),
        ({"y_true": [1.0], "mean": [1.0], "dist": 3}, TypeError, "mean= or dist=, got both"),
    ],
)
def test_bad_input(arguments, error, message) -> None:
    with pytest.raises(error, match=message):
        metrics.mae(**arguments)
