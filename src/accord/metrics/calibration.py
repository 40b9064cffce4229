"""Do the stated probabilities come true? PIT values, reliability, ECE, MCE and ENCE.

And how far may a calibrated model's counts stray by chance: consistency bands. Of N independent
rows the number inside a region of probability p is Binomial(N, p). A band whose every level holds
with 95 % is left somewhere far more often than one time in twenty. The simultaneous band widens all
levels alike until the *whole* curve of a calibrated model stays inside with the stated confidence
(Säilynoja, Bürkner and Vehtari, 2022): simulate calibrated counts, take for each simulation its
smallest two-sided binomial tail probability, and use the 5 % quantile of those as the tail of every
level.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from accord._checks import check_choice, check_count, generator_from
from accord._types import Floats, Indices
from accord.distributions import Distribution
from accord.metrics.inputs import (
    Predictions,
    as_array,
    check_enough_rows,
    mean_of,
    predictive,
    probabilities,
    probability,
    row_weights,
    targets,
)
from accord.metrics.intervals import coverage

# Calibrated models whose curves a band is made from.
_SIMULATIONS = 2_000


def reliability_band(
    *,
    levels: ArrayLike,
    n: int,
    confidence: float = 0.95,
    simultaneous: bool = True,
) -> Floats:
    """Range of observed shares, per level, that a calibrated model gives on ``n`` rows by chance.

    ``simultaneous`` holds for the whole curve at once, otherwise for each level on its own.

    **Shape**: ``levels`` (L,); result (L, 2).

    >>> reliability_band(levels=[0.5], n=100, simultaneous=False)
    array([[0.4, 0.6]])
    """
    p = probabilities("levels", levels)
    tail = 1 - probability("confidence", confidence)
    check_count("n", n)
    if simultaneous:
        cells = np.diff(p, prepend=0.0, append=1.0)
        counts = _multinomial(n, cells).cumsum(axis=1)[:, :-1]
        tail = _local_tail(counts, n, p, tail)
    return _binomial_range(n, p, tail)


def histogram_band(*, n_bins: int, n: int, confidence: float = 0.95) -> Floats:
    """Range of counts per bin of ``n`` uniform values in ``n_bins`` equal bins, divided by ``n``.

    It holds for all bins at once.

    **Shape**: result (2,): every bin has the same range.

    >>> histogram_band(n_bins=2, n=100).round(1)
    array([0.4, 0.6])
    """
    check_count("n_bins", n_bins, minimum=2)
    check_count("n", n)
    tail = 1 - probability("confidence", confidence)
    p = np.full(n_bins, 1 / n_bins)
    tail = _local_tail(_multinomial(n, p), n, p, tail)
    return _binomial_range(n, p[:1], tail).ravel()


def _multinomial(n: int, cells: Floats) -> Floats:
    """Simulated counts, always the same."""
    rng = generator_from(0)
    return np.asarray(rng.multinomial(n, cells / cells.sum(), size=_SIMULATIONS), dtype=np.float64)


def _local_tail(counts: Floats, n: int, p: Floats, tail: float) -> float:
    """The tail probability per level that the whole curve exceeds with probability ``tail``."""
    below, above = stats.binom.cdf(counts, n, p), stats.binom.sf(counts - 1, n, p)
    smallest = 2 * np.minimum(below, above).min(axis=1)
    return float(np.quantile(smallest, tail, method="lower"))


def _binomial_range(n: int, p: Floats, tail: float) -> Floats:
    ends = [stats.binom.ppf(tail / 2, n, p), stats.binom.isf(tail / 2, n, p)]
    return np.stack(ends, axis=-1) / n


PAPER_LEVELS = tuple(k / 10 for k in range(1, 10))
"""The paper's levels, 10 % … 90 % in steps of 10."""
MINIMUM_ROWS = 10
Kind = Literal["interval", "quantile"]


