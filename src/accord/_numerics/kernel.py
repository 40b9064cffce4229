"""The kernel of a family: the probability of an interval and its derivatives, without autograd."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor


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


class NarrowForm(NamedTuple):
    """A form for narrow intervals in few operations, to the digits of float32."""

    holds: Callable[[Tensor, Tensor], Tensor]  # (z, h) → where it does
    slopes: Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor, Tensor]]  # as in Partials


class Kernel(ABC):
    """The density f of a family in the unit of length in which its formulas are shortest.

    f is symmetric about 0 and falls on both sides. ``unit`` is that length in scales of the family,
    and ``variance`` is the variance of f.
    """

    unit: float = 1.0
    variance: float
    narrow_form: NarrowForm | None = None

    @abstractmethod
    def partials(self, z: Tensor, h: Tensor, a: Tensor, b: Tensor, *, single: bool) -> Partials:
        """The primitive, on one-dimensional tensors.

        All of z, h ≥ 0, a = z − h and b = z + h are given, since each regime has the pair in which
        it is exact; a or b may be infinite. ``single`` says that the answer is wanted to the digits
        of float32 only, whatever the precision of the arguments.
        """


class HasKernel(Protocol):
    """A family, as far as the primitive is concerned."""

    kernel: Kernel


def mirrored(z: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(z, a, b) reflected at 0 where z < 0, so that a formula need only treat z ≥ 0."""
    flip = z < 0
    return z.abs(), torch.where(flip, -b, a), torch.where(flip, -a, b)


Piece = tuple[Tensor, Callable[..., tuple[Tensor, ...]]]


def piecewise(pieces: Sequence[Piece], *args: Tensor) -> tuple[Tensor, ...]:
    """Each function on the elements of its own mask; the masks are disjoint and cover everything.

    Only what a piece owns is computed, and a piece that owns everything gets the arguments whole.
    """
    out: tuple[Tensor, ...] = ()
    for mask, function in pieces:
        index = mask.nonzero().squeeze(1)
        if len(index) == len(mask):
            return function(*args)
        if len(index) == 0:
            continue
        part = function(*(x[index] for x in args))
        out = out or tuple(torch.empty_like(args[0]) for _ in part)
        for whole, x in zip(out, part, strict=True):
            whole.index_copy_(0, index, x)
    return out
