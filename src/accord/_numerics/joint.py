"""The probability that jointly normal outputs lie in a region, with gradients; holds in the tails.

The errors are e = m + L z with z standard normal and L lower triangular. A region is a box, cut by
ellipsoids about 0 and by what lies outside other regions. The outputs are taken one after the other
(Genz, 1992): given e₁ … e_{k−1}, the region leaves a section [low, high] of the line to e_k, and
e_k is normal, so that

    P = ∫ φ(e₁) ∫ φ(e₂ | e₁) … P(low ≤ e_D ≤ high | e₁ … e_{D−1}) … de₂ de₁,

whose innermost integral is a closed form. The others are sums over points that are spread as a
truncated normal, each divided by the density with which it was chosen. Points and that density
count as constants: the derivative of the sum is the same sum of the integrand's derivative.

Unions and complements are kept as disjoint regions, whose probabilities add up without a
difference, so that no digits are lost. For a region holds e_k ∈ [low_k, high_k] for all k, the ends
of the k-th section depending on the errors before. Its complement is therefore made of disjoint
parts: e₁ … e_{k−1} in their sections, and e_k below (or above) its own. Each has sections again.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from accord._numerics.interval import log_between
from accord._numerics.kernel import log_sum
from accord._numerics.normal import NORMAL
from accord._types import Floats

_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)
_NARROW = 0.5  # standard deviations over which a normal density is all but an exponential one
_TAIL = -6.0  # below it, too
_REACHED = 2.0  # standard deviations of points on the way to the rim of an ellipsoid
SHIFTS = 16  # of a Sobol net; their scatter is the error of the mean
_EDGE = 2.0**-40  # keeps a Sobol point off 0 and 1, where quantiles are infinite
# Nodes per output but the last of a product rule, by the number of outputs; beyond, it has too many
# points. The second number is for an estimate of the error of the first.
_NODES = {1: (1, 1), 2: (32, 24), 3: (16, 12), 4: (10, 8), 5: (6, 5)}
_FINER = {1: (1, 1), 2: (16, 32, 64, 128, 256, 512), 3: (12, 24, 48, 64), 4: (8, 12, 16), 5: (6, 8)}
_FINE_ENOUGH = 1e-12  # error of a probability
_POINTS = 2048  # of a net, in training
_ASKED = (2048, 512)  # of nets of points that a rule is asked about: in the first region, in others
_MOST_REGIONS = 500  # that a union may have
_BLOCK = 2**21  # numbers held at a time


class Region(NamedTuple):
    """The errors that agree: lower ≤ e ≤ upper, Σ_d (e_d/axis_d)² ≤ 1 for each ellipsoid, and more.

    ``outside`` holds parts of the complements of other regions: (region, k, above), the errors
    whose first k are in that region's sections and the next is above (or below) its section.

    **Shape**: lower, upper and the semi-axes of each ellipsoid (*S, D); bounds may be infinite.
    """

    lower: Tensor
    upper: Tensor
    ellipsoids: tuple[Tensor, ...] = ()
    outside: "tuple[tuple[Region, int, bool], ...]" = ()

    def cut(self, other: "Region") -> "Region":
        """The errors that agree under both."""
        lower = torch.maximum(self.lower, other.lower)
        upper = torch.minimum(self.upper, other.upper)
        ellipsoids, outside = self.ellipsoids + other.ellipsoids, self.outside + other.outside
        return Region(lower, upper, ellipsoids, outside)

    def map(self, change: Callable[[Tensor], Tensor]) -> "Region":
        """The region with each of its tensors changed, always in the same order."""
        return Region(
            change(self.lower),
            change(self.upper),
            tuple(change(axes) for axes in self.ellipsoids),
            tuple((region.map(change), k, above) for region, k, above in self.outside),
        )

    def section(self, before: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """What is left to the next error, given those before; of width 0 where nothing is."""
        k = len(before)
        low, high = self.lower[..., k], self.upper[..., k]
        for axes in self.ellipsoids:
            spent = sum(((e / axes[..., j]) ** 2 for j, e in enumerate(before)), torch.zeros(()))
            half = axes[..., k] * (1 - spent.to(axes)).clamp(min=0).sqrt()
            low, high = torch.maximum(low, -half), torch.minimum(high, half)
        for region, face, above in self.outside:
            if k > face:
                continue
            other_low, other_high = region.section(before)
            if k == face and above:
                low = torch.maximum(low, other_high)
            elif k == face:
                high = torch.minimum(high, other_low)
            else:
                low, high = torch.maximum(low, other_low), torch.minimum(high, other_high)
        empty = ~(low < high)  # at a finite place, whatever the bounds
        return torch.where(empty, 0.0, low), torch.where(empty, 0.0, high)

    def complement(self) -> "tuple[Region, ...]":
        """All other errors, as disjoint regions."""
        free = torch.full_like(self.lower, torch.inf)
        faces = itertools.product(range(self.lower.shape[-1]), (False, True))
        return tuple(
            Region(-free, free, (), ((self, k, above),))
            for k, above in faces
            if not self._is_open(k, above)
        )

    def curves_after(self, k: int) -> bool:
        """Whether how far a later error must go depends on the k-th: on an ellipsoid's rim."""
        return any(
            face > k and (region.ellipsoids or region.curves_after(k))
            for region, face, _ in self.outside
        )

    def _is_open(self, k: int, above: bool) -> bool:
        """Whether a face is known to be at infinity: nothing is beyond it."""
        bound = self.upper if above else self.lower
        return not (self.ellipsoids or self.outside) and bool(bound[..., k].isinf().all())


