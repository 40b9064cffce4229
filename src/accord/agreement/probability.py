"""The probability of agreement, p(A | M, D, B) = ∫∫ ρ(ŷ | M) Θ(B(ŷ, y)) ρ(y) dŷ dy.

Of single rows, `accord.agreement.routes` chooses the way to it. Of several outputs under a joint
rule, known model and data are looked up; outputs that are independent, each under a rule of its
own, have the product of their probabilities; jointly normal errors in boxes and ellipsoids, joined
by any operators, are integrated (:mod:`accord._numerics.joint`), and mixtures of them averaged.
Everything else is the share of draws that agree.
"""

from dataclasses import dataclass
from typing import NamedTuple, final, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from accord._checks import RandomState, check_choice, check_count, check_finite, generator_from
from accord._numerics import TooManyRegionsError, normal_probability
from accord._types import Floats
from accord.agreement.boolean import Predicate
from accord.agreement.closed_form import Pair, pair_of
from accord.agreement.dataset_rules import DatasetRule, log_overall_agreement
from accord.agreement.joint_rules import AllWithin, EachOutput, JointRule
from accord.agreement.parsing import parse_rule
from accord.agreement.routes import (
    Method,
    NoRoute,
    Options,
    Result,
    Route,
    log_agreement_by_row,
)
from accord.agreement.rules import Rule, Within
from accord.agreement.tracing import binomial_error
from accord.distributions import (
    Distribution,
    Empirical,
    JointDistribution,
    JointMixture,
    MultivariateNormal,
    to_floats,
)

Outputs = Distribution | ArrayLike | Tensor
"""A model's predictions, or data: a distribution, or numbers."""

Vectors = JointDistribution | Distribution | ArrayLike | Tensor
"""Vectors of outputs: a joint distribution (N,), one of independent outputs (N, D), or numbers."""

Generator = np.random.Generator | np.random.RandomState
_BLOCK = 2**22  # numbers drawn at a time


@final
@dataclass(frozen=True, eq=False, repr=False)
class Agreement:
    """The probability of agreement of each row, how it was computed, and how well.

    Args:
        rule: the rule of agreement.
        probability: p(A) per row; a density in units of 1/target where ``is_density``.
        log_probability: its logarithm, also where p(A) itself underflows.
        standard_error: 0 for a closed form, the stated absolute error for quadrature, the standard
            error for Monte Carlo.
        route: how it was computed.
        is_density: whether the rule demands exact agreement, so that p(A) is a density.

    **Shape**: that of the data; (N,) for a rule over several outputs, () for one over all rows.
    """

    rule: Rule | JointRule | DatasetRule
    probability: Floats
    log_probability: Floats
    standard_error: Floats
    route: Route
    is_density: bool = False

    @property
    def mean(self) -> float:
        """The average over the rows: the expected share of rows that agree."""
        return float(self.probability.mean())

    @property
    def joint_log_probability(self) -> float:
        """log P(every row agrees) for rows that are independent: the sum over the rows."""
        return float(self.log_probability.sum())

    def __repr__(self) -> str:
        kind = "density" if self.is_density else "probability"
        rows = self.probability.size
        amount = f"{self.mean:.4g}"
        what = (
            f"mean {kind} {amount} over {rows} rows"
            if self.probability.shape
            else (f"{kind} {amount}")
        )
        error = float(np.max(self.standard_error))
        return f"Agreement({self.rule}: {what}; {self.route}{f', ± {error:.1g}' if error else ''})"


