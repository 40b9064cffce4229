"""Model and data as the two sides of an agreement, and where it needs no integration.

Each side is known exactly, given as draws, or given as a distribution. Inside, rows are flattened
to one axis and numbers are float64, whatever the caller holds.

With exact data, P(A) is the model's probability of the rule's intervals. A rule that looks only at
ŷ − y needs no more with uncertain data y = c + W: ŷ agrees with y where ŷ − W agrees with c, so the
model *broadened* by the data's noise takes its place, where that sum is known
(:func:`accord.distributions.with_noise`; W symmetric).
"""

from dataclasses import dataclass
from math import prod
from typing import Any, final

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from accord._checks import check_finite, check_floating, check_not_empty
from accord._numerics import StandardFamily, log_between, log_sum, log_within
from accord.agreement.intervals import INFINITY, Intervals
from accord.agreement.rules import Rule
from accord.distributions import Distribution, Empirical, to_floats, with_noise


@final
@dataclass(frozen=True, eq=False)
class Known:
    """Exact values, (n,)."""

    values: Tensor

    def take(self, rows: Any) -> "Known":
        return Known(self.values[rows])


@final
@dataclass(frozen=True, eq=False)
class Sampled:
    """Equally likely draws, (S, n), joint over the rows."""

    draws: Tensor

    def take(self, rows: Any) -> "Sampled":
        return Sampled(self.draws[:, rows])


@final
@dataclass(frozen=True, eq=False)
class Uncertain:
    """A distribution with batch shape (n,), independent over the rows."""

    law: Distribution

    def take(self, rows: Any) -> "Uncertain":
        return Uncertain(self.law[rows])


Side = Known | Sampled | Uncertain


@final
@dataclass(frozen=True, eq=False)
class Pair:
    """Model and data with n rows each."""

    model: Side
    data: Side
    n: int

    def take(self, rows: Tensor) -> "Pair":
        return Pair(self.model.take(rows), self.data.take(rows), len(rows))


def pair_of(
    model: Distribution | ArrayLike | Tensor, data: Distribution | ArrayLike | Tensor
) -> tuple[Pair, tuple[int, ...]]:
    """Both sides, flattened, and the shape of the data."""
    check_floating("model", model)
    check_floating("data", data)
    shape = data.shape if isinstance(data, Distribution) else to_floats(data).shape
    data_side = side_of(data) if isinstance(data, Distribution) else _known("data", data)
    if isinstance(model, Distribution):
        _check_rows(model.shape, shape)
        return Pair(side_of(model), data_side, prod(shape)), shape
    values = to_floats(model)
    if values.shape[1:] == shape and values.ndim == len(shape) + 1:
        check_not_empty("model", values)
        check_finite("model", values)
        draws = torch.from_numpy(values.reshape(len(values), -1))
        return Pair(Sampled(draws), data_side, prod(shape)), shape
    _check_rows(values.shape, shape)
    return Pair(_known("model", values), data_side, prod(shape)), shape


def _known(name: str, values: ArrayLike | Tensor) -> Known:
    array = to_floats(values)
    check_not_empty(name, array)
    check_finite(name, array, remedy="Leave such rows out.")
    return Known(torch.from_numpy(array.reshape(-1).copy()))


def side_of(law: Distribution) -> Side:
    """A distribution as a side, flattened, in float64 and cut from any graph."""
    # Float64 whatever the caller trains in: errors are stated below what float32 can hold.
    double = law._map(lambda tensor, _: tensor.detach().cpu().double())._replace(_numpy=True)
    flat = double._flat()
    if isinstance(flat, Empirical):
        return Sampled(torch.as_tensor(flat.draws))
    return Uncertain(flat)


def _check_rows(model: tuple[int, ...], data: tuple[int, ...]) -> None:
    if model != data:
        raise ValueError(
            f"model and data must have the same shape, got model {model} and data {data}. "
            f"Pass values or a distribution of shape {data}, or draws of shape {('S', *data)}."
        )


