"""What models predict, as one distribution: of any model, of several for their rows, with noise.

With noise, for independent Y and W, W symmetric about 0, the sum Y + W has a known distribution:

    Normal + Normal noise = Normal,               σ² → σ² + s²
    any family + Uniform noise on ±h = Smoothed(family, h)
    Uniform + Normal noise = Smoothed(Normal, h)
    Smoothed(Normal, ε) + Normal noise = Smoothed(Normal, ε)  with σ² → σ² + s²

and mixtures of these, component by component.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from accord._types import Floats
from accord.distributions.batch import Values
from accord.distributions.distribution import PARTS, Distribution
from accord.distributions.families import LocationScale, Normal, Uniform
from accord.distributions.mixture import Mixture
from accord.distributions.smoothed import Smoothed
from accord.distributions.wrapped import Decomposed


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
    from sklearn.pipeline import Pipeline  # brings a terminal's progress bars along

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


def uncertainty_of(dist: Distribution) -> dict[str, Floats]:
    """The mean of each row, the parts of its standard deviation, and ``total``, all of it.

    >>> uncertainty_of(Mixture(Normal([[0.0], [6.0]], 4.0)))["total"]
    array([5.])
    """
    parts = {"mean": dist.mean, **{name: getattr(dist, name) for name in PARTS}, "total": dist.std}
    return {name: np.asarray(values) for name, values in parts.items()}


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


def with_noise(law: Distribution, noise: Distribution) -> Distribution | None:
    """The distribution of Y + W, W the noise with its centre taken out; None if it is not known.

    The noise must be symmetric, so that it does not matter whether it is added or subtracted.

    **Shape**: law (n,) or (M, n), noise (n,).

    >>> with_noise(Normal([1.0], 3.0), Normal([7.0], 4.0))
    Normal(mean=[1.], std=[5.])
    """
    match law, noise:
        case Decomposed(), _:
            return with_noise(law.base, noise)
        case Mixture(), _:
            wider = [with_noise(group, noise) for group in law.groups]
            known = [group for group in wider if group is not None]
            return Mixture(known, law.weights) if len(known) == len(wider) else None
        case _, Decomposed():
            return with_noise(law, noise.base)
        case Normal(), Normal():
            return _wider(law, noise.std)
        case LocationScale(), Uniform():
            return Smoothed(law, noise.scale)
        case Uniform(), Normal():
            mean = np.asarray(law.mean)
            return Smoothed(Normal(mean, np.broadcast_to(noise.std, mean.shape)), law.scale)
        case Smoothed(base=Normal() as base), Normal():
            return Smoothed(_wider(base, noise.std), law.tolerance)
        case Normal(), Smoothed(base=Normal() as base):
            return Smoothed(_wider(law, base.std), noise.tolerance)
    return None


def _wider(law: Normal, std: Values) -> Normal:
    return Normal(law.mean, np.hypot(law.std, std))
