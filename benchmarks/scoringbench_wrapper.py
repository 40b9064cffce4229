"""Accord in ScoringBench (github.com/jonaslandsgesell/ScoringBench), which ranks models by scores.

A model there has three methods: ``fit(X, y)``, ``predict(X)`` and ``predict_distribution(X)``. To
run it, copy this file to ``scoringbench/univariate/wrappers/accord_wrapper.py``, add the class to
the list of wrappers beside it and an entry to ``MODELS`` in ``scoringbench/univariate/models.py``,
such as

    "accord_v1_0": lambda: AccordWrapper(),

and call ``python run_bench_regression.py``. Imports from the benchmark happen where they are
needed, so that this file can be tried without it.
"""

from typing import Any

import numpy as np
import pandas as pd

import accord

# Levels at which distributions are handed over: the tails are what scores of intervals look at.
_TAIL = np.array([1e-4, 5e-4, 1e-3, 2.5e-3, 5e-3])
LEVELS = np.concatenate([_TAIL, np.arange(1, 100) / 100, 1 - _TAIL[::-1]])


def _wrapper_class() -> type:
    """The class that the benchmark wants its models to be of; any if it is not installed."""
    try:
        from scoringbench.univariate.wrappers.base import ProbabilisticWrapper
    except ImportError:
        return object
    return ProbabilisticWrapper


class AccordWrapper(_wrapper_class()):
    """The table model with its defaults, or with other settings of ``accord.TableRegressor``."""

    def __init__(self, **settings: Any) -> None:
        self._settings = {"random_state": 0, **settings}

    def fit(self, X: pd.DataFrame, y: pd.Series) -> "AccordWrapper":
        """Learn from the rows whose target is a finite number."""
        target = np.asarray(y, dtype=np.float64).reshape(-1)
        known = np.isfinite(target)
        self._y_train_range = (float(target[known].min()), float(target[known].max()))
        self._model = accord.TableRegressor(**self._settings)
        self._model.fit(_frame(X)[known], target[known])
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """The mean of each row, (N,)."""
        return self._model.predict(_frame(X))

    def predict_distribution(self, X: pd.DataFrame) -> Any:
        """The benchmark's own form of a distribution, from quantiles: neither drawn nor binned."""
        from scoringbench.univariate.wrappers.base import DistributionPrediction

        dist = self._model.predict_dist(_frame(X))
        return DistributionPrediction.from_multi_quantile(
            np.asarray(dist.quantile(LEVELS)),
            LEVELS,
            mean=np.asarray(dist.mean),
            train_range=self._y_train_range,
        )


def _frame(X: Any) -> pd.DataFrame:
    """Columns by name, rows by number."""
    frame = pd.DataFrame(X).reset_index(drop=True)
    return frame.set_axis([str(name) for name in frame.columns], axis=1)
