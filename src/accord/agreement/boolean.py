"""What all agreement rules are: Boolean statements about predictions and data, which combine.

Three kinds differ in what they look at: one pair of numbers (`Rule`), the vectors of a row
(`JointRule`), all rows at once (`DatasetRule`). Each kind combines with its own by ``&``, ``|`` and
``~``, and can be made of a Python callable; that is written here, once. A kind names the classes
that its operators make (`Algebra`), and those say what else follows for a combination.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from accord._checks import check_finite, check_fits, check_floating, check_non_negative
from accord._types import Bools, Floats
from accord.distributions import to_floats

Predicate = Callable[[Floats, Floats], Any]
"""A Python callable ``(y_hat, y) -> bool`` that decides agreement, on arrays."""

Kind = TypeVar("Kind", bound="BooleanRule[Any]")


class Algebra(NamedTuple, Generic[Kind]):
    """A kind of rules, and the classes that its operators make."""

    kind: type[Any]
    both: Callable[[Kind, Kind], Kind]
    either: Callable[[Kind, Kind], Kind]
    negated: Callable[[Kind], Kind]
    custom: Callable[[Predicate, str], Kind]


class BooleanRule(ABC, Generic[Kind]):
    """A Boolean statement B(ŷ, y); ``rule(y_hat, y)`` says whether it holds."""

    _looks_at: ClassVar[str]  # in words: "for single rows"
    _instead: ClassVar[str]  # what to do with such a rule where another kind is needed
    _binds: ClassVar[int] = 2  # how much its operator does: 0 for "or", 1 for "and"
    _axes: ClassVar[int] = 0  # of a number that is the same for all rows: 1 if one per output

    @staticmethod
    @abstractmethod
    def _algebra() -> Algebra[Kind]:
        """How rules of this kind combine."""

    @abstractmethod
    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        """B(ŷ, y) for arrays of one shape."""

    @abstractmethod
    def __str__(self) -> str: ...

    def __repr__(self) -> str:
        listed = ", ".join(in_code(getattr(self, name)) for name in self._field_names())
        return f"{type(self).__name__}({listed})"

    def __call__(self, y_hat: ArrayLike | Tensor, y: ArrayLike | Tensor) -> Bools:
        """Whether predictions agree with data; the two broadcast."""
        return self._holds(*np.broadcast_arrays(to_floats(y_hat), to_floats(y)))

    @classmethod
    def from_callable(cls, function: Predicate, *, name: str | None = None) -> Kind:
        """A rule of this kind from ``function(y_hat, y) -> bool``, which works on arrays.

        It answers for each pair under `Rule`, for each vector (..., D) → (...) under `JointRule`,
        and for all rows (..., N) → (...) under `DatasetRule`.
        """
        given = str(getattr(function, "__name__", type(function).__name__))
        return cls._algebra().custom(function, given if name is None else name)

    @classmethod
    def of(cls, rule: Kind | Predicate) -> Kind:
        """A rule of this kind as it is, a callable as such a rule; an error for any other."""
        kind = cls._algebra().kind
        if isinstance(rule, kind):
            return cast("Kind", rule)
        if callable(rule) and not isinstance(rule, BooleanRule):
            return cls.from_callable(rule)
        instead = (
            rule._instead if isinstance(rule, BooleanRule) else "Use for instance Within(0.5)."
        )
        raise TypeError(
            f"a rule {kind._looks_at} must be an agreement rule or a callable, "
            f"got {rule!r}. {instead}"
        )

    def __and__(self, other: Kind | Predicate) -> Kind:
        return self._algebra().both(cast("Kind", self), self.of(other))

    def __rand__(self, other: Predicate) -> Kind:
        return self._algebra().both(self.of(other), cast("Kind", self))

    def __or__(self, other: Kind | Predicate) -> Kind:
        return self._algebra().either(cast("Kind", self), self.of(other))

    def __ror__(self, other: Predicate) -> Kind:
        return self._algebra().either(self.of(other), cast("Kind", self))

    def __invert__(self) -> Kind:
        if isinstance(self, Negation):
            return cast("Kind", self.rule)
        return self._algebra().negated(cast("Kind", self))

    @property
    def per_row(self) -> bool:
        """Whether any of its numbers is one per row, in any of its parts."""
        values = [getattr(self, name) for name in self._field_names()]
        parts = [p for v in values for p in (v if isinstance(v, list) else [v])]
        return any(
            part.per_row
            if isinstance(part, BooleanRule)
            else isinstance(part, np.ndarray | Tensor) and part.ndim > self._axes
            for part in parts
        )

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(equal(getattr(self, name), getattr(other, name)) for name in self._field_names())

    def __hash__(self) -> int:
        return hash((type(self), repr(self)))

    def _field_names(self) -> list[str]:
        return [field.name for field in fields(self)]  # type: ignore[arg-type]  # rules are dataclasses


@dataclass(frozen=True, eq=False, repr=False)
class Conjunction(BooleanRule[Kind]):
    """Agreement under two rules at once; made by ``&``."""

    left: Kind
    right: Kind
    _binds: ClassVar[int] = 1

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return self.left._holds(y_hat, y) & self.right._holds(y_hat, y)

    def __str__(self) -> str:
        return f"{bracketed(self.left, 1)} and {bracketed(self.right, 2)}"

    def __repr__(self) -> str:
        return f"{bracketed(self.left, 1, repr)} & {bracketed(self.right, 2, repr)}"


@dataclass(frozen=True, eq=False, repr=False)
class Disjunction(BooleanRule[Kind]):
    """Agreement under at least one of two rules; made by ``|``."""

    left: Kind
    right: Kind
    _binds: ClassVar[int] = 0

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return self.left._holds(y_hat, y) | self.right._holds(y_hat, y)

    def __str__(self) -> str:
        return f"{self.left} or {bracketed(self.right, 1)}"

    def __repr__(self) -> str:
        return f"{self.left!r} | {bracketed(self.right, 1, repr)}"


@dataclass(frozen=True, eq=False, repr=False)
class Negation(BooleanRule[Kind]):
    """Agreement where another rule disagrees; made by ``~``."""

    rule: Kind

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return ~self.rule._holds(y_hat, y)

    def __str__(self) -> str:
        return f"not {bracketed(self.rule, 2)}"

    def __repr__(self) -> str:
        return f"~{bracketed(self.rule, 2, repr)}"


@dataclass(frozen=True, eq=False, repr=False)
class Callback(BooleanRule[Kind]):
    """Agreement as a Python callable decides; made by ``from_callable``."""

    function: Predicate
    name: str
    _remedy: ClassVar[str]

    @staticmethod
    @abstractmethod
    def _answers(shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the answer about arrays of a shape."""

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        answer, shape = np.asarray(self.function(y_hat, y)), self._answers(y.shape)
        if answer.dtype != np.bool_ or answer.shape != shape:
            raise ValueError(
                f"an agreement rule {self._looks_at} must answer with booleans of shape {shape}, "
                f"got {answer.dtype} of shape {answer.shape} from {self.name!r}. {self._remedy}"
            )
        return answer

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{self._algebra().kind.__name__}.from_callable(..., name={self.name!r})"


