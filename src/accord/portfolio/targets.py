"""Targets as the models of a portfolio see them: on a scale on which the bulk of them has spread 1.

A typing error or a heavy tail must not set the scale for all other rows: it is taken without the
outermost hundredth; values beyond many deviations are left out of training if they are alone, and
trained on as if they lay nearer if they are not.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from accord._types import Bools, Floats, Indices
from accord._wording import number
from accord.distributions import Log

TargetTransform = Literal["identity", "log"]
Bounds = tuple[float | None, float | None]

_TRIMMED = 0.01
# Training targets are moved to at most so many deviations from the centre.
_FARTHEST = 15.0
# The largest target that a logarithm believes in, in deviations of the logarithms.
_HIGHEST_LOG = 6.0
# As long as at most this share, or one, of them lie farther out, they are taken for errors.
_ALONE = 0.005
# Rounded values lie on a grid of at most so many steps, and repeat at least so often on average.
_GRID_STEPS = 200
_REPEATS = 3
# Positive targets are modelled by their logarithm too where this tells them apart.
_SKEWED = 1.0


@dataclass(frozen=True)
class TargetScale:
    """y = h(center + scale · z), h the identity or the exponential.

    Above the largest target that was seen, ``straight_from``, the exponential goes on as a straight
    line: means stay within reason however wide a distribution of z is.
    """

    transform: TargetTransform
    center: float
    scale: float
    straight_from: float = math.inf

    @property
    def log(self) -> Log:
        """h, where it is the exponential."""
        return Log(straight_from=self.straight_from)

    @staticmethod
    def of(y: Floats, transform: TargetTransform = "identity") -> "TargetScale":
        """The scale of training targets.

        >>> TargetScale.of(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 1e9] * 9)).scale < 10
        False
        >>> TargetScale.of(np.r_[np.linspace(0, 1, 500), 1e9]).scale < 1
        True
        """
        values = np.log(y) if transform == "log" else y
        low, high = np.quantile(values, [_TRIMMED, 1 - _TRIMMED], method="closest_observation")
        bulk = np.clip(values, low, high)
        scale = float(bulk.std()) or float(values.std())
        center, scale = float(bulk.mean()), scale or 1.0
        if transform == "identity":
            return TargetScale(transform, center, scale)
        highest = min(float(values.max()), center + _HIGHEST_LOG * scale)
        return TargetScale(transform, center, scale, math.exp(highest))

    def scaled(self, y: Floats) -> Floats:
        """z of targets; those that a logarithm does not exist for are −∞."""
        values = self._logarithms(y) if self.transform == "log" else y
        return np.asarray((values - self.center) / self.scale)

    def log_slope(self, y: Floats) -> Floats:
        """log dz/dy, the Jacobian in every density of y."""
        slope = np.full(np.shape(y), -np.log(self.scale))
        if self.transform == "log":
            slope -= self.log.log_slope(torch.from_numpy(self._logarithms(y))).numpy()
        return slope

    def _logarithms(self, y: Floats) -> Floats:
        return np.asarray(self.log.inverse(torch.tensor(y, dtype=torch.float64)))


@dataclass(frozen=True)
class ScaledRows:
    """Training rows with targets in scaled units.

    ``more`` may hold ``tolerance``, ``lower`` and ``upper``, in the same units.

    **Shape**: x (N, d); z and weight (N,); each of ``more`` (N,).
    """

    x: Floats
    z: Floats
    weight: Floats
    more: dict[str, Floats]


def trained_on(z: Floats) -> Floats:
    """Scaled targets as they are trained on: none farther out than many deviations."""
    return np.clip(z, -_FARTHEST, _FARTHEST)


def extreme(z: Floats) -> Bools:
    """Which targets lie so far out that they are trained on as if they were nearer."""
    return np.abs(z) > _FARTHEST


def alone_far_out(z: Floats) -> Bools:
    """Which targets lie far out with hardly any others: likely errors, to learn nothing from.

    >>> alone_far_out(np.array([0.0, 1.0, 1e9, -1.0])).tolist()
    [False, False, True, False]
    """
    far = extreme(z)
    return far if far.sum() <= max(1, len(z) * _ALONE) else np.zeros(len(z), bool)


def resolution(y: Floats) -> float:
    """The step of targets that were rounded or counted, 0 if they are not.

    >>> resolution(np.array([3.0, 5.0, 5.0, 6.0, 3.0, 5.0, 6.0, 6.0, 5.0]))
    1.0
    >>> resolution(np.array([0.1, 0.35, 0.72]))
    0.0
    """
    values = np.unique(y)
    if len(values) < 2 or _REPEATS * len(values) > len(y):
        return 0.0
    gaps = np.diff(values)
    step = float(gaps.min())
    steps = gaps / step
    on_grid = np.abs(steps - np.round(steps)).max() < 1e-3
    return step if on_grid and np.ptp(values) <= _GRID_STEPS * step else 0.0


def is_skewed(y: Floats) -> bool:
    """Whether positive targets are skewed enough for their logarithm to be worth a try."""
    if y.min() <= 0:
        return False
    deviation = y.std()
    return bool(deviation > 0 and np.mean(((y - y.mean()) / deviation) ** 3) > _SKEWED)


def checked_bounds(bounds: Any) -> Bounds:
    """The lowest and the highest value that a target can have, either None."""
    try:
        low, high = bounds
        ends = [None if end is None else float(end) for end in (low, high)]
    except (TypeError, ValueError):
        raise ValueError(
            f"bounds must be a pair (lower, upper), either end None, got {bounds!r}. "
            "Use (0, None) for values that cannot be negative."
        ) from None
    if ends[0] is not None and ends[1] is not None and not ends[0] < ends[1]:
        raise ValueError(f"the lower bound must be below the upper one, got {bounds!r}.")
    return ends[0], ends[1]


def ends_of(bounds: Bounds | None) -> tuple[float, float]:
    """Bounds as numbers, infinite where there is none.

    >>> ends_of((0.0, None)), ends_of(None)
    ((0.0, inf), (-inf, inf))
    """
    low, high = bounds or (None, None)
    return -math.inf if low is None else low, math.inf if high is None else high


def check_contained(
    y: Floats, measured: Bools, bounds: Bounds | None, *, rows: Indices | None = None
) -> None:
    """Refuse bounds that measured targets lie outside of; (N,) each.

    ``rows`` are the rows' numbers, where the user knows them by these.
    """
    low, high = ends_of(bounds)
    outside = measured & ((y < low) | (y > high))
    if outside.any():
        first = int(outside.argmax())
        place = f"at index {first}" if rows is None else f"in row {rows[first]}"
        raise ValueError(
            f"bounds must contain all targets, got {bounds}, but {outside.sum():,} of "
            f"{measured.sum():,} lie outside, the first {place}: {y[first]:g}. Widen the bounds."
        )


def notes_on_targets(y: Floats, measured: Bools, rounding: float) -> tuple[str, ...]:
    """Sentences on targets that come in steps, and on measured ones far outside the others."""
    steps = f"The target comes in steps of {number(2 * rounding)}: it is known to half a step."
    return (*([steps] if rounding else []), *_note_on_extremes(y, measured))


def _note_on_extremes(y: Floats, measured: Bools) -> list[str]:
    z = TargetScale.of(y[measured]).scaled(y)
    outlying = extreme(z) & measured
    if is_skewed(y[measured]):  # of a long tail nothing is said, but of what is far out of it
        outlying &= extreme(TargetScale.of(y[measured], "log").scaled(y))
    far = np.flatnonzero(outlying)
    if not len(far):
        return []
    farthest, one = y[far[np.argmax(np.abs(z[far]))]], len(far) == 1
    words = "1 target lies" if one else f"{len(far)} targets lie"
    return [
        f"{words} far outside the others (farthest: {farthest:g}) and hardly "
        f"{'counts' if one else 'count'} in training. Check for typing errors."
    ]
