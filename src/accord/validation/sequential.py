"""Is a stated coverage kept? A test that may be looked at after every batch of rows.

A test of fixed size may be asked once. Asked every day, it calls false alarm sooner or later. Here
the evidence is an e-process: a number that starts at 1 and, while the promise is kept, grows in no
way that one could expect. By Ville's inequality it ever reaches 1/δ with probability δ at most,
however often and whenever somebody looks, so that 20 is a false alarm in at most one stream of
twenty, for ever.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, expit, logit, logsumexp, xlog1py, xlogy

from accord._checks import check_probability
from accord._types import Floats

# Log-odds by which misses may be more frequent than tolerated, from slightly to nearly always.
_EXCESSES = np.arange(1, 17) / 4
# Halvings of the unit interval after which neighbouring numbers are reached.
_HALVINGS = 60


def coverage_log_evidence(
    rows: ArrayLike, misses: ArrayLike, *, coverage: float, margin: float = 0.01
) -> Floats:
    """Evidence after each batch, as log E, that intervals contain less than they state.

    With m = 1 − ``coverage`` + ``margin`` the tolerated share of misses, a batch of n rows and k
    misses multiplies a bet on p > m by (p/m)^k ((1−p)/(1−m))^(n−k), whose expectation is at most 1
    if each row misses with a probability of at most m, given the rows before it. The evidence is
    the mean of such products over sixteen p and over all batches j at which intervals may have
    begun to fail, weighted by 1/(j(j+1)): a fault that begins late is found almost as soon.

        E_n = Σ_j w_j mean_p Π_{j≤i≤n} LR_p(n_i, k_i) + Σ_{j>n} w_j

    Args:
        rows, misses: Rows of each batch, in order, and how many of them lie outside their interval.
        coverage: The stated share of rows inside.
        margin: A shortfall that does not matter.

    **Shape**: (..., J), batches last → (..., J).

    Example:
        >>> kept = coverage_log_evidence([100, 100, 100], [4, 6, 5], coverage=0.95)
        >>> lost = coverage_log_evidence([100, 100, 100], [4, 14, 15], coverage=0.95)
        >>> np.exp(kept).round(1), np.exp(lost).round(1)
        (array([0.5, 0.4, 0.3]), array([  0.5,   2.6, 265.6]))
    """
    n, k = _batches(rows, misses)
    tolerated = _tolerated(coverage, margin)
    p = expit(logit(tolerated) + _EXCESSES)
    gain, loss = np.log(p / tolerated), np.log1p(-p) - np.log1p(-tolerated)
    products = np.full((*n.shape[:-1], len(p)), -np.inf)
    evidence = np.empty(n.shape)
    for place in range(n.shape[-1]):
        begin = -np.log((place + 1) * (place + 2))
        hit, miss = n[..., place, None] - k[..., place, None], k[..., place, None]
        products = np.logaddexp(products, begin) + miss * gain + hit * loss
        bets = logsumexp(products, axis=-1) - np.log(len(p))
        evidence[..., place] = np.logaddexp(bets, -np.log(place + 2))
    return evidence


def coverage_sequence(rows: ArrayLike, misses: ArrayLike, *, level: float = 0.95) -> Floats:
    """Intervals for the coverage after each batch, all of which hold together.

    A coverage c is excluded once the rows so far, K misses of N, speak against it by more than
    1/δ, δ = 1 − ``level``, where the share of misses p is mixed over Beta(½, ½) (Robbins, 1970):

        B(K + ½, N − K + ½) / B(½, ½)  >  (1/δ) (1−c)^K c^(N−K)

    If all rows have the same coverage, the whole sequence of intervals contains it with probability
    ``level``.

    **Shape**: (..., J), batches last → (..., J, 2).

    Example:
        >>> coverage_sequence([100, 100, 1000], [4, 6, 50]).round(2)
        array([[0.86, 1.  ],
               [0.88, 0.99],
               [0.92, 0.97]])
    """
    check_probability("level", level, strict=True)
    n, k = (np.cumsum(counts, axis=-1) for counts in _batches(rows, misses))
    bound = betaln(k + 0.5, n - k + 0.5) - betaln(0.5, 0.5) + np.log1p(-level)
    found = np.where(n > 0, 1 - k / np.maximum(n, 1), 0.5)
    lower = _crossing(np.zeros(n.shape), found, bound, n, k)
    upper = _crossing(np.ones(n.shape), found, bound, n, k)
    return np.stack([lower, upper], axis=-1)


def _crossing(outside: Floats, inside: Floats, bound: Floats, n: Floats, k: Floats) -> Floats:
    """Where the likelihood of a coverage falls below the bound, between an end and the best one."""
    for _ in range(_HALVINGS):
        middle = (outside + inside) / 2
        kept = xlog1py(k, -middle) + xlogy(n - k, middle) >= bound
        inside, outside = np.where(kept, middle, inside), np.where(kept, outside, middle)
    return outside


def _tolerated(coverage: float, margin: float) -> float:
    check_probability("coverage", coverage, strict=True)
    if not 0 <= margin < coverage:
        raise ValueError(
            f"margin must be at least 0 and below the coverage, got {margin}. Use 0.01, or 0 to "
            "count every shortfall."
        )
    return 1 - coverage + margin


def _batches(rows: ArrayLike, misses: ArrayLike) -> tuple[Floats, Floats]:
    n, k = np.asarray(rows, dtype=np.float64), np.asarray(misses, dtype=np.float64)
    if n.shape != k.shape or n.ndim < 1:
        raise ValueError(
            f"rows and misses must be one number per batch, got shapes {n.shape} and {k.shape}."
        )
    if not np.all((k >= 0) & (k <= n)):
        raise ValueError("misses must be between 0 and the number of rows of their batch.")
    return n, k
