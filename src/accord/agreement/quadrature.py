"""The route by quadrature: integrate what has no closed form, and say how well.

With uncertain data, P(A) = ∫ ρ(y) P(A | y) dy is integrated over y alone, since P(A | y) is a
closed form for every rule with intervals, and is traced for a callable. What remains is one
dimension of a smooth function: Gauss and Kronrod's rule on panels, of which the worst of each row
are halved, so that kinks and jumps are closed in on while smooth stretches converge at once.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from accord.agreement.closed_form import Known, Pair, Uncertain, log_probability_of, reflected
from accord.agreement.intervals import INFINITY, Intervals
from accord.agreement.rules import Rule
from accord.agreement.tracing import missed, search, search_grid, trace_on
from accord.distributions import Distribution

# The 15-point Kronrod rule and the 7-point Gauss rule inside it (Piessens et al., QUADPACK, 1983).
_KRONROD_NODES = (
    0.991455371120812639206854697526329,
    0.949107912342758524526189684047851,
    0.864864423359769072789712788640926,
    0.741531185599394439863864773280788,
    0.586087235467691130294144838258730,
    0.405845151377397166906606412076961,
    0.207784955007898467600689403773245,
    0.0,
)
_KRONROD_WEIGHTS = (
    0.022935322010529224963732008058970,
    0.063092092629978553290700663189204,
    0.104790010322250183839876322541518,
    0.140653259715525918745189590510238,
    0.169004726639267902826583426598550,
    0.190350578064785409913256402421014,
    0.204432940075298892414161999234649,
    0.209482141084727828012999174891714,
)
_GAUSS_WEIGHTS = (
    0.129484966168869693270611432679082,
    0.279705391489276667901467771423780,
    0.381830050505118944950369775488975,
    0.417959183673469387755102040816327,
)


def _mirrored(half: tuple[float, ...], sign: int = 1) -> Tensor:
    return torch.tensor([sign * x for x in half] + list(half[-2::-1]), dtype=torch.float64)


NODES = _mirrored(_KRONROD_NODES, sign=-1)
WEIGHTS = _mirrored(_KRONROD_WEIGHTS)
_GAUSS = torch.zeros(15, dtype=torch.float64)
_GAUSS[1::2] = _mirrored(_GAUSS_WEIGHTS)

# How often panels are halved at most, and how many of a row in a round.
_ROUNDS, _WORST = 60, 4

LogIntegrand = Callable[[Tensor, Tensor], Tensor]
"""(points (Q, r), indices of r rows) → log of the integrand there, (Q, r)."""


class Integral(NamedTuple):
    """log ∫ and the stated absolute error of ∫, per row."""

    log_value: Tensor
    error: Tensor


class _Panels(NamedTuple):
    """Ends, integral and error of each panel, (P, r), in units of exp(top)."""

    lower: Tensor
    upper: Tensor
    value: Tensor
    error: Tensor


def integrate(log_integrand: LogIntegrand, edges: Tensor, *, rtol: float = 1e-10) -> Integral:
    """∫ exp(log_integrand) between the first and the last edge of each row.

    The integrand is scaled by its largest value before it is exponentiated, so that small integrals
    keep their relative precision. Points are never placed on an edge.

    Args:
        log_integrand: vectorised over points and rows.
        edges: first panels' ends, sorted along axis 0; coinciding edges are harmless.
        rtol: relative error at which a row is finished.

    **Shape**: edges (E, n) → (n,).
    """
    n = edges.shape[1]
    rows = torch.arange(n)
    logs = _log_at_nodes(log_integrand, edges[:-1], edges[1:], rows)
    top = logs.amax((0, 1))
    top = torch.where(top.isfinite(), top, 0.0)
    panels = _summed(logs, edges[:-1], edges[1:], top)
    value, error = torch.empty(n, dtype=torch.float64), torch.empty(n, dtype=torch.float64)
    for round_ in range(_ROUNDS + 1):
        value[rows], error[rows] = panels.value.sum(0), panels.error.sum(0)
        open_ = error[rows] > rtol * value[rows]
        if round_ == _ROUNDS or not bool(open_.any()):
            break
        rows = rows[open_]
        panels = _Panels(*(part[:, open_] for part in panels))
        panels = _halved(panels, log_integrand, rows, top[rows])
    return Integral(value.log() + top, error * top.exp())


def _halved(panels: _Panels, log_integrand: LogIntegrand, rows: Tensor, top: Tensor) -> _Panels:
    """The panels with the worst of each row replaced by their halves."""
    count = min(_WORST, panels.error.shape[0])
    worst = panels.error.topk(count, dim=0).indices
    lower, upper = panels.lower.gather(0, worst), panels.upper.gather(0, worst)
    middle = (lower + upper) / 2
    lower, upper = torch.cat([lower, middle]), torch.cat([middle, upper])
    fresh = _summed(_log_at_nodes(log_integrand, lower, upper, rows), lower, upper, top)
    merged = []
    for old, new in zip(panels, fresh, strict=True):
        merged.append(torch.cat([old.scatter(0, worst, new[:count]), new[count:]]))
    return _Panels(*merged)


def _log_at_nodes(
    log_integrand: LogIntegrand, lower: Tensor, upper: Tensor, rows: Tensor
) -> Tensor:
    """The log-integrand at the nodes of each panel, (15, P, r)."""
    half = (upper - lower) / 2
    points = (lower + upper) / 2 + NODES[:, None, None] * half
    return log_integrand(points.flatten(0, 1), rows).reshape(points.shape)


def _summed(logs: Tensor, lower: Tensor, upper: Tensor, top: Tensor) -> _Panels:
    """Kronrod's value of each panel and QUADPACK's estimate of its error."""
    heights, half = torch.exp(logs - top), (upper - lower) / 2
    kronrod = torch.tensordot(WEIGHTS, heights, dims=1)
    gap = (kronrod - torch.tensordot(_GAUSS, heights, dims=1)).abs()
    spread = torch.tensordot(WEIGHTS, (heights - kronrod / 2).abs(), dims=1)
    ratio = 200 * gap / torch.where(spread > 0, spread, 1.0)
    error = spread * ratio.pow(1.5).clamp(max=1.0)
    rounding = 1e-15 * kronrod
    return _Panels(lower, upper, half * kronrod, half * (torch.maximum(error, rounding)))


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
    found = search(rule, y, law)
    log_p = log_probability_of(law, found.intervals)
    corrected = (log_p.exp() + found.correction).clamp(0, 1).log()
    corrected = torch.where(found.share > 0, corrected, log_p)
    return Integral(corrected.clamp(max=0), found.error)


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
