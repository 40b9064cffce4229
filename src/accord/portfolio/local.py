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

Features that say nothing, as those of a category that no training row had, or of a number that is
missing where no training row lacked it, are no distance: a network or a tree answers such a row as
surely as any other. How much wider the answer must be is learnt from the training rows: each is
predicted by models that had not seen it, as if its category or number were unknown, and the spread
that joins τ is the one that makes their targets most likely. It is in the units of each model's own
target, and so a factor where that is a logarithm. A number that few training rows lack is treated
alike: from these few alone no model learns how little it knows of them.

Where no training row differs in a feature, nothing can be learnt of what it does. A row that does
is wider by what b grows towards, the targets' spread, in however many such features it differs; or
by less, if held-out rows speak against it that differ so from all rows of their fold. In tables
with hundreds of codes, many rows are the only one with a code, and it means little.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from accord._types import Bools, Floats, Indices
from accord.distributions import Distribution, RankCalibrated
from accord.portfolio.blend import (
    LocalTolerance,
    Prediction,
    blend_log_density,
    distribution_of,
)
from accord.portfolio.components import mean_score
from accord.portfolio.folds import Part, at_most
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
# How far b grows, in scaled target units, and over how much growth it does most of that.
FARTHEST_TARGET, BEYOND_GROWTH = 1.0, 20.0
# Infinitely far, where squares of distances overflow, is as good as this far.
LARGEST_GROWTH = 1e6
# Rows that a choice is made on, of each kind: more say little more.
_ROWS = 1_000
# A feature that the models do not use still counts a little: it may be that they should.
_LEAST_RELEVANCE = 0.05

# Features and the values that they have where nothing is known, (k,) each.
Blank = tuple[Indices, Floats]

# Held-out rows that say how much wider an answer without a category must be.
_BLANK_ROWS = 500
# Columns that this is learnt for, those that matter most: each takes as many predictions. One that
# changes predictions by less than this share of the strongest one's change is not worth them.
_MOST_BLANKS, _LEAST_CHANGE = 30, 0.005
# In scaled target units.
_SPREADS = np.array(
    [0, 0.015, 0.03, 0.06, 0.09, 0.12, 0.2, 0.3, 0.37, 0.44, 0.53, 0.64, 0.76, 0.9, 1.2, 1.6, 2]
)
# Of values between the ends of censored targets. With 0, these may be the very draws that a made-up
# table was made from.
_SEED_OF_DRAWS = 7_919
# A gap that more training rows have is one that models have learnt from. Fewer say at least what
# would be too wide: what makes them less likely by so many nats (as a 95 % likelihood interval).
_FEW_SEEN, _SPOKEN_AGAINST = 20, 2.0
# Features are computed alike for every row: closer than this, they are the same.
CLOSE = 1e-9


