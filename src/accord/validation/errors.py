"""Metrics about errors: their square, the tolerance that is needed, and errors of a mean.

A mean is known from repeated measurements, with the uncertainty that they leave.
"""

from dataclasses import dataclass
from typing import Literal, final, get_args

import numpy as np
from numpy.typing import ArrayLike

from accord._checks import (
    RandomState,
    check_choice,
    check_finite,
    check_not_empty,
    check_probability,
)
from accord._types import Floats
from accord.agreement import (
    Agreement,
    AtLeast,
    AtMost,
    ErrorInside,
    Inside,
    Outputs,
    SquaredErrorAtMost,
    Within,
    probability_of_agreement,
)
from accord.distributions import Distribution, Normal, StudentT, to_floats

LawOfMean = Literal["normal", "student-t"]
Alternative = Literal["two-sided", "less", "greater"]


def squared_error(
    model: Outputs,
    data: Outputs,
    *,
    limit: float,
    random_state: RandomState = 0,
    n_samples: int = 2**14,
) -> Agreement:
    """The probability that the squared error stays below a limit, P(Σ(ŷ − y)² ≤ limit).

    For exact predictions and data it is 1 or 0, the usual test: the smallest limit that agrees is
    the squared error itself.

    Example:
        >>> squared_error([1.0, 2.0], [1.5, 2.0], limit=0.3)
        Agreement(squared error at most 0.3: probability 1; closed form)
    """
    rule = SquaredErrorAtMost(limit)
    return probability_of_agreement(
        model, data, rule, random_state=random_state, n_samples=n_samples
    )


def agreement_curve(
    model: Outputs,
    data: Outputs,
    tolerances: ArrayLike,
    *,
    random_state: RandomState = 0,
    n_samples: int = 2**14,
) -> Floats:
    """The mean probability of agreement within ε, as a function of ε.

    It rises from 0 to 1; where it reaches a wanted probability one reads off the tolerance that the
    model can claim.

    **Shape**: tolerances (T,) → (T,).

    Example:
        >>> from accord.distributions import Normal
        >>> agreement_curve(Normal([0.0], 1.0), [0.0], [0.5, 1.0, 2.0]).round(3)
        array([0.383, 0.683, 0.954])
    """
    levels = to_floats(tolerances).reshape(-1)
    check_not_empty("tolerances", levels)
    means = [
        probability_of_agreement(
            model, data, Within(float(eps)), random_state=random_state, n_samples=n_samples
        ).mean
        for eps in levels
    ]
    return np.array(means)


def mean_of(observations: ArrayLike, *, law: LawOfMean = "student-t") -> Distribution:
    """What n repeated measurements say about their unknown mean.

    With ȳ and s their mean and standard deviation: Student-t with n − 1 degrees of freedom about ȳ
    with scale s/√n, or the normal law with that deviation, its limit for many measurements.

    **Shape**: observations (n,) → (); (n, K) for K quantities → (K,).

    Example:
        >>> mean_of([9.0, 10.0, 11.0])
        StudentT(df=2, mean=10., scale=0.5774)
    """
    check_choice("law", law, get_args(LawOfMean))
    mean, error, n = _mean_and_error(observations)
    return Normal(mean, error) if law == "normal" else StudentT(n - 1, mean, error)


def reliability(
    model: Outputs,
    observations: ArrayLike,
    *,
    tolerance: float | Floats,
    law: LawOfMean = "normal",
) -> Agreement:
    """The reliability metric, r = P(|ŷ − ȳ| ≤ ε): model and mean of the data agree within ε.

    With the normal law of the mean and an exact model, r = Φ((ε − d)/(s/√n)) − Φ((−ε − d)/(s/√n)),
    d = ŷ − ȳ (Rebba & Mahadevan 2008).

    **Shape**: observations (n,) or (n, K); model () or (K,).

    Example:
        >>> reliability(10.2, [9.0, 10.0, 11.0], tolerance=1.0)
        Agreement(within 1: probability 0.8982; closed form)
    """
    return probability_of_agreement(model, mean_of(observations, law=law), Within(tolerance))


@final
@dataclass(frozen=True, eq=False)
class FrequentistInterval:
    """Where the model's error lies, with the stated coverage.

    Args:
        error: the estimated error ŷ − ȳ.
        lower: lower end of the interval of the true error.
        upper: upper end.
        coverage: its coverage.
        agreement: the interval as a rule, lower ≤ ŷ − ȳ ≤ upper, and its probability, the coverage.

    **Shape**: that of the model.
    """

    error: Floats
    lower: Floats
    upper: Floats
    coverage: float
    agreement: Agreement


