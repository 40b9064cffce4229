"""The agreement rules: exact, within a tolerance, one-sided, inside a range."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from torch import Tensor

from accord._checks import check_ordered
from accord._types import Bools, Floats
from accord.agreement.boolean import (
    Parameter,
    as_array,
    as_rows,
    in_code,
    in_words,
    set_parameter,
    set_tolerance,
)
from accord.agreement.intervals import INFINITY, Intervals
from accord.agreement.rule import Dependence, Rule


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
    is_density: ClassVar[bool] = False

    def __post_init__(self) -> None:
        set_tolerance(self, "tolerance")

    def intervals(self, y: Tensor) -> Intervals:
        eps = as_rows(self.tolerance, "tolerance", y)
        return Intervals.around(y, -eps, eps)

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return np.abs(y_hat - y) <= as_array(self.tolerance, "tolerance", y)

    def __str__(self) -> str:
        return f"within {in_words(self.tolerance)}"

    def __repr__(self) -> str:
        return f"Within({in_code(self.tolerance)})"


@final
@dataclass(frozen=True, eq=False, repr=False)
class WithinRelative(Rule):
    """Agreement within a fraction of the datum, |ŷ − y| ≤ ε|y|.

    Args:
        tolerance: ε ≥ 0 as a fraction (0.05 for 5 %), one number or one per row.
    """

    tolerance: Parameter
    depends_on: ClassVar[Dependence] = "both"
    is_density: ClassVar[bool] = False

    def __post_init__(self) -> None:
        set_tolerance(self, "tolerance")

    def intervals(self, y: Tensor) -> Intervals:
        eps = as_rows(self.tolerance, "tolerance", y) * y.abs()
        return Intervals.around(y, -eps, eps)

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return np.abs(y_hat - y) <= as_array(self.tolerance, "tolerance", y) * np.abs(y)

    def __str__(self) -> str:
        return f"within {in_words(self.tolerance, percent=True)} of the datum"

    def __repr__(self) -> str:
        return f"WithinRelative({in_code(self.tolerance)})"


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
    is_density: ClassVar[bool] = False

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
    is_density: ClassVar[bool] = False

    def __post_init__(self) -> None:
        set_parameter(self, "lower")
        set_parameter(self, "upper")
        check_ordered("lower", self.lower, "upper", self.upper)

    def _rows(self, y: Tensor) -> tuple[Tensor, Tensor]:
        return as_rows(self.lower, "lower", y), as_rows(self.upper, "upper", y)

    def _contains(self, quantity: Floats, y: Floats) -> Bools:
        lower, upper = as_array(self.lower, "lower", y), as_array(self.upper, "upper", y)
        return (quantity >= lower) & (quantity <= upper)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({in_code(self.lower)}, {in_code(self.upper)})"


@final
@dataclass(frozen=True, eq=False, repr=False)
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
    is_density: ClassVar[bool] = False

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
    is_density: ClassVar[bool] = False

    def intervals(self, y: Tensor) -> Intervals:
        return Intervals.around(y, -INFINITY, 0.0, ends="infinite")

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return np.asarray(y_hat <= y)

    def __str__(self) -> str:
        return "at most the datum"


@final
@dataclass(frozen=True, eq=False, repr=False)
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