class TooManyRegionsError(ValueError):
    """A union has too many parts to integrate over each."""


def check_few_regions(n_regions: int) -> None:
    """Refuse a rule that consists of too many regions."""
    if n_regions > _MOST_REGIONS:
        raise TooManyRegionsError(
            f"a rule must consist of at most {_MOST_REGIONS} regions, got {n_regions}. "
            "Join fewer rules, or write it as a callable."
        )


def cut_all(a: Sequence[Region], b: Sequence[Region]) -> tuple[Region, ...]:
    """The errors in both unions of disjoint regions, as disjoint regions."""
    check_few_regions(len(a) * len(b))
    return tuple(x.cut(y) for x in a for y in b)


class Points(NamedTuple):
    """Points of the unit cube with weights that sum to 1.

    ``groups`` of equally many points are independent estimates; 1 where the rule is not random.

    **Shape**: unit (K, D − 1), log_weight (K,).
    """

    unit: Tensor
    log_weight: Tensor
    groups: int = 1


@cache
def _gauss(n_outputs: int, n_nodes: int) -> Points:
    """A product of Gauss–Legendre rules.

    Nodes are mapped by u = 3v² − 2v³, so that √u, as at the rim of an ellipsoid, becomes smooth.
    """
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    v, w = (nodes + 1) / 2, weights / 2
    u, w = v * v * (3 - 2 * v), w * 6 * v * (1 - v)
    axes = n_outputs - 1
    unit = np.stack(np.meshgrid(*[u] * axes, indexing="ij"), -1) if axes else np.zeros((1, 0))
    product = np.prod(np.meshgrid(*[w] * axes, indexing="ij"), axis=0) if axes else np.ones(1)
    return Points(
        torch.from_numpy(unit.reshape(product.size, axes)),
        torch.from_numpy(np.log(product.reshape(-1))),
    )


@cache
def _sobol(n_outputs: int, n_points: int, seed: int = 0) -> Points:
    """About ``n_points`` points: a Sobol net, shifted at random several times."""
    unit = shifted_sobol(n_outputs - 1, n_points, np.random.default_rng(seed))
    log_weight = torch.full((len(unit),), -math.log(len(unit)), dtype=torch.float64)
    return Points(torch.from_numpy(unit[:, : n_outputs - 1]), log_weight, SHIFTS)


def shifted_sobol(
    n_axes: int, n_points: int, rng: np.random.Generator | np.random.RandomState
) -> Floats:
    """About ``n_points`` Sobol points, one net shifted at random modulo 1 `SHIFTS` times.

    **Shape**: (points, axes), the points of a shift together; at least one axis.
    """
    exponent = max(0, math.ceil(math.log2(max(1, n_points / SHIFTS))))
    from scipy.stats import qmc  # a second to import, which a prediction can do without

    net = qmc.Sobol(max(1, n_axes), scramble=False).random_base2(exponent)
    shifts = rng.uniform(size=(SHIFTS, 1, net.shape[1]))
    points = ((net + shifts) % 1.0).reshape(-1, net.shape[1])
    return np.asarray(np.clip(points, _EDGE, 1 - _EDGE))


