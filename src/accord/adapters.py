"""Models of this library as those of others: skpro's regressors, with their own distributions.

Needs ``pip install skpro``; the rest of the library does not.
"""

from typing import Any, Self, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from skpro.distributions.base import BaseDistribution
from skpro.regression.base import BaseProbaRegressor

from accord._types import Floats
from accord.distributions import Distribution, predictive_of

__all__ = ["SkproDistribution", "SkproRegressor"]


@final
class SkproDistribution(BaseDistribution):  # type: ignore[misc]
    """A predictive distribution as one of skpro's: a row for each of its rows, one column.

    Moments, density, cdf, quantiles and draws are the distribution's own; what skpro adds
    (energies) it estimates from draws, whose generator it does not state.

    Args:
        dist: The distribution, of shape (N,), or () for a single one.
        index, columns: Labels of the rows and of the one column.

    Example:
        >>> from accord import Normal
        >>> from accord.adapters import SkproDistribution
        >>> SkproDistribution(Normal([0.0, 1.0], 2.0), columns=["y"]).ppf(0.5)["y"].tolist()
        [0.0, 1.0]
    """

    _tags = {  # noqa: RUF012  skpro's form
        "capabilities:approx": ["energy", "pdfnorm"],
        "capabilities:exact": ["mean", "var", "pdf", "log_pdf", "cdf", "ppf"],
        "distr:measuretype": "continuous",
        "distr:paramtype": "general",
    }

    def __init__(self, dist: Distribution, index: Any = None, columns: Any = None) -> None:
        self.dist = dist
        if dist.shape:
            index = pd.RangeIndex(dist.shape[0]) if index is None else index
            columns = pd.RangeIndex(1) if columns is None else columns
        super().__init__(index=index, columns=columns)

    def _iloc(self, rowidx: Any = None, colidx: Any = None) -> "SkproDistribution":
        if np.ndim(rowidx) == 0 and rowidx is not None and np.ndim(colidx) == 0:
            return self._iat(rowidx, colidx)
        rows = np.arange(len(self)) if rowidx is None else np.atleast_1d(np.asarray(rowidx))
        columns = self.columns if colidx is None else self.columns.take(np.atleast_1d(colidx))
        return SkproDistribution(self.dist[rows], self.index.take(rows), columns)

    def _iat(self, rowidx: Any = None, colidx: Any = None) -> "SkproDistribution":
        return SkproDistribution(self.dist[int(rowidx)])

    def _mean(self) -> Floats:
        return self._column(self.dist.mean)

    def _var(self) -> Floats:
        return self._column(self.dist.variance)

    def _pdf(self, x: Floats) -> Floats:
        return self._column(self.dist.pdf(self._row_values(x)))

    def _log_pdf(self, x: Floats) -> Floats:
        return self._column(self.dist.log_prob(self._row_values(x)))

    def _cdf(self, x: Floats) -> Floats:
        return self._column(self.dist.cdf(self._row_values(x)))

    def _ppf(self, p: Floats) -> Floats:
        """Quantiles, with one search for each different level."""
        levels = np.atleast_1d(self._row_values(p))
        found = np.empty(len(levels))
        for level in np.unique(levels):
            rows = np.flatnonzero(levels == level)
            dist = self.dist[rows] if self.ndim else self.dist
            found[rows] = np.asarray(dist.quantile(level))
        return self._column(found if self.ndim else found[0])

    def _sample(self, n_samples: int | None = None) -> Any:
        draws = np.asarray(self.dist.sample(1 if n_samples is None else n_samples))
        if not self.ndim:
            return float(draws[0]) if n_samples is None else pd.DataFrame(draws)
        index = self.index
        if n_samples is not None:
            index = pd.MultiIndex.from_product([range(n_samples), self.index])
        return pd.DataFrame(draws.reshape(-1, 1), index=index, columns=self.columns)

    def _row_values(self, x: Floats) -> Floats:
        return np.asarray(x, dtype=np.float64).reshape(self.dist.shape)

    def _column(self, values: Any) -> Floats:
        found: NDArray[np.float64] = np.asarray(values, dtype=np.float64)
        return found.reshape(self.shape)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Cases for skpro's own tests."""
        from accord.distributions import Mixture, Normal

        mixture = Mixture(Normal([[0.0, 1.0, 2.0], [1.0, 1.0, 4.0]], 1.0))
        return [{"dist": mixture, "columns": ["y"]}, {"dist": Normal(0.0, 1.0)}]


@final
class SkproRegressor(BaseProbaRegressor):  # type: ignore[misc]
    """A model that knows its uncertainty as a regressor of skpro.

    ``predict_proba`` gives the whole predictive distribution, not only its moments.

    Args:
        estimator: Any estimator of this library, or a scikit-learn one with
            ``predict(X, return_std=True)``; a pipeline may end in it.

    Example:
        >>> import numpy as np
        >>> import pandas as pd
        >>> from accord import DeepEnsembleRegressor
        >>> from accord.adapters import SkproRegressor
        >>> X = pd.DataFrame({"a": np.linspace(0, 1, 40)})
        >>> model = SkproRegressor(DeepEnsembleRegressor(epochs=1, random_state=0))
        >>> model.fit(X, pd.DataFrame({"y": X["a"]})).predict_proba(X.head(3)).shape
        (3, 1)
    """

    _tags = {"capability:multioutput": False, "capability:missing": True}  # noqa: RUF012

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        super().__init__()

    def _fit(self, X: pd.DataFrame, y: pd.DataFrame) -> Self:
        self.columns_ = y.columns
        self.estimator_ = clone(self.estimator).fit(_named(X), y.iloc[:, 0].to_numpy())
        return self

    def _predict_proba(self, X: pd.DataFrame) -> SkproDistribution:
        return SkproDistribution(predictive_of(self.estimator_, _named(X)), X.index, self.columns_)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Cases for skpro's own tests."""
        from accord.estimators import BVMRegressor, DeepEnsembleRegressor

        few: dict[str, Any] = {"n_members": 2, "epochs": 2, "random_state": 0}
        models = (DeepEnsembleRegressor(**few), BVMRegressor(tolerance=0.1, **few))
        return [{"estimator": model} for model in models]


def _named(X: pd.DataFrame) -> pd.DataFrame:
    """scikit-learn wants names of columns to be text."""
    return X.set_axis([str(name) for name in X.columns], axis=1)
