"""The probability of agreement of single rows, by the first route that applies.

Closed forms and quadrature have modules of their own; the routes by draws and by quasi-Monte Carlo
are here. The latter takes Sobol points, shifted at random several times: each shifted set is an
unbiased estimate, and the scatter between them is the stated standard error. Draws given by the
user are averaged over rather than drawn from again wherever the other side has a closed form, and
their finite number enters the error.
"""

from collections.abc import Iterator
from math import prod
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from accord._checks import RandomState, generator_from
from accord._numerics import SHIFTS, shifted_sobol
from accord._types import Floats
from accord.agreement.closed_form import (
    Known,
    Pair,
    Sampled,
    Side,
    Uncertain,
    log_closed_form,
    log_probability_of,
    reflected,
)
from accord.agreement.quadrature import log_quadrature, needs_tracing
from accord.agreement.rules import Rule
from accord.agreement.tracing import binomial_error
from accord.distributions import Distribution

_ROWS = 256  # rows integrated at a time
_ROWS_TRACED = 8
_CHECKS = 2**14  # points that a traced integral is checked against
_CONFIRMED = 4.0  # standard errors
_MOST_TRACED = 64  # rows for which the slow search under a callable is worth its digits
_BLOCK = 2**22  # numbers held at a time

Route = Literal["closed form", "quadrature", "monte carlo"]
"""How a probability was computed."""

Method = Literal["auto", "closed form", "quadrature", "monte carlo"]
"""How a probability is to be computed; "auto" takes the first of the three that applies."""

Result = tuple[Floats, Floats, Route]
"""log p(A) per row, its error, and the route taken."""


class Options(NamedTuple):
    """How to compute; how many points to draw, and from which seed."""

    method: Method
    n_samples: int
    random_state: RandomState


def log_agreement_by_row(pair: Pair, rule: Rule, options: Options) -> Result:
    """By the first of the allowed routes that applies: closed form, draws, quadrature, Sobol."""
    _check_density(pair, rule)
    method = options.method
    if method in ("auto", "closed form"):
        log_p = log_closed_form(pair, rule)
        if log_p is not None:
            return log_p.numpy(), np.zeros(pair.n), "closed form"
    if method in ("auto", "monte carlo"):
        averaged = average_over_draws(pair, rule)
        if averaged is not None:
            return _log(averaged.value), averaged.error, "monte carlo"
    too_slow = method == "auto" and needs_tracing(pair, rule) and pair.n > _MOST_TRACED
    if method in ("auto", "quadrature") and not too_slow:
        integral = _in_blocks(pair, rule)
        if integral is not None:
            if needs_tracing(pair, rule):
                integral = _cross_checked(integral, pair, rule)
            return *integral, "quadrature"
    if method in ("auto", "monte carlo"):
        value, error = quasi_monte_carlo(pair, rule, options.n_samples, options.random_state)
        return _log(value), error, "monte carlo"
    raise NoRoute(method, rule)


class NoRoute(ValueError):
    """The asked route does not exist for this model, data and rule."""

    def __init__(self, method: Method, rule: object) -> None:
        super().__init__(
            f"method must have a route for the model, the data and the rule, got {method!r} for "
            f"{rule!r}, where there is none. Use method='auto'."
        )


def _blocks(pair: Pair, rule: Rule, step: int) -> Iterator[tuple[Pair, Rule]]:
    """Stretches of rows, with the rule for each."""
    for start in range(0, pair.n, step):
        rows = torch.arange(start, min(start + step, pair.n))
        yield pair.take(rows), rule.take(rows.numpy())


def _in_blocks(pair: Pair, rule: Rule) -> tuple[Floats, Floats] | None:
    step = _ROWS_TRACED if needs_tracing(pair, rule) else _ROWS
    logs, errors = [], []
    for block in _blocks(pair, rule, step):
        part = log_quadrature(*block)
        if part is None:
            return None
        logs.append(part.log_value.numpy())
        errors.append(part.error.numpy())
    return np.concatenate(logs), np.concatenate(errors)


def _cross_checked(
    integral: tuple[Floats, Floats], pair: Pair, rule: Rule
) -> tuple[Floats, Floats]:
    """A traced integral beside points that need no search, which have the last word.

    The search may miss a stretch at every point alike, which the integral's own error cannot show.
    """
    log_p, error = integral
    value, scatter = quasi_monte_carlo(pair, rule, _CHECKS, 0)
    gap = np.abs(np.exp(log_p) - value)
    confirmed = gap <= _CONFIRMED * scatter
    log_p = np.where(confirmed, np.minimum(log_p, 0.0), _log(value))
    return log_p, np.where(confirmed, np.maximum(error, gap), scatter)


def _log(value: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(value))


def _check_density(pair: Pair, rule: Rule) -> None:
    has_density = isinstance(pair.model, Uncertain) or isinstance(pair.data, Uncertain)
    if rule.is_density and not has_density:
        raise ValueError(
            "exact agreement must have a density on one side, got values or draws on both. "
            "Use Within(tolerance), or give the model or the data as a distribution."
        )


class Estimate(NamedTuple):
    """A mean per row and its standard error."""

    value: Floats
    error: Floats


