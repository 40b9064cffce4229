"""The kernel of a family: the probability of an interval and its derivatives, without autograd."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from torch import Tensor


class Partials(NamedTuple):
    """A log-probability and its derivatives, elementwise.

    With p = F(z + h) − F(z − h), ``value`` is log p (or log p/2h), ``dz`` and ``dh`` are its partial
    derivatives, and ``ds`` is z ∂ log p/∂z + h ∂ log p/∂h, the derivative with respect to −log σ. They
    are separate because each has its own form in which nothing cancels.
    """

    value: Tensor
    dz: Tensor
    dh: Tensor
    ds: Tensor


class Kernel(ABC):
    """What the primitive needs of a family that is symmetric about 0 and has scale 1."""

    name: str
    variance: float

    @abstractmethod
    def partials(self, z: Tensor, h: Tensor, a: Tensor, b: Tensor, *, density: bool) -> Partials:
        """The kernel behind every probability of agreement, without autograd.

        Called with z ≥ 0, h ≥ 0, a = z − h and b = z + h, all four given, since each regime has the
        pair in which it is exact. Where ``density``, ``value`` and ``dh`` belong to log p/2h, which has
        the limit log f(z) for h → 0.
        """
