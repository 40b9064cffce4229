"""The normal agreement loss in float32, in few and fast operations.

A training step sees small batches, so that its cost is the number of operations; large ones move
twice as fast in float32 as in float64. With z = (μ − t)/σ and h = ε/σ there are two regimes.

Thin, h small: P/2ε = φ(z)/σ · S₀, with w = zh, v = h² and Sⱼ = ½ ∫ sʲ exp(−ws − vs²/2) ds over
(−1, 1) by the rule of Gauss and Lobatto. With E the mean of that exponential at ±1, which are nodes
of the rule, the slopes follow from the ratios S₁/S₀ and, integrating by parts, E/S₀:

    ∂loss/∂μ = (z + h S₁/S₀)/σ,    ∂loss/∂var = ½ [E/S₀ − z (z + h S₁/S₀)]/var.

Thick: P or 1 − P from erfc at the two bounds, which lose no digits that float32 could hold. Bounds
so far out on one side that erfc underflows there are left to the kernel in float64.

Few elements are thin as far as the rules reach: one regime for all costs the fewest operations. Of
many elements those that can be thick are, which costs the least arithmetic.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
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
LOG2_E = 1 / math.log(2)  # powers of 2 take half the time of powers of e
LOG2_HEIGHT = torch.tensor(-0.5 * math.log2(math.pi))
IN_CACHE = 1 << 17  # numbers that stay in a processor's cache
FEW = 1 << 13  # elements whose arithmetic costs less than the calls
THIN = 0.05  # of h: above it the difference of two values of erfc keeps its digits


class Nodes(NamedTuple):
    """Nodes enough for |w|, v ≤ limit: the matrices from (w, v) to exponents, and on to the S."""

    limit: float
    n_nodes: int
    exponents: Tensor
    sums: Tensor


# The limit by number of nodes: loss and slopes, these by σ and σ² as units, are within 6e-8, times
# the limit where it is above 1, which is what rounding the exponents does to them.
LIMITS = {5: 0.2, 6: 0.5, 7: 1, 8: 2, 9: 3, 10: 4}
# Where the density is wanted, P may also be so close to 1 that its logarithm has no digits left.
DENSITY_LIMITS = LIMITS | {11: 7, 12: 10, 13: 12, 14: 16, 15: 18, 16: 22, 17: 24}
DENSITY_LIMITS |= {18: 28, 19: 32, 20: 36, 21: 40, 22: 48, 24: 56, 25: 64}


@cache
def _rules(device: torch.device, density: bool) -> tuple[Nodes, ...]:
    limits = DENSITY_LIMITS if density else LIMITS
    with torch.inference_mode(False):  # made in training, they must serve autograd too
        return tuple(_rule(*x, device) for x in limits.items())


def _rule(n_nodes: int, limit: float, device: torch.device) -> Nodes:
    """``sums`` gives S₀, S₁, S₂ and E/2, all over √2π."""
    polynomial = np.polynomial.Legendre.basis(n_nodes - 1)
    s = np.array([-1, *polynomial.deriv().roots(), 1])
    weight = 1 / (n_nodes * (n_nodes - 1) * polynomial(s) ** 2)
    sums = np.stack([weight, weight * s, weight * s**2, (abs(s) == 1) / 4]) / math.sqrt(2 * math.pi)
    exponents = np.stack([-s, -0.5 * s**2], axis=1) * LOG2_E
    return Nodes(limit, n_nodes, *(torch.tensor(x).float().to(device) for x in (exponents, sums)))


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
    error = mu - t
    both = torch.stack((error, eps if eps.ndim else eps.expand_as(error))).div_(var)
    products = both * eps
    rules = _rules(var.device, density)
    thickest = THIN**2 if many else math.inf
    rule = _fitting_rule(products, rules, thickest)
    if rule is None:
        limits = rules[-1].limit, min(rules[-1].limit, thickest)
        return _mixed_loss(inputs, products, limits, density, wanted, double_loss)
    s0, s1, s2, ends = _sums(rule, products)
    scaled, pull = both.unbind()
    if density:
        loss = torch.sqrt(var).div_(s0).log_()
    else:  # by products: ε may be as small as numbers get
        loss = torch.where(eps > 0, 2 * eps, 1.0).mul(torch.rsqrt(var)).mul_(s0).log_().neg_()
    results = [loss.addcmul_(error, scaled, value=0.5)]
    mean = s1 / s0
    by_mu = torch.addcmul(scaled, pull, mean)
    if wanted[0]:
        results.append(by_mu)
    if wanted[1]:
        results.append((ends / s0).div_(var).addcmul_(scaled, by_mu, value=-0.5))
    if wanted[2]:
        results.append(-by_mu)
    if wanted[3]:
        by_eps = (error * mean).addcmul_(s2 / s0, eps).div_(var)
        results.append(by_eps if density else by_eps.sub_(torch.where(eps > 0, 1 / eps, 0.0)))
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


def _sums(rule: Nodes, products: Tensor) -> tuple[Tensor, ...]:
    """The rule's sums, in parts small enough for the exponentials to stay in a cache."""
    flat = products.view(2, -1)
    size = rule.n_nodes * products.numel() // 2
    if size <= IN_CACHE:
        whole = rule.sums @ (rule.exponents @ flat).exp2_()
    else:
        parts = flat.chunk(math.ceil(size / IN_CACHE), dim=1)
        whole = torch.cat([rule.sums @ (rule.exponents @ x).exp2_() for x in parts], dim=1)
    return whole.view(-1, *products.shape[1:]).unbind()


def _fitting_rule(products: Tensor, rules: Sequence[Nodes], thickest: float) -> Nodes | None:
    """The smallest rule that does for all elements; None if some are not to be thin."""
    if thickest < math.inf and not products[1].amax().item() <= thickest:
        return None
    least, most = torch.aminmax(products)
    reach = max(-least.item(), most.item())
    for rule in rules:
        if reach <= rule.limit:
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
    height = torch.addcmul(LOG2_HEIGHT.to(x), x, x, value=-LOG2_E).exp2_()
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
