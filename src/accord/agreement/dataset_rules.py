"""Agreement rules about the whole data set: a mean error, a share of the rows, an area.

Such a rule looks at all predictions and all data of one joint draw at once, and combines with
others of its kind by ``&``, ``|`` and ``~``. A rule about single rows enters it through `Share`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from accord._checks import check_finite, check_non_negative, check_probability
from accord._types import Bools, Floats
from accord.agreement.rule import Both, Either, Predicate, Rule, as_rule, in_words, to_array
from accord.agreement.rules import Within


class DatasetRule(ABC):
    """A Boolean statement about all predictions and all data together.

    **Shape**: y_hat and y (..., N), one answer for each leading index.

    Example:
        >>> rule = MeanAbsoluteErrorAtMost(0.3) & ShareWithin(0.5, share=0.9)
        >>> str(rule)
        'mean absolute error at most 0.3 and 90% within 0.5'
        >>> bool(rule([1.1, 2.2, 2.9], [1.0, 2.0, 3.0]))
        True
    """

    over_all_rows: ClassVar[bool] = True

    @abstractmethod
    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        """One answer per leading index of arrays of one shape."""

    @abstractmethod
    def __str__(self) -> str: ...

    def __call__(self, y_hat: ArrayLike | Tensor, y: ArrayLike | Tensor) -> Bools:
        """Whether all predictions together agree with all data."""
        return self._holds(*np.broadcast_arrays(to_array(y_hat), to_array(y)))

    @staticmethod
    def from_callable(
        function: Callable[[Floats, Floats], Any], *, name: str | None = None
    ) -> "CustomOverall":
        """A rule from ``function(y_hat, y) -> bool``, which takes arrays (..., N) to (...)."""
        given = str(getattr(function, "__name__", type(function).__name__))
        return CustomOverall(function, given if name is None else name)

    def __and__(self, other: "DatasetRule") -> "AllOf":
        return AllOf(self, _overall(other))

    def __or__(self, other: "DatasetRule") -> "AnyOf":
        return AnyOf(self, _overall(other))

    def __invert__(self) -> "DatasetRule":
        return self.rule if isinstance(self, Not) else Not(self)


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
@dataclass(frozen=True)
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
@dataclass(frozen=True)
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
@dataclass(frozen=True)
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
@dataclass(frozen=True)
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
@dataclass(frozen=True)
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
        inner = f"({self.rule})" if isinstance(self.rule, Both | Either) else str(self.rule)
        return f"{in_words(self.share, percent=True)} {inner}"


# Named like the rule that it makes.
def ShareWithin(tolerance: Any, share: float = 0.95) -> Share:
    """At least a share of the rows lies within a tolerance: ``Share(Within(tolerance), share)``."""
    return Share(Within(tolerance), share)


@final
@dataclass(frozen=True)
class CustomOverall(DatasetRule):
    """Agreement as a Python callable decides; made by `DatasetRule.from_callable`."""

    function: Callable[[Floats, Floats], Any]
    name: str

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        answer = np.asarray(self.function(y_hat, y))
        if answer.dtype != np.bool_ or answer.shape != y.shape[:-1]:
            raise ValueError(
                "an agreement rule over all rows must answer with one boolean for each leading "
                f"index {y.shape[:-1]}, got {answer.dtype} of shape {answer.shape} from "
                f"{self.name!r}. Reduce the last axis, as in error.mean(-1) <= 1."
            )
        return answer

    def __str__(self) -> str:
        return self.name


@final
@dataclass(frozen=True, repr=False)
class AllOf(DatasetRule):
    """Agreement under two rules at once; made by ``&``."""

    left: DatasetRule
    right: DatasetRule

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return self.left._holds(y_hat, y) & self.right._holds(y_hat, y)

    def __str__(self) -> str:
        return f"{_bracketed(self.left, AnyOf)} and {_bracketed(self.right, AnyOf, AllOf)}"

    def __repr__(self) -> str:
        return f"({self.left!r} & {self.right!r})"


@final
@dataclass(frozen=True, repr=False)
class AnyOf(DatasetRule):
    """Agreement under at least one of two rules; made by ``|``."""

    left: DatasetRule
    right: DatasetRule

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return self.left._holds(y_hat, y) | self.right._holds(y_hat, y)

    def __str__(self) -> str:
        return f"{self.left} or {_bracketed(self.right, AnyOf)}"

    def __repr__(self) -> str:
        return f"({self.left!r} | {self.right!r})"


@final
@dataclass(frozen=True, repr=False)
class Not(DatasetRule):
    """Agreement where another rule disagrees; made by ``~``."""

    rule: DatasetRule

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return ~self.rule._holds(y_hat, y)

    def __str__(self) -> str:
        return f"not {_bracketed(self.rule, AnyOf, AllOf)}"

    def __repr__(self) -> str:
        return f"~{self.rule!r}"


def _overall(rule: Any) -> DatasetRule:
    if isinstance(rule, DatasetRule):
        return rule
    raise TypeError(
        f"a rule over all rows combines with others of its kind, got {rule!r}. "
        "Wrap a rule for single rows: Share(rule, 1.0) asks it of every row."
    )


def _bracketed(rule: DatasetRule, *weaker: type[DatasetRule]) -> str:
    return f"({rule})" if isinstance(rule, weaker) else str(rule)
