"""The local tolerance of a blend: chosen to help on shifted rows and to cost little on others.

g(x) grows with the distance to the training rows (:class:`accord.trust.Growth`), measured in the
features that the models use: a column of noise must not make rows look unusual. τ₀ and κ are chosen
on parts that were held out because they are unlike the rest, by models that had seen none of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accord._types import Floats
from accord.portfolio.blend import LocalTolerance, Prediction, blend_log_density
from accord.portfolio.components import mean_score
from accord.trust import Growth

_BASES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4)
_RELATIVES = (0.0, 0.25, 0.5, 1.0, 2.0)
# What the tolerance may cost, in mean nats, on random held-out rows.
_SLACK = 0.01
# A growth beyond this says no more: the tolerance stops there.
_GROWTH_CAP = 20.0
# Beyond the most unusual training row the tolerance grows at this rate, in scaled target units.
_BEYOND = 0.1
_LARGEST = 6.0
# Rows that a choice is made on, of each kind: more say little more.
_ROWS = 3_000
# A feature that the models do not use still counts a little: it may be that they should.
_LEAST_RELEVANCE = 0.05


@dataclass(frozen=True)
class Evidence:
    """Held-out rows, their predictions, and how far they are from what the models had seen."""

    predictions: Sequence[Prediction]
    y: Floats
    weight: Floats
    growth: Floats
    beyond: Floats

    def score(self, tolerance: LocalTolerance) -> float:
        """Mean log density under a tolerance."""
        density = blend_log_density(self.predictions, self.y, tolerance, self.growth, self.beyond)
        return mean_score(density, self.weight)

    def thinned(self, seed: int) -> "Evidence":
        """A random subset where there are many rows."""
        if len(self.y) <= _ROWS:
            return self
        rows = np.sort(np.random.default_rng(seed).permutation(len(self.y))[:_ROWS])
        return Evidence(
            [p[rows] for p in self.predictions],
            self.y[rows],
            self.weight[rows],
            self.growth[rows],
            self.beyond[rows],
        )


def growth_at(growth: Growth, values: Floats) -> tuple[Floats, Floats]:
    """g cut off at 0 and above, and what a row beyond all training rows gets on top; (N,) each."""
    beyond = _BEYOND * (values - max(growth.farthest_, 1.0)).clip(min=0.0)
    return values.clip(0.0, _GROWTH_CAP), np.minimum(beyond, _LARGEST)


def choose_tolerance(usual: Evidence, shifted: Sequence[Evidence]) -> LocalTolerance:
    """The tolerance that is best on average over the shifted parts, and bearable on usual rows."""
    best, best_score = LocalTolerance(), -np.inf
    if not shifted:
        return LocalTolerance(0.1, 0.5)
    allowed = usual.score(LocalTolerance()) - _SLACK
    for base in _BASES:
        for relative in _RELATIVES:
            tolerance = LocalTolerance(base, relative)
            score = float(np.mean([part.score(tolerance) for part in shifted]))
            if score > best_score and usual.score(tolerance) >= allowed:
                best, best_score = tolerance, score
    return best


def feature_weights(changes: Floats) -> Floats:
    """Weights of features in distances, from how much predictions change with each; (d,)."""
    largest = changes.max(initial=0.0)
    if largest == 0:
        return np.ones_like(changes)
    return np.asarray(np.clip(changes / largest, _LEAST_RELEVANCE, 1.0))
