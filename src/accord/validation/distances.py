"""Metrics between distributions: the area between cdfs, and distances between densities.

Here model and data are compared as whole distributions, so the comparison itself is certain: the
rule "distance at most the limit" holds or does not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, final, get_args

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from accord._checks import check_choice, check_non_negative
from accord._types import Floats
from accord.agreement import (
    Agreement,
    AtMost,
    Known,
    Outputs,
    Sampled,
    Side,
    Uncertain,
    integrate,
    pair_of,
    probability_of_agreement,
)
from accord.distributions import Distribution

Distance = Literal["total variation", "hellinger", "kullback-leibler"]

_EDGES = 128  # panel ends taken from the landmarks of all rows together
_WORK = 2**22  # cdf evaluations for which the area is integrated rather than discretised
_POINTS = 256  # quantiles per row in the discretised area


@final
@dataclass(frozen=True, eq=False)
class AreaMetric:
    """The area between the two cdfs.

    Args:
        area: ∫|F_M(x) − F_D(x)| dx, in the target's unit.
        error: its stated absolute error.
        agreement: whether it is at most the limit (None without a limit).
    """

    area: float
    error: float
    agreement: Agreement | None


def area_metric(model: Outputs, data: Outputs, *, limit: float | None = None) -> AreaMetric:
    """The area validation metric, ∫|F_M(x) − F_D(x)| dx, over all rows together.

    F_M is the average of the rows' predictive cdfs (the empirical cdf for values and draws), F_D
    that of the data; the area is the Wasserstein distance between the two populations (Ferson,
    Oberkampf & Ginzburg 2008). It does not see which prediction belongs to which datum. The rule
    `AreaAtMost` asks the same of joint draws, with their uncertainty.

    Example:
        >>> area_metric([1.0, 2.0, 3.0], [1.5, 2.5, 3.5], limit=0.6)
        AreaMetric(area=0.5, error=0.0, agreement=Agreement(at most the datum: probability 1; ...))
    """
    pair, _ = pair_of(model, data)
    with torch.no_grad():
        area, error = _area(pair.model, pair.data)
    return AreaMetric(area, error, _within_limit(np.asarray(area), limit))


@final
@dataclass(frozen=True, eq=False)
class DensityDistance:
    """The distance between the densities of model and data, row by row.

    Args:
        distance: per row.
        error: its stated absolute error.
        agreement: whether it is at most the limit (None without a limit).
    """

    distance: Floats
    error: Floats
    agreement: Agreement | None


def density_distance(
    model: Distribution,
    data: Distribution,
    *,
    distance: Distance = "hellinger",
    limit: float | None = None,
) -> DensityDistance:
    """How far the model's density lies from the data's, row by row, by quadrature.

    "total variation" is ½∫|p − q|; "hellinger" is √(½∫(√p − √q)²); both lie between 0 and 1.
    "kullback-leibler" is ∫ q log(q/p), q the data's density and p the model's, and may be infinite.

    **Shape**: both (N,) → (N,).

    Example:
        >>> from accord.distributions import Normal
        >>> found = density_distance(Normal([0.0], 1.0), Normal([1.0], 1.0), limit=0.5)
        >>> found.distance.round(4), found.agreement.probability
        (array([0.3428]), array([1.]))
    """
    check_choice("distance", distance, get_args(Distance))
    for name, side in (("model", model), ("data", data)):
        if not isinstance(side, Distribution):
            raise TypeError(
                f"{name} must be a distribution to have a density, got {type(side).__name__}. "
                "Pass for instance Normal(y, std), or Smoothed(Empirical(draws), tolerance)."
            )
    pair, shape = pair_of(model, data)
    if not (isinstance(pair.model, Uncertain) and isinstance(pair.data, Uncertain)):
        raise TypeError(
            "draws have no density, got an Empirical. Smooth it: Smoothed(Empirical(draws), "
            "tolerance)."
        )
    with torch.no_grad():
        value, error = _density_distance(pair.model.law, pair.data.law, distance)
    value, error = value.reshape(shape), error.reshape(shape)
    return DensityDistance(value, error, _within_limit(value, limit))


def _within_limit(value: Floats, limit: float | None) -> Agreement | None:
    if limit is None:
        return None
    check_non_negative("limit", limit)
    return probability_of_agreement(value, np.full(value.shape, float(limit)), AtMost())


_TERMS: dict[Distance, Callable[[Tensor, Tensor], Tensor]] = {
    "total variation": lambda p, q: (p.exp() - q.exp()).abs() / 2,
    "hellinger": lambda p, q: ((p / 2).exp() - (q / 2).exp()) ** 2 / 2,
    # q log(q/p) − q + p is nowhere negative and has the same integral.
    "kullback-leibler": lambda p, q: torch.where(
        q > -torch.inf, q.exp() * (q - p) - q.exp() + p.exp(), p.exp()
    ),
}


def _density_distance(
    model: Distribution, data: Distribution, distance: Distance
) -> tuple[Floats, Floats]:
    edges = torch.cat([model._landmarks(far=True), data._landmarks(far=True)]).sort(dim=0).values

    def log_term(points: Tensor, rows: Tensor) -> Tensor:
        p = torch.as_tensor(model[rows].log_prob(points))
        q = torch.as_tensor(data[rows].log_prob(points))
        return _TERMS[distance](p, q).clamp(min=0).log()

    found = integrate(log_term, edges)
    value, error = found.log_value.exp().numpy(), found.error.numpy()
    if distance == "hellinger":
        root = np.sqrt(value)
        return root, np.minimum(np.sqrt(error), error / np.where(root > 0, 2 * root, 1.0))
    return value, error


def _area(model: Side, data: Side) -> tuple[float, float]:
    if not isinstance(model, Uncertain) and not isinstance(data, Uncertain):
        return float(stats.wasserstein_distance(_values(model), _values(data))), 0.0
    if any(np.isnan(side.law.mean).any() for side in (model, data) if isinstance(side, Uncertain)):
        return float("inf"), 0.0  # tails without a mean enclose an infinite area
    edges = _area_edges(model, data)
    if len(edges) * 15 * (_rows(model) + _rows(data)) > _WORK:
        return _discretised_area(model, data)
    f_model, f_data = _pooled_cdf(model), _pooled_cdf(data)

    def log_gap(points: Tensor, rows: Tensor) -> Tensor:
        return (f_model(points) - f_data(points)).abs().log()

    found = integrate(log_gap, edges[:, None])
    return float(found.log_value.exp()), float(found.error)


def _values(side: Side) -> Floats:
    match side:
        case Known(values):
            return values.numpy()
        case Sampled(draws):
            return draws.numpy().ravel()
    levels = (np.arange(_POINTS) + 0.5) / _POINTS
    return np.asarray(side.law.quantile(levels)).ravel()


def _rows(side: Side) -> int:
    return side.law.shape[0] if isinstance(side, Uncertain) else 0


def _area_edges(model: Side, data: Side) -> Tensor:
    """Every jump of an empirical cdf, and points that follow the landmarks of all rows."""
    parts = []
    for side in (model, data):
        if isinstance(side, Uncertain):
            marks = side.law._landmarks(far=True).flatten().sort().values
            keep = torch.linspace(0, len(marks) - 1, min(len(marks), _EDGES)).long()
            parts.append(marks[keep])
        else:
            parts.append(torch.from_numpy(_values(side)))
    return torch.cat(parts).sort().values


def _pooled_cdf(side: Side) -> Callable[[Tensor], Tensor]:
    """The average cdf over the rows, at points (Q, 1)."""
    if isinstance(side, Uncertain):
        law, n = side.law, side.law.shape[0]
        return lambda points: torch.as_tensor(law.cdf(points.expand(-1, n))).mean(-1, keepdim=True)
    values = torch.from_numpy(_values(side)).sort().values
    return lambda points: torch.searchsorted(values, points, right=True) / len(values)


def _discretised_area(model: Side, data: Side) -> tuple[float, float]:
    """The area between the laws' quantiles at midpoint levels.

    Its error is at most the mean distance between neighbouring quantiles of a row, the width of the
    steps that replace the law.
    """
    area = float(stats.wasserstein_distance(_values(model), _values(data)))
    spread = sum(
        float(np.mean(side.law.std)) for side in (model, data) if isinstance(side, Uncertain)
    )
    return area, spread / _POINTS
