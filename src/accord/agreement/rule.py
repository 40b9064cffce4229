"""Agreement rules about one prediction and one datum, and how they combine.

A rule is the Boolean B(ŷ, y) of the probability of agreement

    p(A | M, D, B) = ∫∫ ρ(ŷ | M) Θ(B(ŷ, y)) ρ(y) dŷ dy.

It can be asked two things: whether a pair agrees (``rule(y_hat, y)``), and which predictions would
agree with a datum (``rule.intervals(y)``), a union of intervals, which gives the closed forms. A
Python callable answers only the first. Rules combine with ``&``, ``|`` and ``~``, and print
themselves in the words that `accord.agreement.parse_rule` reads.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, final

import numpy as np
from torch import Tensor

from accord._checks import check_fits
from accord._types import Floats
from accord.agreement.boolean import (
    Algebra,
    BooleanRule,
    Callback,
    Conjunction,
    Disjunction,
    Negation,
    Predicate,
)
from accord.agreement.intervals import Intervals

Dependence = Literal["difference", "prediction", "both"]
"""What a rule looks at: ŷ − y alone, ŷ alone, or both."""


class Rule(BooleanRule["Rule"]):
    """A Boolean statement about a prediction and a datum.

    Example:
        >>> from accord.agreement import AtLeast, Within
        >>> rule = Within(0.5) & AtLeast()
        >>> rule
        Within(0.5) & AtLeast()
        >>> str(rule)
        'within 0.5 and at least the datum'
        >>> rule([1.2, 0.9, 2.0], [1.0, 1.0, 1.0])
        array([ True, False, False])
        >>> str(Within(0.5) | Rule.from_callable(lambda y_hat, y: y_hat > 9, name="over nine"))
        'within 0.5 or over nine'
    """

    _looks_at: ClassVar[str] = "for single rows"
    _instead: ClassVar[str] = (
        "Wrap a rule for single rows: EachOutput([Within(0.5), AtLeast()]) for the outputs of a "
        "row, Share(Within(0.5), 1.0) for all rows."
    )

    @staticmethod
    def _algebra() -> "Algebra[Rule]":
        return Algebra(Rule, Both, Either, Negated, Custom)

    @property
    @abstractmethod
    def depends_on(self) -> Dependence:
        """Whether the rule looks at ŷ − y alone, at ŷ alone, or at both."""

    @property
    @abstractmethod
    def is_density(self) -> bool:
        """Whether agreement has a density instead of a probability: Θ(B) contains δ(ŷ − y)."""

    @abstractmethod
    def intervals(self, y: Tensor) -> Intervals | None:
        """The predictions that agree with y, as disjoint intervals; None if there is no such form.

        **Shape**: y (*S) → bounds (K, *S).
        """

    def take(self, rows: Any) -> Self:
        """The rule for selected rows: per-row numbers are indexed, others stay."""
        return self._mapped(lambda value: value[rows])

    def flattened(self, shape: tuple[int, ...]) -> Self:
        """The rule for data of this shape laid out in one row: per-row numbers in full length."""

        def in_full(value: Floats | Tensor) -> Floats | Tensor:
            check_fits("data", np.empty(shape), tuple(value.shape), owner="rule's per-row numbers")
            if isinstance(value, Tensor):
                return value.expand(shape).reshape(-1)
            return np.broadcast_to(value, shape).reshape(-1)

        return self._mapped(in_full)

    def _mapped(self, change: Callable[[Any], Any]) -> Self:
        """The rule with its per-row numbers changed, in all its parts."""
        changed: dict[str, Any] = {}
        for name in self._field_names():
            value = getattr(self, name)
            if isinstance(value, Rule):
                changed[name] = value._mapped(change)
            elif isinstance(value, np.ndarray | Tensor):
                changed[name] = change(value)
        return replace(self, **changed)  # type: ignore[type-var]  # every final rule is a dataclass


@final
@dataclass(frozen=True, eq=False, repr=False)
class Custom(Callback["Rule"], Rule):
    """Agreement as a Python callable decides; made by `Rule.from_callable`."""

    depends_on: ClassVar[Dependence] = "both"
    is_density: ClassVar[bool] = False
    _remedy: ClassVar[str] = "Write it with elementwise comparisons of both arrays."

    @staticmethod
    def _answers(shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape

    def intervals(self, y: Tensor) -> None:
        return None


@final
@dataclass(frozen=True, eq=False, repr=False)
class Both(Conjunction["Rule"], Rule):
    """Agreement under two rules at once; made by ``&``."""

    @property
    def depends_on(self) -> Dependence:
        return _of_both(self.left, self.right)

    @property
    def is_density(self) -> bool:
        return self.left.is_density or self.right.is_density

    def intervals(self, y: Tensor) -> Intervals | None:
        left, right = self.left.intervals(y), self.right.intervals(y)
        return None if left is None or right is None else left & right


@final
@dataclass(frozen=True, eq=False, repr=False)
class Either(Disjunction["Rule"], Rule):
    """Agreement under at least one of two rules; made by ``|``."""

    @property
    def depends_on(self) -> Dependence:
        return _of_both(self.left, self.right)

    @property
    def is_density(self) -> bool:
        return self.left.is_density and self.right.is_density

    def intervals(self, y: Tensor) -> Intervals | None:
        left, right = self.left.intervals(y), self.right.intervals(y)
        return None if left is None or right is None else left | right


@final
@dataclass(frozen=True, eq=False, repr=False)
class Negated(Negation["Rule"], Rule):
    """Agreement where another rule disagrees; made by ``~``."""

    is_density: ClassVar[bool] = False

    @property
    def depends_on(self) -> Dependence:
        return self.rule.depends_on

    def intervals(self, y: Tensor) -> Intervals | None:
        inner = self.rule.intervals(y)
        return None if inner is None else ~inner


def as_rule(rule: Rule | Predicate) -> Rule:
    """A rule for single rows as it is, a callable as such a rule."""
    return Rule.of(rule)


def _of_both(left: Rule, right: Rule) -> Dependence:
    return left.depends_on if left.depends_on == right.depends_on else "both"
