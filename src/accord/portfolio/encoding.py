"""Features and targets as the models of a portfolio see them.

Numbers in real tables have long tails, typing errors and thresholds. A feature enters up to three
times:

- once scaled by its quartiles and bounded softly, z / √(1 + (z/c)²), so that no value, however
  absurd, moves a network further than c robust deviations do (a line, which long tails must not
  bend, has a larger c);
- if asked for and its tail is long, the same in units of that tail: where a hundredth of the rows
  lies beyond 2c, they are all alike in the first, and what goes on along the tail would be lost;
- and, if asked for, as a piecewise linear encoding (Gorishniy et al., On embeddings for numerical
  features, 2022): for the bins between its quantiles b₀ < … < b_T, the entries
  clip((x − b_{t−1}) / (b_t − b_{t−1}), 0, 1), which make thresholds easy to learn.

Targets are on a scale on which the bulk of them has spread 1. A typing error or a heavy tail must
not set it for all other rows: it is taken without the outermost hundredth; values beyond many
deviations are left out of training if they are alone, and trained on as if they lay nearer if they
are not.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, Self, final

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray

from accord._types import Bools, Floats, Indices
from accord._wording import number
from accord.distributions import Log

# c of networks, trees and Gaussian processes, in robust standard deviations.
BOUND = 4.0
# So many deviations are as good as infinitely many, and can be squared.
FARTHEST = 1e8
# Deviations are taken without the outermost rows: one typing error must not hide all others.
_TRIMMED = 0.02
# An interquartile range this small beside the deviation comes from ties: most rows share a value.
_SMALLEST_SPREAD = 0.2
_IQR_OF_NORMAL = 1.349
# Rows encoded at a time: each step on the way takes as much as the result.
_CHUNK_ROWS = 512
# Cells whose scaling is learnt at a time, for the same reason: some columns, or one.
_FITTED_CELLS = 2**21
# A tail is long if this share of the rows, and so many, lie beyond so many bounds. Where these rows
# begin is its unit.
_TAIL, _TAIL_ROWS, _LONG = 0.01, 50, 2.0
# The narrowest bin, as a share of all of a feature's.
_SMALLEST_BIN = 1e-9


@final
class FeatureEncoding:
    """Robust scaling with a soft ``bound``, and a piecewise linear encoding with ``bins`` bins.

    The last ``scaled`` features are on a scale of their own already, and only bounded.

    Attributes:
        kept_: Columns that vary; those with long tails once more at the end, if asked for, (d',).
        center_, scale_: Median and robust deviation of each, (d',).
        column_, start_, width_: Column, lower edge and width of each bin of the encoding, (P,).

    Example:
        >>> x = np.linspace(0, 8, 9)[:, None]
        >>> FeatureEncoding(bins=2).fit(x)(np.array([[0.0], [6.0], [1e9]])).round(2)
        array([[-1.28, -1.  , -1.  ],
               [ 0.67,  1.  ,  0.  ],
               [ 4.  ,  1.  ,  1.  ]])
    """

    def __init__(self, *, bins: int = 0, bound: float = BOUND, scaled: int = 0) -> None:
        self.bins, self.bound, self.scaled = bins, bound, scaled

    def fit(self, X: Floats, *, tails: bool = False) -> Self:
        """Learn the scales, with ``tails`` those of long ones too. **Shape**: X (N, d)."""
        step = max(1, _FITTED_CELLS // max(len(X), 1))
        starts = range(0, max(1, X.shape[1]), step)
        scalings = [_scaling(X[:, start : start + step]) for start in starts]
        center, scale, varies = (np.concatenate(own) for own in zip(*scalings, strict=True))
        own_scale = slice(X.shape[1] - self.scaled, None)
        center[own_scale], scale[own_scale], varies[own_scale] = 0.0, 1.0, True
        self.kept_ = np.flatnonzero(varies)
        self.center_, self.scale_ = center[varies], scale[varies]
        self._fit_bins(X)
        if tails:
            self._fit_tails(X)
        return self

    def _fit_tails(self, X: Floats) -> None:
        """Let features with a long tail enter once more, in its units."""
        share = max(_TAIL, _TAIL_ROWS / max(len(X), 1))
        for place in range(len(self.kept_) if share < 1 else 0):
            column, center = self.kept_[place], self.center_[place]
            reached = np.quantile(np.abs(X[:, column] - center), 1 - share)
            is_long = reached > _LONG * self.bound * self.scale_[place]
            if is_long and len(np.unique(X[:, column])) > 2:
                self.kept_ = np.append(self.kept_, column)
                self.center_ = np.append(self.center_, center)
                self.scale_ = np.append(self.scale_, reached)

    def _fit_bins(self, X: Floats) -> None:
        columns, starts, widths = [], [], []
        levels = np.linspace(0, 1, self.bins + 1)
        for place, column in enumerate(self.kept_ if self.bins else ()):
            edges = _apart(np.quantile(X[:, column], levels))
            if len(edges) < 3:  # one bin says no more than the value itself
                continue
            columns.append(np.full(len(edges) - 1, place))
            starts.append(edges[:-1])
            widths.append(np.diff(edges))
        nothing = np.empty(0)
        self.column_ = np.concatenate([nothing, *columns]).astype(np.intp)
        self.start_ = np.concatenate([nothing, *starts])
        self.width_ = np.concatenate([nothing, *widths])

    def __call__(self, X: Floats, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """**Shape**: X (N, d) → (N, d' + P); one column of zeros where no feature varies."""
        if not len(self.kept_):  # a model needs something to look at
            return np.zeros((len(X), 1), dtype)
        encoded = np.empty((len(X), len(self.kept_) + len(self.start_)), dtype)
        for start in range(0, len(X), _CHUNK_ROWS):
            own = slice(start, start + _CHUNK_ROWS)
            self._encode(X[own, self.kept_], encoded[own])
        return encoded

    def _encode(self, X: Floats, into: NDArray[Any]) -> None:
        n_kept = len(self.kept_)
        with np.errstate(over="ignore"):  # infinitely far is clipped like far
            z = np.clip((X - self.center_) / self.scale_, -FARTHEST, FARTHEST)
            place = np.take(X, self.column_, axis=1)
            place -= self.start_
            place /= self.width_
        into[:, :n_kept] = z / np.sqrt(1 + np.square(z / self.bound))
        np.clip(place, 0.0, 1.0, out=place)
        place *= 2
        np.subtract(place, 1, out=into[:, n_kept:], casting="same_kind")


def _scaling(X: Floats) -> tuple[Floats, Floats, Bools]:
    """Median and robust deviation of columns, and whether they vary; (N, d) → (d,) each."""
    largest = np.abs(X).max(axis=0, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0)  # squares of huge or tiny numbers do not exist
    deviation = unit * (X / unit).std(axis=0)
    varies = deviation > 1e-12 * largest
    bulk = unit * _without_ends(X / unit).std(axis=0)
    deviation = np.where(bulk > 0, bulk, deviation)
    low, center, high = np.quantile(X, [0.25, 0.5, 0.75], axis=0)
    spread = (high - low) / _IQR_OF_NORMAL
    return center, np.where(spread > _SMALLEST_SPREAD * deviation, spread, deviation), varies


def _apart(edges: Floats) -> Floats:
    """Edges in ascending order, without those that only rounding tells from the one before.

    A bin between two such edges would be a jump, on one side or the other by the last digit.
    """
    edges = np.unique(edges)
    return edges[np.diff(edges, prepend=-np.inf) > _SMALLEST_BIN * np.ptp(edges)]


def _without_ends(X: Floats) -> Floats:
    """Values moved to the quantiles next to the ends; the largest and the smallest always are."""
    low = np.quantile(X, _TRIMMED, axis=0, method="higher")
    high = np.quantile(X, 1 - _TRIMMED, axis=0, method="lower")
    return np.asarray(np.clip(X, low, high))


TargetTransform = Literal["identity", "log"]
Bounds = tuple[float | None, float | None]

_TRIMMED_TARGETS = 0.01
# Training targets are moved to at most so many deviations from the centre.
FARTHEST_TRAINED = 15.0
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
        low, high = np.quantile(
            values, [_TRIMMED_TARGETS, 1 - _TRIMMED_TARGETS], method="closest_observation"
        )
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
            logarithms = self._logarithms(y)
            own = self.log.log_slope(torch.from_numpy(logarithms)).numpy()
            slope -= np.where(np.isfinite(logarithms), own, 0.0)  # the density there is 0
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
    return np.clip(z, -FARTHEST_TRAINED, FARTHEST_TRAINED)


def extreme(z: Floats) -> Bools:
    """Which targets lie so far out that they are trained on as if they were nearer."""
    return np.abs(z) > FARTHEST_TRAINED


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
