"""The predictive distribution of conformal prediction: quantiles by rank, with a guarantee."""

import warnings
from dataclasses import dataclass
from typing import Self, final

import numpy as np
import torch
from torch import Tensor

from accord._types import Floats
from accord.distributions.distribution import Pointwise, TensorMap, Variances
from accord.distributions.reshaped import Reshaped
from accord.distributions.wrapped import SameDensity

# A rank that is a whole number up to rounding is that number: 0.95 · 20 is the 19th.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Ranks:
    """Calibration scores in ascending order, with the weight that lies at or below each.

    The bound that a new score exceeds with probability at most t is the first score with at least
    (1 − t)(W + w) of weight at or below it, W being the weight of all calibration rows and w that
    of the new row, whose own score could be anything: ∞ if there is none, and 0 for t = 1.

    **Shape**: scores and weight (n,).
    """

    scores: Floats
    weight: Floats

    def bound(self, tail: Tensor, own_weight: Tensor) -> Tensor:
        """Bounds for tail probabilities ``tail``, of rows with weight ``own_weight``."""
        cumulative = torch.from_numpy(np.cumsum(self.weight)).to(tail)
        needed = (1 - tail) * (cumulative[-1] + own_weight)
        rank = torch.searchsorted(cumulative, needed * (1 - _ROUNDING))
        scores = torch.from_numpy(np.append(self.scores, np.inf)).to(tail)
        return torch.where(needed > 0, scores[rank], 0.0)


@final
class ConformalPredictive(SameDensity):
    """Quantiles that hold with a finite-sample guarantee, and a density that goes with them.

    Quantiles are calibration scores, counted outwards, times σ from μ: an interval of coverage c
    holds a new target with probability at least c, if that row and the calibration rows are
    exchangeable (or the weights are the likelihood ratio). Where too few rows were there for that,
    the quantile is infinite, with a warning.

    Conformal prediction itself says nothing finer than 1/(n + 1), and nothing beyond the last
    score. Density, cdf, moments and draws are therefore those of a smooth curve through the same
    scores, with Gaussian tails; cdf(quantile(α)) is α up to sampling error of the n scores.

    Args:
        density: The smooth curve through the scores.
        below, above: Scores that bound a new target from below (negated) and above, per output.
        share: What of a tail probability either side may use: 1, or 2 if both sides share a bound.
        own_weight: Weight of each row.

    **Shape**: that of ``density``, (N,) or (N, K); own_weight (N,) or (N, K).
    """

    _base: Reshaped

    def __init__(
        self,
        density: Reshaped,
        *,
        below: tuple[Ranks, ...],
        above: tuple[Ranks, ...],
        share: int,
        own_weight: Tensor,
    ) -> None:
        self._base, self._numpy = density, density._numpy
        self._below, self._above, self._share = below, above, share
        self._own_weight = own_weight

    def _map(self, function: TensorMap, lead: int = 0) -> Self:
        return self._replace(
            _base=self._base._map(function, lead),
            _own_weight=function(self._own_weight, lead),
        )

    def _variances(self) -> Variances:
        return self._base._variances()

    def _moments_through(self, function: Pointwise) -> tuple[Tensor, Variances]:
        return self._base._moments_through(function)

    def _moved(self, shift: Tensor, factor: Tensor) -> Self:
        return self._replace(_base=self._base._moved(shift, factor))

    def _bracket(self, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        tail = torch.minimum(p, q)
        weight = self._own_weight.to(tail)
        below, above = (
            self._base._by_column([r.bound(self._share * tail, weight) for r in ranks])
            for ranks in (self._below, self._above)
        )
        score = torch.where(p < q, -below, above)
        _warn_of_infinite(score.isinf() & (tail > 0))
        base = self._base._base
        std = base._variance().sqrt()
        quantile = base._mean() + std * score
        return quantile, quantile

    def _describe(self) -> str:
        return f"{self._base!r}, {len(self._above[0].scores)} calibration rows"


def _warn_of_infinite(infinite: Tensor) -> None:
    if bool(infinite.any()):
        share = float(infinite.double().mean())
        warnings.warn(
            f"{share:.0%} of the conformal bounds are infinite: the calibration rows are too few "
            "for this coverage. Ask for less coverage or calibrate on more rows.",
            UserWarning,
            stacklevel=2,
        )
