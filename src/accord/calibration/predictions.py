"""Predictive distributions of any model."""

import inspect
from typing import Any

from sklearn.pipeline import Pipeline

from accord.distributions import Distribution, Normal


def predictive_of(model: Any, X: Any) -> Distribution:
    """What a fitted model predicts, as a distribution.

    That is ``model.predict_dist(X)``, of a pipeline that of its last step, and a Gaussian where
    only ``model.predict(X, return_std=True)`` is offered, as by scikit-learn's Gaussian process.

    Example:
        >>> import numpy as np
        >>> from sklearn.linear_model import BayesianRidge
        >>> X = np.arange(6.0)[:, None]
        >>> predictive_of(BayesianRidge().fit(X, X[:, 0] + [0, 1, 0, 1, 0, 1]), X[:2]).shape
        (2,)
    """
    if hasattr(model, "predict_dist"):
        dist: Distribution = model.predict_dist(X)
        return dist
    if isinstance(model, Pipeline):
        inner = model[:-1].transform(X) if len(model) > 1 else X
        return predictive_of(model[-1], inner)
    predict = getattr(model, "predict", None)
    if predict is None or "return_std" not in inspect.signature(predict).parameters:
        raise TypeError(
            "model must offer predict_dist(X) or predict(X, return_std=True), got "
            f"{type(model).__name__}. Use a model that knows its uncertainty."
        )
    mean, std = predict(X, return_std=True)
    return Normal(mean, std)