@dataclass(frozen=True)
class HeldOutEvidence:
    """Held-out rows, their predictions, and how far they are from what the models had seen.

    Where ``upper`` is above y, a target is only known to lie between the two.
    """

    predictions: Sequence[Prediction]
    y: Floats
    weight: Floats
    growth: Floats
    beyond: Floats
    upper: Floats | None = None
    blank: float = 0.0

    def score(self, tolerance: LocalTolerance) -> float:
        """Mean log density under a tolerance."""
        density = blend_log_density(
            self.predictions,
            self.y,
            tolerance,
            self.growth,
            self.beyond,
            blank=self.blank,
            upper=self.upper,
        )
        return mean_score(density, self.weight)

    def width(self, tolerance: LocalTolerance) -> float:
        """Mean local deviation of the blend's first model, in its own deviations."""
        first = self.predictions[0]
        local = first.local(tolerance, self.growth, self.beyond)
        return float(np.mean(local / np.maximum(first.std, 1e-12)))

    def distribution(self, tolerance: LocalTolerance) -> Distribution:
        """What is predicted under a tolerance."""
        return distribution_of(self.predictions, tolerance, self.growth, self.beyond, self.blank)

    def needed(self, tolerance: LocalTolerance) -> Floats:
        """The coverage of the narrowest central interval that holds each target, (N,).

        Of a censored one, that of a value drawn from its prediction between its ends: rows that are
        censored because their targets are high must not be missing among those that needed much.
        """
        dist = self.distribution(tolerance)
        probability = np.asarray(dist.cdf(self.y))
        if self.upper is not None:
            share = np.random.default_rng(_SEED_OF_DRAWS).uniform(size=len(self.y))
            probability += share * (np.asarray(dist.cdf(self.upper)) - probability)
        # rounding may put a probability just above 1
        return np.asarray(np.clip(np.abs(2 * probability - 1), 0.0, 1.0))

    def thinned(self, seed: int) -> "HeldOutEvidence":
        """A random subset where there are many rows."""
        if len(self.y) <= _ROWS:
            return self
        return self[np.sort(np.random.default_rng(seed).permutation(len(self.y))[:_ROWS])]

    def __getitem__(self, rows: Indices) -> "HeldOutEvidence":
        return HeldOutEvidence(
            [p[rows] for p in self.predictions],
            self.y[rows],
            self.weight[rows],
            self.growth[rows],
            self.beyond[rows],
            None if self.upper is None else self.upper[rows],
            self.blank,
        )


@dataclass(frozen=True)
class Levels:
    """Coverages that held-out rows needed, and which rows these are.

    **Shape**: (L,) each.
    """

    rows: Indices
    values: Floats

    @staticmethod
    def needed(
        parts: Sequence[tuple[Indices, HeldOutEvidence]], tolerance: LocalTolerance
    ) -> "Levels":
        """What the rows of some parts needed under a tolerance."""
        rows = [np.empty(0, np.intp), *(own for own, _ in parts)]
        values = [np.empty(0), *(evidence.needed(tolerance) for _, evidence in parts)]
        return Levels(np.concatenate(rows), np.concatenate(values))

    def sorted(self, *, without: Indices | None = None) -> Floats:
        """In ascending order, of all rows or of all but some.

        >>> Levels(np.array([4, 7, 7]), np.array([0.9, 0.2, 0.1])).sorted(without=np.array([4]))
        array([0.1, 0.2])
        """
        if without is None:
            return np.sort(self.values)
        return np.sort(self.values[~np.isin(self.rows, without)])


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
class Blanks:
    """How much wider rows are whose features say nothing.

    ``together`` is the spread of rows that have all of them: what one column does not tell, another
    one may have said, so that it can be more than the sum. Of rows with some, (k − 1) / (B − 1) of
    its variance is the least. The last ``watched``, in features that no training row differs in,
    are not among these B; all of them add no more than one, in equal shares.

    **Shape**: spread (B + watched,); each of features and values (k,).
    """

    features: tuple[Indices, ...] = ()
    values: tuple[Floats, ...] = ()
    spread: tuple[float, ...] = ()
    together: float = 0.0
    watched: int = 0

    def found(self, x: Floats) -> Bools:
        """Which rows have which blank; (N, d) → (N, B + watched)."""
        return rows_with(x, list(zip(self.features, self.values, strict=True)))

    def matter(self, x: Floats) -> Bools:
        """Which rows have one that widens their answer; (N, d) → (N,)."""
        widens = np.asarray(self.spread, dtype=np.float64) > 0
        return np.asarray(self.found(x)[:, widens].any(axis=1))

    def shares(self, x: Floats) -> Floats:
        """What each blank of a row has of all that they add; (N, d) → (N, B + watched).

        >>> blanks = Blanks((np.array([0]), np.array([1])), (np.zeros(1), np.ones(1)), (3.0, 1.0))
        >>> blanks.shares(np.array([[0.0, 1.0], [5.0, 1.0], [5.0, 5.0]]))
        array([[0.9, 0.1],
               [0. , 1. ],
               [0. , 0. ]])
        """
        # one that costs nothing by itself has its share where nothing else is blank
        square = self._variances(self.found(x), least=np.finfo(np.float64).eps)
        total = square.sum(axis=1, keepdims=True)
        return np.asarray(square / np.where(total > 0, total, 1.0))

    def added(self, x: Floats) -> Floats:
        """What rows get on top of their local tolerance, in scaled target units.

        **Shape**: x (N, d) → (N,).

        >>> blanks = Blanks((np.array([1]),), (np.array([7.0]),), (3.0,))
        >>> blanks.added(np.array([[0.0, 7.0], [0.0, 1.0]]))
        array([3., 0.])
        """
        found, learnt = self.found(x), self.learnt
        variances = self._variances(found)
        share = (found[:, :learnt].sum(axis=1) - 1).clip(min=0) / max(1, learnt - 1)
        square = np.maximum(variances[:, :learnt].sum(axis=1), share * self.together**2)
        return np.asarray(np.sqrt(square + variances[:, learnt:].sum(axis=1)))

    @property
    def learnt(self) -> int:
        """B, how many were learnt."""
        return len(self.spread) - self.watched

    def _variances(self, found: Bools, *, least: float = 0.0) -> Floats:
        """What each blank adds by itself, of those that are watched its share; (N, B + watched)."""
        square = found * (np.square(self.spread) + least)
        watched = found[:, self.learnt :].sum(axis=1, keepdims=True)
        square[:, self.learnt :] /= np.maximum(watched, 1)
        return np.asarray(square)


