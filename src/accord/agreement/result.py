"""What a probability of agreement comes with: how it was computed, and how well."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, final

import numpy as np

from accord._checks import RandomState
from accord._types import Floats
from accord.agreement.dataset_rules import DatasetRule
from accord.agreement.rule import Rule

Route = Literal["closed form", "quadrature", "monte carlo"]
"""How a probability was computed."""

Method = Literal["auto", "closed form", "quadrature", "monte carlo"]
"""How a probability is to be computed; "auto" takes the first of the three that applies."""


class Options(NamedTuple):
    """How to compute."""

    method: Method
    random_state: RandomState
    n_samples: int


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

    **Shape**: that of the data; () for a rule over all rows.
    """

    rule: Rule | DatasetRule
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