def frequentist_interval(
    model: ArrayLike, observations: ArrayLike, *, coverage: float = 0.95
) -> FrequentistInterval:
    """The frequentist metric: estimated error and its confidence interval, ŷ − ȳ ± t s/√n.

    t is the quantile of Student-t with n − 1 degrees of freedom (Oberkampf & Barone 2006). It is
    the rule about the error that a model agrees with at probability ``coverage``, no more and no
    less.

    **Shape**: observations (n,) or (n, K); model () or (K,).

    Example:
        >>> found = frequentist_interval(10.2, [9.0, 10.0, 11.0])
        >>> float(found.error), float(found.lower.round(3)), float(found.upper.round(3))
        (0.1999..., -2.284, 2.684)
    """
    check_probability("coverage", coverage, strict=True, remedy="Write 0.95 for 95 %.")
    y_hat = to_floats(model)
    check_finite("model", y_hat)
    mean, scale, n = _mean_and_error(observations)
    if y_hat.shape != mean.shape:
        raise ValueError(
            f"model must have one value per quantity measured, got shape {y_hat.shape} for "
            f"{mean.shape}. Pass observations of shape (n, K) and a model of shape (K,)."
        )
    error = y_hat - mean
    ends = StudentT(n - 1, error, scale).interval(coverage)
    lower, upper = np.asarray(ends[..., 0]), np.asarray(ends[..., 1])
    rule = ErrorInside(lower, upper)
    agreement = probability_of_agreement(y_hat, mean_of(observations), rule)
    return FrequentistInterval(error, lower, upper, coverage, agreement)


@final
@dataclass(frozen=True, eq=False)
class HypothesisTest:
    """A classical test of a model.

    Args:
        p_value: probability, under the model, of a statistic at least as extreme as the observed
            (None where the observed one is itself uncertain).
        level: the level of the test.
        agreement: the acceptance region as a rule, and the probability that the observed statistic
            lies in it: 1 or 0 for an exact one, that is, not rejected or rejected.
    """

    p_value: Floats | None
    level: float
    agreement: Agreement


def hypothesis_test(
    model: Distribution,
    observed: Outputs,
    *,
    level: float = 0.05,
    alternative: Alternative = "two-sided",
) -> HypothesisTest:
    """Test whether an observed statistic can come from the model.

    The p-value is a probability of agreement: P(ŷ ≥ y) for the alternative "greater" (rule
    `AtLeast`), P(ŷ ≤ y) for "less" (`AtMost`), twice the smaller of the two for "two-sided". The
    test itself is the rule `Inside` the acceptance region, so that an uncertain statistic is
    accepted with a probability.

    Args:
        model: the law of the statistic under the model (the null hypothesis).
        observed: the observed statistic, exact or with its uncertainty.
        level: probability of rejecting a true model.
        alternative: which deviations count against the model.

    Example:
        >>> from accord.distributions import Normal
        >>> found = hypothesis_test(Normal(0.0, 1.0), 1.9)
        >>> float(found.p_value.round(4)), float(found.agreement.probability)
        (0.0574, 1.0)
    """
    check_probability("level", level, strict=True, remedy="Write 0.05 for 5 %.")
    check_choice("alternative", alternative, get_args(Alternative))
    if not isinstance(model, Distribution):
        raise TypeError(
            f"model must be a distribution, got {type(model).__name__}. "
            "Pass the law of the statistic, as Normal(mean, std) or Empirical(draws)."
        )
    region = _acceptance(model, level, alternative)
    accepted = probability_of_agreement(observed, np.zeros(model.shape), region)
    p_value = None if isinstance(observed, Distribution) else _p_value(model, observed, alternative)
    return HypothesisTest(p_value, level, accepted)


def _p_value(model: Distribution, observed: Outputs, alternative: Alternative) -> Floats:
    below = probability_of_agreement(model, observed, AtMost()).probability
    above = probability_of_agreement(model, observed, AtLeast()).probability
    if alternative == "less":
        return below
    if alternative == "greater":
        return above
    return np.asarray(np.minimum(1.0, 2 * np.minimum(below, above)))


def _acceptance(model: Distribution, level: float, alternative: Alternative) -> Inside:
    if alternative == "less":
        return Inside(model.quantile(level), np.inf)
    if alternative == "greater":
        return Inside(-np.inf, model.quantile(1 - level))
    ends = model.interval(1 - level)
    return Inside(ends[..., 0], ends[..., 1])


def _mean_and_error(observations: ArrayLike) -> tuple[Floats, Floats, int]:
    values = to_floats(observations)
    check_not_empty("observations", values)
    check_finite("observations", values, remedy="Leave missing measurements out.")
    n = len(values) if values.ndim else 1
    if n < 2:
        raise ValueError(
            f"observations must have at least 2 rows to show their scatter, got {n}. "
            "Repeat the measurement, or state its uncertainty as Normal(y, std)."
        )
    deviation = values.std(0, ddof=1)
    if not (deviation > 0).all():
        raise ValueError(
            "observations must differ to show their uncertainty, got equal values throughout. "
            "State the uncertainty as Normal(y, std), for instance by the rounding."
        )
    return values.mean(0), np.asarray(deviation / n**0.5), n
