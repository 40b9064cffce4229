"""The models in use: which ones, with what weights, and as one predictive distribution per row.

Selection is greedy, with replacement: starting from the best model, the one whose addition raises
the out-of-fold log-likelihood of the blended density most is added again and again (Caruana et al.,
Ensemble selection from libraries of models, 2004). Weights are the shares of the rounds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize

from accord._types import Floats, Indices
from accord.distributions import (
    Decomposed,
    Distribution,
    Mixture,
    Normal,
    StudentT,
    Transformed,
)
from accord.portfolio.components import LOWEST, NO_STRAY, Calibration, Components, Stray, mean_score
from accord.portfolio.encoding import TargetScale
from accord.portfolio.models import Model

# Of the greedy selection.
_ROUNDS = 20
# A model that brings less than this, in nats per row, is not worth its cost in prediction.
_LEAST_GAIN = 0.002
# The factor on all deviations of a blend, beside each model's own.
_COMMON_FACTOR = (math.log(0.5), math.log(2.0))
# A local tolerance can double a logarithm's spread, not more: means would grow without bound.
LARGEST_LOG_STD = 0.75
# Of what was chosen, in scaled target units: that of a Gaussian process grows with the distance by
# itself, and a multiple of it would grow beyond all reason.
LARGEST_TOLERANCE = 4.0
# What a variance is divided by at least.
LEAST_VARIANCE = 1e-300


@dataclass(frozen=True)
class Member:
    """A model of the blend: its calibration, its share, and the scale of its targets.

    ``stray`` is what it says of targets that it did not learn from
    (:mod:`accord.portfolio.gross_errors`).
    """

    name: str
    model: Model
    scale: TargetScale
    calibration: Calibration
    weight: float
    stray: Stray = NO_STRAY


@dataclass(frozen=True)
class LocalTolerance:
    """τ = max(min(max(0, h − h₀) (τ₀ + κ s), τ₁), b), a standard deviation.

    :mod:`accord.portfolio.local` says why, and how it is chosen; τ₁ is ``LARGEST_TOLERANCE``.
    ``base`` is τ₀ in scaled target units, ``relative`` κ in units of the model's own deviation s,
    ``start`` h₀: 0 begins at the median distance of a training row, log 2 at their 95 % quantile.
    """

    base: float = 0.0
    relative: float = 0.0
    start: float = 0.0

    def at(self, growth: Floats, beyond: Floats, std: Floats, unit: Floats) -> Floats:
        """At rows with this growth and this model's deviation, all (N,).

        ``unit`` is one scaled target unit in the units of the model's own target.
        """
        grown = (growth - self.start).clip(min=0.0)
        chosen = grown * (self.base * unit + self.relative * std)
        return np.asarray(np.maximum(np.minimum(chosen, LARGEST_TOLERANCE * unit), beyond * unit))


@dataclass(frozen=True)
class Prediction:
    """What one member of a blend predicts for some rows.

    ``log_unit`` is the logarithm of one scaled unit of the targets on their own axis.

    **Shape**: std and unit (N,); std is the model's own deviation after calibration.
    """

    member: Member
    part: Components
    std: Floats
    unit: Floats
    log_unit: float

    @staticmethod
    def of(member: Member, part: Components, scale: TargetScale) -> "Prediction":
        """``scale`` is that of targets on their own axis, in which τ₀ is given."""
        curve = member.calibration.variance_of_curve
        variance = curve * np.square(member.calibration.scale(part.std)) + np.square(part.mean)
        mean = part.center
        second = (part.weight * variance).sum(axis=2).mean(axis=0)
        std = np.sqrt(np.maximum(second - mean**2, 0.0))
        unit = np.ones_like(mean)
        if member.scale.transform == "log":
            median = np.exp(member.scale.center + member.scale.scale * mean)
            unit = scale.scale / (median * member.scale.scale)
        return Prediction(member, part, std, unit, math.log(scale.scale))

    def __getitem__(self, rows: Indices) -> "Prediction":
        own = {name: getattr(self, name)[rows] for name in ("part", "std", "unit")}
        return replace(self, **own)

    def local(self, tolerance: LocalTolerance, growth: Floats, beyond: Floats) -> Floats:
        tau = tolerance.at(growth, beyond, self.std, self.unit)
        if self.member.scale.transform == "log":
            return np.minimum(tau, LARGEST_LOG_STD / self.member.scale.scale)
        return tau

    def log_density(
        self,
        y: Floats,
        local: Floats | float = 0.0,
        *,
        blank: float = 0.0,
        upper: Floats | None = None,
    ) -> Floats:
        """log density of targets, per scaled unit; (N,).

        Of targets that are only known to lie between y and ``upper``, the log probability of that.
        """
        scale, part = self.member.scale, self.widened(local)
        ends = None if upper is None else scale.scaled(upper)
        density = self.member.calibration.log_density(
            part, scale.scaled(y), np.hypot(local, blank), upper=ends
        )
        known = np.ones(len(y), bool) if upper is None else y == upper
        density[known] += scale.log_slope(y[known]) + self.log_unit
        return density

    def widened(self, local: Floats | float) -> Components:
        """The components, which keep their means in target units when they are widened.

        The mean of exp(Z) grows with the variance of Z, by half of it in the exponent. That is as
        it should be where a feature says nothing, and not where a row is only far away.
        """
        part = self.part
        if self.member.scale.transform == "log":
            lower = 0.5 * self.member.scale.scale * np.square(local)
            part = replace(part, mean=part.mean - np.asarray(lower)[..., None])
        return part.with_stray(self.member.stray)


def greedy_weights(log_density: Floats, weight: Floats) -> Floats:
    """Weights of the models, which sum to 1, from their log densities of held-out rows.

    **Shape**: log_density (C, N), weight (N,) → (C,).

    >>> good, bad = np.full(50, -1.0), np.full(50, -5.0)
    >>> greedy_weights(np.stack([bad, good]), np.ones(50))
    array([0., 1.])
    """
    weights = _selected(log_density, weight)
    for model in np.argsort(weights):
        if weights[model] == 0 or weights[model] == 1:
            continue
        without = np.where(np.arange(len(weights)) == model, 0.0, weights)
        without /= without.sum()
        if (
            _score(log_density, weights, weight) - _score(log_density, without, weight)
            < _LEAST_GAIN
        ):
            weights = without
    return weights


def _selected(log_density: Floats, weight: Floats) -> Floats:
    top = log_density.max(axis=0)
    density = np.exp(log_density - top)
    counts = np.zeros(len(density))
    blend = np.zeros(density.shape[1])
    for n_chosen in range(_ROUNDS):
        trials = (blend * n_chosen + density) / (n_chosen + 1)
        with np.errstate(divide="ignore"):
            scores = [mean_score(np.log(trial) + top, weight) for trial in trials]
        best = int(np.argmax(scores))
        counts[best] += 1
        blend = trials[best]
    weights: Floats = counts / _ROUNDS
    return weights


def blended(log_density: Floats, weights: Floats) -> Floats:
    """log Σ_c w_c q_c of each row.

    **Shape**: log_density (C, N), weights (C,) → (N,).
    """
    used = weights > 0
    top = np.maximum(log_density[used].max(axis=0), LOWEST)
    mixed = weights[used] @ np.exp(log_density[used] - top)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(mixed) + top)


def _score(log_density: Floats, weights: Floats, weight: Floats) -> float:
    return mean_score(blended(log_density, weights), weight)


def blend_log_density(
    predictions: Sequence[Prediction],
    y: Floats,
    tolerance: LocalTolerance,
    growth: Floats,
    beyond: Floats,
    *,
    blank: float = 0.0,
    upper: Floats | None = None,
) -> Floats:
    """log density of targets under the blend, per scaled unit; (N,)."""
    each = [
        p.log_density(y, p.local(tolerance, growth, beyond), blank=blank, upper=upper)
        for p in predictions
    ]
    return blended(np.stack(each), np.array([p.member.weight for p in predictions]))


def blend_of(
    found: Sequence[tuple[Member, Components]],
    weights: Floats,
    scale: TargetScale,
    *,
    y: Floats,
    upper: Floats | None = None,
    row_weight: Floats,
    some: Indices,
) -> list[Prediction]:
    """Held-out rows as those with a weight predict them, once ``some`` rows have scaled them.

    **Shape**: weights (C,), one for each that was found; y, upper and row_weight (N,).
    """
    chosen = [
        Prediction.of(replace(member, weight=float(weight)), held_out, scale)
        for (member, held_out), weight in zip(found, weights, strict=True)
        if weight > 0
    ]
    members = with_common_factor(
        [p[some] for p in chosen],
        y[some],
        row_weight[some],
        upper=None if upper is None else upper[some],
    )
    return [
        Prediction.of(member, prediction.part, scale)
        for member, prediction in zip(members, chosen, strict=True)
    ]


def with_common_factor(
    predictions: Sequence[Prediction], y: Floats, weight: Floats, *, upper: Floats | None = None
) -> list[Member]:
    """The members with their deviations scaled together so that the blend is most likely.

    Models that differ make a blend wider than each of them was calibrated to be.
    """
    shares = np.array([p.member.weight for p in predictions])

    def stretched(log_factor: float) -> list[Member]:
        return [
            replace(
                p.member,
                calibration=replace(
                    p.member.calibration,
                    factor=p.member.calibration.factor * math.exp(log_factor),
                ),
            )
            for p in predictions
        ]

    def loss(log_factor: float) -> float:
        members = stretched(log_factor)
        each = [
            replace(p, member=m).log_density(y, upper=upper)
            for m, p in zip(members, predictions, strict=True)
        ]
        return -mean_score(blended(np.stack(each), shares), weight)

    found = optimize.minimize_scalar(
        loss, bounds=_COMMON_FACTOR, method="bounded", options={"xatol": 0.01}
    )
    return stretched(float(found.x))


def distribution_of(
    predictions: Sequence[Prediction],
    tolerance: LocalTolerance,
    growth: Floats,
    beyond: Floats,
    blank: Floats | float = 0.0,
) -> Distribution:
    """The blend as a distribution in the target's units, with the parts of its variance.

    ``blank`` is the deviation of rows whose features say nothing, in the scaled units of each
    member's own target: what a category does to a price may well be a factor.

    **Shape**: (N,).
    """
    curves, weights, parts = [], [], []
    for prediction in predictions:
        local = prediction.local(tolerance, growth, beyond)
        curve, weight, moments = _curves(prediction, local, blank)
        curves.append(curve)
        weights.append(weight)
        parts.append((prediction.member.weight, moments))
    mixture = Mixture(curves if len(curves) > 1 else curves[0], np.concatenate(weights))
    disagreement, distance = _parts_of_variance(parts)
    return Decomposed(mixture, disagreement, distance, limited=True)


@dataclass(frozen=True)
class _Moments:
    """Each network's mean, and the variance that the local tolerance adds; target units.

    **Shape**: mean (S, N), distance (N,).
    """

    mean: Floats
    distance: Floats


def _curves(
    prediction: Prediction, local: Floats, blank: Floats | float
) -> tuple[Distribution, Floats, _Moments]:
    """One member's curves as a distribution (S·K, N), their weights, and its moments."""
    member, part = prediction.member, prediction.widened(local)
    scale, calibration = member.scale, member.calibration
    local = np.hypot(local, blank)
    deviation = calibration.scale(part.std, local)
    weight = member.weight / part.n_members * part.weight
    n_curves, n_rows = part.n_members * part.mean.shape[2], part.mean.shape[1]
    flat = [np.moveaxis(v, 2, 1).reshape(n_curves, n_rows) for v in (weight, part.mean, deviation)]
    location, spread = scale.center + scale.scale * flat[1], scale.scale * flat[2]
    if scale.transform == "log":
        curve: Distribution = Transformed(Normal(location, spread), scale.log)
        means = np.asarray(curve.mean).reshape(part.n_members, -1, n_rows)
        mean = (np.moveaxis(part.weight, 2, 1) * means).sum(axis=1)
        # the variance of exp(Z) is proportional to expm1 of that of Z, which may be no float
        whole = np.square(spread)
        narrow = np.maximum(whole - np.square(scale.scale * local), 0.0)
        left = np.expm1(-narrow) / np.minimum(np.expm1(-whole), -LEAST_VARIANCE)
        share = 1 - np.exp(narrow - whole) * left
        added = (flat[0] * share * np.asarray(curve.variance)).sum(axis=0) / member.weight
    else:
        df = calibration.df
        curve = Normal(location, spread) if math.isinf(df) else StudentT(df, location, spread)
        mean = scale.center + scale.scale * (part.weight * part.mean).sum(axis=2)
        added = calibration.variance_of_curve * np.square(scale.scale * local)
    return curve, flat[0], _Moments(mean, added)


def _parts_of_variance(parts: list[tuple[float, _Moments]]) -> tuple[Floats, Floats]:
    """Standard deviations between networks, and from the local tolerance; (N,) each."""
    center = sum(weight * moments.mean.mean(axis=0) for weight, moments in parts)
    between = sum(
        weight * np.square(moments.mean - center).mean(axis=0) for weight, moments in parts
    )
    distance = sum(weight * moments.distance for weight, moments in parts)
    return np.sqrt(np.asarray(between)), np.sqrt(np.asarray(distance))
