"""The one primitive: the logarithm of the probability of an interval, with closed-form gradients.

Every probability of agreement with an interval rule is F((hi − μ)/σ) − F((lo − μ)/σ). It is taken
from one of three parametrisations, each of which keeps what the others would cancel:

- :func:`log_within`, a standardised centre and half-width;
- :func:`log_between`, standardised bounds, either of which may be infinite, and their distance;
- :func:`agreement_loss`, mean, variance, target and tolerance at once, as the losses need it.

Work is done in float64, also for float32 arguments, which therefore lose no digits on the way; only
the normal loss has forms of its own for float32. Largest relative error of log p against mpmath,
for |z| up to 1e4 and h from 1e-10 to 1e6 (tests/_numerics/test_accuracy.py):

    normal      4e-13 in float64; 6e-8 in float32, and 1e-5 for the loss, where 1 − p < 1e-20
    Laplace     6e-14
    logistic    6e-14
    Student-t   3e-13 up to 200 degrees of freedom, 1e-12 up to 1,000
"""

import math
from collections.abc import Sequence
from functools import cache, partial
from typing import NamedTuple

import torch
from torch import Tensor

from accord._numerics.elementwise import BLOCK, elementwise, in_blocks
from accord._numerics.kernel import HasKernel, Kernel, Partials
from accord._numerics.single import Loss, single_loss

CLOSE = (
    0.01  # half-width of an interval relative to its centre, below which it counts, not the ends
)


def log_within(family: HasKernel, z: Tensor, h: Tensor, *, density: bool = False) -> Tensor:
    """log[F(z + h) − F(z − h)], differentiable in both; where ``density``, less log 2h.

    The density form is the log-density at z of the family convolved with Uniform(−h, h); it is
    log f(z) at h = 0.
    """
    z, h = torch.broadcast_tensors(z, h)  # type: ignore[no-untyped-call]
    return elementwise(partial(_within, family.kernel, density), z, h)


def log_between(family: HasKernel, a: Tensor, b: Tensor, h: Tensor | None = None) -> Tensor:
    """log[F(b) − F(a)] for a ≤ b, either of which may be infinite; differentiable in all.

    ``h`` is (b − a)/2 as known before the bounds were standardised: from bounds that agree in most
    of their digits it would have few left.
    """
    if h is None:
        h = 0.5 * torch.where(a == b, 0.0, b - a)
    a, b, h = torch.broadcast_tensors(a, b, h)  # type: ignore[no-untyped-call]
    return elementwise(partial(_between, family.kernel), a, b, h)


def agreement_loss(
    family: HasKernel, mu: Tensor, var: Tensor, t: Tensor, eps: Tensor, *, density: bool
) -> Tensor:
    """−log P(|ŷ − t| ≤ ε) for ŷ of mean μ and variance var > 0; where ``density``, plus log 2ε.

    Elements with ε = 0 are in density form always: it is the negative log-likelihood, where −log P
    is infinite.
    """
    tensors = torch.broadcast_tensors(mu, var, t, eps)  # type: ignore[no-untyped-call]
    return elementwise(partial(_agreement, family.kernel, density), *tensors)


def log_agreement(
    family: HasKernel, mu: Tensor, var: Tensor, t: Tensor, eps: Tensor, *, density: bool
) -> Tensor:
    """Minus :func:`agreement_loss`."""
    return -agreement_loss(family, mu, var, t, eps, density=density)


class AgreementSlopes(NamedTuple):
    """An agreement loss and its derivatives by μ, var and ε; that by t is −mu."""

    loss: Tensor
    mu: Tensor
    var: Tensor
    eps: Tensor | None


def agreement_slopes(
    family: HasKernel,
    mu: Tensor,
    var: Tensor,
    t: Tensor,
    eps: Tensor,
    *,
    density: bool,
    by_eps: bool = False,
) -> AgreementSlopes:
    """:func:`agreement_loss` with its derivatives, for a training step that needs no autograd.

    **Shape**: all of one shape; ``eps`` may also be a single number.
    """
    kernel, inputs, wanted = family.kernel, (mu, var, t, eps), (True, True, False, by_eps)
    if _is_single(kernel, mu) and mu.numel() <= BLOCK:
        results = single_loss(inputs, density, wanted, double_loss=_double_loss(kernel))
    else:
        results = in_blocks(partial(_agreement, kernel, density), inputs, wanted)
    loss, by_mu, by_var, *more = results
    return AgreementSlopes(loss, by_mu, by_var, more[0] if more else None)


def _agreement(
    kernel: Kernel, density: bool, *inputs: Tensor, wanted: Sequence[bool]
) -> Sequence[Tensor]:
    if _is_single(kernel, inputs[0]):
        return single_loss(inputs, density, wanted, double_loss=_double_loss(kernel))
    return _in_double(kernel, inputs, density, wanted)


def _is_single(kernel: Kernel, mu: Tensor) -> bool:
    return kernel.has_single_form and mu.dtype == torch.float32 and not mu.is_mps


@cache
def _double_loss(kernel: Kernel) -> Loss:
    return partial(_in_double, kernel)


