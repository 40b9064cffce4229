"""A distribution given as draws."""

from typing import Self, final

import numpy as np
import torch
from torch import Tensor

from accord._types import Floats
from accord.distributions.batch import Generator, TensorMap, Values, abridged, to_floats, to_tensors
from accord.distributions.crps import crps_samples
from accord.distributions.distribution import Pointwise, Variances
from accord.distributions.numerical import (
    quantile_rows,
)
from accord.distributions.smoothed import Smoothable


@final
class Empirical(Smoothable):
    """Equal weights on S draws per row: a model, or a datum, of which only samples are known.

    It has a cdf, quantiles (the smallest draw with at least that share below) and probabilities of
    intervals, but no density; ``Smoothed(Empirical(draws), tolerance)`` has one: the share of draws
    within the tolerance, per unit of y.

    The draws are joint over the rows: sampling repeats whole draws, so that the rows keep their
    dependence.

    **Shape**: draws ``(S, *shape)``.

    >>> draws = Empirical([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]])
    >>> draws.mean, draws.quantile(0.5)
    (array([ 2.5, 25. ]), array([ 2., 20.]))
    >>> draws.cdf([2.0, 35.0])
    array([0.5 , 0.75])
    """

    has_density = False

    def __init__(self, draws: Values) -> None:
        (tensor,), self._numpy = to_tensors(draws=draws)
        if not tensor.ndim:
            raise ValueError("draws must have a leading axis of draws, got a scalar. Pass a list.")
        self._draws = tensor.movedim(0, -1)  # draws last: batch axes come first in every class

    @property
    def draws(self) -> Values:
        """The draws as given, ``(S, *shape)``."""
        return self._answer(self._draws.movedim(-1, 0))

    @property
    def _reference(self) -> Tensor:
        return self._draws[..., 0]

    @property
    def _width(self) -> int:
        return self._draws.shape[-1]

    def _map(self, function: TensorMap, lead: int = 0) -> Self:
        return self._replace(_draws=function(self._draws, lead))

    def _mean(self) -> Tensor:
        return self._draws.mean(-1)

    def _variances(self) -> Variances:
        variance = self._draws.var(-1, correction=0)
        return variance, torch.zeros_like(variance), torch.zeros_like(variance)

    def _moments_through(self, function: Pointwise) -> tuple[Tensor, Variances]:
        image = self._replace(_draws=function(self._draws.movedim(-1, 0)).movedim(0, -1))
        return image._mean(), image._variances()

    def _moved(self, shift: Tensor, factor: Tensor) -> Self:
        return self._replace(_draws=shift[..., None] + factor[..., None] * self._draws)

    def _landmarks(self, *, far: bool) -> Tensor:
        """Draws have too many kinks to list; their quantiles show where they are."""
        return quantile_rows(self, tuple(k / 32 for k in range(33)))

    def _closed_crps(self, value: Floats) -> Floats:
        return crps_samples(to_floats(self._draws.movedim(-1, 0)), value)

    def _log_prob(self, value: Tensor) -> Tensor:
        raise TypeError(
            "Empirical has no density, got log_prob or pdf. "
            "Smooth it: Smoothed(Empirical(draws), tolerance)."
        )

    def _log_tail(self, value: Tensor, sign: Tensor) -> Tensor:
        reached = sign[..., None] * (value[..., None] - self._draws) >= 0
        return self._log_share(reached)

    def _log_between(self, lower: Tensor, upper: Tensor) -> Tensor:
        return self._log_share(
            (self._draws >= lower[..., None]) & (self._draws <= upper[..., None])
        )

    def _log_within(self, center: Tensor, half_width: Tensor) -> Tensor:
        return self._log_share((self._draws - center[..., None]).abs() <= half_width[..., None])

    def _log_smoothed_prob(self, value: Tensor, half_width: Tensor) -> Tensor:
        if not bool((half_width > 0).all()):
            raise ValueError(
                "tolerance must be positive where Empirical is smoothed, got 0: draws have no "
                "density of their own. Use a positive tolerance."
            )
        return self._log_within(value, half_width) - torch.log(2 * half_width)

    def _log_mean_tail(self, value: Tensor, half_width: Tensor, sign: Tensor) -> Tensor:
        """Each draw is a box: the share of it on the far side of the value, averaged."""
        distance = sign[..., None] * (value[..., None] - self._draws)
        width = half_width[..., None]
        share = torch.where(
            width > 0, ((distance / width + 1) / 2).clamp(0, 1), 1.0 * (distance >= 0)
        )
        return share.mean(-1).log()

    def _log_mean_within(self, center: Tensor, half_width: Tensor, window: Tensor) -> Tensor:
        """The length of the overlap of each draw's box with the interval, averaged."""
        distance = (self._draws - center[..., None]).abs()
        half, width = half_width[..., None], window[..., None]
        overlap = torch.minimum(distance + width, half) - torch.maximum(distance - width, -half)
        share = torch.where(width > 0, overlap.clamp(min=0) / (2 * width), 1.0 * (distance <= half))
        return share.mean(-1).log()

    def _log_mean_between(self, lower: Tensor, upper: Tensor, window: Tensor) -> Tensor:
        low, high = lower[..., None] - self._draws, upper[..., None] - self._draws
        width = window[..., None]
        overlap = torch.minimum(high, width) - torch.maximum(low, -width)
        share = torch.where(
            width > 0, overlap.clamp(min=0) / (2 * width), 1.0 * ((low <= 0) & (high >= 0))
        )
        return share.mean(-1).log()

    def _bracket(self, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        count = self._draws.shape[-1]
        # The smaller tail decides, and a level that is a whole share up to rounding is that share.
        below = torch.ceil(p * count - 1e-9)
        above = count - torch.floor(q * count + 1e-9)
        rank = torch.where(p <= q, below, above).long().clamp(1, count) - 1
        ordered = self._draws.sort(-1).values
        shape = np.broadcast_shapes(rank.shape, ordered.shape[:-1])
        spread = ordered.expand(*shape, count)
        quantile = spread.gather(-1, rank.expand(shape)[..., None])[..., 0]
        return quantile, quantile

    def _draw(self, n: int, rng: Generator) -> Tensor:
        index = torch.from_numpy(rng.choice(self._draws.shape[-1], size=n))
        return self._draws[..., index.to(self._draws.device)].movedim(-1, 0)

    def _describe(self) -> str:
        return f"{self._draws.shape[-1]} draws of shape {self.shape}, mean={abridged(self._mean())}"

    @staticmethod
    def _log_share(counted: Tensor) -> Tensor:
        return (counted.sum(-1).double() / counted.shape[-1]).log()
