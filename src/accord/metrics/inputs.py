"""What the metrics accept, checked in one place: targets, predictives, intervals, quantiles."""

from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from accord._checks import (
    check_finite,
    check_non_negative,
    check_not_empty,
    check_ordered,
    check_positive,
    check_probability,
    check_same_shape,
)
from accord._types import Floats
from accord.distributions import Distribution, Normal

DROP_ROWS = "Drop or impute those rows."
PERCENT = "Write 0.95 for 95 %."


class PointPredictions(TypedDict, total=False):
    """The two ways to pass point predictions: their values, or a distribution."""

    mean: ArrayLike | None
    dist: Distribution | None
    sample_weight: ArrayLike | None


class Predictions(TypedDict, total=False):
    """The two ways to pass predictions: a distribution, or means with standard deviations."""

    dist: Distribution | None
    mean: ArrayLike | None
    std: ArrayLike | None
    sample_weight: ArrayLike | None


def as_array(name: str, values: Any) -> Floats:
    """Values (lists, arrays, Series, tensors) in numpy, as float64.

    **Shape**: kept.
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{name} must be numbers, got {type(values).__name__}: {error}. "
            "Convert it to one number per row."
        ) from error


def finite(name: str, values: Any) -> Floats:
    """Values as float64 without NaN or infinities."""
    array = as_array(name, values)
    check_finite(name, array, remedy=DROP_ROWS)
    return array


def positive(name: str, values: Any) -> Floats:
    """Finite values above zero."""
    array = finite(name, values)
    check_positive(name, array, remedy="A prediction without spread has no density.")
    return array


def targets(y_true: ArrayLike) -> Floats:
    """Observed values: at least one row, one column per output.

    **Shape**: (N,) or (N, K).
    """
    y = finite("y_true", y_true)
    if y.ndim not in (1, 2):
        raise ValueError(
            f"y_true must have shape (N,) or (N, K), got {y.shape}. Pass one value per row."
        )
    check_not_empty("y_true", y)
    return y


def predictive(
    y: Floats,
    *,
    dist: Distribution | None = None,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
) -> Distribution:
    """The distribution that was meant: ``dist`` itself, or Normal(mean, std)."""
    given = {"dist": dist, "mean": mean, "std": std}
    names = [name for name, value in given.items() if value is not None]
    if names not in (["dist"], ["mean", "std"]):
        raise TypeError(
            "predictions must be dist= alone, or mean= with std=, "
            f"got {' and '.join(names) or 'none of them'}. Pass one of the two forms."
        )
    if dist is None:
        mu, sigma = finite("mean", mean), positive("std", std)
        check_same_shape(y_true=y, mean=mu, std=sigma)
        return Normal(mu, sigma)
    if not isinstance(dist, Distribution):
        raise TypeError(
            f"dist must be a distribution of accord, got {type(dist).__name__}. "
            "Build one, for instance accord.Normal(mean, std) or accord.Empirical(draws)."
        )
    check_same_shape(y_true=y, dist=np.empty(dist.shape))
    return dist


def point(y: Floats, *, dist: Distribution | None = None, mean: ArrayLike | None = None) -> Floats:
    """The predicted mean, given directly or taken from a distribution."""
    if (dist is None) == (mean is None):
        got = "neither" if dist is None else "both"
        raise TypeError(f"predictions must be mean= or dist=, got {got}. Pass one of the two.")
    mu = finite("mean", mean if dist is None else predictive(y, dist=dist).mean)
    check_same_shape(y_true=y, mean=mu)
    return mu


def probability(name: str, value: float) -> float:
    """A number strictly between 0 and 1."""
    check_probability(name, value, strict=True, remedy=PERCENT)
    return float(value)


def probabilities(name: str, values: ArrayLike) -> Floats:
    """Levels strictly between 0 and 1, in increasing order.

    **Shape**: (L,).
    """
    levels = np.atleast_1d(as_array(name, values))
    check_not_empty(name, levels)
    check_probability(name, levels, strict=True, remedy=PERCENT)
    if levels.ndim != 1 or (np.diff(levels) <= 0).any():
        raise ValueError(
            f"{name} must be a list of increasing levels, got {levels.tolist()}. "
            "Sort it and leave out repeats."
        )
    return levels


def bounds(y: Floats, interval: ArrayLike) -> tuple[Floats, Floats]:
    """Lower and upper ends of an interval; either may be infinite.

    **Shape**: (N, 2) or (N, K, 2) in, two of ``y.shape`` out.
    """
    both = as_array("interval", interval)
    if both.shape != (*y.shape, 2):
        raise ValueError(
            f"interval must have shape {(*y.shape, 2)}, a (lower, upper) pair for each y_true, "
            f"got {both.shape}. Stack the two with np.stack([lower, upper], axis=-1)."
        )
    check_ordered("lower", both[..., 0], "upper", both[..., 1])
    return both[..., 0], both[..., 1]


def quantile_table(y: Floats, quantiles: ArrayLike, alpha: Floats) -> Floats:
    """Predicted quantiles, one column per level, that do not cross.

    **Shape**: (N, L) or (N, K, L).
    """
    table = finite("quantiles", quantiles)
    if table.shape != (*y.shape, alpha.size):
        raise ValueError(
            f"quantiles must have shape {(*y.shape, alpha.size)}, one column per level for each "
            f"y_true, got {table.shape}. Pass alpha= with the levels of the columns."
        )
    crossing = (np.diff(table, axis=-1) < 0).any(axis=-1)
    if crossing.any():
        raise ValueError(
            f"quantiles must not cross, got {int(crossing.sum())} crossing rows, first at index "
            f"{int(np.argwhere(crossing)[0][0])}. Sort each row with np.sort(quantiles, axis=-1)."
        )
    return table


def check_enough_rows(n: int, needed: int, what: str) -> None:
    """Refuse a statement that the sample is too small for."""
    if n < needed:
        raise ValueError(f"{what} needs at least {needed} values, got {n}. Pool more rows.")


def row_weights(sample_weight: ArrayLike | None, y: Floats) -> Floats | None:
    """One non-negative weight per row that counts, as in scikit-learn; None for equal weights.

    **Shape**: (N,).
    """
    if sample_weight is None:
        return None
    weight = finite("sample_weight", sample_weight)
    if weight.shape != y.shape[:1]:
        raise ValueError(
            f"sample_weight must be one number per row, {y.shape[:1]}, got {weight.shape}. "
            "Pass None for equal weights."
        )
    check_non_negative("sample_weight", weight, remedy="Use 0 to leave a row out.")
    if not weight.any():
        raise ValueError("sample_weight must not all be zero, got a sum of 0. Pass None.")
    return weight


def mean_of(values: Floats, weight: Floats | None) -> Floats:
    """The weighted mean over the rows, per output."""
    return np.asarray(np.average(values, axis=0, weights=weight))


def averaged(
    values: Floats, average: bool, sample_weight: ArrayLike | None = None
) -> float | Floats:
    """Per-sample values, or their weighted mean over rows and outputs."""
    if not average:
        return values
    return float(mean_of(values, row_weights(sample_weight, values)).mean())
