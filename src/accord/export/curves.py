"""Bell curves in elementary operations: ONNX has no error function in float64, and no Student-t.

The normal tail is φ(x) times Mills' ratio, which is t P(t) with t = 1/(1 + x/4) and a polynomial P.
The Student-t tail with n degrees of freedom is wⁿ K(τ) with w = cos θ, τ = tan θ/2 and
tan θ = x/√n, again with a polynomial K: both are analytic in τ on [0, 1]. Either holds to about
1e-13 of the tail itself.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import final

import numpy as np
from numpy.polynomial import Chebyshev
from scipy import special

from accord._types import Floats
from accord.export.graph import NotExportableError, Value, polynomial

_MILLS_RATE, _MILLS_DEGREE = 0.25, 20
_STUDENT_DEGREE = 28
# Fitted polynomials are checked to this much of a tail; the curves in use reach 1e-12.
_FIT = 1e-9
# A window this narrow, in scales, has the cdf of its middle up to a term of second order.
_NARROW = 1e-4
_FARTHEST = 1e150  # can be squared
_LAST_NORMAL = 39.0  # beyond, the density is 0 in float64


class Curve(ABC):
    """A standard, symmetric distribution; abstract.

    ``variance`` is that of scale 1.
    """

    variance: float

    @abstractmethod
    def both(self, z: Value) -> tuple[Value, Value]:
        """P(Z ≤ z), exact relative to itself where it is small, and the density."""

    @abstractmethod
    def area(self, z: Value, cdf: Value, density: Value) -> Value:
        """∫ P(Z ≤ u) du over u ≤ z, given the two of ``both``."""

    @abstractmethod
    def slope(self, z: Value, density: Value) -> Value:
        """The derivative of the density."""

    def smoothed(self, z: Value, half: Value) -> tuple[Value, Value]:
        """``both`` of Z + hU, U uniform on (−1, 1): means over z ± h."""
        low, high = z - half, z + half
        at, at_low, at_high = (self.both(x) for x in (z, low, high))
        wide = (self.area(high, *at_high) - self.area(low, *at_low)) / (2 * half)
        wide_density = (at_high[0] - at_low[0]) / (2 * half)
        narrow = at[0] + half.square() / 6 * self.slope(z, at[1])
        is_narrow = half < _NARROW
        return is_narrow.where(narrow, wide), is_narrow.where(at[1], wide_density)


Moments = tuple[Value, Value, Value]


@final
class NormalCurve(Curve):
    variance = 1.0

    @cached_property
    def _mills(self) -> list[float]:
        def ratio(t: Floats) -> Floats:
            t = np.maximum(t, 1e-9)
            x = (1 / t - 1) / _MILLS_RATE
            return np.asarray(math.sqrt(math.pi / 2) * special.erfcx(x / math.sqrt(2)) / t)

        return _fitted(ratio, _MILLS_DEGREE)

    def both(self, z: Value) -> tuple[Value, Value]:
        density = (z * z * -0.5).exp() * (1 / math.sqrt(2 * math.pi))
        t = 1 / (1 + _MILLS_RATE * z.abs())
        tail = density * (t * polynomial(self._mills, 2 * t - 1))
        return (z < 0).where(tail, 1 - tail), density

    def area(self, z: Value, cdf: Value, density: Value) -> Value:
        return z * cdf + density

    def slope(self, z: Value, density: Value) -> Value:
        return -z * density

    def above(self, z: Value) -> Moments:
        """P, E[Z] and E[Z²] over Z ≥ z."""
        mass, first, second = self.below(-z)
        return mass, -first, second

    def below(self, z: Value) -> Moments:
        """P, E[Z] and E[Z²] over Z ≤ z, exact relative to themselves also far out."""
        z = z.at_least(-_LAST_NORMAL).at_most(_LAST_NORMAL)
        mass, density = self.both(z)
        return mass, -density, mass - z * density


@final
class StudentCurve(Curve):
    def __init__(self, df: float) -> None:
        self.df = df
        self.variance = df / (df - 2) if df > 2 else math.inf
        log_height = math.lgamma((df + 1) / 2) - math.lgamma(df / 2)
        self._height = math.exp(log_height) / math.sqrt(df * math.pi)
        self._tail = _fitted(self._ratio, _STUDENT_DEGREE)

    def _ratio(self, tau: Floats) -> Floats:
        """T / wⁿ = I_u(n/2, ½) / 2 u^{n/2}, u = w²."""
        half, u = self.df / 2, np.square((1 - tau**2) / (1 + tau**2))
        series = special.hyp2f1(half, 0.5, half + 1, u)
        return np.asarray(series / (2 * half * special.beta(0.5, half)))

    def both(self, z: Value) -> tuple[Value, Value]:
        q = (z.abs() / math.sqrt(self.df)).at_most(_FARTHEST)
        root = (1 + q * q).sqrt()
        power = self._power(1 / root)
        tail = power * polynomial(self._tail, 2 * (q / (1 + root)) - 1)
        return (z < 0).where(tail, 1 - tail), power / root * self._height

    def _power(self, w: Value) -> Value:
        """wⁿ: by products where n is whole, which is several times faster."""
        if self.df != int(self.df):
            return (self.df * w.log()).exp()
        result, square, rest = None, w, int(self.df)
        while rest:
            if rest % 2:
                result = square if result is None else result * square
            square, rest = square * square if rest > 1 else square, rest // 2
        return w if result is None else result

    def area(self, z: Value, cdf: Value, density: Value) -> Value:
        return z * cdf + (self.df + z * z) / (self.df - 1) * density

    def slope(self, z: Value, density: Value) -> Value:
        return -(self.df + 1) * z / (self.df + z * z) * density


@final
class LaplaceCurve(Curve):
    variance = 2.0

    def both(self, z: Value) -> tuple[Value, Value]:
        tail = 0.5 * (-z.abs()).exp()
        return (z < 0).where(tail, 1 - tail), tail

    def area(self, z: Value, cdf: Value, density: Value) -> Value:
        return z.at_least(0.0) + density

    def slope(self, z: Value, density: Value) -> Value:
        return (z < 0).where(density, -density)


@final
class LogisticCurve(Curve):
    variance = math.pi**2 / 3

    def both(self, z: Value) -> tuple[Value, Value]:
        tail = (-z.abs()).exp()
        smaller = tail / (1 + tail)
        return (z < 0).where(smaller, 1 - smaller), smaller / (1 + tail)

    def area(self, z: Value, cdf: Value, density: Value) -> Value:
        return z.at_least(0.0) + (1 + (-z.abs()).exp()).log()

    def slope(self, z: Value, density: Value) -> Value:
        return density * (1 - 2 * self.both(z)[0])


NORMAL = NormalCurve()


def curve_of(family: str, df: float | None = None) -> Curve:
    """The curve of a family, by the name that estimators know it by.

    >>> curve_of("student-t", 4.0).variance
    2.0
    """
    match family:
        case "normal":
            return NORMAL
        case "laplace":
            return LaplaceCurve()
        case "logistic":
            return LogisticCurve()
        case "student-t" if df is not None:
            return NORMAL if math.isinf(df) else StudentCurve(float(df))
    raise NotExportableError([f"the family {family!r}"])


def _fitted(function: Callable[[Floats], Floats], degree: int) -> list[float]:
    """Coefficients in 2s − 1, the highest first, of a function on [0, 1]."""
    series = Chebyshev.interpolate(function, degree, domain=(0.0, 1.0))
    powers = [float(c) for c in np.polynomial.chebyshev.cheb2poly(series.coef)[::-1]]
    s = np.linspace(0, 1, 1001)
    if np.max(np.abs(np.polyval(powers, 2 * s - 1) / function(s) - 1)) > _FIT:
        raise NotExportableError(["a Student-t distribution with very many degrees of freedom"])
    return powers