def _in_double(
    kernel: Kernel, inputs: Sequence[Tensor], density: bool, wanted: Sequence[bool]
) -> list[Tensor]:
    mu, var, t, eps = inputs
    kind = _working(mu)
    eps = eps.to(kind)
    error, rate = t.to(kind, copy=True).sub_(mu), var.to(kind, copy=True).rsqrt_()
    rate.mul_(math.sqrt(kernel.variance))  # one over the scale of the kernel
    if mu.dtype == kind:
        z, h, a, b = _standardised(t, mu, error, eps, rate)
    else:
        z, h = error.mul_(rate), rate * eps
        a, b = z - h, z + h
    out = kernel.partials(z, h, a, b, single=mu.dtype != torch.float64)
    results = [_log_probability(out, eps, rate, density=density).neg_()]
    if wanted[0] or wanted[2]:
        by_mu = out.dz.mul_(rate)
        results += [by_mu] if wanted[0] else []
    if wanted[1]:
        results += [out.ds.mul_(rate).mul_(rate).mul_(0.5 / kernel.variance)]
    if wanted[2]:
        results += [-by_mu]
    if wanted[3]:
        results += [_width_slope(out, eps, rate, density=density).neg_()]
    return results


def _within(
    kernel: Kernel, density: bool, z: Tensor, h: Tensor, *, wanted: Sequence[bool]
) -> tuple[Tensor, ...]:
    x, y = (v.expand_as(z).to(_working(z)) for v in (z, h))
    u = 1 / kernel.unit
    out = kernel.partials(u * x, u * y, u * (x - y), u * (x + y), single=z.dtype != torch.float64)
    rate = torch.full_like(x, u)
    value = _log_probability(out, y, rate, density=density)
    slopes = [out.dz.mul_(u), _width_slope(out, y, rate, density=density)]
    if not density:
        value, *slopes = _nothing_where(y == 0, value, *slopes)
    return (value, *(s for s, w in zip(slopes, wanted, strict=True) if w))


def _between(
    kernel: Kernel, a: Tensor, b: Tensor, h: Tensor, *, wanted: Sequence[bool]
) -> tuple[Tensor, ...]:
    u = 1 / kernel.unit
    lower, upper, half = (u * x.expand_as(a).to(_working(a)) for x in (a, b, h))
    z = (0.5 * (lower + upper)).nan_to_num_(0.0, torch.inf, -torch.inf)
    # where the bounds all but agree, half their distance has digits that their difference lost
    close = half < CLOSE * z.abs()
    lower, upper = torch.where(close, z - half, lower), torch.where(close, z + half, upper)
    out = kernel.partials(z, half, lower, upper, single=a.dtype != torch.float64)
    one = torch.ones_like(half)
    value = _log_probability(out, half, one, density=False)
    slopes = out.dz, _width_slope(out, half, one, density=False)
    value, dz, dh = _nothing_where(half == 0, value, *slopes)
    # as much of a slope by the bounds as does not cancel between them
    rest, by_half = torch.where(close, 0.0, dh), torch.where(close, dh, 0.0)
    ends = (dz - rest).mul_(0.5 * u), (dz + rest).mul_(0.5 * u), by_half.mul_(u)
    return (value, *(s for s, w in zip(ends, wanted, strict=True) if w))


def _standardised(
    t: Tensor, mu: Tensor, error: Tensor, eps: Tensor, rate: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """z, h, z − h and z + h, each with its own digits, from t − μ as it was rounded.

    What rounding took from t − μ (Knuth's two-sum) counts where it all but equals ±ε and both are
    many times σ.
    """
    back = error - t
    lost = ((t - (error - back)) - (mu + back)).nan_to_num_(0.0, 0.0, 0.0)
    most = torch.finfo(error.dtype).max ** 0.52  # its square overflows, but little else does
    a = (error - eps).add_(lost).mul_(rate).clamp_(-most, most)
    b = (error + eps).add_(lost).mul_(rate).clamp_(-most, most)
    return error.mul_(rate).clamp_(-most, most), (rate * eps).clamp_(max=most), a, b


def _log_probability(out: Partials, eps: Tensor, rate: Tensor, *, density: bool) -> Tensor:
    """log P, or log(P/2ε), from the kernel's log p and log(p/2h), h = rate · ε.

    Elements with ε = 0 are left in density form.
    """
    value = out.value
    if out.narrow is None:
        return value - torch.log(2 * eps) if density else value
    value = torch.where(out.narrow, value + torch.log(rate), value)
    change = ~out.narrow if density else out.narrow & (eps > 0)
    # log 1 where nothing changes: log 0 takes five times as long
    log_width = torch.log(torch.where(change, 2 * eps, 1.0))
    return value - log_width if density else value + log_width


def _width_slope(out: Partials, eps: Tensor, rate: Tensor, *, density: bool) -> Tensor:
    """The derivative of :func:`_log_probability` by ε."""
    slope = out.dh * rate
    if out.narrow is None:
        return slope - 1 / eps if density else slope
    change = ~out.narrow if density else out.narrow & (eps > 0)
    return torch.where(change, slope + (-1 if density else 1) / eps, slope)


def _nothing_where(
    empty: Tensor, value: Tensor, dz: Tensor, dh: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """log 0 where the interval is a point: no shift changes that, and any width would."""
    return (
        torch.where(empty, -torch.inf, value),
        torch.where(empty, 0.0, dz),
        torch.where(empty, torch.inf, dh),
    )


def _working(x: Tensor) -> torch.dtype:
    return torch.float32 if x.is_mps else torch.float64
