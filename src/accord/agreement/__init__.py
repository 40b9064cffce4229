"""When do a model and data agree? Rules of agreement, and the probability that they hold."""

from accord.agreement.dataset_rules import (
    AreaAtMost,
    DatasetRule,
    MeanAbsoluteErrorAtMost,
    MeanErrorWithin,
    Share,
    ShareWithin,
    SquaredErrorAtMost,
)
from accord.agreement.intervals import Intervals
from accord.agreement.parsing import parse_rule
from accord.agreement.probability import Agreement, Outputs, probability_of_agreement
from accord.agreement.quadrature import integrate
from accord.agreement.rule import Predicate, Rule, as_rule, to_array
from accord.agreement.rules import (
    Asymmetric,
    AtLeast,
    AtMost,
    ErrorInside,
    Exact,
    Inside,
    Within,
    WithinRelative,
)
from accord.agreement.sides import Known, Sampled, Side, Uncertain, pair_of
from accord.agreement.tracing import missed, trace

__all__ = [
    "Agreement",
    "AreaAtMost",
    "Asymmetric",
    "AtLeast",
    "AtMost",
    "DatasetRule",
    "ErrorInside",
    "Exact",
    "Inside",
    "Intervals",
    "Known",
    "MeanAbsoluteErrorAtMost",
    "MeanErrorWithin",
    "Outputs",
    "Predicate",
    "Rule",
    "Sampled",
    "Share",
    "ShareWithin",
    "Side",
    "SquaredErrorAtMost",
    "Uncertain",
    "Within",
    "WithinRelative",
    "as_rule",
    "integrate",
    "missed",
    "pair_of",
    "parse_rule",
    "probability_of_agreement",
    "to_array",
    "trace",
]
