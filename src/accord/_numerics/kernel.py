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


class HasKernel(Protocol):
    """A family, as far as the primitive is concerned."""

    kernel: Kernel


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
