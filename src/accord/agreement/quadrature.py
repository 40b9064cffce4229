"""Adaptive Gauss–Kronrod quadrature of many rows at once, with a stated error.

Each row has its own panels. In every round the worst panels of each unfinished row are halved, so
kinks and jumps are closed in on by bisection while smooth stretches converge at once.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

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


def integrate(
    log_integrand: LogIntegrand,
    edges: Tensor,
    *,
    rtol: float = 1e-10,
    rounds: int = 60,
    split: int = 4,
) -> Integral:
    """∫ exp(log_integrand) between the first and the last edge of each row.

    The integrand is scaled by its largest value before it is exponentiated, so that small integrals
    keep their relative precision. Points are never placed on an edge.

    Args:
        log_integrand: vectorised over points and rows.
        edges: first panels' ends, sorted along axis 0; coinciding edges are harmless.
        rtol: relative error at which a row is finished.
        rounds: how often panels are halved at most.
        split: how many panels of a row are halved in a round.

    **Shape**: edges (E, n) → (n,).
    """
    n = edges.shape[1]
    rows = torch.arange(n)
    logs = _log_at_nodes(log_integrand, edges[:-1], edges[1:], rows)
    top = logs.amax((0, 1))
    top = torch.where(top.isfinite(), top, 0.0)
    panels = _summed(logs, edges[:-1], edges[1:], top)
    value, error = torch.empty(n, dtype=torch.float64), torch.empty(n, dtype=torch.float64)
    for round_ in range(rounds + 1):
        value[rows], error[rows] = panels.value.sum(0), panels.error.sum(0)
        open_ = error[rows] > rtol * value[rows]
        if round_ == rounds or not bool(open_.any()):
            break
        rows = rows[open_]
        panels = _Panels(*(part[:, open_] for part in panels))
        panels = _halved(panels, log_integrand, rows, top[rows], split)
    return Integral(value.log() + top, error * top.exp())


def _halved(
    panels: _Panels, log_integrand: LogIntegrand, rows: Tensor, top: Tensor, split: int
) -> _Panels:
    """The panels with the worst of each row replaced by their halves."""
    count = min(split, panels.error.shape[0])
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
