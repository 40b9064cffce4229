"""Features as the networks of a portfolio see them.

Numbers in real tables have long tails, typing errors and thresholds. Each feature enters twice:

- once scaled by its quartiles and bounded softly, z / √(1 + (z/c)²), so that no value, however
  absurd, moves a network further than c robust deviations do (a line, which long tails must not
  bend, has a larger c);
- and, if asked for, as a piecewise linear encoding (Gorishniy et al., On embeddings for numerical
  features, 2022): for the bins between its quantiles b₀ < … < b_T, the entries
  clip((x − b_{t−1}) / (b_t − b_{t−1}), 0, 1), which make thresholds easy to learn.
"""

from typing import Any, Self, final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from accord._types import Bools, Floats

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
# The narrowest bin, as a share of all of a feature's.
_SMALLEST_BIN = 1e-9


@final
class FeatureEncoding:
    """Robust scaling with a soft ``bound``, and a piecewise linear encoding with ``bins`` bins.

    Attributes:
        kept_: Columns that vary, (d',).
        center_, scale_: Median and robust deviation of each, (d',).
        column_, start_, width_: Column, lower edge and width of each bin of the encoding, (P,).

    Example:
        >>> x = np.linspace(0, 8, 9)[:, None]
        >>> FeatureEncoding(bins=2).fit(x)(np.array([[0.0], [6.0], [1e9]])).round(2)
        array([[-1.28, -1.  , -1.  ],
               [ 0.67,  1.  ,  0.  ],
               [ 4.  ,  1.  ,  1.  ]])
    """

    def __init__(self, *, bins: int = 0, bound: float = BOUND) -> None:
        self.bins, self.bound = bins, bound

    def fit(self, X: Floats) -> Self:
        """**Shape**: X (N, d)."""
        step = max(1, _FITTED_CELLS // max(len(X), 1))
        starts = range(0, max(1, X.shape[1]), step)
        scalings = [_scaling(X[:, start : start + step]) for start in starts]
        center, scale, varies = (np.concatenate(own) for own in zip(*scalings, strict=True))
        self.kept_ = np.flatnonzero(varies)
        self.center_, self.scale_ = center[varies], scale[varies]
        self._fit_bins(X)
        return self

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