def probability_of_agreement(
    model: Outputs | JointDistribution,
    data: Outputs | JointDistribution,
    rule: Rule | JointRule | DatasetRule | Predicate | str,
    *,
    method: Method = "auto",
    random_state: RandomState = 0,
    n_samples: int = 2**14,
) -> Agreement:
    """The probability that model and data agree under a rule, row by row or over all rows.

    "auto" takes the first route that applies and says which: a closed form; quadrature, with an
    estimate of its error; quasi-Monte Carlo, with its standard error. Where a side is given as
    draws, the closed form of the other side is averaged over them. Under a callable with
    uncertainty on both sides, quadrature has to search for the limits of agreement at every point;
    "auto" does so for up to 64 rows.

    Args:
        model: a distribution, draws, or exact values.
        data: exact values, or a distribution: ``Normal(y, std)`` for measurement errors,
            ``Uniform(lower, upper)`` for rounded or interval data, ``Empirical(draws)``.
        rule: a rule for single rows or over all rows, or its words (``"within 0.5"``), a callable
            ``(y_hat, y) -> bool``, or a rule over several outputs
            (:class:`accord.agreement.JointRule`).
        method: a route, to compare it with another.
        random_state: seed of the Monte Carlo route; the same call gives the same answer.
        n_samples: points of the Monte Carlo route, rounded up to 16 times a power of two.

    **Shape**: data (N,) or (N, K); a model of that shape, or draws (S, N) or (S, N, K). A rule over
    several outputs needs the latter, or a joint distribution of N rows.

    Example:
        >>> from accord.agreement import Within
        >>> from accord.distributions import Normal
        >>> model = Normal(mean=[1.0, 2.0, 3.0], std=0.5)
        >>> probability_of_agreement(model, [1.1, 2.0, 4.5], Within(0.5)).probability.round(4)
        array([0.6731, 0.6827, 0.0227])
        >>> measured = Normal([1.1, 2.0, 4.5], 0.2)
        >>> probability_of_agreement(model, measured, Within(0.5))
        Agreement(within 0.5: mean probability 0.439 over 3 rows; closed form)
        >>> probability_of_agreement(model, measured, "60% within 0.5")
        Agreement(60% within 0.5: probability 0.4276; closed form)
        >>> from accord.agreement import AllWithin
        >>> from accord.distributions import MultivariateNormal
        >>> pair = MultivariateNormal([[1.0, 2.0]], [[1.0, 0.0], [0.8, 0.6]])
        >>> probability_of_agreement(pair, [[1.1, 2.0]], AllWithin(0.5)).probability.round(4)
        array([0.2136])
    """
    check_choice("method", method, get_args(Method))
    check_count("n_samples", n_samples)
    options = Options(method, n_samples, random_state)
    rule = parse_rule(rule) if isinstance(rule, str) else rule
    if isinstance(rule, JointRule):
        with torch.no_grad():
            result = log_agreement_of_outputs(several_of(model, data), rule, options)
        return Agreement(rule, np.asarray(np.exp(result[0])), *result)
    if isinstance(model, JointDistribution) or isinstance(data, JointDistribution):
        raise TypeError(
            f"a joint distribution must come with a rule over several outputs, got {rule!r}. "
            "Use for instance AllWithin(0.5), or the distribution's marginals."
        )
    pair, shape = pair_of(model, data)
    with torch.no_grad():
        if isinstance(rule, DatasetRule):
            _check_rows(shape)
            log_p, error, route = log_overall_agreement(pair, rule, options)
            return Agreement(rule, np.asarray(np.exp(log_p)), log_p, error, route)
        row_rule = Rule.of(rule)
        log_p, error, route = log_agreement_by_row(pair, row_rule.flattened(shape), options)
    log_p, error = log_p.reshape(shape), error.reshape(shape)
    return Agreement(row_rule, np.asarray(np.exp(log_p)), log_p, error, route, row_rule.is_density)


def _check_rows(shape: tuple[int, ...]) -> None:
    if len(shape) != 1:
        raise ValueError(
            f"a rule over all rows must have data of shape (N,), got {shape}. "
            "Ask it of one output at a time."
        )


# --- several outputs ---------------------------------------------------------------------------


class Several(NamedTuple):
    """Model and data of N rows with D outputs, as distributions or as float64 numbers."""

    model: JointDistribution | Distribution | Floats
    data: JointDistribution | Distribution | Floats
    n: int
    d: int


def several_of(model: Vectors, data: Vectors) -> Several:
    """Both sides, checked to have the same rows and outputs."""
    data_side, model_side = _side("data", data), _side("model", model)
    if isinstance(model_side, np.ndarray) and model_side.ndim == 3:
        model_side = Empirical(model_side)
    shape, other = _shape(data_side), _shape(model_side)
    if len(shape) != 2 or other != shape:
        raise ValueError(
            "a rule over several outputs must have data of shape (N, D), and a model of that shape "
            f"or draws (S, N, D), got data {shape} and model {other}. Reshape one row to (1, D)."
        )
    return Several(model_side, data_side, shape[0], shape[1])


def log_agreement_of_outputs(pair: Several, rule: JointRule, options: Options) -> Result:
    """log P(A) of each row, its error and the route."""
    method = options.method
    if isinstance(pair.data, np.ndarray) and isinstance(pair.model, np.ndarray | Empirical):
        return _share_of_known(rule, pair.model, pair.data)
    if method != "monte carlo":
        found = _product(pair, rule, options)
        found = _integrated(pair, rule, options) if found is None else found
        if found is not None:
            return found
    if method in ("closed form", "quadrature"):
        raise NoRoute(method, rule)
    return _share_of_draws(pair, rule, options)


def _product(pair: Several, rule: JointRule, options: Options) -> Result | None:
    """Independent outputs, each with its own rule: the product of their probabilities."""
    rules = _own_rules(rule, pair)
    independent = all(isinstance(side, Distribution | np.ndarray) for side in pair[:2])
    drawn = any(isinstance(side, Empirical) for side in pair[:2])
    if rules is None or not independent or drawn:
        return None
    parts = [
        log_agreement_by_row(_output(pair, d), own.flattened((pair.n,)), options)
        for d, own in enumerate(rules)
    ]
    if any(route == "monte carlo" for _, _, route in parts):
        return None
    log_p = np.sum([part[0] for part in parts], axis=0)
    # One factor's error changes the product by at most as much.
    error = np.sum([part[1] for part in parts], axis=0)
    route: Route = "quadrature" if any(r == "quadrature" for *_, r in parts) else "closed form"
    return log_p, error, route


