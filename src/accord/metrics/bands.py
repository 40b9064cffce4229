"""How far a calibrated model's counts may stray by chance: consistency bands.

Of N independent rows the number inside a region of probability p is Binomial(N, p). A band whose
every level holds with 95 % is left somewhere far more often than one time in twenty. The
simultaneous band widens all levels alike until the *whole* curve of a calibrated model stays inside
with the stated confidence (Säilynoja, Bürkner and Vehtari, 2022): simulate calibrated counts, take
for each simulation its smallest two-sided binomial tail probability, and use the 5 % quantile of
those as the tail of every level.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from accord._checks import RandomState, check_count, generator_from
from accord.metrics.inputs import FloatArray, probabilities, probability

__all__ = ["histogram_band", "reliability_band"]


def reliability_band(
    *,
    levels: ArrayLike,
    n: int,
    confidence: float = 0.95,
    simultaneous: bool = True,
    n_simulations: int = 2000,
    random_state: RandomState = 0,
) -> FloatArray:
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
        counts = _multinomial(n, cells, n_simulations, random_state).cumsum(axis=1)[:, :-1]
        tail = _local_tail(counts, n, p, tail)
    return _binomial_range(n, p, tail)


def histogram_band(
    *,
    n_bins: int,
    n: int,
    confidence: float = 0.95,
    simultaneous: bool = True,
    n_simulations: int = 2000,
    random_state: RandomState = 0,
) -> FloatArray:
    """Range of counts per bin of ``n`` uniform values in ``n_bins`` equal bins, divided by ``n``.

    **Shape**: result (2,): every bin has the same range.

    >>> histogram_band(n_bins=2, n=100, simultaneous=False)
    array([0.4, 0.6])
    """
    check_count("n_bins", n_bins, minimum=2)
    check_count("n", n)
    tail = 1 - probability("confidence", confidence)
    p = np.full(n_bins, 1 / n_bins)
    if simultaneous:
        counts = _multinomial(n, p, n_simulations, random_state)
        tail = _local_tail(counts, n, p, tail)
    return _binomial_range(n, p[:1], tail).ravel()


def _multinomial(n: int, cells: FloatArray, times: int, random_state: RandomState) -> FloatArray:
    check_count("n_simulations", times, minimum=100)
    rng = generator_from(random_state)
    return np.asarray(rng.multinomial(n, cells / cells.sum(), size=times), dtype=np.float64)


def _local_tail(counts: FloatArray, n: int, p: FloatArray, tail: float) -> float:
    """The tail probability per level that the whole curve exceeds with probability ``tail``."""
    below, above = stats.binom.cdf(counts, n, p), stats.binom.sf(counts - 1, n, p)
    smallest = 2 * np.minimum(below, above).min(axis=1)
    return float(np.quantile(smallest, tail, method="lower"))


def _binomial_range(n: int, p: FloatArray, tail: float) -> FloatArray:
    ends = [stats.binom.ppf(tail / 2, n, p), stats.binom.isf(tail / 2, n, p)]
    return np.stack(ends, axis=-1) / n