def rows_with(x: Floats, blanks: Sequence[Blank]) -> Bools:
    """Which rows have which blank; (N, d) → (N, B)."""
    found = [np.all(np.abs(x[:, at] - values) <= CLOSE, axis=1) for at, values in blanks]
    return np.stack(found, axis=1) if found else np.zeros((len(x), 0), bool)


def split_blanks(x: Floats, blanks: Sequence[Blank]) -> tuple[list[Blank], list[Blank]]:
    """Blanks that rows can teach something of, and those to watch, in features that never vary.

    **Shape**: x (N, d).

    >>> first, second = (np.array([0]), np.ones(1)), (np.array([1]), np.ones(1))
    >>> learnable, watched = split_blanks(np.array([[0.0, 0.0], [3.0, 0.0]]), [first, second])
    >>> learnable == [first], watched == [second]
    (True, True)
    """
    lacking = rows_with(x[:1], blanks).all(axis=0)
    fixed = [not np.ptp(x[:, features], axis=0).any() for features, _ in blanks]
    watch = np.array(fixed, bool) & ~lacking
    return (
        [blank for blank, own in zip(blanks, watch, strict=True) if not own],
        [blank for blank, own in zip(blanks, watch, strict=True) if own],
    )


def only_ones(x: Floats, parts: Sequence[Part]) -> list[Indices]:
    """Held-out rows of each part that differ in a feature in which all of its training rows agree.

    >>> x = np.array([[0.0, 1.0], [0.0, 2.0], [7.0, 3.0], [0.0, 4.0]])
    >>> only_ones(x, [Part(np.array([0, 1]), np.array([2, 3]))])
    [array([2])]
    """
    found = []
    for part in parts:
        agree = np.flatnonzero(np.ptp(x[part.train], axis=0) == 0)
        differ = x[np.ix_(part.test, agree)] != x[part.train[0], agree]
        found.append(part.test[differ.any(axis=1)])
    return found


# Rows that a fold's models had not seen, as predicted by these with some blanks put in.
EvidenceOf = Callable[[Indices, int, Sequence[Blank]], HeldOutEvidence]


