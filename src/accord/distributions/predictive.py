"""What fitted models predict, as one distribution: of any model, and of several for their rows."""

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from sklearn.pipeline import Pipeline
from torch import Tensor

from accord.distributions.distribution import Distribution
from accord.distributions.families import Normal


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


def concatenated(parts: Sequence[Distribution]) -> Distribution:
    """The rows of several distributions of one kind, one after another.

    Example:
        >>> from accord.distributions import Normal
        >>> concatenated([Normal([0.0, 1.0], 1.0), Normal([2.0], 3.0)])
        Normal(mean=[0., 1., 2.], std=[1., 1., 3.])
    """
    if len(parts) == 1:
        return parts[0]
    if len({_kinds(part) for part in parts}) > 1:
        # a fold may have found that no tolerance is best, where others have one
        parts = [part._smoothable() for part in parts]
    if len({_kinds(part) for part in parts}) > 1:
        raise ValueError(_UNLIKE)
    columns = iter(list(zip(*(_tensors(part) for part in parts), strict=True)))
    whole = parts[0]._map(lambda _, lead: torch.cat(next(columns), dim=lead))
    # What is not held per row (weights of members, degrees of freedom) must agree as well.
    expected = torch.cat([part._variance() for part in parts]).sqrt()
    if not torch.allclose(whole._variance().sqrt(), expected, rtol=1e-6, atol=0.0, equal_nan=True):
        raise ValueError(_UNLIKE)
    return whole


_UNLIKE = (
    "the distributions must be of one kind, got different ones. "
    "Predict them with models of one kind."
)


def _kinds(dist: Distribution) -> tuple[Any, ...]:
    """A distribution's class, and those of its parts with the number of members."""
    inner = dist._inner()
    members = tuple(part.shape[0] for part in inner if len(part.shape) > len(dist.shape))
    return (type(dist), members, *(kind for part in inner for kind in _kinds(part)))


def _tensors(dist: Distribution) -> list[Tensor]:
    """Every tensor that a distribution holds per row, in the order of its ``_map``."""
    found: list[Tensor] = []

    def note(tensor: Tensor, _: int) -> Tensor:
        found.append(tensor)
        return tensor

    dist._map(note)
    return found