def average_over_draws(pair: Pair, rule: Rule) -> Estimate | None:
    """P(A) where a side is given as draws and the rest is closed form; None where it is not."""
    sizes = [len(side.draws) for side in (pair.model, pair.data) if isinstance(side, Sampled)]
    if not sizes or prod(sizes) > _BLOCK:
        return None
    step = max(1, _BLOCK // prod(sizes))
    values, errors = [], []
    for block in _blocks(pair, rule, step):
        part = _average_of_rows(*block)
        if part is None:
            return None
        values.append(part.value)
        errors.append(part.error)
    return Estimate(np.concatenate(values), np.concatenate(errors))


def _average_of_rows(pair: Pair, rule: Rule) -> Estimate | None:
    match pair.model, pair.data:
        case Sampled(draws), Known(y) if not rule.is_density:
            return _share(_truth(rule, draws, y))
        case Known(y_hat), Sampled(draws) if not rule.is_density:
            return _share(_truth(rule, y_hat, draws))
        case Sampled(a), Sampled(b) if not rule.is_density:
            shares = _truth(rule, a[:, None], b[None]).mean(1)
            return _share(shares, size=min(len(a), len(b)))
        case Uncertain(law), Sampled(draws):
            return _averaged(law, draws, rule, of_data=True)
        case Sampled(draws), Uncertain(law):
            return _averaged(law, draws, rule, of_data=False)
    return None


def _averaged(law: Distribution, draws: Tensor, rule: Rule, *, of_data: bool) -> Estimate | None:
    """Mean over draws of the other side's closed form."""
    if rule.is_density:
        heights = np.exp(law.log_prob(draws)) * _truth(rule, draws, draws)
        spread = heights.std(0, ddof=1) if len(heights) > 1 else np.full(heights.shape[1], np.inf)
        return Estimate(heights.mean(0), spread / len(heights) ** 0.5)
    if rule.depends_on == "prediction":
        return None if of_data else _share(_truth(rule, draws, draws))
    if not of_data and rule.depends_on != "difference":
        return None
    allowed = rule.intervals(draws) if of_data else reflected(rule, draws)
    return None if allowed is None else _share(log_probability_of(law, allowed).exp().numpy())


def quasi_monte_carlo(
    pair: Pair, rule: Rule, n_samples: int, random_state: RandomState
) -> Estimate:
    """P(A) from Sobol points for both sides at once, in blocks of rows."""
    model_axes, data_axes = _axes(pair.model), _axes(pair.data)
    points = shifted_sobol(model_axes + data_axes, n_samples, generator_from(random_state))
    step = max(1, _BLOCK // len(points))
    parts = []
    for block, own_rule in _blocks(pair, rule, step):
        terms = _terms(block, own_rule, points[:, :model_axes], points[:, model_axes:])
        shape = (SHIFTS, len(points) // SHIFTS, block.n)
        parts.append(np.broadcast_to(terms, (len(points), block.n)).reshape(shape).mean(1))
    return _from_shifts(np.concatenate(parts, axis=1), pair, rule, len(points))


def _terms(pair: Pair, rule: Rule, u_model: Floats, u_data: Floats) -> Floats:
    """What is averaged: agreement at each point, or the density of one side at the other."""
    if not rule.is_density:
        y_hat, y = _transform(pair.model, u_model), _transform(pair.data, u_data)
        return np.asarray(rule(y_hat, y), dtype=np.float64)
    match pair.model, pair.data:
        case Uncertain(law), other:
            points = _transform(other, u_data)
        case other, Uncertain(law):
            points = _transform(other, u_model)
        case _:
            raise RuntimeError("a density rule came without a density. Report this as a bug.")
    return np.asarray(np.exp(law.log_prob(points)) * rule(points, points))


def _from_shifts(means: Floats, pair: Pair, rule: Rule, n_points: int) -> Estimate:
    value = means.mean(0)
    error = means.std(0, ddof=1) / len(means) ** 0.5
    # No scatter is seen where every point gave the same; one of them might have differed.
    error = np.maximum(error, (value if rule.is_density else 1.0) / n_points)
    sizes = [len(side.draws) for side in (pair.model, pair.data) if isinstance(side, Sampled)]
    if sizes and not rule.is_density:
        error = np.hypot(error, binomial_error(value, min(sizes)))
    return Estimate(value, error)


def _axes(side: Side) -> int:
    match side:
        case Known():
            return 0
        case Sampled():
            return 1
    return side.law._n_uniforms


def _transform(side: Side, u: Floats) -> Floats:
    """Draws (m, n) of a side from points (m, axes) of the unit cube, by inverse transforms."""
    match side:
        case Known(values):
            return values.numpy()[None]
        case Sampled(draws):
            return draws[(u[:, 0] * len(draws)).astype(np.int64)].numpy()
    return side.law._from_uniforms(torch.from_numpy(u)).numpy()


def _truth(rule: Rule, y_hat: Tensor, y: Tensor) -> Floats:
    return np.asarray(rule(y_hat, y), dtype=np.float64)


def _share(agreed: Floats, *, size: int | None = None) -> Estimate:
    """Mean over the draws (axis 0) and the standard error of a share of ``size`` draws."""
    value = agreed.mean(0)
    return Estimate(value, binomial_error(value, len(agreed) if size is None else size))
