"""A distribution whose quantiles are moved to where held-out rows needed them."""

from typing import Self, final

import numpy as np
import torch
from torch import Tensor

from accord._checks import check_probability
from accord._types import Floats
from accord.distributions.distribution import Distribution, Pointwise, TensorMap, Variances
from accord.distributions.wrapped import SameDensity

# A rank that is a whole number up to rounding is that number: 0.95 · 20 is the 19th.
_ROUNDING = 1e-9


@final
class RankCalibrated(SameDensity):
    """The base, its central intervals by rank among those that held-out rows needed.

    ``needed`` has, for each of n held-out rows, the coverage |2F(y) − 1| of the narrowest central
    interval of its own prediction that contains its target. For coverage c the interval in use is
    the base's with the coverage of rank ⌈(n + 1)c⌉ among them: a further row of their kind is then
    inside with probability of at least c, if the predictions of all n + 1 rows were made alike
    (cross-conformal prediction: Vovk, 2015; Barber et al., 2021). Where n is too small for that
    rank, the base's own interval is used, or the widest that a held-out row needed.

    Quantiles move likewise: the one at level α is the lower end for c = 1 − 2α. Density, cdf,
    moments and draws are the base's; cdf(quantile(α)) is α up to the sampling error of the n rows.

    **Shape**: that of the base; needed (n,).

    >>> from accord.distributions import Normal
    >>> too_sure = RankCalibrated(Normal([0.0], 1.0), needed=[0.7, 0.8, 0.9, 0.95, 0.99])
    >>> too_sure.interval(0.5).round(2)      # as wide as the base's with coverage 0.9
    array([[-1.64,  1.64]])
    """

    def __init__(self, base: Distribution, needed: Floats) -> None:
        values = np.asarray(needed, dtype=np.float64)
        check_probability("needed", values)
        self._base, self._numpy = base, base._numpy
        self._needed = np.sort(values)

    def _bracket(self, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        coverage = (1 - 2 * torch.minimum(p, q)).clamp(min=0)
        tail = (1 - self._moved_coverage(coverage)) / 2
        quantile = self._base._quantile(
            torch.where(p <= q, tail, 1 - tail), torch.where(p <= q, 1 - tail, tail)
        )
        return quantile, quantile

    def _moved_coverage(self, coverage: Tensor) -> Tensor:
        n = len(self._needed)
        rank = torch.ceil((n + 1) * coverage * (1 - _ROUNDING)).long()
        needed = torch.as_tensor(self._needed).to(coverage)
        found = needed[rank.clamp(1, n) - 1]
        # beyond the last rank nothing is known but the base's own shape
        found = torch.where(rank > n, torch.maximum(found, coverage), found)
        return torch.where(rank < 1, 0.0, found)

    def _map(self, function: TensorMap, lead: int = 0) -> Self:
        return self._replace(_base=self._base._map(function, lead))

    def _variances(self) -> Variances:
        return self._base._variances()

    def _moments_through(self, function: Pointwise) -> tuple[Tensor, Variances]:
        return self._base._moments_through(function)

    def _moved(self, shift: Tensor, factor: Tensor) -> Self:
        return self._replace(_base=self._base._moved(shift, factor))

    def _describe(self) -> str:
        return f"{self._base!r}, {len(self._needed)} held-out rows"
