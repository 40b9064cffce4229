"""Features that say nothing, as those of a category that no training row had.

The same are those of a number that is missing where no training row lacked it. A network or a tree
answers such a row as surely as any other. How much wider the answer must be is learnt from the
training rows: each is predicted by models that had not seen it, as if its category or number were
unknown, and the spread b that is added to the local tolerance is the one that makes their targets
most likely.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from accord._types import Bools, Floats, Indices
from accord.portfolio.blend import LocalTolerance
from accord.portfolio.local import FARTHEST_TARGET, LEAST_RELEVANCE, HeldOutEvidence

# Features and the values that they have where nothing is known, (k,) each.
Blank = tuple[Indices, Floats]

# Held-out rows that say how much wider an answer without a category must be.
BLANK_ROWS = 500
# Columns that this is learnt for, those that matter most: each takes as many predictions.
_MOST_BLANKS = 30
# In scaled target units, as what distance adds beyond all training rows.
_SPREADS = FARTHEST_TARGET * np.array([0, 0.03, 0.06, 0.1, 0.15, 0.22, 0.32, 0.45, 0.6, 0.8, 1])
# Features are computed alike for every row: closer than this, they are the same.
CLOSE = 1e-9


@dataclass(frozen=True)
class Blanks:
    """How much wider rows are whose features say nothing.

    ``together`` is the spread of rows that have all of them: what one column does not tell, another
    one may have said, so that it can be more than the sum. Of rows with some, (k − 1) / (B − 1) of
    its variance is the least.

    **Shape**: spread (B,); each of features and values (k,).
    """

    features: tuple[Indices, ...] = ()
    values: tuple[Floats, ...] = ()
    spread: tuple[float, ...] = ()
    together: float = 0.0

    def found(self, x: Floats) -> Bools:
        """Which rows have which blank; (N, d) → (N, B)."""
        columns = [
            np.all(np.abs(x[:, features] - values) <= CLOSE, axis=1)
            for features, values in zip(self.features, self.values, strict=True)
        ]
        return np.stack(columns, axis=1) if columns else np.zeros((len(x), 0), bool)

    def shares(self, x: Floats) -> Floats:
        """What each blank of a row has of all that they add; (N, d) → (N, B).

        >>> blanks = Blanks((np.array([0]), np.array([1])), (np.zeros(1), np.ones(1)), (3.0, 1.0))
        >>> blanks.shares(np.array([[0.0, 1.0], [5.0, 1.0], [5.0, 5.0]]))
        array([[0.9, 0.1],
               [0. , 1. ],
               [0. , 0. ]])
        """
        # one that costs nothing by itself has its share where nothing else is blank
        square = self.found(x) * (np.square(self.spread) + np.finfo(np.float64).eps)
        total = square.sum(axis=1, keepdims=True)
        return np.asarray(square / np.where(total > 0, total, 1.0))

    def added(self, x: Floats, beyond: Floats) -> Floats:
        """What rows get on top of their local tolerance, in scaled target units.

        ``beyond`` is what they get for lying beyond all training rows.

        **Shape**: x (N, d), beyond (N,) → (N,).

        >>> blanks = Blanks((np.array([1]),), (np.array([7.0]),), (3.0,))
        >>> blanks.added(np.array([[0.0, 7.0], [0.0, 1.0]]), np.array([4.0, 4.0]))
        array([5., 4.])
        """
        if not self.features:
            return beyond
        found = self.found(x)
        square = found @ np.square(self.spread)
        share = (found.sum(axis=1) - 1).clip(min=0) / max(1, len(self.spread) - 1)
        return np.asarray(np.sqrt(np.square(beyond) + np.maximum(square, share * self.together**2)))


def learn_blanks(
    blanks: Sequence[Blank],
    rows: Sequence[Indices],
    evidence: Callable[[Indices, int, Sequence[Blank]], HeldOutEvidence],
    tolerance: LocalTolerance,
) -> Blanks:
    """The spread of each blank, and of all of them together.

    ``rows`` are some that each fold's models had not seen; ``evidence`` gives them as predicted by
    these with some of the blanks put in.
    """

    def spread(put: Sequence[Blank]) -> float:
        found = [evidence(own, fold, put) for fold, own in enumerate(rows)]
        return _best_spread([part for part in found if len(part.y)], tolerance)

    if not blanks:
        return Blanks()
    features, values = (tuple(parts) for parts in zip(*blanks, strict=True))
    together = spread(blanks) if len(blanks) > 1 else 0.0
    return Blanks(features, values, tuple(spread([blank]) for blank in blanks), together)


def relevant(blanks: Sequence[Blank], feature_weight: Floats) -> list[Blank]:
    """Those with a feature that the models use, the most used first: others need no spread."""
    used = sorted(blanks, key=lambda blank: -feature_weight[blank[0]].max())[:_MOST_BLANKS]
    return [blank for blank in used if feature_weight[blank[0]].max() > LEAST_RELEVANCE]


def blanked(x: Floats, blanks: Sequence[Blank]) -> Floats:
    """Rows with the blanks' values; (N, d)."""
    rows = x.copy()
    for features, values in blanks:
        rows[:, features] = values
    return rows


def _best_spread(parts: Sequence[HeldOutEvidence], tolerance: LocalTolerance) -> float:
    def score(spread: float) -> float:
        wider = [replace(part, beyond=np.hypot(part.beyond, spread)) for part in parts]
        return float(
            np.average([p.score(tolerance) for p in wider], weights=[len(p.y) for p in wider])
        )

    return float(max(_SPREADS, key=score))
