"""What every recalibration method can do: learn from held-out rows, then map distributions."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from accord._checks import check_finite, check_same_shape
from accord._types import Floats
from accord.distributions import Distribution


class Calibrator(BaseEstimator, ABC):  # type: ignore[misc]
    """Learns from predictions for held-out rows and their targets; then maps predictions.

    Outputs are calibrated each by itself. Rows that the model was trained on must not be used: its
    errors on them are too small.
    """

    @abstractmethod
    def fit(self, dist: Distribution, y: ArrayLike) -> Self:
        """Learn from predictions ``dist`` for held-out rows and their targets ``y``.

        **Shape**: dist and y (n,), or (n, K) for K outputs.
        """

    @abstractmethod
    def __call__(self, dist: Distribution) -> Distribution:
        """The calibrated form of new predictions.

        **Shape**: (N,), or (N, K) for K outputs; the result likewise.
        """


def checked_targets(dist: Distribution, y: ArrayLike, *, at_least: int) -> Floats:
    """The targets of calibration rows as an array that fits the predictions."""
    check_is_distribution(dist)
    targets = np.asarray(y, dtype=np.float64)
    check_same_shape(dist=np.empty(dist.shape), y=targets)
    check_finite("y", targets, remedy="Leave out rows without a target.")
    if len(targets) < at_least:
        raise ValueError(
            f"calibration needs at least {at_least} held-out rows, got {len(targets)}. "
            "Hold out more rows, or use method 'variance', which needs the fewest."
        )
    return targets


def moments_of(dist: Distribution) -> tuple[Floats, Floats]:
    """Mean and standard deviation as arrays, which methods on (μ, σ) need finite."""
    mean, std = as_floats(dist.mean), as_floats(dist.std)
    for name, values in (("mean", mean), ("standard deviation", std)):
        check_finite(f"the {name} of dist", values, remedy="Use method 'isotonic'.")
    return mean, std


def as_floats(values: Any) -> Floats:
    """A distribution's answer as an array, also where it was built from tensors."""
    if isinstance(values, Tensor):
        values = values.detach().cpu()
    return np.asarray(values, dtype=np.float64)


def checked_outputs(calibrator: Calibrator, dist: Distribution, n_outputs: str) -> None:
    """Refuse predictions of another number of outputs than ``calibrator`` was fitted on."""
    check_is_fitted(calibrator, n_outputs)
    check_is_distribution(dist)
    fitted = getattr(calibrator, n_outputs)
    if output_count(dist) != fitted:
        raise ValueError(
            f"dist must have {fitted} outputs, as in fit, got {output_count(dist)}. "
            "Calibrate and predict the same outputs."
        )


def check_is_distribution(dist: Any) -> None:
    """Refuse what is no distribution over rows, or rows and outputs."""
    if not isinstance(dist, Distribution):
        raise TypeError(
            f"dist must be a Distribution, got {type(dist).__name__}. "
            "Use model.predict_dist(X), or Normal(mean, std)."
        )
    if len(dist.shape) not in (1, 2):
        raise ValueError(
            f"dist must have shape (N,) or (N, K), got {dist.shape}. Select the rows to calibrate."
        )


def output_count(dist: Distribution) -> int:
    """Number of outputs: 1 for shape (N,), K for shape (N, K)."""
    return dist.shape[1] if len(dist.shape) == 2 else 1
