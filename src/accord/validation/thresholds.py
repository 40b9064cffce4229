"""Metrics with a limit on an error: the squared error, and the tolerance that is needed."""

import numpy as np
from numpy.typing import ArrayLike

from accord._checks import RandomState, check_not_empty
from accord._types import Floats
from accord.agreement import (
    Agreement,
    Outputs,
    SquaredErrorAtMost,
    Within,
    probability_of_agreement,
    to_array,
)


def squared_error(
    model: Outputs,
    data: Outputs,
    *,
    limit: float,
    random_state: RandomState = None,
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
    random_state: RandomState = None,
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
    levels = to_array(tolerances).reshape(-1)
    check_not_empty("tolerances", levels)
    means = [
        probability_of_agreement(
            model, data, Within(float(eps)), random_state=random_state, n_samples=n_samples
        ).mean
        for eps in levels
    ]
    return np.array(means)
