"""The wrapper for ScoringBench against that benchmark's interface, as its own files state it.

The benchmark is no package that can be installed: a stand-in has the parts that wrappers use, with
their signatures (``scoringbench/univariate/wrappers/base.py``).
"""

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

import accord

PATH = Path(__file__).parents[1] / "benchmarks" / "scoringbench_wrapper.py"
BASE = "scoringbench.univariate.wrappers.base"


@dataclass
class DistributionPrediction:
    """What the benchmark scores: here what was handed over."""

    quantiles: np.ndarray
    levels: np.ndarray
    mean: np.ndarray
    train_range: tuple[float, float]

    @classmethod
    def from_multi_quantile(
        cls, q: Any, alphas: Any, mean: Any = None, *, train_range: Any, **kw: Any
    ) -> "DistributionPrediction":
        low, high = train_range
        assert np.isfinite([low, high]).all()
        assert low < high
        return cls(np.asarray(q), np.asarray(alphas), np.asarray(mean), train_range)


class ProbabilisticWrapper:
    _y_train_range: tuple[float, float] | None = None


@pytest.fixture
def wrapper(monkeypatch: pytest.MonkeyPatch) -> Any:
    parts = BASE.split(".")
    for n in range(1, len(parts)):
        monkeypatch.setitem(sys.modules, ".".join(parts[:n]), ModuleType(".".join(parts[:n])))
    base = ModuleType(BASE)
    base.__dict__.update(
        DistributionPrediction=DistributionPrediction, ProbabilisticWrapper=ProbabilisticWrapper
    )
    monkeypatch.setitem(sys.modules, BASE, base)
    return wrapper_class()


def wrapper_class() -> Any:
    spec = importlib.util.spec_from_file_location("accord_wrapper", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.AccordWrapper


def test_the_three_methods(wrapper: Any) -> None:
    """Rows as the benchmark has them: an index with gaps, categories, a target left out."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=90), "b": rng.choice(["x", "y"], 90)})
    target = pd.Series(frame["a"] + 0.3 * rng.normal(size=90), name="y")
    target[5] = np.nan
    engine = accord.DeepEnsembleRegressor(n_members=2, epochs=10, random_state=0)
    model = wrapper(engine=engine)
    assert isinstance(model, ProbabilisticWrapper)
    train, test = frame[::2].copy(), frame[1::2].copy()
    assert model.fit(train, target[::2]) is model
    found = model.predict_distribution(test)
    mean = model.predict(test)
    assert mean.shape == (45,)
    np.testing.assert_allclose(found.mean, mean)
    assert found.quantiles.shape == (45, len(found.levels))
    assert (np.diff(found.levels) > 0).all()
    assert (np.diff(found.quantiles, axis=1) >= 0).all()
    assert found.train_range == (target[::2].min(), target[::2].max())
    # the mean of a distribution is the integral of its quantile function
    integral = np.trapezoid(found.quantiles, found.levels, axis=1)
    np.testing.assert_allclose(integral, mean, atol=0.01 * target.std())


def test_it_can_be_tried_without_the_benchmark() -> None:
    engine = accord.DeepEnsembleRegressor(n_members=1, epochs=1, random_state=0)
    x = np.arange(40.0)[:, None]
    model = wrapper_class()(engine=engine).fit(x, x[:, 0])
    assert model.predict(x).shape == (40,)
    with pytest.raises(ModuleNotFoundError, match="scoringbench"):
        model.predict_distribution(x)
