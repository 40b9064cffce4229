"""Rows whose features say nothing, and how much wider their answer must be.

Features that say nothing, as those of a category that no training row had, or of a number that is
missing where no training row lacked it, are no distance: a network or a tree answers such a row as
surely as any other. How much wider the answer must be is learnt from the training rows: each is
predicted by models that had not seen it, as if its category or number were unknown, and the spread
that joins τ (:mod:`accord.portfolio.local`) is the one that makes their targets most likely. It is
in the units of each model's own target, and so a factor where that is a logarithm. A number that
few training rows lack is treated alike: from these few alone no model learns how little it knows
of them.

Where no training row differs in a feature, nothing can be learnt of what it does. A row that does
is wider by what b grows towards, the targets' spread, in however many such features it differs; or
by less, if held-out rows speak against it that differ so from all rows of their fold. In tables
with hundreds of codes, many rows are the only one with a code, and it means little.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from accord._types import Bools, Floats, Indices
from accord.portfolio.blend import LocalTolerance
from accord.portfolio.evidence import HeldOutEvidence
from accord.portfolio.folds import Part, at_most

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
# A gap that more training rows have is one that models have learnt from. Fewer say at least what
# would be too wide: what makes them less likely by so many nats (as a 95 % likelihood interval).
_FEW_SEEN, _SPOKEN_AGAINST = 20, 2.0
# Features are computed alike for every row: closer than this, they are the same.
CLOSE = 1e-9
# What nothing is known of at all, in scaled target units: the targets' spread.
FARTHEST_TARGET = 1.0


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


NO_BLANKS = Blanks()


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
