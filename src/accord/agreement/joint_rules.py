"""Agreement rules about several outputs at once: all within a tolerance, a norm of the error.

Such a rule looks at the vectors ŷ and y of a row, and combines with others of its kind by ``&``,
``|`` and ``~``. A rule about one output enters it through `EachOutput`.
"""

import itertools
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from accord._checks import check_finite, check_positive
from accord._numerics import Region, check_few_regions, cut_all
from accord._types import Bools, Floats
from accord.agreement.boolean import (
    Algebra,
    BooleanRule,
    Callback,
    Conjunction,
    Disjunction,
    Negation,
    Parameter,
    Predicate,
    equal,
    in_code,
    set_parameter,
    set_tolerance,
)
from accord.agreement.rules import Inside, Rule
from accord.distributions import to_floats

_LOOKED_AT = 1024  # points at which agreement is looked for
_REACH, _HALVINGS = 16.0, 24.0  # from how far, in units of the scale, down to what share of that
_WIDER = 0.1  # of its width on either side, since agreement ends between two points
_BLOCK = 2**21  # numbers held at a time


Regions = tuple[Region, ...]
"""Disjoint sets of errors."""


class JointRule(BooleanRule["JointRule"]):
    """A Boolean statement about a vector of predictions and a vector of data.

    **Shape**: y_hat and y (..., D), one answer for each leading index.

    Example:
        >>> rule = AllWithin([0.5, 0.1]) | NormWithin(0.2)
        >>> rule([[1.4, 2.0], [1.1, 2.15]], [1.0, 2.0])
        array([ True,  True])
        >>> str(rule)
        'all within 0.5, 0.1 or norm within 0.2'
    """

    _looks_at: ClassVar[str] = "over several outputs"
    _instead: ClassVar[str] = "Train on it with JointBVMRegressor or JointAgreementLoss."
    _axes: ClassVar[int] = 1

    @staticmethod
    def _algebra() -> "Algebra[JointRule]":
        return Algebra(JointRule, JointBoth, JointEither, JointNot, CustomJoint)

    @property
    @abstractmethod
    def of_difference(self) -> bool:
        """Whether the rule looks at ŷ − y alone."""

    @abstractmethod
    def regions(self, y: Tensor) -> Regions | None:
        """The errors ŷ − y that agree with y (N, D), as disjoint regions; None if no such.

        In float64, with a row for each row of y.
        """

    @abstractmethod
    def outside(self, y: Tensor) -> Regions | None:
        """All other errors, in the same form."""


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

    def regions(self, y: Tensor) -> Regions:
        eps = _for_outputs(self.tolerance, "tolerance", y)
        return (Region(-eps, eps),)

    def outside(self, y: Tensor) -> Regions:
        return self.regions(y)[0].complement()

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        within: Bools = np.abs(y_hat - y) <= to_floats(self.tolerance)
        return np.asarray(within.all(-1))

    def __str__(self) -> str:
        return f"all within {_listed(self.tolerance)}"


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

    def regions(self, y: Tensor) -> Regions:
        axes = self.radius * _for_outputs(self.scale, "scale", y)
        free = torch.full_like(axes, torch.inf)
        return (Region(-free, free, (axes,)),)

    def outside(self, y: Tensor) -> Regions:
        return self.regions(y)[0].complement()

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        errors = (y_hat - y) / to_floats(self.scale)
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
        rules = [Rule.of(rule) for rule in self.rules]
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
        return [Rule.of(rule) for rule in self.rules]

    def regions(self, y: Tensor) -> Regions | None:
        self._check_outputs(y.shape[-1])
        return _boxes(self.each(), y.double())

    def outside(self, y: Tensor) -> Regions | None:
        """The first output that disagrees is the first, the second, …"""
        self._check_outputs(y.shape[-1])
        rules = self.each()
        found: list[Region] = []
        for k, rule in enumerate(rules):
            rest = [Inside(-np.inf, np.inf)] * (len(rules) - k - 1)
            boxes = _boxes([*rules[:k], ~rule, *rest], y.double())
            if boxes is None:
                return None
            found.extend(boxes)
        return tuple(found)

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
class CustomJoint(Callback["JointRule"], JointRule):
    """Agreement as a Python callable decides; made by `JointRule.from_callable`."""

    of_difference: ClassVar[bool] = False
    _remedy: ClassVar[str] = "Reduce the last axis, as in (abs(y_hat - y) <= 1).all(-1)."

    @staticmethod
    def _answers(shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape[:-1]

    def regions(self, y: Tensor) -> None:
        return None

    def outside(self, y: Tensor) -> None:
        return None


@final
class JointBoth(Conjunction["JointRule"], JointRule):
    """Agreement under two rules at once; made by ``&``."""

    @property
    def of_difference(self) -> bool:
        return self.left.of_difference and self.right.of_difference

    def regions(self, y: Tensor) -> Regions | None:
        return _in_both(self.left.regions(y), self.right.regions(y))

    def outside(self, y: Tensor) -> Regions | None:
        only_left = _in_both(self.left.regions(y), self.right.outside(y))
        return _together(self.left.outside(y), only_left)


@final
class JointEither(Disjunction["JointRule"], JointRule):
    """Agreement under at least one of two rules; made by ``|``."""

    @property
    def of_difference(self) -> bool:
        return self.left.of_difference and self.right.of_difference

    def regions(self, y: Tensor) -> Regions | None:
        only_right = _in_both(self.left.outside(y), self.right.regions(y))
        return _together(self.left.regions(y), only_right)

    def outside(self, y: Tensor) -> Regions | None:
        return _in_both(self.left.outside(y), self.right.outside(y))


@final
class JointNot(Negation["JointRule"], JointRule):
    """Agreement where another rule disagrees; made by ``~``."""

    @property
    def of_difference(self) -> bool:
        return self.rule.of_difference

    def regions(self, y: Tensor) -> Regions | None:
        return self.rule.outside(y)

    def outside(self, y: Tensor) -> Regions | None:
        return self.rule.regions(y)


class Agreeing(NamedTuple):
    """The errors that agree with some rows, in the form in which a loss integrates over them.

    ``asked`` is None where they fill the disjoint ``regions``; else it is the rule to be asked at
    every point, and the regions fill all space: the first holds most of what agrees.
    """

    regions: Regions
    asked: JointRule | None


def agreeing_errors(rule: JointRule, y: Tensor, scale: Tensor) -> Agreeing:
    """The errors that agree with targets, as disjoint regions or by asking a callable.

    Args:
        rule: a rule over several outputs.
        y: the targets.
        scale: about how large errors are, to look for agreement up to some times as far.

    **Shape**: y and scale (N, D).
    """
    regions = rule.regions(y)
    if regions is None:
        box = _box_around(rule, y.double(), scale.double())
        return Agreeing((box, *box.complement()), rule)
    filled = [(region.upper > region.lower).all(-1) for region in regions]
    if not filled or not bool(torch.stack(filled).any(0).all()):
        raise ValueError(
            "a rule to train on must allow some error of every output, got a width of 0 in "
            f"{rule!r}. Use a small positive tolerance."
        )
    return Agreeing(regions, None)


def _in_both(a: Regions | None, b: Regions | None) -> Regions | None:
    return None if a is None or b is None else cut_all(a, b)


def _together(a: Regions | None, b: Regions | None) -> Regions | None:
    return None if a is None or b is None else a + b


def _boxes(rules: Sequence[Rule], y: Tensor) -> Regions | None:
    """The errors that agree with each output's rule: a box for each choice of their intervals."""
    ends: list[list[tuple[Tensor, Tensor]]] = []
    for rule, column in zip(rules, y.mT, strict=True):
        found = rule.intervals(column)
        if found is None:
            return None
        empty, origin = found.lower > found.upper, 0.0 if found.anchored else column
        lower = torch.where(empty, 0.0, found.lower - origin)
        upper = torch.where(empty, 0.0, found.upper - origin)
        ends.append(list(zip(lower, upper, strict=True)))
    check_few_regions(math.prod(map(len, ends)))
    return tuple(
        Region(*(torch.stack(side, -1) for side in zip(*chosen, strict=True)))  # type: ignore[arg-type]
        for chosen in itertools.product(*ends)
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
    array = to_floats(value)
    if array.ndim > 1:
        return f"{array.min():.12g}…{array.max():.12g} ({len(array)} rows)"
    return ", ".join(f"{number:.12g}" for number in np.atleast_1d(array))


def _box_around(rule: JointRule, y: Tensor, scale: Tensor) -> Region:
    """A box around the errors that agree, as far as points at all distances from 0 show.

    Each coordinate has a distance of its own, from 16 scales down to their 2⁻²⁴-th part. It need
    not hold all that agrees: the rest is found by the points outside it. But where no point agrees,
    later ones will hardly meet what does, and the rule is refused.
    """
    rng = np.random.default_rng(0)
    shape = (_LOOKED_AT, y.shape[1])
    sign = rng.choice([-1.0, 1.0], shape)
    offsets = _REACH * sign * 2.0 ** (-_HALVINGS * rng.random(shape))
    lower, upper = np.empty(y.shape), np.empty(y.shape)
    step = max(1, _BLOCK // offsets.size)
    for start in range(0, len(y), step):
        rows = slice(start, start + step)
        errors = offsets[:, None] * scale[rows].numpy()
        agrees = rule(errors + y[rows].numpy(), y[rows])[..., None]
        lower[rows] = np.where(agrees, errors, np.inf).min(0)
        upper[rows] = np.where(agrees, errors, -np.inf).max(0)
    missing = np.flatnonzero(lower[:, 0] > upper[:, 0])
    if missing.size:
        raise ValueError(
            f"a callable must agree with some of {_LOOKED_AT:,} predictions at all distances from "
            f"a target, got none for row {missing[0]} under {rule!r}. Write it with AllWithin, "
            "NormWithin and EachOutput, joined by &, | and ~."
        )
    room = _WIDER * np.where(upper > lower, upper - lower, np.abs(lower))
    return Region(torch.from_numpy(lower - room), torch.from_numpy(upper + room))
