"""What a standard family (location 0, scale 1, symmetric about 0) has to know."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from accord._numerics.interval import log_between
from accord._numerics.kernel import Kernel


class StandardFamily(ABC):
    """A distribution with location 0 and scale 1, given by functions that hold in the tails.

    ``variance`` is that of scale 1, and ``kernel`` knows the probability of an interval.
    """

    name: str
    variance: float
    support: float = math.inf  # half the width of the interval outside which the density is 0
    kernel: Kernel

    @abstractmethod
    def log_pdf(self, z: Tensor) -> Tensor:
        """log f(z), differentiable."""

    @abstractmethod
    def cdf(self, z: Tensor) -> Tensor:
        """F(z), with its relative precision kept in the lower tail."""

    @abstractmethod
    def quantile(self, p: Tensor) -> Tensor:
        """The z with F(z) = p; p = 0 and 1 give the ends of the support."""

    @abstractmethod
    def sample(
        self,
        shape: Sequence[int],
        generator: torch.Generator | None = None,
        *,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str | None = None,
    ) -> Tensor:
        """Independent draws of the given shape, in that dtype and on that device."""

    def log_cdf(self, z: Tensor) -> Tensor:
        """log F(z), differentiable."""
        return log_between(self, torch.full_like(z, -torch.inf), z)

    def log_sf(self, z: Tensor) -> Tensor:
        """log(1 − F(z)), differentiable."""
        return log_between(self, z, torch.full_like(z, torch.inf))

    def __repr__(self) -> str:
        return self.name
