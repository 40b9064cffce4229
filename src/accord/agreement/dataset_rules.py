"""Agreement rules about the whole data set: a mean error, a share of the rows, an area.

Such a rule looks at all predictions and all data of one joint draw at once, and combines with
others of its kind by ``&``, ``|`` and ``~``. A rule about single rows enters it through `Share`.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from accord._checks import check_finite, check_non_negative, check_probability
from accord._types import Bools, Floats
from accord.agreement.boolean import (
    Algebra,
    BooleanRule,
    Callback,
    Conjunction,
    Disjunction,
    Negation,
    Predicate,
    bracketed,
    in_words,
)
from accord.agreement.rule import Rule, as_rule
from accord.agreement.rules import Within


class DatasetRule(BooleanRule["DatasetRule"]):
    """A Boolean statement about all predictions and all data together.

    **Shape**: y_hat and y (..., N), one answer for each leading index.

    Example:
        >>> rule = MeanAbsoluteErrorAtMost(0.3) & ShareWithin(0.5, share=0.9)
        >>> str(rule)
        'mean absolute error at most 0.3 and 90% within 0.5'
        >>> bool(rule([1.1, 2.2, 2.9], [1.0, 2.0, 3.0]))
        True
    """

    _looks_at: ClassVar[str] = "over all rows"
    _instead: ClassVar[str] = "Beside a rule over all rows, write Share(Within(0.5), 0.95)."

    @staticmethod
    def _algebra() -> "Algebra[DatasetRule]":
        return Algebra(DatasetRule, AllOf, AnyOf, Not, CustomOverall)


class Limit(DatasetRule):
    """A rule of the form statistic(ŷ, y) ≤ limit.

    For exact predictions and data the smallest limit that still agrees is the statistic itself: so
    every threshold rule has a classical metric inside it.
    """

    limit: float
    _name: ClassVar[str]

    @staticmethod
    @abstractmethod
    def statistic(y_hat: Floats, y: Floats) -> Floats:
        """The quantity that must not exceed the limit, (..., N) → (...)."""

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return np.asarray(self.statistic(y_hat, y) <= self.limit)

    def _check(self) -> None:
        check_non_negative("limit", self.limit)
        check_finite("limit", self.limit)
        object.__setattr__(self, "limit", float(self.limit))

    def __str__(self) -> str:
        return f"{self._name} {in_words(self.limit)}"


@final
@dataclass(frozen=True, eq=False)
class MeanAbsoluteErrorAtMost(Limit):
    """N⁻¹ Σ|ŷ − y| ≤ limit."""

    limit: float
    _name = "mean absolute error at most"

    def __post_init__(self) -> None:
        self._check()

    @staticmethod
    def statistic(y_hat: Floats, y: Floats) -> Floats:
        return np.asarray(np.abs(y_hat - y).mean(-1))


@final
@dataclass(frozen=True, eq=False)
class MeanErrorWithin(Limit):
    """|N⁻¹ Σ(ŷ − y)| ≤ limit: no more bias than this."""

    limit: float
    _name = "mean error within"

    def __post_init__(self) -> None:
        self._check()

    @staticmethod
    def statistic(y_hat: Floats, y: Floats) -> Floats:
        return np.asarray(np.abs((y_hat - y).mean(-1)))


@final
@dataclass(frozen=True, eq=False)
class SquaredErrorAtMost(Limit):
    """Σ(ŷ − y)² ≤ limit, the threshold on the squared error."""

    limit: float
    _name = "squared error at most"

    def __post_init__(self) -> None:
        self._check()

    @staticmethod
    def statistic(y_hat: Floats, y: Floats) -> Floats:
        return np.asarray(((y_hat - y) ** 2).sum(-1))


@final
@dataclass(frozen=True, eq=False)
class AreaAtMost(Limit):
    """∫|F̂(x) − F(x)| dx ≤ limit for the empirical cdfs of all predictions and of all data.

    With N values on either side the area is the mean distance between the ordered values.
    """

    limit: float
    _name = "area at most"

    def __post_init__(self) -> None:
        self._check()

    @staticmethod
    def statistic(y_hat: Floats, y: Floats) -> Floats:
        return np.asarray(np.abs(np.sort(y_hat, axis=-1) - np.sort(y, axis=-1)).mean(-1))


@final
@dataclass(frozen=True, eq=False)
class Share(DatasetRule):
    """At least a share of the rows agrees, each under a rule for single rows.

    Args:
        rule: the rule for single rows.
        share: the share, in [0, 1]; 1 for all rows.
    """

    rule: Rule | Predicate
    share: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rule", as_rule(self.rule))
        check_probability("share", self.share, remedy="Write 0.95 for 95 %.")

    def least(self, n: int) -> int:
        """How many of n rows must agree."""
        return int(np.ceil(self.share * n - 1e-9))

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        agreed = as_rule(self.rule)(y_hat, y).sum(-1)
        return np.asarray(agreed >= self.least(y_hat.shape[-1]))

    def __str__(self) -> str:
        inner = bracketed(as_rule(self.rule), 2)
        return f"{in_words(self.share, percent=True)} {inner}"


# Named like the rule that it makes.
def ShareWithin(tolerance: Any, share: float = 0.95) -> Share:
    """At least a share of the rows lies within a tolerance: ``Share(Within(tolerance), share)``."""
    return Share(Within(tolerance), share)


@final
@dataclass(frozen=True, eq=False, repr=False)
class CustomOverall(Callback["DatasetRule"], DatasetRule):
    """Agreement as a Python callable decides; made by `DatasetRule.from_callable`."""

    _remedy: ClassVar[str] = "Reduce the last axis, as in error.mean(-1) <= 1."

    @staticmethod
    def _answers(shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape[:-1]


@final
@dataclass(frozen=True, eq=False, repr=False)
class AllOf(Conjunction["DatasetRule"], DatasetRule):
    """Agreement under two rules at once; made by ``&``."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class AnyOf(Disjunction["DatasetRule"], DatasetRule):
    """Agreement under at least one of two rules; made by ``|``."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Not(Negation["DatasetRule"], DatasetRule):
    """Agreement where another rule disagrees; made by ``~``."""
