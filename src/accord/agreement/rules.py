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

from accord._checks import check_fits, check_ordered
from accord._types import Bools, Floats
from accord.agreement.boolean import (
    Algebra,
    BooleanRule,
    Callback,
    Conjunction,
    Disjunction,
    Negation,
    Parameter,
    as_array,
    as_rows,
    in_code,
    in_words,
    set_parameter,
    set_tolerance,
)
from accord.agreement.intervals import INFINITY, Intervals

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
    def is_density(self) -> bool:
        """Whether agreement has a density instead of a probability: Θ(B) contains δ(ŷ − y)."""
        return False

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
class Custom(Callback["Rule"], Rule):
    """Agreement as a Python callable decides; made by `Rule.from_callable`."""

    depends_on: ClassVar[Dependence] = "both"
    _remedy: ClassVar[str] = "Write it with elementwise comparisons of both arrays."

    @staticmethod
    def _answers(shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape

    def intervals(self, y: Tensor) -> None:
        return None


@final
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
class Negated(Negation["Rule"], Rule):
    """Agreement where another rule disagrees; made by ``~``."""

    @property
    def depends_on(self) -> Dependence:
        return self.rule.depends_on

    def intervals(self, y: Tensor) -> Intervals | None:
        inner = self.rule.intervals(y)
        return None if inner is None else ~inner


def _of_both(left: Rule, right: Rule) -> Dependence:
    return left.depends_on if left.depends_on == right.depends_on else "both"


# --- the rules ------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class Exact(Rule):
    """Exact agreement, Θ(B) = δ(ŷ − y): what maximum likelihood asks for.

    No continuous prediction is ever exactly right, so agreement has a probability *density*,
    ρ(y | M), and what is called a probability of agreement is a density in the target's unit.
    ``Exact() & B`` is that density where B allows ŷ = y, and 0 elsewhere. ``Exact() | B`` and
    ``~Exact()`` have ordinary probabilities, to which an exact hit adds nothing.
    """

    depends_on: ClassVar[Dependence] = "difference"
    is_density: ClassVar[bool] = True

    def intervals(self, y: Tensor) -> Intervals:
        return Intervals.around(y, 0.0, 0.0)

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return np.asarray(y_hat == y)

    def __str__(self) -> str:
        return "exact"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Within(Rule):
    """Agreement within a tolerance, |ŷ − y| ≤ ε: the rule of the ε-BVM.

    Args:
        tolerance: ε ≥ 0 in the target's unit, one number or one per row.
    """

    tolerance: Parameter
    depends_on: ClassVar[Dependence] = "difference"

    def __post_init__(self) -> None:
        set_tolerance(self, "tolerance")

    def intervals(self, y: Tensor) -> Intervals:
        eps = as_rows(self.tolerance, "tolerance", y)
        return Intervals.around(y, -eps, eps)

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return np.abs(y_hat - y) <= as_array(self.tolerance, "tolerance", y)

    def __str__(self) -> str:
        return f"within {in_words(self.tolerance)}"


@final
@dataclass(frozen=True, eq=False, repr=False)
class WithinRelative(Rule):
    """Agreement within a fraction of the datum, |ŷ − y| ≤ ε|y|.

    Args:
        tolerance: ε ≥ 0 as a fraction (0.05 for 5 %), one number or one per row.
    """

    tolerance: Parameter
    depends_on: ClassVar[Dependence] = "both"

    def __post_init__(self) -> None:
        set_tolerance(self, "tolerance")

    def intervals(self, y: Tensor) -> Intervals:
        eps = as_rows(self.tolerance, "tolerance", y) * y.abs()
        return Intervals.around(y, -eps, eps)

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return np.abs(y_hat - y) <= as_array(self.tolerance, "tolerance", y) * np.abs(y)

    def __str__(self) -> str:
        return f"within {in_words(self.tolerance, percent=True)} of the datum"


@final
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Asymmetric(Rule):
    """Agreement with unequal tolerances, y − below ≤ ŷ ≤ y + above.

    Args:
        below: how far the prediction may lie under the datum (inf: any distance).
        above: how far it may lie over it.
    """

    below: Parameter
    above: Parameter
    depends_on: ClassVar[Dependence] = "difference"

    def __post_init__(self) -> None:
        set_tolerance(self, "below", finite=False)
        set_tolerance(self, "above", finite=False)

    def intervals(self, y: Tensor) -> Intervals:
        below, above = as_rows(self.below, "below", y), as_rows(self.above, "above", y)
        return Intervals.around(y, -below, above, ends="either")

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        error = y_hat - y
        below, above = as_array(self.below, "below", y), as_array(self.above, "above", y)
        return (error >= -below) & (error <= above)

    def __str__(self) -> str:
        return f"within -{in_words(self.below)} +{in_words(self.above)}"

    def __repr__(self) -> str:
        return f"Asymmetric(below={in_code(self.below)}, above={in_code(self.above)})"


@dataclass(frozen=True, eq=False, repr=False)
class _Range(Rule):
    """A quantity between two ends."""

    lower: Parameter
    upper: Parameter

    def __post_init__(self) -> None:
        set_parameter(self, "lower")
        set_parameter(self, "upper")
        check_ordered("lower", self.lower, "upper", self.upper)

    def _rows(self, y: Tensor) -> tuple[Tensor, Tensor]:
        return as_rows(self.lower, "lower", y), as_rows(self.upper, "upper", y)

    def _contains(self, quantity: Floats, y: Floats) -> Bools:
        lower, upper = as_array(self.lower, "lower", y), as_array(self.upper, "upper", y)
        return (quantity >= lower) & (quantity <= upper)


@final
class ErrorInside(_Range):
    """Agreement up to a known bias, lower ≤ ŷ − y ≤ upper, whatever the signs of the two.

    Args:
        lower: least error ŷ − y, one number or one per row; −inf for none.
        upper: greatest error; +inf for none.
    """

    depends_on: ClassVar[Dependence] = "difference"

    def intervals(self, y: Tensor) -> Intervals:
        return Intervals.around(y, *self._rows(y), ends="either")

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return self._contains(y_hat - y, y)

    def __str__(self) -> str:
        return f"error inside {in_words(self.lower)} {in_words(self.upper)}"


@final
@dataclass(frozen=True, eq=False)
class AtLeast(Rule):
    """Agreement from the datum upwards, ŷ ≥ y: for right-censored data (not failed yet at y)."""

    depends_on: ClassVar[Dependence] = "difference"

    def intervals(self, y: Tensor) -> Intervals:
        return Intervals.around(y, 0.0, INFINITY, ends="infinite")

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return np.asarray(y_hat >= y)

    def __str__(self) -> str:
        return "at least the datum"


@final
@dataclass(frozen=True, eq=False)
class AtMost(Rule):
    """Agreement up to the datum, ŷ ≤ y: for left-censored data (below a detection limit y)."""

    depends_on: ClassVar[Dependence] = "difference"

    def intervals(self, y: Tensor) -> Intervals:
        return Intervals.around(y, -INFINITY, 0.0, ends="infinite")

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return np.asarray(y_hat <= y)

    def __str__(self) -> str:
        return "at most the datum"


@final
class Inside(_Range):
    """Agreement with a range, lower ≤ ŷ ≤ upper, whatever the datum (interval-censored data).

    Args:
        lower: lower end, one number or one per row; −inf for none.
        upper: upper end; +inf for none.
    """

    depends_on: ClassVar[Dependence] = "prediction"

    def intervals(self, y: Tensor) -> Intervals:
        return Intervals.between(y, *self._rows(y))

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return self._contains(y_hat, y)

    def __str__(self) -> str:
        return f"inside {in_words(self.lower)} {in_words(self.upper)}"
