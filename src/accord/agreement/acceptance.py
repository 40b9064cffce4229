"""How probable agreement is for each possible prediction, as steps.

Integrated over the data first, the probability of agreement is

    P(A) = ∫ ρ(ŷ | M) a(ŷ) dŷ,        a(ŷ) = ∫ Θ(B(ŷ, y)) ρ(y) dy.

The acceptance a(ŷ) does not depend on the model, so that training needs it only once. Written as
steps, Σ_k w_k on [lower_k, upper_k], it gives P(A) = Σ_k w_k P(lower_k ≤ ŷ ≤ upper_k): the closed
form of every family, and its gradient. For exact data, and for draws, the steps are exact. For a
distribution they differ from a(ŷ) by at most a stated error, and so does P(A), whatever the model
predicts.
"""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from accord.agreement.closed_form import (
    Known,
    Sampled,
    Side,
    Uncertain,
    log_probability_of,
    reflected,
)
from accord.agreement.intervals import INFINITY, Intervals
from accord.agreement.rules import Rule
from accord.agreement.tracing import search
from accord.distributions import Distribution

# Quantiles between which a distribution of the data is cut, as normal scores.
_SCORES = torch.linspace(-5, 5, 81, dtype=torch.float64)


@final
@dataclass(frozen=True, eq=False)
class Acceptance:
    """a(ŷ) of each row as weighted intervals.

    Args:
        intervals: where the steps are, as offsets from the middle of the data.
        log_weight: the logarithm of their heights.
        error: bound of the absolute error of a(ŷ), and so of P(A); 0 where the steps are exact.

    **Shape**: intervals and log_weight (K, n), error (n,).
    """

    intervals: Intervals
    log_weight: Tensor
    error: Tensor


def acceptance(rule: Rule, data: Side, *, among: Distribution | None = None) -> Acceptance:
    """The acceptance of predictions by a rule, given what is known of the data.

    Args:
        rule: for the rows of the data, laid out in one row; not a density rule on exact data.
        data: known, drawn or uncertain.
        among: where predictions are expected; a callable is searched for agreement there.

    **Shape**: data and ``among`` (n,).
    """
    match data:
        case Known(y):
            return _exact(rule, y, among)
        case Sampled(draws):
            equal = torch.full((len(draws), 1), 1 / len(draws), dtype=torch.float64)
            return _of_nodes(rule, draws, equal, 0.0)
        case Uncertain(law):
            return _of_law(rule, law, among)


def _exact(rule: Rule, y: Tensor, among: Distribution | None) -> Acceptance:
    allowed, error = rule.intervals(y), torch.zeros_like(y)
    if allowed is None:
        if among is None:
            raise RuntimeError(f"{rule!r} came without a place to search. Report this as a bug.")
        found = search(rule, y, among)
        if bool(found.share.any()):
            raise ValueError(
                "a callable rule must change its answer few enough times for all its intervals to "
                f"be found, got {rule!r}, whose answer was missed. Use a rule with intervals, such "
                "as Within(0.3) | ErrorInside(1.9, 2.1)."
            )
        allowed, error = found.intervals, found.error
    return _on_origin(y, allowed, torch.zeros_like(allowed.lower), error)


def _of_law(rule: Rule, law: Distribution, among: Distribution | None) -> Acceptance:
    middle = torch.as_tensor(law.quantile(0.5))
    if rule.depends_on == "prediction":
        return _exact(rule, middle, among)
    levels = torch.special.ndtr(_SCORES)
    cuts = torch.as_tensor(law.quantile(levels)).T.contiguous()
    ends = torch.as_tensor(law.quantile([0.0, 1.0])).T
    # a support that ends somewhere is cut there, too; one that does not, where it was already
    ends = torch.where(ends.isfinite(), ends, cuts[[0, -1]])
    cuts = torch.cat([ends[:1], cuts, ends[1:]])
    if rule.is_density:
        return _overlap(rule, law, cuts, middle)
    if rule.depends_on == "difference" and rule.intervals(middle) is not None:
        return _moving(rule, law, cuts, middle)
    strata = torch.cat([levels[:1], levels.diff(), 1 - levels[-1:]])
    between = torch.cat([torch.zeros(1).double(), levels, torch.ones(1).double()])
    nodes = torch.as_tensor(law.quantile((between[1:] + between[:-1]) / 2)).T.contiguous()
    # between two nodes the share of data below is wrong by half a stratum, at either end
    return _of_nodes(rule, nodes, strata[:, None], float(strata.max()))


