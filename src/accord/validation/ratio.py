"""Two models compared by how probably each agrees with the data."""

import math
from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from accord._checks import RandomState, check_positive
from accord.agreement import (
    DatasetRule,
    Exact,
    Outputs,
    Predicate,
    Rule,
    probability_of_agreement,
    to_array,
)
from accord.distributions import Distribution, Mixture

AnyRule = Rule | DatasetRule | Predicate


@final
@dataclass(frozen=True)
class BVMRatio:
    """K = p(A | M₁, D, B) p(M₁) / p(A | M₂, D, B) p(M₂).

    Args:
        log_ratio: log K.
        standard_error: of log K; 0 where both probabilities are closed forms.
        log_agreement: log p(A) of the first and of the second model.
        prior_odds: p(M₁) / p(M₂).
    """

    log_ratio: float
    standard_error: float
    log_agreement: tuple[float, float]
    prior_odds: float

    @property
    def ratio(self) -> float:
        """K itself; infinite where it overflows."""
        return math.exp(self.log_ratio) if self.log_ratio < 709 else math.inf

    @property
    def favours(self) -> Literal["first", "second", "neither"]:
        """The model with the higher probability; neither within two standard errors of K = 1."""
        if abs(self.log_ratio) <= 2 * self.standard_error:
            return "neither"
        return "first" if self.log_ratio > 0 else "second"


def bvm_ratio(
    first: Outputs,
    second: Outputs,
    data: Outputs,
    rule: AnyRule,
    *,
    prior_odds: float = 1.0,
    shared_members: bool = False,
    random_state: RandomState = None,
    n_samples: int = 2**14,
) -> BVMRatio:
    """How much more probably the first model agrees with the data than the second.

    A rule for single rows is asked of every row, the rows being independent: log p(A) is the sum
    over the rows. Under `Exact` the ratio is the Bayes factor (`bayes_factor`).

    Args:
        first: a model: distribution, draws or values.
        second: its rival.
        data: the data of both.
        rule: the rule of agreement.
        prior_odds: odds of the first model before the data.
        shared_members: see `joint_log_agreement`.
        random_state: seed of the Monte Carlo route.
        n_samples: its number of points.

    Example:
        >>> from accord.agreement import Within
        >>> from accord.distributions import Normal
        >>> y = [1.0, 2.0, 3.0]
        >>> narrow, wide = Normal(y, 0.5), Normal(y, 2.0)
        >>> bvm_ratio(narrow, wide, y, Within(0.5)).favours
        'first'
    """
    check_positive("prior_odds", prior_odds, remedy="Use 1 for models equally likely beforehand.")
    logs, errors = zip(
        *(
            joint_log_agreement(
                model,
                data,
                rule,
                shared_members=shared_members,
                random_state=random_state,
                n_samples=n_samples,
            )
            for model in (first, second)
        ),
        strict=True,
    )
    if max(logs) == -math.inf:
        raise ValueError(
            "at least one model must agree with the data at all, got probability 0 for both. "
            "Loosen the rule, give the models their uncertainty, or raise n_samples."
        )
    log_ratio = logs[0] - logs[1] + math.log(prior_odds)
    return BVMRatio(log_ratio, math.hypot(*errors), (logs[0], logs[1]), float(prior_odds))


def bayes_factor(
    first: Outputs,
    second: Outputs,
    data: Outputs,
    *,
    prior_odds: float = 1.0,
    shared_members: bool = False,
) -> BVMRatio:
    """Bayesian model testing: the BVM ratio under exact agreement.

    Each model is its prior predictive density. Given as predictions made row by row, each after the
    rows before it, or as a `Mixture` over parameter values with ``shared_members``, the product of
    the densities is the evidence p(D | M), and the ratio the Bayes factor.
    """
    return bvm_ratio(
        first, second, data, Exact(), prior_odds=prior_odds, shared_members=shared_members
    )


def joint_log_agreement(
    model: Outputs,
    data: Outputs,
    rule: AnyRule,
    *,
    shared_members: bool = False,
    random_state: RandomState = None,
    n_samples: int = 2**14,
) -> tuple[float, float]:
    """log P(the model agrees with all data) and its standard error.

    Args:
        model: distribution, draws or values.
        data: exact values or a distribution.
        rule: for single rows (then asked of every row) or over all rows.
        shared_members: whether all rows of a `Mixture` come from the same, unknown member, as for a
            mixture over parameter values: log Σ_m w_m Π_i p_mi. Otherwise each row has its own:
            Π_i Σ_m w_m p_mi.
        random_state: seed of the Monte Carlo route.
        n_samples: its number of points.
    """
    if shared_members:
        return _over_members(_mixture(model), data, rule, random_state, n_samples)
    result = probability_of_agreement(
        model, data, rule, random_state=random_state, n_samples=n_samples
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.nan_to_num(result.standard_error / result.probability, posinf=0.0)
    combined = np.sqrt((relative**2).sum())
    return result.joint_log_probability, float(combined)


def _over_members(
    model: Mixture, data: Outputs, rule: AnyRule, random_state: RandomState, n_samples: int
) -> tuple[float, float]:
    logs, errors = [], []
    for member in model.members:
        log_p, error = joint_log_agreement(
            member, data, rule, random_state=random_state, n_samples=n_samples
        )
        logs.append(log_p)
        errors.append(error)
    with np.errstate(divide="ignore"):
        weighted = np.array(logs) + np.log(to_array(model.weights))
    total = float(np.logaddexp.reduce(weighted))
    shares = np.exp(weighted - total) if total > -math.inf else np.zeros_like(weighted)
    return total, float(np.sqrt(((shares * errors) ** 2).sum()))


def _mixture(model: Outputs) -> Mixture:
    if isinstance(model, Mixture):
        return model
    kind = type(model).__name__ if isinstance(model, Distribution) else "values or draws"
    raise TypeError(
        f"shared_members needs a Mixture, got {kind}. "
        "Leave it out, or stack the members: Mixture(Normal(mean, std)) with shape (M, N)."
    )
