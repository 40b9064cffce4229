"""When do a model and data agree? Rules of agreement, and the probability that they hold."""

from accord.agreement.acceptance import Acceptance, acceptance
from accord.agreement.boolean import BooleanRule, Predicate
from accord.agreement.closed_form import (
    Known,
    Sampled,
    Side,
    Uncertain,
    log_probability_in_family,
    pair_of,
    side_of,
)
from accord.agreement.dataset_rules import (
    AreaAtMost,
    DatasetRule,
    MeanAbsoluteErrorAtMost,
    MeanErrorWithin,
    Share,
    ShareWithin,
    SquaredErrorAtMost,
)
from accord.agreement.intervals import Ends, Intervals
from accord.agreement.joint_rules import (
    Agreeing,
    AllWithin,
    EachOutput,
    JointRule,
    NormWithin,
    agreeing_errors,
)
from accord.agreement.parsing import parse_rule
from accord.agreement.probability import Agreement, Outputs, probability_of_agreement
from accord.agreement.quadrature import integrate
from accord.agreement.rules import (
    Asymmetric,
    AtLeast,
    AtMost,
    ErrorInside,
    Exact,
    Inside,
    Rule,
    Within,
    WithinRelative,
)
from accord.agreement.tracing import Found, search

__all__ = [
    "Acceptance",
    "Agreeing",
    "Agreement",
    "AllWithin",
    "AreaAtMost",
    "Asymmetric",
    "AtLeast",
    "AtMost",
    "BooleanRule",
    "DatasetRule",
    "EachOutput",
    "Ends",
    "ErrorInside",
    "Exact",
    "Found",
    "Inside",
    "Intervals",
    "JointRule",
    "Known",
    "MeanAbsoluteErrorAtMost",
    "MeanErrorWithin",
    "NormWithin",
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
    "acceptance",
    "agreeing_errors",
    "integrate",
    "log_probability_in_family",
    "pair_of",
    "parse_rule",
    "probability_of_agreement",
    "search",
    "side_of",
]