def _of_nodes(rule: Rule, nodes: Tensor, weights: Tensor, error: float) -> Acceptance:
    """Steps from single data (J, n) with their weights (J, 1)."""
    if rule.is_density:
        raise ValueError(
            f"exact agreement must have a density of the data, got draws for {rule!r}. "
            "Use Within(tolerance), or give the data as a distribution."
        )
    allowed = rule.intervals(nodes)
    if allowed is None:
        raise ValueError(
            f"a rule about uncertain data must have intervals to be trained on, got {rule!r}. "
            "Write it with Within, ErrorInside, Inside and their like, joined by & and |; "
            "probability_of_agreement takes any callable."
        )
    n_each = len(allowed.lower)
    middle = nodes.median(0).values
    flat = Intervals(
        torch.zeros_like(middle),
        allowed.lower_bounds.flatten(0, 1),
        allowed.upper_bounds.flatten(0, 1),
        anchored=False,
        ends=allowed.ends,
    )
    log_weight = weights.log().repeat(n_each, 1).expand_as(flat.lower)
    return _on_origin(middle, flat, log_weight, torch.full_like(middle, n_each * error))


def _overlap(rule: Rule, law: Distribution, cuts: Tensor, middle: Tensor) -> Acceptance:
    """For exact agreement, a(ŷ) is the density of the data: its mean over each cell."""
    lower, upper = cuts[:-1], cuts[1:]
    mass = torch.as_tensor(law.log_interval_prob(lower, upper))
    centre = (lower + upper) / 2
    holds = torch.from_numpy(rule(centre, centre))
    height = torch.where(holds & (upper > lower), mass - (upper - lower).log(), -INFINITY)
    density = torch.as_tensor(law.log_prob(cuts)).exp()
    error = torch.maximum(density[:-1], density[1:]).sub(height.exp()).abs()
    error = torch.where(upper > lower, error, 0.0).amax(0)
    return _steps(middle, lower, upper, height, error)


def _moving(rule: Rule, law: Distribution, cuts: Tensor, middle: Tensor) -> Acceptance:
    """For a rule on ŷ − y: cells between the places where an end of the rule meets a cut."""
    allowed = rule.intervals(middle)
    if allowed is None:
        raise RuntimeError(f"{rule!r} lost its intervals. Report this as a bug.")
    offsets = torch.cat([allowed.lower_bounds, allowed.upper_bounds]) - middle
    places = (cuts[None] + offsets[:, None]).flatten(0, 1)
    # ends of empty and unbounded intervals coincide with others, which is harmless
    inner = cuts.mean(0).expand_as(places)
    edges = torch.where(places.isfinite(), places, inner).sort(dim=0).values
    lower, upper = edges[:-1], edges[1:]
    centre = _accepted(rule, law, (lower + upper) / 2)
    at_edges = _accepted(rule, law, edges)
    error = torch.maximum(at_edges[:-1].sub(centre).abs(), at_edges[1:].sub(centre).abs()).amax(0)
    height = torch.where(upper > lower, centre.log(), -INFINITY)
    far = torch.full_like(lower[:1], INFINITY)
    # beyond all edges the answer is the rule's own: yes where it has no end, no elsewhere
    filled = allowed.lower <= allowed.upper
    left = (filled & (allowed.lower == -INFINITY)).any(0)
    right = (filled & (allowed.upper == INFINITY)).any(0)
    outside = (at_edges[0] - left.double()).abs(), (at_edges[-1] - right.double()).abs()
    error = torch.maximum(error, torch.maximum(*outside))
    return _steps(
        middle,
        torch.cat([-far, lower, edges[-1:]]),
        torch.cat([edges[:1], upper, far]),
        torch.cat([left[None].double().log(), height, right[None].double().log()]),
        error,
    )


def _accepted(rule: Rule, law: Distribution, y_hat: Tensor) -> Tensor:
    """a(ŷ) for a rule on the difference: the data's probability of the intervals seen from ŷ."""
    allowed = reflected(rule, y_hat)
    if allowed is None:
        raise RuntimeError(f"{rule!r} lost its intervals. Report this as a bug.")
    return log_probability_of(law, allowed).exp()


def _steps(
    origin: Tensor, lower: Tensor, upper: Tensor, log_weight: Tensor, error: Tensor
) -> Acceptance:
    cells = Intervals(torch.zeros_like(origin), lower, upper, anchored=False, ends="either")
    return _on_origin(origin, cells, log_weight, error)


def _on_origin(origin: Tensor, allowed: Intervals, log_weight: Tensor, error: Tensor) -> Acceptance:
    """Offsets from ``origin``; steps of height 0 are empty intervals, of weight 1."""
    lower = allowed.lower if allowed.anchored else allowed.lower - origin
    upper = allowed.upper if allowed.anchored else allowed.upper - origin
    empty = (lower > upper) | (log_weight == -INFINITY)
    lower, upper = torch.where(empty, INFINITY, lower), torch.where(empty, -INFINITY, upper)
    used = ~empty.all(1)
    used[0] |= not bool(used.any())
    offsets = Intervals(origin, lower[used], upper[used], anchored=True, ends="either")
    return Acceptance(offsets, torch.where(empty, 0.0, log_weight)[used], error)
