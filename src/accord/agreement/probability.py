"""The probability of agreement, p(A | M, D, B) = ∫∫ ρ(ŷ | M) Θ(B(ŷ, y)) ρ(y) dŷ dy."""

from dataclasses import dataclass
from typing import final, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from accord._checks import RandomState, check_choice, check_count
from accord._types import Floats
from accord.agreement.boolean import Predicate
from accord.agreement.closed_form import pair_of
from accord.agreement.dataset_rules import DatasetRule, log_overall_agreement
from accord.agreement.joint_rules import JointRule
from accord.agreement.monte_carlo import Sampling
from accord.agreement.routes import Method, Options, Route, log_agreement_by_row
from accord.agreement.rule import Rule, as_rule
from accord.agreement.several_outputs import log_agreement_of_outputs, several_of
from accord.distributions import Distribution, JointDistribution

Outputs = Distribution | ArrayLike | Tensor
"""A model's predictions, or data: a distribution, or numbers."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Agreement:
    """The probability of agreement of each row, how it was computed, and how well.

    Args:
        rule: the rule of agreement.
        probability: p(A) per row; a density in units of 1/target where ``is_density``.
        log_probability: its logarithm, also where p(A) itself underflows.
        standard_error: 0 for a closed form, the stated absolute error for quadrature, the standard
            error for Monte Carlo.
        route: how it was computed.
        is_density: whether the rule demands exact agreement, so that p(A) is a density.

    **Shape**: that of the data; (N,) for a rule over several outputs, () for one over all rows.
    """

    rule: Rule | JointRule | DatasetRule
    probability: Floats
    log_probability: Floats
    standard_error: Floats
    route: Route
    is_density: bool = False

    @property
    def mean(self) -> float:
        """The average over the rows: the expected share of rows that agree."""
        return float(self.probability.mean())

    @property
    def joint_log_probability(self) -> float:
        """log P(every row agrees) for rows that are independent: the sum over the rows."""
        return float(self.log_probability.sum())

    def __repr__(self) -> str:
        kind = "density" if self.is_density else "probability"
        rows = self.probability.size
        amount = f"{self.mean:.4g}"
        what = (
            f"mean {kind} {amount} over {rows} rows"
            if self.probability.shape
            else (f"{kind} {amount}")
        )
        error = float(np.max(self.standard_error))
        return f"Agreement({self.rule}: {what}; {self.route}{f', ± {error:.1g}' if error else ''})"


def probability_of_agreement(
    model: Outputs | JointDistribution,
    data: Outputs | JointDistribution,
    rule: Rule | JointRule | DatasetRule | Predicate,
    *,
    method: Method = "auto",
    random_state: RandomState = None,
    n_samples: int = 2**14,
) -> Agreement:
    """The probability that model and data agree under a rule, row by row or over all rows.

    "auto" takes the first route that applies and says which: a closed form; quadrature, with an
    estimate of its error; quasi-Monte Carlo, with its standard error. Where a side is given as
    draws, the closed form of the other side is averaged over them. Under a callable with
    uncertainty on both sides, quadrature has to search for the limits of agreement at every point;
    "auto" does so for up to 64 rows.

    Args:
        model: a distribution, draws, or exact values.
        data: exact values, or a distribution: ``Normal(y, std)`` for measurement errors,
            ``Uniform(lower, upper)`` for rounded or interval data, ``Empirical(draws)``.
        rule: a rule for single rows, a callable ``(y_hat, y) -> bool``, a rule over several outputs
            (:class:`accord.agreement.JointRule`), or a rule over all rows.
        method: a route, to compare it with another.
        random_state: seed of the Monte Carlo route.
        n_samples: points of the Monte Carlo route, rounded up to 16 times a power of two.

    **Shape**: data (N,) or (N, K); a model of that shape, or draws (S, N) or (S, N, K). A rule over
    several outputs needs the latter, or a joint distribution of N rows.

    Example:
        >>> from accord.agreement import ShareWithin, Within
        >>> from accord.distributions import Normal
        >>> model = Normal(mean=[1.0, 2.0, 3.0], std=0.5)
        >>> probability_of_agreement(model, [1.1, 2.0, 4.5], Within(0.5)).probability.round(4)
        array([0.6731, 0.6827, 0.0227])
        >>> measured = Normal([1.1, 2.0, 4.5], 0.2)
        >>> probability_of_agreement(model, measured, Within(0.5))
        Agreement(within 0.5: mean probability 0.439 over 3 rows; closed form)
        >>> probability_of_agreement(model, measured, ShareWithin(0.5, share=0.6))
        Agreement(60% within 0.5: probability 0.4276; closed form)
        >>> from accord.agreement import AllWithin
        >>> from accord.distributions import MultivariateNormal
        >>> pair = MultivariateNormal([[1.0, 2.0]], [[1.0, 0.0], [0.8, 0.6]])
        >>> probability_of_agreement(pair, [[1.1, 2.0]], AllWithin(0.5)).probability.round(4)
        array([0.2136])
    """
    check_choice("method", method, get_args(Method))
    check_count("n_samples", n_samples)
    options = Options(method, Sampling(n_samples, random_state))
    if isinstance(rule, JointRule):
        with torch.no_grad():
            result = log_agreement_of_outputs(several_of(model, data), rule, options)
        return Agreement(rule, np.asarray(np.exp(result[0])), *result)
    if isinstance(model, JointDistribution) or isinstance(data, JointDistribution):
        raise TypeError(
            f"a joint distribution must come with a rule over several outputs, got {rule!r}. "
            "Use for instance AllWithin(0.5), or the distribution's marginals."
        )
    pair, shape = pair_of(model, data)
    with torch.no_grad():
        if isinstance(rule, DatasetRule):
            _check_rows(shape)
            log_p, error, route = log_overall_agreement(pair, rule, options)
            return Agreement(rule, np.asarray(np.exp(log_p)), log_p, error, route)
        row_rule = as_rule(rule)
        log_p, error, route = log_agreement_by_row(pair, row_rule.flattened(shape), options)
    log_p, error = log_p.reshape(shape), error.reshape(shape)
    return Agreement(row_rule, np.asarray(np.exp(log_p)), log_p, error, route, row_rule.is_density)


def _check_rows(shape: tuple[int, ...]) -> None:
    if len(shape) != 1:
        raise ValueError(
            f"a rule over all rows must have data of shape (N,), got {shape}. "
            "Ask it of one output at a time."
        )
