"""Candidate tolerances: which ensembles to train for a choice, and how to score them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accord.ensemble import Scaling
from accord.estimators.network_ensemble import Rows
from accord.tolerance import (
    GRID,
    RELATIVE_GRID,
    Choice,
    Growth,
    ToleranceCurve,
    choose,
    inner_splits,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Candidate:
    """An ensemble to train: its rows, its tolerance, and how the tolerance grows, if it is local.

    ``tolerance`` is a fraction of the targets' range. Rows that come with tolerances of their own
    use those.
    """

    rows: Rows
    tolerance: float
    growth: Growth | None = None

    @property
    def target_range(self) -> Floats:
        """(T,) range of the targets, 1 where they are constant."""
        return Scaling.range(self.rows.y).scale

    def half_width(self, x: Floats, mean: Floats, std: Floats, *, relative: float) -> Floats:
        """The tolerance at rows that the candidate has not seen."""
        return half_width(
            x,
            mean,
            std,
            tolerance=self.tolerance,
            relative=relative,
            target_range=self.target_range,
            growth=self.growth,
        )

    def columns(self, y_scaling: Scaling) -> dict[str, Floats]:
        """What the objective needs of each row, in scaled units."""
        rows, scale = self.rows, y_scaling.scale
        columns = {"target": y_scaling.scaled(rows.y)}
        if "tolerance" in rows.more:
            half_width = rows.more["tolerance"]
        else:
            growth = 1.0 if self.growth is None else self.growth.training_values_[:, None]
            half_width = np.broadcast_to(self.tolerance * self.target_range * growth, rows.y.shape)
        columns["tolerance"] = half_width / scale
        if "std" in rows.more:
            columns["noise"] = (rows.more["std"] / scale) ** 2
        for name in ("lower", "upper"):
            if name in rows.more:
                columns[name] = y_scaling.scaled(rows.more[name])
        return columns


def half_width(
    x: Floats,
    mean: Floats,
    std: Floats,
    *,
    tolerance: float,
    relative: float,
    target_range: Floats,
    growth: Growth | None,
) -> Floats:
    """The tolerance at new rows in target units, from the members' moments there.

    **Shape**: x (N, d), mean and std (M, N, T), target_range (T,) → (N, T).
    """
    constant = tolerance * target_range
    if growth is None:
        return np.broadcast_to(constant, mean.shape[1:])
    total = np.sqrt((std**2).mean(axis=0) + mean.var(axis=0))
    return growth.half_width(x, unit=constant + relative * total, target_range=target_range)


@dataclass(frozen=True)
class Search:
    """A choice of tolerance: every candidate on every inner split of the rows."""

    choice: Choice
    candidates: list[Candidate]
    split_numbers: list[int]  # of each candidate
    tests: list[Rows]  # of each split
    unusual: NDArray[np.bool_]  # whether each split is an outlier split

    @staticmethod
    def over(choice: Choice, rows: Rows, random_state: np.random.RandomState) -> "Search":
        splits = inner_splits(rows.x, random_state)
        candidates = []
        for split in splits:
            inner = rows[split.train]
            growth = growth_for(choice, inner)
            candidates += [Candidate(inner, value, growth) for value in GRID]
        return Search(
            choice,
            candidates,
            [number for number in range(len(splits)) for _ in GRID],
            [rows[split.test] for split in splits],
            np.array([split.unusual for split in splits]),
        )

    @property
    def relative(self) -> Floats:
        """The κ to score each candidate with."""
        return np.array(RELATIVE_GRID if self.choice == "local" else (0.0,))

    def choose(self, scores: list[list[float]]) -> ToleranceCurve:
        """The curve and the choice, from each candidate's mean NLL for each κ."""
        table = np.reshape(scores, (len(self.tests), len(GRID), -1))
        return choose(self.choice, np.array(GRID), self.relative, table, self.unusual)


def growth_for(choice: str, rows: Rows) -> Growth | None:
    """How the tolerance grows over these rows, if it is local."""
    return Growth().fit(rows.x) if choice == "local" and len(rows) > 1 else None