def _own_rules(rule: JointRule, pair: Several) -> list[Rule] | None:
    if isinstance(rule, EachOutput):
        rule._check_outputs(pair.d)
        return rule.each()
    if isinstance(rule, AllWithin):
        eps = rule.regions(torch.zeros(pair.n, pair.d, dtype=torch.float64))[0].upper
        return [Within(column) for column in eps.mT]
    return None


def _output(pair: Several, d: int) -> Pair:
    model, data = (side[:, d] for side in pair[:2] if isinstance(side, Distribution | np.ndarray))
    return pair_of(model, data)[0]


def _integrated(pair: Several, rule: JointRule, options: Options) -> Result | None:
    """Jointly normal errors in disjoint regions."""
    errors = _normal_errors(pair, rule)
    if errors is None or options.method == "closed form":
        return None
    normal, log_weights, y = errors
    try:
        regions = rule.regions(torch.from_numpy(y))
    except TooManyRegionsError:
        return None
    if regions is None:
        return None
    rng = generator_from(options.random_state)
    seed = int.from_bytes(rng.bytes(4), "little")
    logs, wrong = [], []
    for member in range(len(normal)):
        found = normal_probability(
            regions,
            torch.as_tensor(normal.mean[member]) - torch.from_numpy(y),
            torch.as_tensor(normal.cholesky[member]),
            n_points=options.n_samples,
            seed=seed,
        )
        logs.append(found[0] + log_weights[member])
        wrong.append(found[1] * log_weights[member].exp())
    route: Route = "quadrature" if pair.d <= 5 else "monte carlo"
    return torch.logsumexp(torch.stack(logs), 0).numpy(), torch.stack(wrong).sum(0).numpy(), route


def _normal_errors(
    pair: Several, rule: JointRule
) -> tuple[MultivariateNormal, Tensor, Floats] | None:
    """ŷ as normal members (M, N) with log-weights, widened by the data's noise about y."""
    model = _as_normal(pair.model)
    if model is None:
        return None
    members, log_weights = model
    if isinstance(pair.data, np.ndarray):
        return members, log_weights, pair.data
    noise = _as_normal(pair.data)
    if noise is None or len(noise[1]) > 1 or not rule.of_difference:
        return None
    return members.plus(noise[0]), log_weights, np.asarray(noise[0].mean[0])


def _as_normal(side: object) -> tuple[MultivariateNormal, Tensor] | None:
    """A side as normal members (M, N) and their log-weights."""
    if isinstance(side, JointMixture) and isinstance(side.components, MultivariateNormal):
        return side.components, torch.as_tensor(side.weights).log()
    if isinstance(side, Distribution):
        normal = side.as_normal()
        side = None if normal is None else MultivariateNormal.independent(normal)
    if not isinstance(side, MultivariateNormal):
        return None
    return MultivariateNormal(side.mean[None], side.cholesky[None]), torch.zeros(1).double()


def _share_of_known(rule: JointRule, model: Floats | Empirical, data: Floats) -> Result:
    """Of numbers that are known, or of all draws of the model."""
    if isinstance(model, np.ndarray):
        holds = rule(model, data)
        return np.where(holds, 0.0, -np.inf), np.zeros(len(data)), "closed form"
    return _of_share(rule(model.draws, data).mean(0), len(model.draws))


def _of_share(share: Floats, size: int) -> Result:
    with np.errstate(divide="ignore"):
        return np.log(share), binomial_error(share, size), "monte carlo"


def _share_of_draws(pair: Several, rule: JointRule, options: Options) -> Result:
    rng = generator_from(options.random_state)
    total = options.n_samples
    sizes = [len(side.draws) for side in pair[:2] if isinstance(side, Empirical)]
    step = max(1, _BLOCK // (pair.n * pair.d))
    held = np.zeros(pair.n)
    for start in range(0, total, step):
        n = min(step, total - start)
        held += rule(_draws(pair.model, n, rng), _draws(pair.data, n, rng)).sum(0)
    return _of_share(held / total, min([total, *sizes]))


def _draws(side: JointDistribution | Distribution | Floats, n: int, rng: Generator) -> Floats:
    if isinstance(side, np.ndarray):
        return np.broadcast_to(side, (n, *side.shape))
    if isinstance(side, Empirical):  # a draw keeps the outputs together
        return np.asarray(side.draws[rng.choice(len(side.draws), size=n)])
    return np.asarray(side.sample(n, random_state=rng))


def _side(name: str, side: Vectors) -> JointDistribution | Distribution | Floats:
    if isinstance(side, JointDistribution | Distribution):
        # in float64 and cut from any graph: errors are stated below what float32 can hold
        return side._map(lambda tensor, _: tensor.detach().cpu().double())._replace(_numpy=True)
    values = to_floats(side)
    check_finite(name, values, remedy="Leave such rows out.")
    return values


def _shape(side: JointDistribution | Distribution | Floats) -> tuple[int, ...]:
    return (*side.shape, side.n_outputs) if isinstance(side, JointDistribution) else side.shape
