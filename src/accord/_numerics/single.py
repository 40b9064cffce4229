"""The normal agreement loss in float32, in few and fast operations.

A training step sees small batches, so that its cost is the number of operations; large ones move
twice as fast in float32 as in float64. With z = (μ − t)/σ and h = ε/σ there are two regimes.

Thin, h small: P/2ε = φ(z)/σ · S₀, with w = zh, v = h² and Sⱼ = ½ ∫ sʲ exp(−ws − vs²/2) ds over
(−1, 1) by the rule of Gauss and Legendre. The slopes are ratios of these sums, S₁/S₀ and S₂/S₀.

Thick: P or 1 − P from erfc at the two bounds, which lose no digits that float32 could hold. Bounds
so far out on one side that erfc underflows there are left to the kernel in float64.

Few elements are thin as far as the rules reach: one regime for all costs the fewest operations. Of
many elements those that can be thick are, which costs the least arithmetic.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

Inputs = Sequence[Tensor]
"""Mean, variance, target and tolerance of one shape; the last may be a single number."""

Loss = Callable[..., Sequence[Tensor]]
"""(inputs, density, wanted) → the loss, then its derivatives by those inputs that are wanted."""

FAR = 1e-31  # of P: below it the smaller tail may underflow and still count
END = 9.1945  # where erfc meets the smallest normal number of float32; beyond, it is slow
LEAST_TAIL, LEAST_HEIGHT = 1.18e-38, 1.1e-37  # just above erfc and exp(−x²)/√π there
HALF = torch.tensor(0.5)
LOG_HEIGHT = torch.tensor(-0.5 * math.log(math.pi))
IN_CACHE = 1 << 17  # numbers that stay in a processor's cache
FEW = 1 << 13  # elements whose arithmetic costs less than the calls
THIN = 0.05  # of h: above it the difference of two values of erfc keeps its digits


class Rule(NamedTuple):
    """Nodes enough for |w|, v ≤ limit: the matrices from (w, v) to exponents, and on to the S."""

    limit: float
    exponents: Tensor
    sums: Tensor


def _rule(limit: float, n_nodes: int) -> Rule:
    s, weight = (torch.tensor(x) for x in np.polynomial.legendre.leggauss(n_nodes))
    sums = torch.stack([s**0, s, s**2]) * weight * (0.5 / math.sqrt(2 * math.pi))
    return Rule(limit, torch.stack([-s, -0.5 * s**2], dim=1).float(), sums.float())


RULES = (_rule(0.2, 5), _rule(2.0, 8), _rule(4.0, 9))  # the S within 3e-8
# where the density is wanted, P may also be so close to 1 that its logarithm has no digits left
DENSITY_RULES = (*RULES, _rule(8.0, 11), _rule(16.0, 15), _rule(32.0, 19), _rule(64.0, 26))


def single_loss(
    inputs: Inputs, density: bool, wanted: Sequence[bool], *, double_loss: Loss
) -> list[Tensor]:
    """The loss, then its derivatives by mean, variance, target and tolerance as far as wanted.

    ``double_loss`` is the same function for whatever is beyond float32.
    """
    mu, var, t, eps = inputs
    many = var.numel() > FEW
    if many and var.ndim > 1:
        flat = single_loss(_flat(inputs), density, wanted, double_loss=double_loss)
        return [x.view(var.shape) for x in flat]
    if many and eps.amin().item() ** 2 >= THIN**2 * var.amax().item():
        return _thick_loss(inputs, density, wanted, double_loss=double_loss)
    rate = torch.rsqrt(var)
    z, h = (mu - t).mul_(rate), rate * eps
    products = torch.stack((z, h)).mul_(h)
    rules = DENSITY_RULES if density else RULES
    thickest = THIN**2 if many else math.inf
    rule = _fitting_rule(products, rules, thickest)
    if rule is None:
        limits = rules[-1].limit, min(rules[-1].limit, thickest)
        return _mixed_loss(inputs, products, limits, density, wanted, double_loss)
    s0, r1, r2 = _sums(rule, products)
    w, v = products.unbind()
    per = rate if density else torch.where(eps > 0, 2 * h, rate)
    results = [torch.log(s0 * per).addcmul_(z, z, value=-0.5).neg_()]
    if wanted[0]:
        results.append(torch.addcmul(z, h, r1).mul_(rate))
    if wanted[1]:
        slope = torch.addcmul(HALF.to(z), z, z, value=-0.5)
        results.append(slope.addcmul_(w, r1, value=-1).addcmul_(v, r2, value=-0.5).div_(var))
    if wanted[2]:
        results.append(torch.addcmul(z, h, r1).mul_(rate).neg_())
    if wanted[3]:
        results.append((z * r1).addcmul_(h, r2).mul_(rate))
        if not density:
            results[-1].sub_(torch.where(eps > 0, 1 / eps, 0.0))
    return results


def _mixed_loss(
    inputs: Inputs,
    products: Tensor,
    limits: tuple[float, float],
    density: bool,
    wanted: Sequence[bool],
    double_loss: Loss,
) -> list[Tensor]:
    """Elements with |w| and v within the limits are thin, unless all can be thick."""
    shape, inputs = inputs[0].shape, _flat(inputs)
    w, v = products.view(2, -1)
    thin = (w.abs() <= limits[0]).logical_and_(v <= limits[1]).logical_and_(v.amin() < THIN**2)
    results = [torch.empty_like(inputs[0]) for _ in range(1 + sum(wanted))]
    for mask, loss in ((thin, single_loss), (~thin, _thick_loss)):
        index = mask.nonzero().squeeze(1)
        if len(index) == len(thin):
            results = loss(inputs, density, wanted, double_loss=double_loss)
        elif len(index):
            part = loss(_rows(inputs, index), density, wanted, double_loss=double_loss)
            _amend(results, index, part)
    return [x.view(shape) for x in results]


def _sums(rule: Rule, products: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """S₀/√2π, S₁/S₀ and S₂/S₀, in parts small enough for the exponentials to stay in a cache."""
    exponents, sums = rule.exponents.to(products), rule.sums.to(products)
    flat = products.view(2, -1)
    n_parts = math.ceil(len(exponents) * flat.shape[1] / IN_CACHE)
    if n_parts == 1:
        whole = sums @ (exponents @ flat).exp_()
    else:
        parts = [sums @ (exponents @ part).exp_() for part in flat.chunk(n_parts, dim=1)]
        whole = torch.cat(parts, dim=1)
    whole = whole.view(3, *products.shape[1:])
    s0 = whole[0]
    ratios = whole[1:].div_(s0)
    return s0, ratios[0], ratios[1]


def _fitting_rule(products: Tensor, rules: Sequence[Rule], thickest: float) -> Rule | None:
    """The smallest rule that does for all elements; None if some are not to be thin."""
    if thickest < math.inf and not products[1].amax().item() <= thickest:
        return None
    least, most = _range(products)
    for rule in rules:
        if max(-least, most) <= rule.limit:
            return rule
    return None


def _thick_loss(
    inputs: Inputs, density: bool, wanted: Sequence[bool], *, double_loss: Loss
) -> list[Tensor]:
    """``outside`` is P where both bounds are on one side of μ, and 1 − P where they are ``around``.

    Choices are made by arithmetic with 0 and 1: where the two mix, torch.where is slow.
    """
    eps = inputs[3]
    lower, upper, rate = _bounds(inputs)
    (tail_a, ra), (tail_b, rb) = _tail_and_height(lower), _tail_and_height(upper)
    around = (lower * upper).sign_().neg_().clamp_(min=0)
    outside = tail_a.sub_(tail_b).addcmul_(around, tail_b, value=2).abs_().mul_(0.5)
    p = (around - outside).abs_()
    least, most = _range(p)
    log_p = torch.log(p)
    if most > 0.9:
        log_p = log_p.lerp_(torch.log1p(-outside), around)
    results = [log_p.neg_()]
    ra, rb = (r.div_(p).mul_(rate) for r in (ra, rb))  # rate/p alone may overflow
    if wanted[0]:
        results.append(ra - rb)
    if wanted[1]:
        results.append((upper * rb).addcmul_(lower, ra, value=-1).mul_(rate))
    if wanted[2]:
        results.append(rb - ra)
    if wanted[3]:
        results.append((ra + rb).neg_())
        if density:
            results[-1].add_(1 / eps)
    if density:
        results[0].add_(torch.log(2 * eps))
    if least >= FAR:
        return results
    index = (p < FAR).nonzero().squeeze(1)
    if len(index):  # not where the least is NaN
        _amend(results, index, double_loss(_rows(inputs, index), density, wanted))
    return results


def _bounds(inputs: Inputs) -> tuple[Tensor, Tensor, Tensor]:
    """(μ − t ∓ ε)/√2σ and 1/√2σ; where μ − t all but cancels ε, the difference needs float64."""
    mu, var, t, eps = inputs
    rate = var.double().mul_(2.0).rsqrt_()
    error = mu.double().sub_(t)
    lower, upper = (error - eps).mul_(rate), error.add_(eps).mul_(rate)
    return lower.float(), upper.float(), rate.float()


def _tail_and_height(bound: Tensor) -> tuple[Tensor, Tensor]:
    """erfc(|x|) and exp(−x²)/√π; beyond their range they are 0, and the bound is cut."""
    x = bound.abs()
    cut = not x.amax().item() <= END
    if cut:
        bound.clamp_(-END, END)
        x.clamp_(max=END)
    tail = torch.erfc(x)
    height = torch.addcmul(LOG_HEIGHT.to(x), x, x, value=-1).exp_()
    if cut:
        torch.threshold_(tail, LEAST_TAIL, 0.0)
        torch.threshold_(height, LEAST_HEIGHT, 0.0)
    return tail, height


def _range(x: Tensor) -> tuple[float, float]:
    least, most = torch.aminmax(x)
    return least.item(), most.item()


def _flat(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [x.reshape(-1) if x.ndim else x for x in tensors]


def _rows(tensors: Sequence[Tensor], index: Tensor) -> list[Tensor]:
    return [x.index_select(0, index) if x.ndim else x for x in tensors]


def _amend(results: list[Tensor], index: Tensor, part: Sequence[Tensor]) -> None:
    for whole, x in zip(results, part, strict=True):
        whole.index_copy_(0, index, x.to(whole.dtype))
