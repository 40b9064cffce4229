"""Answers as people's tables want them, whatever predicts their distributions."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, overload

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from accord._checks import check_probability
from accord._types import Floats
from accord.distributions import PARTS, Distribution
from accord.tables import ArrowFrame, Table, TableFile

# Rows to learn from or to predict: a frame, an array, or a file.
Array: TypeAlias = NDArray[Any]
Unframed: TypeAlias = Array | Sequence[Any] | Table | TableFile | str | Path
Rows: TypeAlias = pd.DataFrame | ArrowFrame | Unframed
F = TypeVar("F", bound=ArrowFrame)


class AnswersRows(ABC):
    """A model of rows that answers with means, intervals, quantiles and parts of uncertainty.

    All of them are read off the distributions that a subclass predicts. A frame is answered with a
    frame of the same library (pandas, polars, pyarrow), one of pandas with its index.
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
    def predict_interval(self, X: F, coverage: float | None = None) -> F: ...
    @overload
    def predict_interval(self, X: Unframed, coverage: float | None = None) -> Floats: ...
    def predict_interval(self, X: Rows, coverage: float | None = None) -> ArrowFrame | Floats:
        """Intervals that contain the target with probability ``coverage``, by default the model's.

        **Shape**: (N, 2). A frame gives a frame of its kind.
        """
        share = self.coverage if coverage is None else coverage
        check_probability("coverage", share, strict=True, remedy="Write 0.95 for 95 %.")
        return framed(X, np.asarray(self.predict_dist(X).interval(share)), ["lower", "upper"])

    @overload
    def predict_quantiles(self, X: F, alpha: float | Sequence[float]) -> F: ...
    @overload
    def predict_quantiles(self, X: Unframed, alpha: float | Sequence[float]) -> Floats: ...
    def predict_quantiles(self, X: Rows, alpha: float | Sequence[float]) -> ArrowFrame | Floats:
        """Quantiles at the levels ``alpha``, each in (0, 1).

        **Shape**: (N, len(alpha)). A frame gives a frame of its kind.
        """
        levels = np.atleast_1d(np.asarray(alpha, dtype=float))
        values = np.asarray(self.predict_dist(X).quantile(levels))
        return framed(X, values, [f"{level:g}" for level in levels])

    @overload
    def predict_uncertainty(self, X: F) -> F: ...
    @overload
    def predict_uncertainty(self, X: Unframed) -> pd.DataFrame: ...
    def predict_uncertainty(self, X: Rows) -> ArrowFrame:
        """Where the uncertainty of each row comes from, as standard deviations.

        Columns: ``mean``; ``noise`` in the data; ``disagreement`` between models, 0 for a single
        one; ``distance`` from the training rows; ``total``, the root of the sum of their squares.
        """
        dist = self.predict_dist(X)
        parts = {name: getattr(dist, name) for name in ("mean", *PARTS)} | {"total": dist.std}
        values = np.column_stack([np.asarray(part) for part in parts.values()])
        found = framed(X, values, list(parts))
        return pd.DataFrame(found, columns=list(parts)) if isinstance(found, np.ndarray) else found


def framed(X: Any, values: Floats, names: list[str]) -> ArrowFrame | Floats:
    """``values`` as a frame of the same library as ``X``, if that is one."""
    if isinstance(X, pd.DataFrame):
        return pd.DataFrame(values, index=X.index, columns=names)
    if not isinstance(X, ArrowFrame):
        return values
    # a frame of a library that need not be installed: its own class makes one from columns
    make: Any = pa.table if isinstance(X, pa.Table) else type(X)
    found: ArrowFrame = make(dict(zip(names, values.T, strict=True)))
    return found
