"""The kernel of a family: the probability of an interval and its derivatives, without autograd."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


def log1mexp(x: Tensor) -> Tensor:
    """log(1 − e^{−x}) for x ≥ 0."""
    return torch.where(x < math.log(2), torch.log(-torch.expm1(-x)), torch.log1p(-torch.exp(-x)))


def log_sinhc(x: Tensor) -> Tensor:
    """log(sinh(x)/x) for x ≥ 0."""
    u = x * x
    series = u * (1 / 6 - u * (1 / 180 - u * (1 / 2835 - u * (1 / 37800 - u / 467775))))
    return torch.where(x < 0.1, series, x + log1mexp(2 * x) - torch.log(2 * x))


def langevin(x: Tensor) -> Tensor:
    """coth(x) − 1/x for x ≥ 0."""
    u = x * x
    series = x * (1 / 3 - u * (1 / 45 - u * (2 / 945 - u * (1 / 4725 - u * 2 / 93555))))
    return torch.where(x < 0.1, series, (1 + torch.exp(-2 * x)) / -torch.expm1(-2 * x) - 1 / x)


def exp_remainder(x: Tensor) -> Tensor:
    """e^{−x} − 1 + x for x ≥ 0."""
    series = torch.zeros_like(x)
    for k in range(11, 1, -1):
        series = (1 - series) * x / k
    return torch.where(x < 0.2, x * series, torch.expm1(-x) + x)


def log_sum(log_terms: Tensor, axis: int = 0) -> Tensor:
    """log Σ exp over an axis, with zero gradient (not NaN) where every term is −inf."""
    if log_terms.shape[axis] == 1:
        return log_terms.squeeze(axis)
    top = log_terms.detach().amax(axis)
    top = torch.where(top.isfinite(), top, 0.0)
    total = (log_terms - top.unsqueeze(axis)).exp().sum(axis)
    positive = total > 0
    return torch.where(positive, torch.where(positive, total, 1.0).log() + top, -torch.inf)


Elementwise = Callable[[Tensor], Tensor]

_NARROW = 0.3  # half-width up to which the nodes below are exact for a smooth density
_LEGENDRE = np.polynomial.legendre.leggauss(10)


class Partials(NamedTuple):
    """log p for p = F(z + h) − F(z − h), and its derivatives, elementwise.

    Each has its own form in which nothing cancels. Where ``narrow``, ``value`` and ``dh`` are those
    of log(p/2h), which stay finite as h → 0, where log p does not; ``narrow=None`` means nowhere.
    """

    value: Tensor
    dz: Tensor  # ∂ log p/∂z
    dh: Tensor  # ∂ log p/∂h
    ds: Tensor  # z ∂ log p/∂z + h ∂ log p/∂h: the derivative by the logarithm of 1/scale
    narrow: Tensor | None


class Kernel(ABC):
    """The density f of a family in the unit of length in which its formulas are shortest.

    f is symmetric about 0 and falls on both sides. ``unit`` is that length in scales of the family,
    and ``variance`` is the variance of f.
    """

    unit: float = 1.0
    variance: float
    has_single_form: bool = False  # whether the forms for float32 are those of this family

    @abstractmethod
    def partials(self, z: Tensor, h: Tensor, a: Tensor, b: Tensor, *, single: bool) -> Partials:
        """The primitive, on one-dimensional tensors.

        All of z, h ≥ 0, a = z − h and b = z + h are given, since each regime has the pair in which
        it is exact; a or b may be infinite. ``single`` says that the answer is wanted to the digits
        of float32 only, whatever the precision of the arguments.
        """


class SmoothKernel(Kernel):
    """The kernel of any family with a smooth density, from log f and F alone.

    Narrow intervals by Gauss–Legendre over the density, wide ones by the difference of F on the
    side where F is small, so that the tails keep the digits that F has there. Relative error of p:
    that of F, and 1e-10 for narrow intervals of a density that is analytic within a unit of length.
    """

    def __init__(self, log_pdf: Elementwise, cdf: Elementwise, variance: float) -> None:
        self._log_pdf, self._cdf, self.variance = log_pdf, cdf, variance

    def partials(self, z: Tensor, h: Tensor, a: Tensor, b: Tensor, *, single: bool) -> Partials:
        narrow = h < _NARROW
        low, high = torch.where(z > 0, -b, a), torch.where(z > 0, -a, b)
        p = self._cdf(high) - self._cdf(low)
        fa, fb = (torch.exp(self._log_pdf(x.clamp(-1e300, 1e300))) / p for x in (a, b))
        ends = (torch.where(f > 0, x, 0.0) * f for x, f in ((b, fb), (a, fa)))
        out = torch.log(p), fb - fa, fb + fa, torch.sub(*ends)
        amend(out, narrow, self._narrow, z, h)
        return Partials(*out, narrow)

    def _narrow(self, z: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        """log(p/2h), its slopes means of the score, weighted by the density."""
        node, weight = (torch.from_numpy(x).to(z) for x in _LEGENDRE)
        with torch.inference_mode(False), torch.enable_grad():
            points = (z + node[:, None] * h).clone().detach().requires_grad_()
            logs = self._log_pdf(points)
            (score,) = torch.autograd.grad(logs.sum(), points)
        logs = logs.detach() + torch.log(weight / 2)[:, None]
        value = torch.logsumexp(logs, 0)
        share = torch.exp(logs - value)
        dz, dh = (share * score).sum(0), (share * score * node[:, None]).sum(0)
        return value, dz, dh, 1 + z * dz + h * dh


def mirrored(z: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(z, a, b) reflected at 0 where z < 0, so that a formula need only treat z ≥ 0."""
    flip = z < 0
    return z.abs(), torch.where(flip, -b, a), torch.where(flip, -a, b)


def amend(
    out: Sequence[Tensor],
    mask: Tensor,
    function: Callable[..., tuple[Tensor, ...]],
    *args: Tensor,
) -> None:
    """Write over the results, where the mask is true, those of a function made for such cases."""
    index = mask.nonzero().squeeze(1)
    if len(index) == 0:
        return
    for whole, part in zip(out, function(*(x.index_select(0, index) for x in args)), strict=True):
        whole.index_copy_(0, index, part)
