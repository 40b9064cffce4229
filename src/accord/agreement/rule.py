"""What an agreement rule is, and how rules combine.

A rule is the Boolean B(ŷ, y) of the probability of agreement

    p(A | M, D, B) = ∫∫ ρ(ŷ | M) Θ(B(ŷ, y)) ρ(y) dŷ dy.

It can be asked two things: whether a pair agrees (``rule(y_hat, y)``), and which predictions would
agree with a datum (``rule.intervals(y)``), a union of intervals, which gives the closed forms. A
Python callable answers only the first. Rules combine with ``&``, ``|`` and ``~``, and print
themselves in the words that `accord.agreement.parse_rule` reads.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self, final

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from accord._checks import check_finite, check_fits, check_floating, check_non_negative
from accord._types import Bools, Floats
from accord.agreement.intervals import Intervals

Parameter = float | Floats | Tensor
"""A rule's number: one for all rows, or one per row."""


def set_parameter(rule: Any, name: str) -> None:
    """Store an argument of a frozen rule as a float, a float64 array, or the tensor it was."""
    value = getattr(rule, name)
    check_floating(name, value)
    if not isinstance(value, Tensor):
        value = np.array(value, dtype=np.float64)
        value = float(value) if value.ndim == 0 else value
    object.__setattr__(rule, name, value)


def set_tolerance(rule: Any, name: str, *, finite: bool = True) -> None:
    """Store an argument that must not be negative."""
    set_parameter(rule, name)
    value = getattr(rule, name)
    check_non_negative(name, value, remedy="Use Exact() for exact agreement.")
    if finite:
        check_finite(name, value, remedy="Use AtLeast() or AtMost() for a one-sided rule.")


def as_rows(value: Parameter, name: str, y: Tensor) -> Tensor:
    """The parameter as a tensor that fits the data."""
    if isinstance(value, float):
        return y.new_tensor(value)
    check_fits("data", y, tuple(value.shape), owner=name)
    return value.to(y) if isinstance(value, Tensor) else y.new_tensor(value)


def as_array(value: Parameter, name: str, y: Floats) -> Floats:
    """The parameter as an array that fits the data."""
    array = to_array(value)
    check_fits("data", y, array.shape, owner=name)
    return array


def to_array(value: ArrayLike | Tensor) -> Floats:
    """Numbers as a float64 array, cut from any graph."""
    if isinstance(value, Tensor):
        value = value.detach().cpu().numpy()
    return np.asarray(value, dtype=np.float64)


def in_words(value: Parameter, *, percent: bool = False) -> str:
    """A number as `parse_rule` reads it; per-row numbers by their range."""
    array = to_array(value) * (100 if percent else 1)
    unit = "%" if percent else ""
    if array.ndim == 0:
        return f"{float(array):.12g}{unit}"
    return f"{array.min():.12g}{unit}…{array.max():.12g}{unit} ({array.size} rows)"


def in_code(value: Parameter) -> str:
    """A number as Python reads it; per-row numbers shortened."""
    if isinstance(value, float):
        return repr(value)
    return np.array2string(to_array(value), precision=6, threshold=6, edgeitems=2, separator=", ")


def equal(a: Any, b: Any) -> bool:
    """Whether two fields of a rule are the same value."""
    if isinstance(a, float | np.ndarray | Tensor) and isinstance(b, float | np.ndarray | Tensor):
        return bool(np.array_equal(to_array(a), to_array(b)))
    return bool(a == b)


Dependence = Literal["difference", "prediction", "both"]
"""What a rule looks at: ŷ − y alone, ŷ alone, or both."""

Predicate = Callable[[Floats, Floats], Any]
"""A Python callable that decides agreement, elementwise."""


class Rule(ABC):
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

    @abstractmethod
    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        """B(ŷ, y), elementwise on arrays that broadcast."""

    @abstractmethod
    def __str__(self) -> str: ...

    def __call__(self, y_hat: ArrayLike | Tensor, y: ArrayLike | Tensor) -> Bools:
        """Whether each pair agrees."""
        return self._holds(to_array(y_hat), to_array(y))

    @staticmethod
    def from_callable(function: Predicate, *, name: str | None = None) -> "Custom":
        """A rule from ``function(y_hat, y) -> bool``, which must work elementwise on arrays."""
        return Custom(function, name if name is not None else _name_of(function))

    @property
    def per_row(self) -> bool:
        """Whether any of its numbers is one per row, in any of its parts."""
        values = [getattr(self, name) for name in self._field_names()]
        parts = any(value.per_row for value in values if isinstance(value, Rule))
        return parts or any(isinstance(v, np.ndarray | Tensor) and v.ndim > 0 for v in values)

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

    def _field_names(self) -> list[str]:
        return [field.name for field in fields(self)]  # type: ignore[arg-type]  # as above

    def __and__(self, other: "Rule | Predicate") -> "Both":
        return Both(self, as_rule(other))

    def __rand__(self, other: Predicate) -> "Both":
        return Both(as_rule(other), self)

    def __or__(self, other: "Rule | Predicate") -> "Either":
        return Either(self, as_rule(other))

    def __ror__(self, other: Predicate) -> "Either":
        return Either(as_rule(other), self)

    def __invert__(self) -> "Rule":
        return self.rule if isinstance(self, Negated) else Negated(self)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(equal(getattr(self, name), getattr(other, name)) for name in self._field_names())

    def __hash__(self) -> int:
        return hash((type(self), repr(self)))