@dataclass(frozen=True, slots=True)
class ReliabilityCurve:
    """Expected and observed shares of the observations inside intervals (or below quantiles).

    **Shape**: ``expected`` and ``observed`` (L,); ``n`` is the number of observations.
    """

    expected: Floats
    observed: Floats
    n: int

    @classmethod
    def of_pit(
        cls,
        u: Floats,
        *,
        levels: ArrayLike = PAPER_LEVELS,
        kind: Kind = "interval",
        weight: Floats | None = None,
    ) -> "ReliabilityCurve":
        """Of PIT values: t lies in the central z-interval where F(t) is within z/2 of one half.

        **Shape**: ``u`` (N,) or (N, K), pooled; ``levels`` (L,), ``weight`` (N,).

        >>> ReliabilityCurve.of_pit(np.array([0.5, 0.9]), levels=[0.2, 0.9]).observed
        array([0.5, 1. ])
        """
        expected = probabilities("levels", levels)
        statistic = np.abs(2 * u - 1) if kind == "interval" else u
        below = (statistic[..., None] <= expected).astype(np.float64)
        shares = mean_of(below, weight).reshape(-1, len(expected))
        return cls(expected, shares.mean(axis=0), u.size)

    @property
    def ece(self) -> float:
        """Mean of |observed − expected|."""
        return float(np.abs(self.observed - self.expected).mean())

    @property
    def mce(self) -> float:
        """Maximum of |observed − expected|."""
        return float(np.abs(self.observed - self.expected).max())

    def band(self) -> Floats:
        """Where a calibrated model's whole curve lies by chance, 95 times in 100, (L, 2)."""
        return reliability_band(levels=self.expected, n=self.n)


def pit(
    *,
    y_true: ArrayLike,
    dist: Distribution | None = None,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
) -> Floats:
    """Probability integral transform F(t): uniform on (0, 1) for a calibrated model.

    **Shape**: ``y_true`` and the result (N,) or (N, K).

    >>> pit(y_true=[0.0], mean=[0.0], std=[2.0])
    array([0.5])
    """
    y = targets(y_true)
    return as_array("cdf", predictive(y, dist=dist, mean=mean, std=std).cdf(y))


def reliability_curve(
    *,
    y_true: ArrayLike,
    dist: Distribution | None = None,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    levels: ArrayLike = PAPER_LEVELS,
    kind: Kind = "interval",
) -> ReliabilityCurve:
    """Share of the observations found where the predictions put a share z of them.

    The paper's procedure: for each level z, the central z-interval of every row, and the fraction
    of the observations inside. With ``mean`` and ``std`` the intervals are Gaussian, as there; a
    distribution gives its own, read off its cdf. ``kind="quantile"`` counts observations below the
    z-quantile instead, which also shows a bias. Several outputs are pooled.

    **Shape**: ``y_true`` (N,) or (N, K) with at least ten values; ``levels`` (L,).

    >>> curve = reliability_curve(y_true=[0.0] * 10, mean=[0.0] * 10, std=[1.0] * 10)
    >>> curve.observed
    array([1., 1., 1., 1., 1., 1., 1., 1., 1.])
    """
    check_choice("kind", kind, get_args(Kind))
    expected = probabilities("levels", levels)
    y = targets(y_true)
    check_enough_rows(y.size, MINIMUM_ROWS, "reliability")
    q = predictive(y, dist=dist, mean=mean, std=std)
    if kind == "interval" and not q.has_density:
        # A step function's intervals cannot be read off its cdf at t.
        shares = [
            coverage(y_true=y, dist=q, coverage=float(level), sample_weight=sample_weight)
            for level in expected
        ]
        return ReliabilityCurve(expected, np.array(shares), y.size)
    u, weight = pit(y_true=y, dist=q), row_weights(sample_weight, y)
    return ReliabilityCurve.of_pit(u, levels=expected, kind=kind, weight=weight)


def ece(
    *,
    y_true: ArrayLike,
    dist: Distribution | None = None,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    levels: ArrayLike = PAPER_LEVELS,
) -> float:
    """Expected calibration error: mean |observed − expected| over the paper's levels 10 % … 90 %.

    **Shape**: ``y_true`` (N,) or (N, K) with at least ten values.

    >>> round(ece(y_true=[0.0] * 10, mean=[0.0] * 10, std=[1.0] * 10), 3)
    0.5
    """
    given: Predictions = {"dist": dist, "mean": mean, "std": std, "sample_weight": sample_weight}
    return reliability_curve(y_true=y_true, levels=levels, **given).ece


