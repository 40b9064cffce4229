"""What every fitted model can do, once it predicts a distribution per row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from accord._types import ArrowFrame, Floats, Frame
from accord.distributions.distribution import Distribution
from accord.distributions.predictive import uncertainty_of

if TYPE_CHECKING:
    import pandas as pd


class PredictiveModel(ABC):
    """What every fitted model of this library can do, whatever its class.

    Ensembles, portfolios, recalibrated and guarded models and models of tables are all of this
    kind. Each says in ``predict_dist`` what it predicts; means, intervals, quantiles and parts of
    uncertainty are read off that. A frame is answered with a frame of the same library (pandas,
    polars, pyarrow), one of pandas with its index.

    **Shape**: N rows are answered with (N,), intervals with (N, 2), L quantiles with (N, L); of a
    model of T targets with (N, T), (N, T, 2) and (N, T, L), and in a frame with columns for each.
    """

    coverage: float = 0.95
    """Share of the values that intervals should contain, unless another one is asked for."""

    target_names_: list[str]

    @abstractmethod
    def predict_dist(self, X: Any) -> Distribution:
        """The predictive distribution of each row: mean, std, pdf, cdf, quantile, sample, …

        **Shape**: (N,), or (N, T) if fitted on several outputs.
        """

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> Floats: ...
    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[Floats, Floats]: ...
    @overload
    def predict(self, X: Any, return_std: bool) -> Floats | tuple[Floats, Floats]: ...
    def predict(self, X: Any, return_std: bool = False) -> Floats | tuple[Floats, Floats]:
        """Predictive mean, and with ``return_std`` the standard deviation, noise included.

        On the CPU a row's answer depends on the rows predicted with it by at most 1e-12 of
        |mean| + std; by at most 1e-6 for a portfolio, whose networks predict in float32, in
        products of the same size whatever the batch.

        **Shape**: (N,), or (N, T) if fitted on several outputs.
        """
        dist = self.predict_dist(X)
        mean = np.asarray(dist.mean)
        return (mean, np.asarray(dist.std)) if return_std else mean

    @overload
    def predict_interval(self, X: Frame, coverage: float | None = None) -> Frame: ...
    @overload
    def predict_interval(self, X: Any, coverage: float | None = None) -> Floats: ...
    def predict_interval(self, X: Any, coverage: float | None = None) -> ArrowFrame | Floats:
        """Central intervals that hold the target with probability ``coverage``, else the model's.

        **Shape**: (N, 2), or (N, T, 2) if fitted on several outputs. A frame gives a frame of its
        kind.
        """
        share = self.coverage if coverage is None else coverage
        return self._framed(X, np.asarray(self.predict_dist(X).interval(share)), ["lower", "upper"])

    @overload
    def predict_quantiles(self, X: Frame, alpha: float | Sequence[float]) -> Frame: ...
    @overload
    def predict_quantiles(self, X: Any, alpha: float | Sequence[float]) -> Floats: ...
    def predict_quantiles(self, X: Any, alpha: float | Sequence[float]) -> ArrowFrame | Floats:
        """Quantiles at the levels ``alpha``, each in (0, 1).

        **Shape**: (N, len(alpha)), or (N, T, len(alpha)) if fitted on several outputs. A frame
        gives a frame of its kind.
        """
        levels = np.atleast_1d(np.asarray(alpha, dtype=float))
        values = np.asarray(self.predict_dist(X).quantile(levels))
        return self._framed(X, values, [f"{level:g}" for level in levels])

    @overload
    def predict_uncertainty(self, X: Frame) -> Frame: ...
    @overload
    def predict_uncertainty(self, X: Any) -> pd.DataFrame: ...
    def predict_uncertainty(self, X: Any) -> ArrowFrame:
        """Where the uncertainty of each row comes from, as standard deviations.

        Columns: ``mean``; ``noise`` in the data; ``disagreement`` between models, 0 for a single
        one; ``distance`` from the training rows, 0 for a model that does not know it; ``total``,
        the root of the sum of their squares. Of several outputs, these of each under its name.
        """
        import pandas as pd

        parts = uncertainty_of(self.predict_dist(X))
        values = np.stack(list(parts.values()), axis=-1)
        rows = X if isinstance(X, ArrowFrame) else pd.DataFrame(index=range(len(values)))
        return self._frame_like(rows, values, list(parts))

    @abstractmethod
    def save(self, path: str | Path) -> None:
        """Write the model to one file that is safe to load (``accord.load``)."""

    def _framed(self, X: Any, values: Floats, names: list[str]) -> ArrowFrame | Floats:
        """``values`` as a frame of the same library as ``X``, if that is one.

        **Shape**: values (N, names), or (N, T, names), of which each target has its columns.
        """
        return self._frame_like(X, values, names) if isinstance(X, ArrowFrame) else values

    def _frame_like(self, X: ArrowFrame, values: Floats, names: list[str]) -> ArrowFrame:
        import pandas as pd
        import pyarrow as pa

        targets = self.target_names_ if values.ndim > 2 else []
        flat = values.reshape(len(values), -1)
        if isinstance(X, pd.DataFrame):
            columns = pd.MultiIndex.from_product([targets, names]) if targets else names
            return pd.DataFrame(flat, index=X.index, columns=columns)
        titles = [f"{target} {name}" for target in targets for name in names] or names
        # a frame of a library that need not be installed: its own class makes one from columns
        make: Any = pa.table if isinstance(X, pa.Table) else type(X)
        found: ArrowFrame = make(dict(zip(titles, flat.T, strict=True)))
        return found