@final
@dataclass(frozen=True, eq=False, repr=False)
class Custom(Rule):
    """Agreement as a Python callable decides; made by `Rule.from_callable`."""

    function: Predicate
    name: str
    depends_on: ClassVar[Dependence] = "both"
    is_density: ClassVar[bool] = False

    def intervals(self, y: Tensor) -> None:
        return None

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        # Broadcast first: a callable that looks at one side only still answers for every pair.
        y_hat, y = np.broadcast_arrays(y_hat, y)
        answer, shape = np.asarray(self.function(y_hat, y)), y.shape
        if answer.dtype != np.bool_ or answer.shape != shape:
            raise ValueError(
                f"an agreement rule must answer with booleans of shape {shape}, got "
                f"{answer.dtype} of shape {answer.shape} from {self.name!r}. "
                "Write it with elementwise comparisons of both arrays."
            )
        return answer

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Rule.from_callable(..., name={self.name!r})"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Both(Rule):
    """Agreement under two rules at once; made by ``&``."""

    left: Rule
    right: Rule

    @property
    def depends_on(self) -> Dependence:
        left, right = self.left.depends_on, self.right.depends_on
        return left if left == right else "both"

    @property
    def is_density(self) -> bool:
        return self.left.is_density or self.right.is_density

    def intervals(self, y: Tensor) -> Intervals | None:
        left, right = self.left.intervals(y), self.right.intervals(y)
        return None if left is None or right is None else left & right

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return self.left._holds(y_hat, y) & self.right._holds(y_hat, y)

    def __str__(self) -> str:
        return f"{_bracketed(self.left, Either)} and {_bracketed(self.right, Either, Both)}"

    def __repr__(self) -> str:
        left = _bracketed(self.left, Either, show=repr)
        return f"{left} & {_bracketed(self.right, Either, Both, show=repr)}"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Either(Rule):
    """Agreement under at least one of two rules; made by ``|``."""

    left: Rule
    right: Rule

    @property
    def depends_on(self) -> Dependence:
        left, right = self.left.depends_on, self.right.depends_on
        return left if left == right else "both"

    @property
    def is_density(self) -> bool:
        return self.left.is_density and self.right.is_density

    def intervals(self, y: Tensor) -> Intervals | None:
        left, right = self.left.intervals(y), self.right.intervals(y)
        return None if left is None or right is None else left | right

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return self.left._holds(y_hat, y) | self.right._holds(y_hat, y)

    def __str__(self) -> str:
        return f"{self.left} or {_bracketed(self.right, Either)}"

    def __repr__(self) -> str:
        return f"{self.left!r} | {_bracketed(self.right, Either, show=repr)}"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Negated(Rule):
    """Agreement where another rule disagrees; made by ``~``."""

    rule: Rule
    is_density: ClassVar[bool] = False

    @property
    def depends_on(self) -> Dependence:
        return self.rule.depends_on

    def intervals(self, y: Tensor) -> Intervals | None:
        inner = self.rule.intervals(y)
        return None if inner is None else ~inner

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return ~self.rule._holds(y_hat, y)

    def __str__(self) -> str:
        return f"not {_bracketed(self.rule, Either, Both)}"

    def __repr__(self) -> str:
        return f"~{_bracketed(self.rule, Either, Both, show=repr)}"


def as_rule(rule: Rule | Predicate) -> Rule:
    """A rule as it is, a callable as a rule."""
    if isinstance(rule, Rule):
        return rule
    if getattr(rule, "over_outputs", False):
        raise TypeError(
            f"a rule for single outputs must not be one over several, got {rule!r}. "
            "Train on it with JointBVMRegressor or JointAgreementLoss."
        )
    if callable(rule) and not getattr(rule, "over_all_rows", False):
        return Rule.from_callable(rule)
    raise TypeError(
        f"a rule for single rows must be an agreement rule or a callable, got {rule!r}. "
        "Use for instance Within(0.5); beside a rule over all rows, Share(Within(0.5), 0.95)."
    )


def _name_of(function: Predicate) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _bracketed(rule: Rule, *weaker: type[Rule], show: Callable[[Rule], str] = str) -> str:
    return f"({show(rule)})" if isinstance(rule, weaker) else show(rule)
