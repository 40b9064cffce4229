"""How much more likely a row is among new data than among old: the weight of shifted data."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_array, check_is_fitted

from accord._types import Floats

# No row counts more than a million times another: a classifier's 0 or 1 is never quite certain.
_LARGEST = 1e6


class LikelihoodRatio(BaseEstimator):  # type: ignore[misc]
    """Ratio of the densities of new and old feature rows, by a classifier that distinguishes them.

    With ρ(x) the probability that row x is a new one, w(x) = ρ(x) n_old / ((1 − ρ(x)) n_new)
    estimates p_new(x) / p_old(x) (Tibshirani et al., Conformal prediction under covariate shift,
    2019).

    Args:
        classifier: Any scikit-learn classifier with ``predict_proba``. By default a logistic
            regression on the features and their squares, which holds for Gaussian features whose
            means and spreads have changed.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> old, new = rng.normal(size=(4000, 1)), rng.normal(1.0, 1.0, size=(4000, 1))
        >>> ratio = LikelihoodRatio().fit(old, new)
        >>> ratio([[0.5], [1.5]]).round(1)          # 1 and e, to 3 %
        array([1. , 2.8])
    """

    def __init__(self, *, classifier: Any = None) -> None:
        self.classifier = classifier

    def fit(self, X_old: Any, X_new: Any) -> Self:
        """Learn to tell new rows from old ones.

        **Shape:** X_old (N, d), X_new (N', d)
        """
        X_old, X_new = _rows(X_old), _rows(X_new)
        if X_old.shape[1] != X_new.shape[1]:
            raise ValueError(
                "X_old and X_new must have the same number of features, "
                f"got {X_old.shape[1]} and {X_new.shape[1]}. Pass the same columns of both."
            )
        self.size_ratio_ = len(X_old) / len(X_new)
        X = np.concatenate([X_old, X_new])
        is_new = np.repeat([0, 1], [len(X_old), len(X_new)])
        self.scaler_ = StandardScaler().fit(X)
        default = self.classifier is None
        classifier = LogisticRegression(max_iter=1000) if default else clone(self.classifier)
        self.classifier_ = classifier.fit(self._inputs(X), is_new)
        return self

    def __call__(self, X: Any) -> Floats:
        """Weight of each row.

        **Shape:** X (n, d) → (n,)
        """
        check_is_fitted(self)
        probability = self.classifier_.predict_proba(self._inputs(_rows(X)))
        with np.errstate(divide="ignore"):
            odds = probability[:, 1] / probability[:, 0]
        weight: Floats = np.clip(odds * self.size_ratio_, 1 / _LARGEST, _LARGEST)
        return weight

    def _inputs(self, X: Floats) -> Floats:
        if self.classifier is not None:
            return X
        Z = self.scaler_.transform(X)
        return np.hstack([Z, np.square(Z)])


def _rows(X: Any) -> Floats:
    rows: Floats = check_array(X, dtype=np.float64)
    return rows