def mce(
    *,
    y_true: ArrayLike,
    dist: Distribution | None = None,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    levels: ArrayLike = PAPER_LEVELS,
) -> float:
    """Maximum calibration error: largest |observed − expected| over the paper's levels 10 % … 90 %.

    **Shape**: ``y_true`` (N,) or (N, K) with at least ten values.

    >>> mce(y_true=[0.0] * 10, mean=[0.0] * 10, std=[1.0] * 10)
    0.9
    """
    given: Predictions = {"dist": dist, "mean": mean, "std": std, "sample_weight": sample_weight}
    return reliability_curve(y_true=y_true, levels=levels, **given).mce


@dataclass(frozen=True, slots=True)
class DeviationBins:
    """Predicted deviation and found error of rows grouped by predicted deviation.

    **Shape**: (B,) each; ``count`` rows per bin.
    """

    predicted: Floats
    observed: Floats
    count: Floats


def deviation_bins(
    *,
    y_true: ArrayLike,
    dist: Distribution | None = None,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_bins: int = 10,
) -> DeviationBins:
    """Root mean predicted variance against root mean squared error, in bins of equal count.

    Levi et al. (2019). With weights, bins of equal weight. Several outputs are pooled.

    **Shape**: ``y_true`` (N,) or (N, K) with at least two values per bin.
    """
    check_count("n_bins", n_bins)
    y = targets(y_true)
    q = predictive(y, dist=dist, mean=mean, std=std)
    variance = as_array("variance", q.variance).ravel()
    squares = ((y - as_array("mean", q.mean)) ** 2).ravel()
    check_enough_rows(y.size, 2 * n_bins, f"a split into {n_bins} bins")
    order = np.argsort(variance, kind="stable")
    own, ends = _equal_bins(row_weights(sample_weight, y), y, order, n_bins)
    high, starts = np.cumsum(own), np.concatenate([[0.0], ends[:-1]])
    count = np.searchsorted(high, ends) - np.searchsorted(high, starts, side="right") + 1
    return DeviationBins(
        predicted=np.sqrt(_bin_means(variance[order], own, ends)),
        observed=np.sqrt(_bin_means(squares[order], own, ends)),
        count=count.astype(np.float64),
    )


def _equal_bins(
    weight: Floats | None, y: Floats, order: Indices, n_bins: int
) -> tuple[Floats, Floats]:
    """The weight of each ordered value, and the cumulative weight at which each bin ends.

    Bins have equally many values; with weights, equal weight.
    """
    if weight is None:
        sizes = [len(part) for part in np.array_split(order, n_bins)]
        return np.ones(y.size), np.cumsum(sizes, dtype=np.float64)
    own = np.repeat(weight, y.size // len(y))[order]
    return own, np.linspace(0.0, np.cumsum(own)[-1], n_bins + 1)[1:]


def _bin_means(values: Floats, own: Floats, ends: Floats) -> Floats:
    """The weighted mean of each bin; a value on a border counts in both bins, with its parts."""
    reached, total = (np.concatenate([[0.0], np.cumsum(x)]) for x in (own, own * values))
    sums = np.interp(ends, reached, total)
    return np.asarray(np.diff(sums, prepend=0.0) / np.diff(ends, prepend=0.0))


def ence(
    *,
    y_true: ArrayLike,
    dist: Distribution | None = None,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_bins: int = 10,
) -> float:
    """Expected normalised calibration error: mean |RMV − RMSE| / RMV over bins of equal count.

    Levi et al. (2019): RMV is the root mean predicted variance of a bin, so that errors are judged
    relative to the deviation that was stated for them.

    **Shape**: ``y_true`` (N,) or (N, K) with at least two values per bin.

    >>> ence(y_true=[2.0, -2.0], mean=[0.0, 0.0], std=[1.0, 1.0], n_bins=1)
    1.0
    """
    given: Predictions = {"dist": dist, "mean": mean, "std": std, "sample_weight": sample_weight}
    bins = deviation_bins(y_true=y_true, n_bins=n_bins, **given)
    return float((np.abs(bins.predicted - bins.observed) / bins.predicted).mean())
