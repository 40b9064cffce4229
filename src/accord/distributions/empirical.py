"""Distributions by rank: among draws, and among held-out rows (conformal prediction)."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np
import torch
from torch import Tensor

from accord._checks import check_probability
from accord._numerics import student_t
from accord._types import Floats
from accord.distributions.batch import Generator, TensorMap, Values, abridged, to_floats, to_tensors
from accord.distributions.crps import crps_samples
from accord.distributions.distribution import Distribution, Pointwise, Variances
from accord.distributions.numerical import quantile_rows
from accord.distributions.reshaped import Reshaped
from accord.distributions.smoothed import Smoothable
from accord.distributions.wrapped import Clipped, SameDensity


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


# A rank that is a whole number up to rounding is that number: 0.95 · 20 is the 19th.
_ROUNDING = 1e-9
# What is left of a tail for rows unlike the held-out ones, whatever rehearsed rows needed.
_LEAST_TAIL = 0.2
# Of the chance of each of n + 1 rows to be the odd one, what is granted to anything at all; and how
# wide that is, in spreads of the targets.
_DOUBT, _ANYWHERE = 0.1, 10.0


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


@final
class RankCalibrated(SameDensity):
    """The base, its central intervals by rank among those that held-out rows needed.

    ``needed`` has, for each of n held-out rows, the coverage |2F(y) − 1| of the narrowest central
    interval of its own prediction that contains its target. For coverage c the interval in use is
    the base's with the coverage of rank ⌈(n + 1)c⌉ among them: a further row of their kind is then
    inside with probability of at least c, if the predictions of all n + 1 rows were made alike
    (cross-conformal prediction: Vovk, 2015; Barber et al., 2021). Where n is too small for that
    rank, the base's own interval is used, or the widest that a held-out row needed.

    Such rows say nothing of one that is unlike them: that they are predicted to the last digit must
    not make its interval narrow. ``rehearsed`` has the same coverages of rows that were held out
    because they are unlike the rest. ``unlike`` says of each row, from 0 to 1, how far it is to be
    treated as one of these: so far its coverage is raised to their rank, to c at least, and at most
    so far that a fifth of the tails is left.

    Quantiles move likewise: the one at level α is the lower end for c = 1 − 2α. Density, cdf,
    moments and draws are the base's; cdf(quantile(α)) is α up to the sampling error of the n rows.

    Where targets have bounds, the base is :class:`Clipped`: a target that lies on a bound, as many
    counts of 0 do, is inside an interval that reaches it, and what held-out rows needed is as true
    as before.

    What happens once in more rows than n, no held-out row can show. With the ``spread`` of the
    targets, 0.1/(n + 1) of the density is a Student-t with 3 degrees of freedom and ten times that
    spread, around the mean and also beyond bounds: a row that was thought impossible costs a large
    loss and not an infinite one. Cdf, moments and draws do not know of it.

    **Shape**: that of the base; needed (n,), rehearsed (m,); unlike, bounds and spread scalar or of
    the base's trailing shape.

    >>> from accord.distributions import Normal
    >>> too_sure = RankCalibrated(Normal([0.0], 1.0), needed=[0.7, 0.8, 0.9, 0.95, 0.99])
    >>> too_sure.interval(0.5).round(2)      # as wide as the base's with coverage 0.9
    array([[-1.64,  1.64]])
    >>> narrow = RankCalibrated(Normal([0.0, 0.0], 1.0), needed=[0.1] * 19, unlike=[0.0, 1.0])
    >>> narrow.interval(0.9).round(2)        # no narrower than the base's for a row unlike the 19
    array([[-0.13,  0.13],
           [-1.64,  1.64]])
    """

    def __init__(
        self,
        base: Distribution,
        needed: Floats,
        *,
        rehearsed: Floats | Sequence[float] = (),
        unlike: Values = 0.0,
        lower: Values = -torch.inf,
        upper: Values = torch.inf,
        spread: Values = torch.inf,
    ) -> None:
        self._needed, self._rehearsed = (
            np.sort(np.asarray(values, dtype=np.float64)) for values in (needed, rehearsed)
        )
        check_probability("needed", self._needed)
        check_probability("rehearsed", self._rehearsed)
        self._unlike = base._convert("unlike", unlike).expand(base.shape)
        self._spread = base._convert("spread", spread).expand(base.shape)
        bounds = [base._convert(n, b) for n, b in (("lower", lower), ("upper", upper))]
        anywhere = all(bool(bound.isinf().all()) for bound in bounds)
        self._base, self._numpy = base if anywhere else Clipped(base, lower, upper), base._numpy

    def _bracket(self, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        coverage = (1 - 2 * torch.minimum(p, q)).clamp(min=0)
        usual = _ranked(self._needed, coverage)
        far = _ranked(self._rehearsed, coverage)
        # a row may lie outside any interval: then nothing is known but that it should be wide
        far = torch.clamp(far, coverage, 1 - _LEAST_TAIL * (1 - coverage))
        tail = (1 - usual - self._unlike * (far - usual).clamp(min=0)) / 2
        quantile = self._base._quantile(
            torch.where(p <= q, tail, 1 - tail), torch.where(p <= q, 1 - tail, tail)
        )
        return quantile, quantile

    def _log_prob(self, value: Tensor) -> Tensor:
        share = _DOUBT / (len(self._needed) + 1)
        unit = _ANYWHERE * self._spread
        far = student_t(3.0).log_pdf((value - self._base._mean()) / unit) - unit.log()
        own = self._base._log_prob(value)
        doubted = torch.logaddexp(math.log1p(-share) + own, math.log(share) + far)
        return torch.where(self._spread.isfinite(), doubted, own)

    def _moved(self, shift: Tensor, factor: Tensor) -> Self:
        moved = self._base._moved(shift, factor)
        return self._replace(_base=moved, _spread=self._spread * factor.abs())

    def _map(self, function: TensorMap, lead: int = 0) -> Self:
        return self._replace(
            _base=self._base._map(function, lead),
            _unlike=function(self._unlike, lead),
            _spread=function(self._spread, lead),
        )

    def _describe(self) -> str:
        return f"{self._base!r}, {len(self._needed)} held-out rows"


def _ranked(needed: Floats, coverage: Tensor) -> Tensor:
    """The coverages of rank ⌈(n + 1)c⌉ among those that n rows needed, in ascending order."""
    n = len(needed)
    if not n:
        return coverage
    rank = torch.ceil((n + 1) * coverage * (1 - _ROUNDING)).long()
    found = torch.as_tensor(needed).to(coverage)[rank.clamp(1, n) - 1]
    # beyond the last rank nothing is known but the base's own shape
    found = torch.where(rank > n, torch.maximum(found, coverage), found)
    return torch.where(rank < 1, 0.0, found)
