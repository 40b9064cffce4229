"""Which route leads to the probability of agreement of single rows."""

from typing import Literal, NamedTuple

import numpy as np
import torch

from accord._types import Floats
from accord.agreement.closed_form import Pair, Uncertain, log_closed_form
from accord.agreement.monte_carlo import Sampling, average_over_draws, quasi_monte_carlo
from accord.agreement.quadrature import log_quadrature, needs_tracing
from accord.agreement.rules import Rule

_ROWS = 256  # rows integrated at a time
_ROWS_TRACED = 8
_CHECKS = 2**14  # points that a traced integral is checked against
_CONFIRMED = 4.0  # standard errors
_MOST_TRACED = 64  # rows for which the slow search under a callable is worth its digits

Route = Literal["closed form", "quadrature", "monte carlo"]
"""How a probability was computed."""

Method = Literal["auto", "closed form", "quadrature", "monte carlo"]
"""How a probability is to be computed; "auto" takes the first of the three that applies."""

Result = tuple[Floats, Floats, Route]
"""log p(A) per row, its error, and the route taken."""


class Options(NamedTuple):
    """How to compute."""

    method: Method
    sampling: Sampling


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
        value, error = quasi_monte_carlo(pair, rule, options.sampling)
        return _log(value), error, "monte carlo"
    raise NoRoute(method, rule)


class NoRoute(ValueError):
    """The asked route does not exist for this model, data and rule."""

    def __init__(self, method: Method, rule: object) -> None:
        super().__init__(
            f"method must have a route for the model, the data and the rule, got {method!r} for "
            f"{rule!r}, where there is none. Use method='auto'."
        )


def _in_blocks(pair: Pair, rule: Rule) -> tuple[Floats, Floats] | None:
    step = _ROWS_TRACED if needs_tracing(pair, rule) else _ROWS
    logs, errors = [], []
    for start in range(0, pair.n, step):
        rows = torch.arange(start, min(start + step, pair.n))
        part = log_quadrature(pair.take(rows), rule.take(rows.numpy()))
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
    value, scatter = quasi_monte_carlo(pair, rule, Sampling(_CHECKS, 0))
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
