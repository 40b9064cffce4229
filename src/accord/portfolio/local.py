"""The local tolerance of a blend: chosen to help on shifted rows and to cost little on others.

g(x) grows with the distance to the training rows (:class:`accord.trust.Growth`), measured in the
features that the models use: a column of noise must not make rows look unusual. Errors grow far
more slowly than distances: with h = log(1 + g), the local tolerance is the standard deviation

    τ(x) = max( min( max(0, h(x) − h₀) · (τ₀ + κ s(x)), τ₁ ), b(x) ),

s(x) being the model's own deviation, and τ₁ four spreads of the targets: a deviation that grows
with the distance by itself (a Gaussian process's does) would be multiplied beyond all reason. τ₀, κ
and h₀ are chosen on parts that were held out because they are unlike the rest, by models that had
seen none of them. b(x) is 0 up to the most unusual training row; beyond it nothing can be tested,
and τ is at least b, which grows towards the targets' spread, whatever was chosen.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from accord._types import Bools, Floats, Indices
from accord.distributions import Distribution, RankCalibrated
from accord.portfolio.blanks import (
    FARTHEST_TARGET,
    NO_BLANKS,
    Blank,
    Blanks,
    EvidenceOf,
    learn_blanks,
)
from accord.portfolio.blend import LocalTolerance, Prediction, distribution_of
from accord.portfolio.evidence import HeldOutEvidence
from accord.portfolio.folds import Part
from accord.splits import groups_of_copies
from accord.trust import Growth

# Where shifted parts say how wide unusual rows must be, they need some rows.
SHIFTED_ROWS = 40

_STARTS = (0.0, math.log1p(0.5), math.log1p(1.0))
_BASES = (0.0, 0.03, 0.1, 0.3)
_RELATIVES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
# What the tolerance may cost, in mean nats, on random held-out rows.
_SLACK = 0.02
# Tolerances whose mean scores on shifted parts differ by less than this are as good.
_AS_GOOD = 0.035
# Over how much growth b does most of its own, up to the targets' spread.
BEYOND_GROWTH = 20.0
# Infinitely far, where squares of distances overflow, is as good as this far.
LARGEST_GROWTH = 1e6
# A feature that the models do not use still counts a little: it may be that they should.
_LEAST_RELEVANCE = 0.05


def growth_of(x: Floats, y: Floats, feature_weight: Floats) -> Growth:
    """Distance to some rows, of which copies count once; (N, d), (N,) and (d,)."""
    return Growth().fit(x, feature_weight=feature_weight, copies=groups_of_copies(x, y))


def growth_at(growth: Growth, values: Floats) -> tuple[Floats, Floats]:
    """h, and what a row beyond all training rows gets on top; (N,) each."""
    beyond = (values - max(growth.farthest_, 1.0)).clip(min=0.0)
    # in a dense cloud of few features a small step is many widths, and yet not far
    saturating = -np.expm1(-beyond / max(BEYOND_GROWTH, growth.extent_))
    return np.log1p(values.clip(0.0, LARGEST_GROWTH)), FARTHEST_TARGET * saturating


def unlike_usual(growth: Floats) -> Floats:
    """How far rows count as unlike the training rows, from 0 to 1; (N,).

    ``growth`` is h. 0 up to half-way between the median distance of a training row and their 95 %
    quantile, 1 beyond that quantile.

    >>> unlike_usual(np.log1p([0.0, 0.5, 0.75, 1.0, 9.0]))
    array([0. , 0. , 0.5, 1. , 1. ])
    """
    return np.asarray(np.clip(2 * np.expm1(growth) - 1, 0.0, 1.0))


def choose_tolerance(
    usual: HeldOutEvidence, shifted: Sequence[HeldOutEvidence], *, seed: int
) -> LocalTolerance:
    """The widest of the tolerances that are as good as the best on the shifted parts.

    All of them must be bearable on usual rows. A few rows decide a shifted score: where it hardly
    tells two tolerances apart, the wider one is the safer one.
    """
    if not shifted:
        return LocalTolerance(0.1, 1.0, _STARTS[1])
    usual, shifted = usual.thinned(seed), [part.thinned(seed) for part in shifted]
    allowed = usual.score(LocalTolerance()) - _SLACK
    scores: dict[LocalTolerance, float] = {}
    for values in product(_BASES, _RELATIVES, _STARTS):
        tolerance = LocalTolerance(*values)
        if usual.score(tolerance) >= allowed:
            scores[tolerance] = float(np.mean([part.score(tolerance) for part in shifted]))
    good = max(scores.values()) - _AS_GOOD
    candidates = [tolerance for tolerance, score in scores.items() if score >= good]
    return max(candidates, key=lambda t: float(np.mean([part.width(t) for part in shifted])))


def feature_weights(changes: Floats) -> Floats:
    """Weights of features in distances, from how much predictions change with each; (d,)."""
    largest = changes.max(initial=0.0)
    if largest == 0:
        return np.ones_like(changes)
    return np.asarray(np.clip(changes / largest, _LEAST_RELEVANCE, 1.0))


@dataclass(frozen=True)
class Widening:
    """How what the models say becomes an answer: wider away from the data, with intervals by rank.

    ``levels`` are the coverages that held-out rows needed, ``rehearsed`` those of rows that were
    held out because they are unlike the rest; ascending. ``spread`` is that of the targets.

    **Shape**: levels (L,), rehearsed (R,).
    """

    growth: Growth
    tolerance: LocalTolerance
    levels: Floats
    rehearsed: Floats
    spread: float
    ends: tuple[float, float] = (-math.inf, math.inf)
    blanks: Blanks = NO_BLANKS

    def answer(
        self,
        predictions: Sequence[Prediction],
        x: Floats,
        grown: tuple[Floats, Floats],
        *,
        as_known: bool = False,
    ) -> Distribution:
        """Distributions of rows, from h and b at them.

        ``as_known`` does not widen them for features that say nothing.

        **Shape**: x (n, d), each of grown (n,) → (n,).
        """
        growth, beyond = grown
        blanks = NO_BLANKS if as_known else self.blanks
        dist = distribution_of(predictions, self.tolerance, growth, beyond, blanks.added(x))
        unlike = np.maximum(unlike_usual(growth), blanks.found(x).any(axis=1))
        return self.ranked(dist, self.levels, self.rehearsed, unlike)

    def with_blanks(
        self,
        blanks: Sequence[Blank],
        lacking: Bools,
        changes: Floats,
        parts: Sequence[Part],
        evidence: EvidenceOf,
        *,
        watched: Sequence[Blank],
        alone: Sequence[Indices],
        seed: int,
    ) -> "Widening":
        """The same, having learnt how much wider rows with each of the blanks must be."""
        learnt = learn_blanks(
            blanks,
            lacking,
            changes,
            parts,
            evidence,
            self.tolerance,
            watched=watched,
            alone=alone,
            seed=seed,
        )
        return replace(self, blanks=learnt)

    def is_unusual(self, values: Floats, x: Floats) -> Bools:
        """Which rows are far from the training rows, or lack what their answer depends on.

        **Shape**: values of the growth (n,), x (n, d) → (n,).
        """
        return self.growth.is_unusual(values) | self.blanks.matter(x)

    def ranked(
        self, dist: Distribution, levels: Floats, rehearsed: Floats, unlike: Floats
    ) -> Distribution:
        """Within the bounds, and with intervals by rank among levels that other rows needed."""
        lower, upper = self.ends
        return RankCalibrated(
            dist,
            levels,
            rehearsed=rehearsed,
            unlike=unlike,
            lower=lower,
            upper=upper,
            spread=self.spread,
        )
