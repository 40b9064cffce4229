"""The route by quadrature: integrate what has no closed form, and say how well.

With uncertain data, P(A) = ∫ ρ(y) P(A | y) dy is integrated over y alone, since P(A | y) is a
closed form for every rule with intervals, and is traced for a callable. What remains is one
dimension of a smooth function; kinks and jumps are closed in on by halving.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from accord.agreement.closed_form import log_probability_of, reflected
from accord.agreement.intervals import INFINITY, Intervals
from accord.agreement.monte_carlo import binomial_error
from accord.agreement.quadrature import Integral, integrate
from accord.agreement.rule import Rule
from accord.agreement.sides import Known, Pair, Uncertain
from accord.agreement.tracing import missed, search_grid, trace_on
from accord.distributions import Distribution

_BLOCK = 2**20  # grid points traced at a time
_TRACED_RTOL = 1e-6  # every point costs a search: a traced integrand is followed less far
_TRACED_POINTS = 192  # of the grid of each of these searches
_MOST_MISSED = 0.02  # of draws: a search that misses more is left to Monte Carlo
_DRAWS = 4096  # that a traced probability is checked against
_STEPS = 8  # fixed-point steps towards a bend

Conditional = Callable[[Tensor, Tensor], Tensor]
"""(points (Q, r), indices of r rows) → log P(A | y) there."""


def log_quadrature(pair: Pair, rule: Rule) -> Integral | None:
    """log P(A) per row and its stated error.

    None where a side is given as draws, and where a callable changes its answer too often for its
    intervals to be found at every point.
    """
    match pair.model, pair.data:
        case Uncertain(law), Uncertain(noise) if rule.is_density:
            return _overlap(law, noise, rule)
        case Uncertain(law), Uncertain(noise):
            return _over_data(law, noise, rule) if _can_be_found(law, noise, rule) else None
        case Uncertain(law), Known(y) if not rule.is_density:
            allowed = rule.intervals(y)
            return _traced(rule, y, law) if allowed is None else _mass(law, allowed)
        case Known(y_hat), Uncertain(noise) if not rule.is_density:
            allowed = reflected(rule, y_hat) if rule.depends_on == "difference" else None
            if allowed is None:
                return _traced(_exchanged(rule), y_hat, noise)
            return _mass(noise, allowed)
    return None


def needs_tracing(pair: Pair, rule: Rule) -> bool:
    """Whether quadrature would have to search for the rule's intervals at every point."""
    both = isinstance(pair.model, Uncertain) and isinstance(pair.data, Uncertain)
    return both and not rule.is_density and _intervals_unknown(rule)


def _can_be_found(law: Distribution, noise: Distribution, rule: Rule) -> bool:
    """Whether a coarse search at the middle of the data sees what draws see."""
    if not _intervals_unknown(rule):
        return True
    middle = torch.as_tensor(noise.quantile(0.5))
    found = trace_on(rule, middle, search_grid(law, _TRACED_POINTS))
    _, share = missed(rule, middle, law, found, n_draws=_DRAWS)
    return bool((share <= _MOST_MISSED).all())


def _intervals_unknown(rule: Rule) -> bool:
    return rule.take([0]).intervals(torch.zeros(1, dtype=torch.float64)) is None


def _mass(law: Distribution, allowed: Intervals) -> Integral:
    """∫ of the density over the intervals, whose ends are ends of panels."""
    marks = law._landmarks(far=True)
    ends = torch.cat([allowed.lower_bounds, allowed.upper_bounds])
    edges = torch.cat([marks, ends.clamp(marks.amin(0), marks.amax(0))]).sort(dim=0).values

    def log_density(points: Tensor, rows: Tensor) -> Tensor:
        lower, upper = allowed.lower_bounds[:, rows], allowed.upper_bounds[:, rows]
        inside = ((points[:, None] >= lower) & (points[:, None] <= upper)).any(1)
        return torch.where(inside, torch.as_tensor(law[rows].log_prob(points)), -INFINITY)

    return integrate(log_density, edges)


