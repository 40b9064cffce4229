"""Agreement rules about several outputs at once: all within a tolerance, a norm of the error.

Such a rule looks at the vectors ŷ and y of a row, and combines with others of its kind by ``&``,
``|`` and ``~``. A rule about one output enters it through `EachOutput`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, final

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from accord._checks import check_finite, check_positive
from accord._numerics import Region
from accord._types import Bools, Floats
from accord.agreement.rule import (
    Parameter,
    Predicate,
    Rule,
    as_rule,
    equal,
    in_code,
    set_parameter,
    set_tolerance,
    to_array,
)


class JointRule(ABC):
    """A Boolean statement about a vector of predictions and a vector of data.

    **Shape**: y_hat and y (..., D), one answer for each leading index.

    Example:
        >>> rule = AllWithin([0.5, 0.1]) | NormWithin(0.2)
        >>> rule([[1.4, 2.0], [1.1, 2.15]], [1.0, 2.0])
        array([ True,  True])
        >>> str(rule)
        'all within 0.5, 0.1 or norm within 0.2'
    """

    over_outputs: ClassVar[bool] = True

    @property
    @abstractmethod
    def of_difference(self) -> bool:
        """Whether the rule looks at ŷ − y alone."""

    @abstractmethod
    def region(self, y: Tensor) -> Region | None:
        """The errors ŷ − y that agree with y (N, D), as a box cut by ellipsoids; None if no such.

        In float64, with a row for each row of y.
        """

    @abstractmethod
    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        """One answer per leading index of arrays of one shape."""

    @abstractmethod
    def __str__(self) -> str: ...

    def __call__(self, y_hat: ArrayLike | Tensor, y: ArrayLike | Tensor) -> Bools:
        """Whether each vector of predictions agrees with its data."""
        return self._holds(*np.broadcast_arrays(to_array(y_hat), to_array(y)))

    @staticmethod
    def from_callable(
        function: Callable[[Floats, Floats], Any], *, name: str | None = None
    ) -> "CustomJoint":
        """A rule from ``function(y_hat, y) -> bool``, which takes arrays (..., D) to (...)."""
        given = str(getattr(function, "__name__", type(function).__name__))
        return CustomJoint(function, given if name is None else name)

    def __and__(self, other: "JointRule") -> "JointBoth":
        return JointBoth(self, _joint(other))

    def __or__(self, other: "JointRule") -> "JointEither":
        return JointEither(self, _joint(other))

    def __invert__(self) -> "JointRule":
        return self.rule if isinstance(self, JointNot) else JointNot(self)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]  # a dataclass
        return all(equal(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        return hash((type(self), repr(self)))


@final
@dataclass(frozen=True, eq=False, repr=False)
class AllWithin(JointRule):
    """Every output within its tolerance, |ŷ_d − y_d| ≤ ε_d for all d.

    Args:
        tolerance: ε ≥ 0 in each output's unit: a number for all, one per output (D,), or one per
            row and output (N, D).
    """

    tolerance: Parameter
    of_difference: ClassVar[bool] = True

    def __post_init__(self) -> None:
        set_tolerance(self, "tolerance")

    def region(self, y: Tensor) -> Region:
        eps = _for_outputs(self.tolerance, "tolerance", y)
        return Region(-eps, eps)

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        within: Bools = np.abs(y_hat - y) <= to_array(self.tolerance)
        return np.asarray(within.all(-1))

    def __str__(self) -> str:
        return f"all within {_listed(self.tolerance)}"

    def __repr__(self) -> str:
        return f"AllWithin({in_code(self.tolerance)})"


@final
@dataclass(frozen=True, eq=False, repr=False)
class NormWithin(JointRule):
    """The error vector within a radius, √Σ_d ((ŷ_d − y_d)/s_d)² ≤ r.

    Args:
        radius: r > 0, a number.
        scale: s > 0, the unit in which each output's error counts: a number, one per output (D,),
            or one per row and output (N, D).
    """

    radius: float
    scale: Parameter = 1.0
    of_difference: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive("radius", self.radius)
        check_finite("radius", self.radius)
        object.__setattr__(self, "radius", float(self.radius))
        set_parameter(self, "scale")
        check_positive("scale", self.scale)
        check_finite("scale", self.scale)

    def region(self, y: Tensor) -> Region:
        axes = self.radius * _for_outputs(self.scale, "scale", y)
        free = torch.full_like(axes, torch.inf)
        return Region(-free, free, (axes,))

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        errors = (y_hat - y) / to_array(self.scale)
        return np.asarray((errors**2).sum(-1) <= self.radius**2)

    def __str__(self) -> str:
        unit = "" if equal(self.scale, 1.0) else f" in units of {_listed(self.scale)}"
        return f"norm within {self.radius:.12g}{unit}"

    def __repr__(self) -> str:
        unit = "" if equal(self.scale, 1.0) else f", scale={in_code(self.scale)}"
        return f"NormWithin({self.radius!r}{unit})"


@final
@dataclass(frozen=True, eq=False, repr=False)
class EachOutput(JointRule):
    """Every output under a rule of its own, one after the other in the order of the outputs.

    Args:
        rules: one rule for single outputs each, or callables; ``Exact`` has no probability and is
            refused.

    Example:
        >>> from accord.agreement import AtLeast, Within
        >>> str(EachOutput([Within(0.5), AtLeast()]))
        'each: within 0.5; at least the datum'
    """

    rules: Sequence[Rule | Predicate]

    def __post_init__(self) -> None:
        rules = [as_rule(rule) for rule in self.rules]
        if any(rule.is_density for rule in rules):
            raise ValueError(
                "rules of single outputs must have a probability, got Exact(). "
                "Use Within with a small tolerance."
            )
        object.__setattr__(self, "rules", rules)

    @property
    def of_difference(self) -> bool:
        return all(rule.depends_on == "difference" for rule in self.each())

    def each(self) -> list[Rule]:
        """The rules of the outputs."""
        return [as_rule(rule) for rule in self.rules]

    def region(self, y: Tensor) -> Region | None:
        self._check_outputs(y.shape[-1])
        found = [
            rule.intervals(column) for rule, column in zip(self.each(), y.double().mT, strict=True)
        ]
        if any(part is None or len(part.lower) != 1 for part in found):
            return None
        bounds = [
            (part.lower[0], part.upper[0])
            if part.anchored
            else (part.lower[0] - column, part.upper[0] - column)
            for part, column in zip(found, y.double().mT, strict=True)
            if part is not None
        ]
        lower, upper = (torch.stack(side, -1) for side in zip(*bounds, strict=True))
        return Region(lower, upper)

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        self._check_outputs(y.shape[-1])
        answers = [rule(y_hat[..., d], y[..., d]) for d, rule in enumerate(self.each())]
        return np.asarray(np.all(answers, axis=0))

    def _check_outputs(self, n: int) -> None:
        if n != len(self.rules):
            raise ValueError(
                f"a rule for each output must come with {len(self.rules)} outputs, got {n}. "
                "Give one rule per output."
            )

    def __str__(self) -> str:
        return f"each: {'; '.join(map(str, self.rules))}"

    def __repr__(self) -> str:
        return f"EachOutput({list(self.rules)!r})"


@final
@dataclass(frozen=True, eq=False, repr=False)
class CustomJoint(JointRule):
    """Agreement as a Python callable decides; made by `JointRule.from_callable`."""

    function: Callable[[Floats, Floats], Any]
    name: str
    of_difference: ClassVar[bool] = False

    def region(self, y: Tensor) -> None:
        return None

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        answer = np.asarray(self.function(y_hat, y))
        if answer.dtype != np.bool_ or answer.shape != y.shape[:-1]:
            raise ValueError(
                "an agreement rule over several outputs must answer with one boolean for each "
                f"leading index {y.shape[:-1]}, got {answer.dtype} of shape {answer.shape} from "
                f"{self.name!r}. Reduce the last axis, as in (abs(y_hat - y) <= 1).all(-1)."
            )
        return answer

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"JointRule.from_callable(..., name={self.name!r})"


@final
@dataclass(frozen=True, eq=False, repr=False)
class JointBoth(JointRule):
    """Agreement under two rules at once; made by ``&``."""

    left: JointRule
    right: JointRule

    @property
    def of_difference(self) -> bool:
        return self.left.of_difference and self.right.of_difference

    def region(self, y: Tensor) -> Region | None:
        left, right = self.left.region(y), self.right.region(y)
        return None if left is None or right is None else left.cut(right)

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return self.left._holds(y_hat, y) & self.right._holds(y_hat, y)

    def __str__(self) -> str:
        return f"{_bracketed(self.left, JointEither)} and {_bracketed(self.right, JointEither)}"

    def __repr__(self) -> str:
        return f"({self.left!r} & {self.right!r})"


@final
@dataclass(frozen=True, eq=False, repr=False)
class JointEither(JointRule):
    """Agreement under at least one of two rules; made by ``|``."""

    left: JointRule
    right: JointRule

    @property
    def of_difference(self) -> bool:
        return self.left.of_difference and self.right.of_difference

    def region(self, y: Tensor) -> None:
        return None

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return self.left._holds(y_hat, y) | self.right._holds(y_hat, y)

    def __str__(self) -> str:
        return f"{self.left} or {self.right}"

    def __repr__(self) -> str:
        return f"({self.left!r} | {self.right!r})"


@final
@dataclass(frozen=True, eq=False, repr=False)
class JointNot(JointRule):
    """Agreement where another rule disagrees; made by ``~``."""

    rule: JointRule

    @property
    def of_difference(self) -> bool:
        return self.rule.of_difference

    def region(self, y: Tensor) -> None:
        return None

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return ~self.rule._holds(y_hat, y)

    def __str__(self) -> str:
        return f"not {_bracketed(self.rule, JointBoth, JointEither)}"

    def __repr__(self) -> str:
        return f"~{self.rule!r}"


def region_for(rule: JointRule, target: Tensor) -> Region:
    """The errors that agree with targets (N, D); an error where the rule has no such form."""
    region = rule.region(target.detach())
    if region is None:
        raise ValueError(
            "a rule to train on must be a box cut by ellipsoids, got "
            f"{rule!r}. Join AllWithin, NormWithin and EachOutput with &, and use "
            "probability_of_agreement to judge a model by any other rule."
        )
    if not bool((region.upper > region.lower).all()):
        raise ValueError(
            "a rule to train on must allow some error of every output, got a width of 0 in "
            f"{rule!r}. Use a small positive tolerance."
        )
    return region


def _joint(rule: Any) -> JointRule:
    if isinstance(rule, JointRule):
        return rule
    raise TypeError(
        f"a rule over several outputs combines with others of its kind, got {rule!r}. "
        "Wrap rules for single outputs: EachOutput([Within(0.5), AtLeast()])."
    )


def _for_outputs(value: Parameter, name: str, y: Tensor) -> Tensor:
    """The parameter for each row and output of y, in float64."""
    tensor = torch.as_tensor(value, dtype=torch.float64, device=y.device)
    if tuple(tensor.shape) not in ((), tuple(y.shape[-1:]), tuple(y.shape)):
        raise ValueError(
            f"{name} must be a number, one per output {tuple(y.shape[-1:])}, or one per row and "
            f"output {tuple(y.shape)}, got shape {tuple(tensor.shape)}."
        )
    return tensor.expand(y.shape)


def _listed(value: Parameter) -> str:
    array = to_array(value)
    if array.ndim > 1:
        return f"{array.min():.12g}…{array.max():.12g} ({len(array)} rows)"
    return ", ".join(f"{number:.12g}" for number in np.atleast_1d(array))


def _bracketed(rule: JointRule, *weaker: type[JointRule]) -> str:
    return f"({rule})" if isinstance(rule, weaker) else str(rule)