def training_points(n_outputs: int, *, coarse: bool = False) -> Points:
    """The points with which a loss is computed; ``coarse`` ones show how exact they are."""
    if n_outputs in _NODES:
        return _gauss(n_outputs, _NODES[n_outputs][int(coarse)])
    return _sobol(n_outputs, _POINTS // 2 if coarse else _POINTS)


def normal_probability(
    regions: Sequence[Region],
    shift: Tensor,
    cholesky: Tensor,
    *,
    n_points: int = _POINTS,
    seed: int = 0,
) -> tuple[Tensor, Tensor]:
    """log P(m + L z in one of the disjoint regions) and the error of P, without a gradient.

    Up to five outputs by products of Gauss rules, refined until they agree to 1e-12 or are as fine
    as they get: the error is the difference of the last two. Beyond, by ``n_points`` of a net, with
    the standard error over its shifts.

    **Shape**: shift (N, D), cholesky (N, D, D), regions of N rows → (N,) each.
    """
    d = shift.shape[-1]
    finest = _FINER[d][-1] ** (d - 1) if d in _FINER else n_points
    step = max(1, _BLOCK // finest)
    parts = [(shift.new_full((1, len(shift)), -torch.inf), shift.new_zeros(1, len(shift)))]
    with torch.no_grad():
        for region in regions:
            found = []
            for start in range(0, len(shift), step):
                rows = slice(start, start + step)
                part = (region.map(lambda x, rows=rows: x[rows]), shift[rows], cholesky[rows])  # type: ignore[misc]
                found.append(_refined(*part) if d in _FINER else _shifted(*part, n_points, seed))
            log_p, error = (torch.cat(values)[None] for values in zip(*found, strict=True))
            parts.append((log_p, error))
    logs, errors = (torch.cat(values) for values in zip(*parts, strict=True))
    return torch.logsumexp(logs, 0), errors.sum(0)


def _refined(region: Region, shift: Tensor, cholesky: Tensor) -> tuple[Tensor, Tensor]:
    d = shift.shape[-1]
    last, error = None, shift.new_zeros(len(shift))
    for n_nodes in _FINER[d]:
        log_p = log_normal_in(region, shift, cholesky, _gauss(d, n_nodes))
        if last is not None:
            error = (log_p.exp() - last.exp()).abs()
            if float(error.max()) <= _FINE_ENOUGH:
                break
        last = log_p
    return log_p, error


def _shifted(
    region: Region, shift: Tensor, cholesky: Tensor, n_points: int, seed: int
) -> tuple[Tensor, Tensor]:
    points = _sobol(shift.shape[-1], n_points, seed)
    each = _log_by_group(region, shift, cholesky, points)
    error = each.exp().std(0) / points.groups**0.5
    return torch.logsumexp(each, 0) - math.log(points.groups), error


def standard_errors(shift: Tensor, cholesky: Tensor) -> Tensor:
    """z with m = L z: errors without scale and correlation.

    **Shape**: shift (*S, D), cholesky (*S, D, D) → (*S, D).
    """
    z: list[Tensor] = []
    for k in range(shift.shape[-1]):
        rest = shift[..., k]
        for j, value in enumerate(z):
            rest = rest - cholesky[..., k, j] * value
        z.append(rest / cholesky[..., k, k])
    return torch.stack(z, -1)


def log_normal_density(shift: Tensor, cholesky: Tensor) -> Tensor:
    """log N(0; m, L Lᵀ): the log-density of exact agreement.

    **Shape**: shift (*S, D), cholesky (*S, D, D) → (*S).
    """
    squares = standard_errors(shift, cholesky).square().sum(-1)
    log_scales = cholesky.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return -0.5 * squares - log_scales - shift.shape[-1] * _LOG_ROOT_2PI


Agrees = Callable[[Tensor], Tensor]
"""Whether errors agree, for those of each point and row: (K, *S, D) → (K, *S)."""


def log_normal_in_any(
    regions: Sequence[Region],
    shift: Tensor,
    cholesky: Tensor,
    *,
    agrees: Agrees | None = None,
    coarse: bool = False,
) -> Tensor:
    """log P(m + L z in one of the disjoint regions, and ``agrees``), differentiable, in float64.

    A function is asked at points of nets. Most of them are in the first region, which should be a
    small one around most of what agrees; the others see to it that nothing is left out. ``coarse``
    takes fewer points, which shows how exact the others are.

    **Shape**: shift (*S, D), cholesky (*S, D, D) → (*S).
    """
    d = shift.shape[-1]
    if agrees is None:
        points = training_points(d, coarse=coarse)
        logs = [log_normal_in(region, shift, cholesky, points) for region in regions]
        none = torch.full(shift.shape[:-1], -torch.inf, dtype=torch.float64, device=shift.device)
        return logs[0] if len(logs) == 1 else log_sum(torch.stack([none, *logs]))
    logs = []
    for k, region in enumerate(regions):
        n_points = _ASKED[min(k, 1)] // (2 if coarse else 1)
        points = _sobol(d + 1, n_points)  # with a coordinate for the last output
        logs.append(_log_by_group(region, shift, cholesky, points, agrees))
    return log_sum(torch.cat(logs)) - math.log(SHIFTS)


def log_normal_in(region: Region, shift: Tensor, cholesky: Tensor, points: Points) -> Tensor:
    """log P(m + L z in the region), differentiable by m and L, in float64.

    **Shape**: shift (*S, D), cholesky (*S, D, D) → (*S).
    """
    by_group = _log_by_group(region, shift, cholesky, points)
    return log_sum(by_group) - math.log(points.groups)


def _log_by_group(
    region: Region,
    shift: Tensor,
    cholesky: Tensor,
    points: Points,
    agrees: Agrees | None = None,
) -> Tensor:
    """The estimates of each group of points, (groups, *S)."""
    m, lower = shift.double(), cholesky.double()
    n, each = m.shape[-1], (-1, *(1 for _ in m.shape[:-1]))
    unit = points.unit.to(m.device)
    total = points.log_weight.to(m.device).view(each) + math.log(points.groups)
    errors: list[Tensor] = []
    z: list[Tensor] = []
    for k in range(n):
        center, scale = _conditional(m, lower, z)
        low, high = region.section(errors)
        if k == n - 1 and agrees is None:
            total = total + _log_section(low, high, center, scale)
            break
        with torch.no_grad():
            spread = _widened(scale, low, high, center) if region.curves_after(k) else scale
            e, log_chosen = _chosen(unit[:, k].view(each), low, high, center, spread)
        errors.append(e)
        z.append((e - center) / scale)
        log_density = -_LOG_ROOT_2PI - z[-1].square() / 2 - torch.log(scale)
        total = total + log_density - log_chosen
    if agrees is not None:
        total = torch.where(agrees(torch.stack(errors, -1)), total, -torch.inf)
    size = len(unit) // points.groups
    total = total.expand(len(unit), *m.shape[:-1])
    return log_sum(total.reshape(points.groups, size, *m.shape[:-1]), 1)


def _conditional(shift: Tensor, cholesky: Tensor, z: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of the next error, given the normal numbers of those before."""
    k = len(z)
    center = shift[..., k]
    for j, value in enumerate(z):
        center = center + cholesky[..., k, j] * value
    return center, cholesky[..., k, k]


def _log_section(low: Tensor, high: Tensor, center: Tensor, scale: Tensor) -> Tensor:
    """log P(low ≤ e ≤ high), whose gradient is 0 and not NaN at infinite or empty sections."""
    filled = high > low
    low, high = torch.where(filled, low, -1.0), torch.where(filled, high, 1.0)
    a, b = _standardised(low, center, scale), _standardised(high, center, scale)
    finite = low.isfinite() & high.isfinite()
    half = torch.where(finite, torch.where(finite, high - low, 2.0) / 2 / scale, torch.inf)
    shape = np.broadcast_shapes(a.shape, b.shape, half.shape)
    a, b, half = a.expand(shape), b.expand(shape), half.expand(shape)
    return torch.where(filled, log_between(NORMAL, a, b, half), -torch.inf)


def _widened(scale: Tensor, low: Tensor, high: Tensor, center: Tensor) -> Tensor:
    """A scale for points that reach the ends of a section, where it has some.

    Outside an ellipsoid the later errors are the likelier, the nearer an error is to its rim. Far
    out, points spread as the error itself would all be where it hardly matters.
    """
    reach = torch.maximum((low - center).abs(), (high - center).abs()) / _REACHED
    return torch.where(reach.isfinite(), torch.maximum(scale, reach), scale)


def _standardised(bound: Tensor, center: Tensor, scale: Tensor) -> Tensor:
    known = bound.isfinite()
    return torch.where(known, (torch.where(known, bound, 0.0) - center) / scale, bound)


def _chosen(
    u: Tensor, low: Tensor, high: Tensor, center: Tensor, scale: Tensor
) -> tuple[Tensor, Tensor]:
    """Errors in a section, spread about as they are distributed, and their log-density.

    As a truncated normal; where the section is narrow or far out, as the exponential to which the
    normal then comes down, so that no digits are lost.
    """
    a, b, width = (low - center) / scale, (high - center) / scale, (high - low) / scale
    above = a + b > 0  # reflected, so that the section's middle is not above the mean
    a, b = torch.where(above, -b, a), torch.where(above, -a, b)
    below = torch.special.ndtr(a)
    mass = torch.special.ndtr(b) - below
    normal = torch.special.ndtri(below + u * mass)
    log_normal = -_LOG_ROOT_2PI - normal.square() / 2 - torch.log(mass)
    near = (-b).clamp(min=0)
    rate = (near + torch.minimum(width, 1 / near.clamp(min=1)) / 2).clamp(min=1e-3)
    share = torch.expm1(-rate * width)
    distance = -torch.log1p(u * share) / rate
    log_exponential = torch.log(rate) - rate * distance - torch.log(-share)
    is_normal = (width > _NARROW) & (b > _TAIL)
    z = torch.where(is_normal, normal, b - distance)
    log_chosen = torch.where(is_normal, log_normal, log_exponential) - torch.log(scale)
    e = center + scale * torch.where(above, -z, z)
    empty = width <= 0
    return torch.where(empty, low, e), torch.where(empty, torch.inf, log_chosen)