def bracketed(rule: BooleanRule[Any], binds: int, show: Callable[[Any], str] = str) -> str:
    """A rule in words, in brackets where its operator binds less than the one around it."""
    return f"({show(rule)})" if rule._binds < binds else show(rule)


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
    array = to_floats(value)
    check_fits("data", y, array.shape, owner=name)
    return array


def in_words(value: Parameter, *, percent: bool = False) -> str:
    """A number as `parse_rule` reads it; per-row numbers by their range."""
    array = to_floats(value) * (100 if percent else 1)
    unit = "%" if percent else ""
    if array.ndim == 0:
        return f"{float(array):.12g}{unit}"
    return f"{array.min():.12g}{unit}…{array.max():.12g}{unit} ({array.size} rows)"


def in_code(value: Parameter) -> str:
    """A number as Python reads it; per-row numbers shortened."""
    if isinstance(value, float):
        return repr(value)
    return np.array2string(to_floats(value), precision=6, threshold=6, edgeitems=2, separator=", ")


def equal(a: Any, b: Any) -> bool:
    """Whether two fields of a rule are the same value."""
    if isinstance(a, float | np.ndarray | Tensor) and isinstance(b, float | np.ndarray | Tensor):
        return bool(np.array_equal(to_floats(a), to_floats(b)))
    return bool(a == b)
