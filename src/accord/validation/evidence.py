"""Evidence: for one model against another, and against a promise of coverage.

Two models are compared by how probably each agrees with the data, once.

Whether a stated coverage is kept is asked after every batch of rows. A test of fixed size may be
asked once; asked every day, it gives a false alarm sooner or later. Here the evidence is an
e-process: a number that starts at 1 and is not expected to grow while the promise is kept. By
Ville's inequality it ever reaches 1/δ with probability δ at most, however often and whenever
somebody looks: with an alarm at 20, at most one stream of twenty ever gives a false one.
"""

import math
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, expit, logit, logsumexp, xlog1py, xlogy

from accord._checks import RandomState, check_positive, check_probability, generator_from
from accord._types import Floats
from accord.agreement import (
    DatasetRule,
    Exact,
    Outputs,
    Predicate,
    Rule,
    probability_of_agreement,
)
from accord.distributions import Distribution, Mixture, to_floats

AnyRule = Rule | DatasetRule | Predicate
# Log-odds by which misses may be more frequent than tolerated, from slightly to nearly always.
_EXCESSES = np.arange(1, 17) / 4
# Halvings of the unit interval after which neighbouring numbers are reached.
_HALVINGS = 60


@final
@dataclass(frozen=True)
class BVMRatio:
    """K = p(A | M₁, D, B) p(M₁) / p(A | M₂, D, B) p(M₂).

    Args:
        log_ratio: log K.
        standard_error: of log K; 0 where both probabilities are closed forms.
        log_agreement: log p(A) of the first and of the second model.
        prior_odds: p(M₁) / p(M₂).
    """

    log_ratio: float
    standard_error: float
    log_agreement: tuple[float, float]
    prior_odds: float

    @property
    def ratio(self) -> float:
        """K itself; infinite where it overflows."""
        return math.exp(self.log_ratio) if self.log_ratio < 709 else math.inf

    @property
    def favours(self) -> Literal["first", "second", "neither"]:
        """The model with the higher probability; neither within two standard errors of K = 1."""
        if abs(self.log_ratio) <= 2 * self.standard_error:
            return "neither"
        return "first" if self.log_ratio > 0 else "second"


def bvm_ratio(
    first: Outputs,
    second: Outputs,
    data: Outputs,
    rule: AnyRule,
    *,
    prior_odds: float = 1.0,
    shared_members: bool = False,
    random_state: RandomState = 0,
    n_samples: int = 2**14,
) -> BVMRatio:
    """How much more probably the first model agrees with the data than the second.

    A rule for single rows is asked of every row, the rows being independent: log p(A) is the sum
    over the rows. Under `Exact` the ratio is the Bayes factor (`bayes_factor`).

    Args:
        first: a model: distribution, draws or values.
        second: its rival.
        data: the data of both.
        rule: the rule of agreement.
        prior_odds: odds of the first model before the data.
        shared_members: see `joint_log_agreement`.
        random_state: seed of the Monte Carlo route.
        n_samples: its number of points.

    Example:
        >>> from accord.agreement import Within
        >>> from accord.distributions import Normal
        >>> y = [1.0, 2.0, 3.0]
        >>> narrow, wide = Normal(y, 0.5), Normal(y, 2.0)
        >>> bvm_ratio(narrow, wide, y, Within(0.5)).favours
        'first'
    """
    check_positive("prior_odds", prior_odds, remedy="Use 1 for models equally likely beforehand.")
    logs, errors = zip(
        *(
            joint_log_agreement(
                model,
                data,
                rule,
                shared_members=shared_members,
                random_state=random_state,
                n_samples=n_samples,
            )
            for model in (first, second)
        ),
        strict=True,
    )
    if max(logs) == -math.inf:
        raise ValueError(
            "at least one model must agree with the data at all, got probability 0 for both. "
            "Loosen the rule, give the models their uncertainty, or raise n_samples."
        )
    log_ratio = logs[0] - logs[1] + math.log(prior_odds)
    return BVMRatio(log_ratio, math.hypot(*errors), (logs[0], logs[1]), float(prior_odds))


def bayes_factor(
    first: Outputs,
    second: Outputs,
    data: Outputs,
    *,
    prior_odds: float = 1.0,
    shared_members: bool = False,
) -> BVMRatio:
    """Bayesian model testing: the BVM ratio under exact agreement.

    Each model is its prior predictive density. Given as predictions made row by row, each after the
    rows before it, or as a `Mixture` over parameter values with ``shared_members``, the product of
    the densities is the evidence p(D | M), and the ratio the Bayes factor.
    """
    return bvm_ratio(
        first, second, data, Exact(), prior_odds=prior_odds, shared_members=shared_members
    )


def joint_log_agreement(
    model: Outputs,
    data: Outputs,
    rule: AnyRule,
    *,
    shared_members: bool = False,
    random_state: RandomState = 0,
    n_samples: int = 2**14,
) -> tuple[float, float]:
    """log P(the model agrees with all data) and its standard error.

    Args:
        model: distribution, draws or values.
        data: exact values or a distribution.
        rule: for single rows (then asked of every row) or over all rows.
        shared_members: whether all rows of a `Mixture` come from the same, unknown member, as for a
            mixture over parameter values: log Σ_m w_m Π_i p_mi. Otherwise each row has its own:
            Π_i Σ_m w_m p_mi.
        random_state: seed of the Monte Carlo route.
        n_samples: its number of points.
    """
    if shared_members:
        return _over_members(_mixture(model), data, rule, random_state, n_samples)
    result = probability_of_agreement(
        model, data, rule, random_state=random_state, n_samples=n_samples
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.nan_to_num(result.standard_error / result.probability, posinf=0.0)
    combined = np.sqrt((relative**2).sum())
    return result.joint_log_probability, float(combined)


def _over_members(
    model: Mixture, data: Outputs, rule: AnyRule, random_state: RandomState, n_samples: int
) -> tuple[float, float]:
    rng = generator_from(random_state)  # points of their own, so that errors are independent
    logs, errors = [], []
    for member in model.members:
        log_p, error = joint_log_agreement(
            member, data, rule, random_state=rng, n_samples=n_samples
        )
        logs.append(log_p)
        errors.append(error)
    with np.errstate(divide="ignore"):
        weighted = np.array(logs) + np.log(to_floats(model.weights))
    total = float(np.logaddexp.reduce(weighted))
    shares = np.exp(weighted - total) if total > -math.inf else np.zeros_like(weighted)
    return total, float(np.sqrt(((shares * errors) ** 2).sum()))


def _mixture(model: Outputs) -> Mixture:
    if isinstance(model, Mixture):
        return model
    kind = type(model).__name__ if isinstance(model, Distribution) else "values or draws"
    raise TypeError(
        f"shared_members needs a Mixture, got {kind}. "
        "Leave it out, or stack the members: Mixture(Normal(mean, std)) with shape (M, N)."
    )


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
