"""Answers as people's tables want them, whatever predicts their distributions."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from accord._checks import check_probability
from accord._types import Floats
from accord.distributions import Distribution
from accord.tables import Table

# Rows to learn from or to predict: a frame, an array, or a file.
Array: TypeAlias = NDArray[Any]
Unframed: TypeAlias = Array | Sequence[Any] | Table | str | Path
Rows: TypeAlias = pd.DataFrame | Unframed


class AnswersRows(ABC):
    """A model of rows that answers with means, intervals, quantiles and parts of uncertainty.

    All of them are read off the distributions that a subclass predicts. A DataFrame is answered
    with a DataFrame that has its index.
    """

    coverage: float

    @abstractmethod
    def predict_dist(self, X: Rows) -> Distribution:
        """The predictive distribution of each row: mean, std, pdf, cdf, quantile, sample, …

        **Shape**: (N,).
        """

    @overload
    def predict(self, X: Rows, return_std: Literal[False] = False) -> Floats: ...
    @overload
    def predict(self, X: Rows, return_std: Literal[True]) -> tuple[Floats, Floats]: ...
    def predict(self, X: Rows, return_std: bool = False) -> Floats | tuple[Floats, Floats]:
        """The predicted mean of each row; with ``return_std`` also its standard deviation.

        **Shape**: (N,).
        """
        dist = self.predict_dist(X)
        mean = np.asarray(dist.mean)
        return (mean, np.asarray(dist.std)) if return_std else mean

    @overload
    def predict_interval(self, X: pd.DataFrame, coverage: float | None = None) -> pd.DataFrame: ...
    @overload
    def predict_interval(self, X: Unframed, coverage: float | None = None) -> Floats: ...
    def predict_interval(self, X: Rows, coverage: float | None = None) -> pd.DataFrame | Floats:
        """Intervals that contain the target with probability ``coverage``, by default the model's.

        **Shape**: (N, 2). A DataFrame gives a DataFrame with its index.
        """
        share = self.coverage if coverage is None else coverage
        check_probability("coverage", share, strict=True)
        return framed(X, np.asarray(self.predict_dist(X).interval(share)), ["lower", "upper"])

    @overload
    def predict_quantiles(
        self, X: pd.DataFrame, alpha: float | Sequence[float]
    ) -> pd.DataFrame: ...
    @overload
    def predict_quantiles(self, X: Unframed, alpha: float | Sequence[float]) -> Floats: ...
    def predict_quantiles(self, X: Rows, alpha: float | Sequence[float]) -> pd.DataFrame | Floats:
        """Quantiles at the levels ``alpha``, each in (0, 1).

        **Shape**: (N, len(alpha)). A DataFrame gives a DataFrame with its index.
        """
        levels = np.atleast_1d(np.asarray(alpha, dtype=float))
        values = np.asarray(self.predict_dist(X).quantile(levels))
        return framed(X, values, [f"{level:g}" for level in levels])

    def predict_uncertainty(self, X: Rows) -> pd.DataFrame:
        """Where the uncertainty of each row comes from, as standard deviations.

        Columns: ``mean``; ``noise`` in the data; ``disagreement`` between models, 0 for a single
        one; ``distance`` from the training rows; ``total``, the root of the sum of their squares.
        """
        dist = self.predict_dist(X)
        return pd.DataFrame(
            {
                "mean": np.asarray(dist.mean),
                "noise": np.asarray(dist.noise),
                "disagreement": np.asarray(dist.disagreement),
                "distance": np.asarray(dist.distance),
                "total": np.asarray(dist.std),
            },
            index=X.index if isinstance(X, pd.DataFrame) else None,
        )


def framed(X: Any, values: Floats, names: list[str]) -> pd.DataFrame | Floats:
    """``values`` as a DataFrame with the index of ``X`` if that is one."""
    if not isinstance(X, pd.DataFrame):
        return values
    return pd.DataFrame(values, index=X.index, columns=names)
