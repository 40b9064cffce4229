"""The normal agreement loss in float32, in few and fast operations.

A training step sees small batches, so that its cost is the number of operations; large ones move
twice as fast in float32 as in float64. With z = (μ − t)/σ, h = ε/σ, w = zh and v = h², there are
two regimes, each without cancellation.

Narrow: P/2ε = φ(z)/σ · S₀, Sⱼ = ½ ∫ sʲ exp(−ws − vs²/2) ds over (−1, 1), by the rule of Gauss and
Legendre; the slopes are ratios of the same sums, S₁/S₀ and S₂/S₀.

Wide: P from erfc of the bounds, which only need more than float32 for their own difference. Bounds
so far out that erfc underflows are left to the kernel in float64.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

Inputs = Sequence[Tensor]
"""Mean, variance, target and tolerance, (n,) each; the last may be a single number."""

Loss = Callable[..., list[Tensor] | tuple[Tensor, ...]]
"""(inputs, density, wanted) → the loss, then its derivatives by those inputs that are wanted."""

FAR = 9.0  # bounds above it, on one side of 0, are left to float64
END = 9.1945  # erfc of it is the smallest normal number of float32


class Rule(NamedTuple):
    """Nodes enough up to some |w| and v: the matrices from (w, v) to exponents, and on to the S."""

    w_limit: float
    v_limit: float
    exponents: Tensor
    sums: Tensor


def _rule(w_limit: float, v_limit: float, n_nodes: int) -> Rule:
    s, weight = (torch.tensor(x) for x in np.polynomial.legendre.leggauss(n_nodes))
    sums = torch.stack([s**0, s, s**2]) * weight * (0.5 / math.sqrt(2 * math.pi))
    return Rule(w_limit, v_limit, torch.stack([-s, -0.5 * s**2], dim=1).float(), sums.float())


# the sums and their ratios within 3e-8; at larger v, p nears 1 and its logarithm needs more digits
RULES = (_rule(0.2, 0.2, 5), _rule(2, 2, 8), _rule(4, 4, 9), _rule(12, 4, 12))


def single_loss(
    inputs: Inputs, density: bool, wanted: Sequence[bool], *, far_loss: Loss
) -> list[Tensor]:
    """The loss, then its derivatives by mean, variance, target and tolerance as far as wanted.

    The regime of most elements is computed for all, and the others are written over it.
    ``far_loss`` is the same function for bounds beyond the range of erfc in float32.
    """
    mu, var, t, eps = inputs
    rate = torch.rsqrt(var)
    z, h = (mu - t).mul_(rate), rate * eps
    products = torch.stack((z, h)).mul_(h)
    rule, beyond = _fitting_rule(products)
    if len(beyond) == 0:
        return _narrow_loss(z, h, products, rate, rule, eps, density, wanted)
    if 2 * len(beyond) <= len(z):
        products.index_fill_(1, beyond, 0.0)
        results = _narrow_loss(z, h, products, rate, rule, eps, density, wanted)
        part = _wide_loss(_rows(inputs, beyond), density, wanted, far_loss=far_loss)
        return _amended(results, beyond, part)
    results = _wide_loss(inputs, density, wanted, far_loss=far_loss)
    if len(beyond) == len(z):
        return results
    keep = torch.ones_like(z, dtype=torch.bool).index_fill_(0, beyond, False)
    index = keep.nonzero().squeeze(1)
    z, h, products, rate, eps = _rows((z, h, products, rate, eps), index)
    part = _narrow_loss(z, h, products, rate, rule, eps, density, wanted)
    return _amended(results, index, part)


def _fitting_rule(products: Tensor) -> tuple[Rule, Tensor]:
    """The smallest rule that does, and the index of the elements beyond all rules."""
    least, most = (x.item() for x in torch.aminmax(products))
    size = max(-least, most)
    for rule in RULES:
        if size <= min(rule.w_limit, rule.v_limit):
            return rule, torch.empty(0)
    w, v = products.unbind()
    beyond = ((w.abs() <= rule.w_limit) & (v <= rule.v_limit)).logical_not_()
    return rule, beyond.nonzero().squeeze(1)


def _narrow_loss(
    z: Tensor,
    h: Tensor,
    products: Tensor,
    rate: Tensor,
    rule: Rule,
    eps: Tensor,
    density: bool,
    wanted: Sequence[bool],
) -> list[Tensor]:
    exponentials = (rule.exponents.to(h) @ products).exp_()
    s0, s1, s2 = (rule.sums.to(h) @ exponentials).unbind()
    w, v = products.unbind()
    r1, r2 = s1 / s0, s2 / s0
    per = rate if density else torch.where(eps > 0, 2 * h, rate)
    results = [torch.log(s0 * per).addcmul_(z, z, value=-0.5).neg_()]
    pull = torch.addcmul(z, h, r1)  # the slope by z
    if wanted[0]:
        results.append(pull * rate)
    if wanted[1]:
        by_log_rate = (z * pull).addcmul_(w, r1).addcmul_(v, r2).sub_(1.0)
        results.append(by_log_rate.mul_(rate).mul_(rate).mul_(-0.5))
    if wanted[2]:
        results.append((pull * rate).neg_())
    if wanted[3]:
        results.append((z * r1).addcmul_(h, r2).mul_(rate))
        if not density:
            results[-1].sub_(torch.where(eps > 0, 1 / eps, 0.0))
    return results


def _wide_loss(
    inputs: Inputs, density: bool, wanted: Sequence[bool], *, far_loss: Loss
) -> list[Tensor]:
    """In units of √2 σ: a = |z| − h, b = |z| + h, and p or 1 − p is [erfc(|a|) ∓ erfc(b)]/2."""
    mu, var, t, eps = inputs
    distance = mu.double().sub_(t).abs_()
    rate = var.double().mul_(2.0).rsqrt_()
    bounds = torch.stack((distance - eps, distance + eps)).mul_(rate).float()
    outward = bounds.abs().clamp_(max=END)
    normal = outward < END  # beyond, erfc and exp underflow, slowly
    tails = torch.erfc(outward).mul_(normal)
    heights = (outward * outward).neg_().exp_().mul_(normal)
    a, above = bounds[0], bounds[0] > 0
    s = torch.sub(tails[0], torch.copysign(tails[1], a)).mul_(0.5)
    p, rate = torch.where(above, s, 1 - s), rate.float()
    slopes = heights.div_(p).mul_(rate).mul_(1 / math.sqrt(math.pi))  # f(a)/p and f(b)/p
    results = [torch.where(above, torch.log(s), torch.log1p(-s)).neg_()]
    by_mu = torch.copysign(slopes[0] - slopes[1], mu - t)
    if wanted[0]:
        results.append(by_mu)
    if wanted[1]:
        inner, outer = outward.mul_(slopes)
        results.append(outer.sub_(torch.copysign(inner, a)).mul_(rate))
    if wanted[2]:
        results.append(-by_mu)
    if wanted[3]:
        results.append((slopes[0] + slopes[1]).neg_())
    if density:
        results[0].add_(torch.log(2 * eps))
        if wanted[3]:
            results[-1].add_(1 / eps)
    if not a.amax().item() >= FAR:
        return results
    index = (a >= FAR).nonzero().squeeze(1)
    return _amended(results, index, far_loss(_rows(inputs, index), density, wanted))


def _rows(tensors: Sequence[Tensor], index: Tensor) -> list[Tensor]:
    return [x.index_select(-1, index) if x.ndim else x for x in tensors]


def _amended(results: list[Tensor], index: Tensor, part: Sequence[Tensor]) -> list[Tensor]:
    for whole, x in zip(results, part, strict=True):
        whole.index_copy_(0, index, x.to(whole.dtype))
    return results
