"""What held-out rows say of a blend: how likely they are, and the coverages that they needed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accord._types import Floats, Indices
from accord.distributions import Distribution
from accord.portfolio.blend import (
    LocalTolerance,
    Prediction,
    blend_log_density,
    distribution_of,
)
from accord.portfolio.components import mean_score

# Rows that a choice is made on, of each kind: more say little more.
_ROWS = 1_000
# Of values between the ends of censored targets. With 0, these may be the very draws that a made-up
# table was made from.
_SEED_OF_DRAWS = 7_919


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