def _traced(rule: Rule, y: Tensor, law: Distribution) -> Integral:
    """The traced probability, corrected by draws for which the rule and the intervals differ.

    Where none does, a stretch that few draws meet may still be missing: the error says so.
    """
    found = trace_on(rule, y, search_grid(law))
    log_p = log_probability_of(law, found)
    correction, share = missed(rule, y, law, found, n_draws=_DRAWS)
    corrected = torch.where(share > 0, (log_p.exp() + correction).clamp(0, 1).log(), log_p)
    error = torch.from_numpy(binomial_error(share.numpy(), _DRAWS))
    return Integral(corrected.clamp(max=0), error)


def _exchanged(rule: Rule) -> Rule:
    return Rule.from_callable(lambda y, y_hat: rule(y_hat, y), name=f"{rule}, seen from the data")


def _over_data(law: Distribution, noise: Distribution, rule: Rule) -> Integral:
    """∫ ρ(y) P(A | y) dy."""
    own, other = noise._landmarks(far=True), law._landmarks(far=False)
    if _intervals_unknown(rule):
        marks, rtol, conditional = other, _TRACED_RTOL, _searched(law, rule)
    else:
        marks, rtol, conditional = _bends(other, rule), 1e-10, _exact(law, rule)

    def log_integrand(points: Tensor, rows: Tensor) -> Tensor:
        return torch.as_tensor(noise[rows].log_prob(points)) + conditional(points, rows)

    return integrate(log_integrand, _edges(own, marks), rtol=rtol)


def _overlap(law: Distribution, noise: Distribution, rule: Rule) -> Integral:
    """∫ ρ(y | M) ρ(y) dy over the y with which y itself agrees."""

    def log_integrand(points: Tensor, rows: Tensor) -> Tensor:
        agrees = torch.from_numpy(rule.take(rows.numpy())(points, points))
        log_model = torch.as_tensor(law[rows].log_prob(points))
        log_data = torch.as_tensor(noise[rows].log_prob(points))
        return torch.where(agrees, log_model + log_data, -INFINITY)

    return integrate(log_integrand, _edges(noise._landmarks(far=True), law._landmarks(far=False)))


def _edges(own: Tensor, others: Tensor) -> Tensor:
    """Panel ends: where the data are, cut where the rest of the integrand bends."""
    return torch.cat([own, others.clamp(own.amin(0), own.amax(0))]).sort(dim=0).values


def _exact(law: Distribution, rule: Rule) -> Conditional:
    def conditional(points: Tensor, rows: Tensor) -> Tensor:
        allowed = rule.take(rows.numpy()).intervals(points)
        if allowed is None:
            raise RuntimeError(f"{rule!r} lost its intervals. Report this as a bug.")
        return log_probability_of(law[rows], allowed)

    return conditional


def _searched(law: Distribution, rule: Rule) -> Conditional:
    """log P(A | y) by tracing, a block at a time."""
    grid = search_grid(law, _TRACED_POINTS)

    def conditional(points: Tensor, rows: Tensor) -> Tensor:
        index, data = rows.repeat(len(points)), points.flatten()
        step = max(1, _BLOCK // len(grid))
        parts = []
        for start in range(0, len(data), step):
            here = index[start : start + step]
            y = data[start : start + step]
            allowed = trace_on(rule.take(here.numpy()), y, grid[:, here])
            parts.append(log_probability_of(law[here], allowed))
        return torch.cat(parts).reshape(points.shape)

    return conditional


def _bends(marks: Tensor, rule: Rule) -> Tensor:
    """Data y for which a bound of the rule falls on a landmark m of the model: y = m − offset(y).

    There P(A | y) bends. Fixed-point steps solve it for bounds that follow y less than fully, such
    as ε|y| with ε < 1; where they do not settle, the points are useless but harmless.
    """
    found = [marks]
    for k, bound in enumerate(_bounds(rule, marks)):
        if not bool(bound.isfinite().any()):
            continue
        points = marks
        for _ in range(_STEPS):
            offset = _bounds(rule, points)[k] - points
            points = torch.where(offset.isfinite(), marks - offset, marks)
        found.append(points)
    return torch.cat(found)


def _bounds(rule: Rule, y: Tensor) -> Tensor:
    allowed = rule.intervals(y)
    return y[None] if allowed is None else torch.cat([allowed.lower_bounds, allowed.upper_bounds])
