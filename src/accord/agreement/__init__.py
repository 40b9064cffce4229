"""When do a model and data agree? Rules of agreement, and the probability that they hold."""

from accord.agreement.intervals import Intervals
from accord.agreement.rule import Rule, as_rule
from accord.agreement.rules import (
    Asymmetric,
    AtLeast,
    AtMost,
    Exact,
    Inside,
    Within,
    WithinRelative,
)

__all__ = [
    "Asymmetric",
    "AtLeast",
    "AtMost",
    "Exact",
    "Inside",
    "Intervals",
    "Rule",
    "Within",
    "WithinRelative",
    "as_rule",
]
