"""Agreement rules about the whole data set, and the probability that they hold.

Such a rule looks at all predictions and all data of one joint draw at once, and combines with
others of its kind by ``&``, ``|`` and ``~``. A rule about single rows enters it through `Share`.

Rows of a distribution are independent; draws are joint, so that dependence between rows is kept
when a model is given as draws. Closed forms: the number of rows that agree is a sum of independent
yes/no variables, whose distribution is exact (Poisson binomial); the mean error of normal model and
data is normal. Everything else is the share of joint draws under which the rule holds.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from accord._checks import check_finite, check_non_negative, check_probability, generator_from
from accord._numerics import log_at_least
from accord._types import Bools, Floats
from accord.agreement.boolean import (
    Algebra,
    BooleanRule,
    Callback,
    Conjunction,
    Disjunction,
    Negation,
    Predicate,
    bracketed,
    in_words,
)
from accord.agreement.closed_form import Known, Pair, Sampled, Side, Uncertain
from accord.agreement.routes import NoRoute, Options, Result, log_agreement_by_row
from accord.agreement.rules import Rule, Within
from accord.agreement.tracing import binomial_error
from accord.distributions import Normal

_BLOCK = 2**22  # numbers drawn at a time


class DatasetRule(BooleanRule["DatasetRule"]):
    """A Boolean statement about all predictions and all data together.

    **Shape**: y_hat and y (..., N), one answer for each leading index.

    Example:
        >>> rule = MeanAbsoluteErrorAtMost(0.3) & ShareWithin(0.5, share=0.9)
        >>> str(rule)
        'mean absolute error at most 0.3 and 90% within 0.5'
        >>> bool(rule([1.1, 2.2, 2.9], [1.0, 2.0, 3.0]))
        True
    """

    _looks_at: ClassVar[str] = "over all rows"
    _instead: ClassVar[str] = (
        "Beside a rule over all rows, write Share(Within(0.5), 0.95). To train, give BVMRegressor "
        "or DatasetAgreementLoss a share of rows alone; others are for probability_of_agreement."
    )

    @staticmethod
    def _algebra() -> "Algebra[DatasetRule]":
        return Algebra(DatasetRule, AllOf, AnyOf, Not, CustomOverall)

    def _log_exact(self, pair: Pair, options: Options) -> Result | None:
        """The probability without draws; None where it has no such form."""
        return None


@dataclass(frozen=True, eq=False)
class Limit(DatasetRule):
    """A rule of the form statistic(ŷ, y) ≤ limit.

    For exact predictions and data the smallest limit that still agrees is the statistic itself: so
    every threshold rule has a classical metric inside it.
    """

    limit: float
    _name: ClassVar[str]

    @staticmethod
    @abstractmethod
    def statistic(y_hat: Floats, y: Floats) -> Floats:
        """The quantity that must not exceed the limit, (..., N) → (...)."""

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        return np.asarray(self.statistic(y_hat, y) <= self.limit)

    def __post_init__(self) -> None:
        check_non_negative("limit", self.limit)
        check_finite("limit", self.limit)
        object.__setattr__(self, "limit", float(self.limit))

    def __str__(self) -> str:
        return f"{self._name} {in_words(self.limit)}"


@final
class MeanAbsoluteErrorAtMost(Limit):
    """N⁻¹ Σ|ŷ − y| ≤ limit."""

    _name = "mean absolute error at most"

    @staticmethod
    def statistic(y_hat: Floats, y: Floats) -> Floats:
        return np.asarray(np.abs(y_hat - y).mean(-1))


@final
class MeanErrorWithin(Limit):
    """|N⁻¹ Σ(ŷ − y)| ≤ limit: no more bias than this."""

    _name = "mean error within"

    @staticmethod
    def statistic(y_hat: Floats, y: Floats) -> Floats:
        return np.asarray(np.abs((y_hat - y).mean(-1)))

    def _log_exact(self, pair: Pair, options: Options) -> Result | None:
        """Mean error of independent normal rows: N(mean of the differences, Σ(σ² + s²)/N²)."""
        if options.method == "quadrature":
            return None
        model, data = _normal_moments(pair.model), _normal_moments(pair.data)
        if model is None or data is None:
            return None
        mean = (model[0] - data[0]).mean()
        std = torch.sqrt((model[1] + data[1]).sum()) / pair.n
        log_p = Normal(float(mean), float(std)).log_within_prob(0.0, self.limit)
        return np.asarray(log_p), np.zeros(()), "closed form"


@final
class SquaredErrorAtMost(Limit):
    """Σ(ŷ − y)² ≤ limit, the threshold on the squared error."""

    _name = "squared error at most"

    @staticmethod
    def statistic(y_hat: Floats, y: Floats) -> Floats:
        return np.asarray(((y_hat - y) ** 2).sum(-1))


@final
class AreaAtMost(Limit):
    """∫|F̂(x) − F(x)| dx ≤ limit for the empirical cdfs of all predictions and of all data.

    With N values on either side the area is the mean distance between the ordered values.
    """

    _name = "area at most"

    @staticmethod
    def statistic(y_hat: Floats, y: Floats) -> Floats:
        return np.asarray(np.abs(np.sort(y_hat, axis=-1) - np.sort(y, axis=-1)).mean(-1))


@final
@dataclass(frozen=True, eq=False)
class Share(DatasetRule):
    """At least a share of the rows agrees, each under a rule for single rows.

    Args:
        rule: the rule for single rows.
        share: the share, in [0, 1]; 1 for all rows.
    """

    rule: Rule | Predicate
    share: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rule", Rule.of(self.rule))
        check_probability("share", self.share, remedy="Write 0.95 for 95 %.")

    def least(self, n: int) -> int:
        """How many of n rows must agree."""
        return int(np.ceil(self.share * n - 1e-9))

    def _holds(self, y_hat: Floats, y: Floats) -> Bools:
        agreed = Rule.of(self.rule)(y_hat, y).sum(-1)
        return np.asarray(agreed >= self.least(y_hat.shape[-1]))

    def _log_exact(self, pair: Pair, options: Options) -> Result | None:
        """P(at least k rows agree), from the probability of each."""
        row_rule = Rule.of(self.rule).flattened((pair.n,))
        # sampled rows would not be exact: not worth drawing
        few = options._replace(n_samples=1)
        log_p, error, route = log_agreement_by_row(pair, row_rule, few)
        if route == "monte carlo":
            return None
        n_missing = pair.n - self.least(pair.n)
        log_tail = log_at_least(torch.from_numpy(log_p), n_missing).clamp(max=0.0)
        # One row's probability changes the tail by at most as much.
        return log_tail.numpy(), np.asarray(error.sum()), route

    def __str__(self) -> str:
        inner = bracketed(Rule.of(self.rule), 2)
        return f"{in_words(self.share, percent=True)} {inner}"


# Named like the rule that it makes.
def ShareWithin(tolerance: Any, share: float = 0.95) -> Share:
    """At least a share of the rows lies within a tolerance: ``Share(Within(tolerance), share)``."""
    return Share(Within(tolerance), share)


@final
class CustomOverall(Callback["DatasetRule"], DatasetRule):
    """Agreement as a Python callable decides; made by `DatasetRule.from_callable`."""

    _remedy: ClassVar[str] = "Reduce the last axis, as in error.mean(-1) <= 1."

    @staticmethod
    def _answers(shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape[:-1]


@final
class AllOf(Conjunction["DatasetRule"], DatasetRule):
    """Agreement under two rules at once; made by ``&``."""


@final
class AnyOf(Disjunction["DatasetRule"], DatasetRule):
    """Agreement under at least one of two rules; made by ``|``."""


@final
class Not(Negation["DatasetRule"], DatasetRule):
    """Agreement where another rule disagrees; made by ``~``."""


def log_overall_agreement(pair: Pair, rule: DatasetRule, options: Options) -> Result:
    """log P(the rule holds), its error and the route, each of shape ()."""
    method = options.method
    if isinstance(pair.model, Known) and isinstance(pair.data, Known):
        holds = rule(pair.model.values, pair.data.values)
        return np.where(holds, 0.0, -np.inf), np.zeros(()), "closed form"
    drawn = isinstance(pair.model, Sampled) or isinstance(pair.data, Sampled)
    if method != "monte carlo" and not drawn:
        exact = rule._log_exact(pair, options)
        if exact is not None:
            return exact
    if method in ("closed form", "quadrature"):
        raise NoRoute(method, rule)
    held, total, effective = _count(pair, rule, options)
    share = np.asarray(held / total)
    with np.errstate(divide="ignore"):
        return np.log(share), binomial_error(share, effective), "monte carlo"


def _normal_moments(side: Side) -> tuple[Tensor, Tensor] | None:
    match side:
        case Known(values):
            return values, torch.zeros_like(values)
        case Uncertain(law):
            normal = law.as_normal()
            if normal is not None:
                return torch.as_tensor(normal.mean), torch.as_tensor(normal.variance)
    return None


def _count(pair: Pair, rule: DatasetRule, options: Options) -> tuple[int, int, int]:
    """Joint draws under which the rule holds, all of them, and how many of them are independent."""
    sizes = [len(s.draws) for s in (pair.model, pair.data) if isinstance(s, Sampled)]
    # Every given draw is used equally often; with exact data once is all there is to learn.
    once = sizes and not any(isinstance(s, Uncertain) for s in (pair.model, pair.data))
    first = sizes[0] if sizes else 1
    repeats = 1 if once and len(sizes) == 1 else -(-max(options.n_samples, first) // first)
    total = first * repeats
    rng = generator_from(options.random_state)
    step = max(1, _BLOCK // pair.n)
    held = 0
    for start in range(0, total, step):
        index = np.arange(start, min(start + step, total))
        y_hat = _joint_draws(pair.model, index, rng, in_order=True)
        y = _joint_draws(pair.data, index, rng, in_order=not isinstance(pair.model, Sampled))
        held += int(rule(y_hat, y).sum())
    return held, total, min([total, *sizes])


def _joint_draws(
    side: Side,
    index: NDArray[np.int64],
    rng: np.random.Generator | np.random.RandomState,
    *,
    in_order: bool,
) -> Floats:
    match side:
        case Known(values):
            return np.broadcast_to(values.numpy(), (len(index), len(values)))
        case Sampled(draws):
            chosen = index % len(draws) if in_order else rng.choice(len(draws), size=len(index))
            return draws[chosen].numpy()
    return np.asarray(side.law.sample(len(index), random_state=rng))