def learn_blanks(
    blanks: Sequence[Blank],
    lacking: Bools,
    changes: Floats,
    parts: Sequence[Part],
    evidence: EvidenceOf,
    tolerance: LocalTolerance,
    *,
    watched: Sequence[Blank] = (),
    alone: Sequence[Indices] = (),
    seed: int,
) -> Blanks:
    """The spread of each blank that has a feature which the models use, and of all together.

    ``lacking`` says which training rows have which blank, (N, B): the spread is at most what these
    can bear, and if that is none, the blank is none. ``changes`` says how much predictions change
    with each feature, (d,). Of those that are ``watched``, only rows can tell that stand ``alone``
    in the same way, of each fold.
    """
    rows = [at_most(part.test, _BLANK_ROWS // len(parts), seed) for part in parts]

    def of_folds(places: Sequence[Indices], put: Sequence[Blank]) -> list[HeldOutEvidence]:
        found = [evidence(own, fold, put) for fold, own in enumerate(places) if len(own)]
        return [part for part in found if len(part.y)]

    def spread(put: Sequence[Blank]) -> float:
        return _best_spread(of_folds(rows, put), tolerance)

    spreads = []
    for blank, lacks in _relevant(blanks, lacking, changes):
        widest = spread([blank])
        if lacks.any():
            having = of_folds([part.test[lacks[part.test]] for part in parts], ())
            widest = _widest_borne(having, widest, tolerance)
        if widest or not lacks.any():
            spreads.append((blank, widest))
    together = spread([blank for blank, _ in spreads]) if len(spreads) > 1 else 0.0
    if watched:
        having, widest = of_folds(alone, ()), FARTHEST_TARGET
        if sum(len(part.y) for part in having) > _FEW_SEEN:
            widest = min(widest, _best_spread(having, tolerance))
        else:
            widest = _widest_borne(having, widest, tolerance)
        spreads += [(blank, widest) for blank in watched]
    if not spreads:
        return Blanks()
    used, spread_of = zip(*spreads, strict=True)
    features, values = (tuple(of_all) for of_all in zip(*used, strict=True))
    return Blanks(features, values, spread_of, together, len(watched))


def _relevant(
    blanks: Sequence[Blank], lacking: Bools, changes: Floats
) -> list[tuple[Blank, Bools]]:
    """Those with a feature that the models use, and that they have not learnt to do without.

    The most used come first.
    """
    pairs = [
        (blank, own) for blank, own in zip(blanks, lacking.T, strict=True) if own.sum() <= _FEW_SEEN
    ]
    used = sorted(pairs, key=lambda pair: -changes[pair[0][0]].max())[:_MOST_BLANKS]
    least = _LEAST_CHANGE * changes.max(initial=0.0)
    return [(blank, own) for blank, own in used if changes[blank[0]].max() > least]


def blanked(x: Floats, blanks: Sequence[Blank]) -> Floats:
    """Rows with the blanks' values; (N, d)."""
    rows = x.copy()
    for features, values in blanks:
        rows[:, features] = values
    return rows


def _best_spread(parts: Sequence[HeldOutEvidence], tolerance: LocalTolerance) -> float:
    return float(max(_SPREADS, key=lambda spread: _mean_score(parts, spread, tolerance)))


def _widest_borne(
    parts: Sequence[HeldOutEvidence], most: float, tolerance: LocalTolerance
) -> float:
    """The widest spread up to ``most`` that rows do not speak against: by 2 nats, all together."""
    if not parts:
        return most
    spreads: list[float] = _SPREADS.tolist()
    scores = {s: _mean_score(parts, s, tolerance) for s in spreads if s <= most}
    borne = max(scores.values()) - _SPOKEN_AGAINST / sum(len(part.y) for part in parts)
    return max(spread for spread, score in scores.items() if score >= borne)


def _mean_score(
    parts: Sequence[HeldOutEvidence], spread: float, tolerance: LocalTolerance
) -> float:
    wider = [replace(part, blank=float(spread)) for part in parts]
    return float(np.average([p.score(tolerance) for p in wider], weights=[len(p.y) for p in wider]))


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
    blanks: Blanks = Blanks()

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
        blanks = Blanks() if as_known else self.blanks
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
