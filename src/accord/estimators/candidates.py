"""Candidate tolerances: the ensembles to train for a choice, and the rules they predict by."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accord.ensemble import Scaling
from accord.estimators.network_ensemble import Rows
from accord.tolerance import (
    EDGE,
    GRID,
    LOCAL_GRID,
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
    use those; a local tolerance is 0 at the rows that it is trained on.
    """

    rows: Rows
    tolerance: float
    growth: Growth | None = None
    kept_range: Floats | None = None  # in place of these rows' own

    @property
    def target_range(self) -> Floats:
        """(T,) range of the targets, 1 where they are constant."""
        return Scaling.range(self.rows.y).scale if self.kept_range is None else self.kept_range

    def columns(self, y_scaling: Scaling) -> dict[str, Floats]:
        """What the objective needs of each row, in scaled units."""
        rows, scale = self.rows, y_scaling.scale
        columns = {"target": y_scaling.scaled(rows.y)}
        constant = 0.0 if self.growth is not None else self.tolerance * self.target_range
        half_width = rows.more.get("tolerance", np.broadcast_to(constant, rows.y.shape))
        columns["tolerance"] = half_width / scale
        if "std" in rows.more:
            columns["noise"] = (rows.more["std"] / scale) ** 2
        for name in ("lower", "upper"):
            if name in rows.more:
                columns[name] = y_scaling.scaled(rows.more[name])
        return columns


@dataclass(frozen=True)
class Rule:
    """The tolerance at new rows, in target units.

    **Shape**: target_range (T,); ``at`` gives (N, T) for N rows.
    """

    tolerance: float
    target_range: Floats
    growth: Growth | None = None
    relative: float = 0.0

    def at(self, growth_values: Floats | None, mean: Floats, std: Floats) -> Floats:
        """ε(x) from the growth at the rows and the members' moments there, each (M, N, T)."""
        constant = self.tolerance * self.target_range
        if self.growth is None or growth_values is None:
            return np.broadcast_to(constant, mean.shape[1:])
        total = np.sqrt((std**2).mean(axis=0) + mean.var(axis=0))
        unit = constant + self.relative * total
        return self.growth.half_width(growth_values, unit=unit, target_range=self.target_range)


def softened(std: Floats, half_width: Floats) -> Floats:
    """Deviations widened by the soft edge of a chosen tolerance."""
    return np.asarray(np.hypot(std, EDGE * half_width))


@dataclass(frozen=True)
class Search:
    """A choice of tolerance: every candidate on every inner split of the rows."""

    choice: Choice
    candidates: list[Candidate]
    tests: list[Rows]  # of each candidate: rows that it is not trained on
    unusual: NDArray[np.bool_]  # whether each split is an outlier split

    @staticmethod
    def over(choice: Choice, rows: Rows, random_state: np.random.RandomState) -> "Search":
        splits = inner_splits(rows.x, random_state)
        trained = (0.0,) if choice == "local" else GRID
        candidates, tests = [], []
        for split in splits:
            inner = rows[split.train]
            growth = growth_for(choice, inner)
            candidates += [Candidate(inner, value, growth) for value in trained]
            tests += [rows[split.test]] * len(trained)
        return Search(choice, candidates, tests, np.array([split.unusual for split in splits]))

    def rules(self, candidate: Candidate) -> list[Rule]:
        """The tolerances to score a trained candidate with."""
        target_range, growth = candidate.target_range, candidate.growth
        if self.choice != "local":
            return [Rule(candidate.tolerance, target_range)]
        pairs = [(value, kappa) for value in LOCAL_GRID for kappa in RELATIVE_GRID]
        return [Rule(value, target_range, growth, kappa) for value, kappa in pairs]

    def choose(self, scores: list[list[float]]) -> ToleranceCurve:
        """The curve and the choice, from each candidate's mean NLL under each of its rules."""
        local = self.choice == "local"
        values, relative = (LOCAL_GRID, RELATIVE_GRID) if local else (GRID, (0.0,))
        table = np.reshape(scores, (len(self.unusual), len(values), len(relative)))
        return choose(self.choice, np.array(values), np.array(relative), table, self.unusual)


def growth_for(choice: str, rows: Rows) -> Growth | None:
    """How the tolerance grows away from these rows, if it is local."""
    return Growth().fit(rows.x) if choice == "local" and len(rows) > 1 else None