def log_closed_form(pair: Pair, rule: Rule) -> Tensor | None:
    """log P(A) per row (log density for a density rule); None where no closed form is known."""
    if rule.is_density:
        return _log_density(pair, rule)
    match pair.model, pair.data:
        case Known(y_hat), Known(y):
            return _log_truth(rule, y_hat, y)
        case Known(y_hat), _ if rule.depends_on == "prediction":
            return _log_truth(rule, y_hat, torch.zeros_like(y_hat))
        case Uncertain(law), Known(y):
            return _if_any(law, rule.intervals(y))
        case Uncertain(law), _ if rule.depends_on == "prediction":
            return _if_any(law, rule.intervals(_zeros(pair)))
        case Known(y_hat), Uncertain(law) if rule.depends_on == "difference":
            return _if_any(law, reflected(rule, y_hat))
        case Uncertain(law), Uncertain(noise) if rule.depends_on == "difference":
            wider = with_noise(law, noise)
            return None if wider is None else _if_any(wider, rule.intervals(centre(noise)))
    return None


def log_probability_of(law: Distribution, allowed: Intervals) -> Tensor:
    """log P(Y in the intervals), (..., n) for bounds (K, ..., n)."""
    logs = [
        part.log_measure(
            within=lambda c, h: torch.as_tensor(law.log_within_prob(c, h)),
            between=lambda low, high: torch.as_tensor(law.log_interval_prob(low, high)),
            below=lambda x: torch.as_tensor(law.log_interval_prob(-INFINITY, x)),
            above=lambda x: torch.as_tensor(law.log_interval_prob(x, INFINITY)),
        )
        for part in allowed.parts()
    ]
    if not logs:
        return torch.full_like(allowed.lower[0], -INFINITY)
    return log_sum(torch.stack(logs))


def log_probability_in_family(
    family: StandardFamily,
    allowed: Intervals,
    mu: Tensor,
    scale: Tensor,
    log_weight: Tensor | float = 0.0,
) -> Tensor:
    """log Σ_k w_k P(ŷ in the k-th interval) for ŷ = μ + scale · Z, with gradients by μ and scale.

    **Shape**: mu and scale (*S), allowed and log_weight (K, *S) → (*S).
    """

    def between(lower: Tensor, upper: Tensor) -> Tensor:
        half = (upper - lower) / 2 / scale
        return log_between(family, (lower - mu) / scale, (upper - mu) / scale, half)

    return allowed.log_measure(
        within=lambda center, half: log_within(family, (center - mu) / scale, half / scale),
        between=between,
        below=lambda x: family.log_cdf((x - mu) / scale),
        above=lambda x: family.log_sf((x - mu) / scale),
        log_weight=log_weight,
    )


def _if_any(law: Distribution, allowed: Intervals | None) -> Tensor | None:
    return None if allowed is None else log_probability_of(law, allowed)


def reflected(rule: Rule, y_hat: Tensor) -> Intervals | None:
    """The data that agree with a prediction under a rule of the difference."""
    offsets = rule.intervals(torch.zeros_like(y_hat))
    if offsets is None:
        return None
    return Intervals(y_hat, -offsets.upper, -offsets.lower, anchored=True, ends=offsets.ends)


def centre(noise: Distribution) -> Tensor:
    """The median, which for symmetric noise is its centre even where there is no mean."""
    return torch.as_tensor(noise.quantile(0.5))


def _log_density(pair: Pair, rule: Rule) -> Tensor | None:
    """log ρ(A): the density of one side at the other, where the rule allows ŷ = y."""
    match pair.model, pair.data:
        case Uncertain(law), Known(y):
            return torch.as_tensor(law.log_prob(y)) + _log_truth(rule, y, y)
        case Known(y_hat), Uncertain(law):
            return torch.as_tensor(law.log_prob(y_hat)) + _log_truth(rule, y_hat, y_hat)
        case Uncertain(law), Uncertain(noise) if rule.depends_on == "difference":
            wider, zero = with_noise(law, noise), _zeros(pair)
            if wider is None:
                return None
            return torch.as_tensor(wider.log_prob(centre(noise))) + _log_truth(rule, zero, zero)
    return None


def _log_truth(rule: Rule, y_hat: Tensor, y: Tensor) -> Tensor:
    agrees = torch.from_numpy(np.array(rule(y_hat, y)))
    return torch.where(agrees, 0.0, -INFINITY).double()


def _zeros(pair: Pair) -> Tensor:
    return torch.zeros(pair.n, dtype=torch.float64)
