"""What is known about the uncertainty of each row, as arrays, as a table and in words."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from accord._types import Floats, Indices
from accord._wording import listed_plainly, number, percent
from accord.distributions import Distribution

# Columns that a receipt in words names, and the share below which none is worth a word.
_NAMED = 3
_WORTH_NAMING = 0.05
_MEANING = {
    "noise": "noise in the data",
    "disagreement": "disagreement between models",
    "distance": "distance from the training rows",
}


@dataclass(frozen=True)
class Attribution:
    """A part of the variance by column: ``baseline`` + the sum of ``values`` is that part.

    ``baseline`` is the part's mean over training rows; ``values`` are Shapley values by sampled
    permutations, and ``error`` are their standard errors. All are variances, in squared units.

    **Shape**: baseline (n,); values and error (n, c).
    """

    baseline: Floats
    values: Floats
    error: Floats


@dataclass(frozen=True)
class Parts:
    """The parts of a standard deviation: std² = noise² + disagreement² + distance².

    **Shape**: (n,).
    """

    noise: Floats
    disagreement: Floats
    distance: Floats

    @property
    def std(self) -> Floats:
        return np.hypot(np.hypot(self.noise, self.disagreement), self.distance)


@dataclass(frozen=True)
class Receipts:
    """Where the uncertainty of each of n rows comes from.

    std² = noise² + disagreement² + distance², and distance² is the sum of ``distance_by_column``.

    Attributes:
        names: The c columns.
        coverage: That of the intervals.
        dist: The predictive distributions, whose mean is ``mean``.
        parts: noise, disagreement, distance and std, standard deviations.
        distance_by_column: What each column adds to distance², (n, c).
        neighbors: The nearest training rows, (n, k), nearest first.
        unlike: In words, what about each row is unlike the training rows; "" if nothing is.
        narrow: In words, what would narrow each row's interval most.
        by_noise, by_disagreement: Shapley values by column, None unless asked for.
        index: The index of the frame that was explained, None for arrays.
    """

    names: tuple[str, ...]
    coverage: float
    dist: Distribution
    mean: Floats
    parts: Parts
    distance_by_column: Floats
    neighbors: Indices
    unlike: tuple[str, ...]
    narrow: tuple[str, ...]
    by_noise: Attribution | None = None
    by_disagreement: Attribution | None = None
    index: pd.Index | None = None

    def __len__(self) -> int:
        return len(self.mean)

    @cached_property
    def interval(self) -> Floats:
        """Lower and upper ends, (n, 2); computed when they are first asked for."""
        return np.asarray(self.dist.interval(self.coverage))

    @property
    def shares(self) -> dict[str, Floats]:
        """Each part's share of the variance, and so of the interval's width; they add up to 1."""
        parts = {name: np.square(getattr(self.parts, name)) for name in _MEANING}
        whole = sum(parts.values())
        return {name: part / np.where(whole > 0, whole, 1.0) for name, part in parts.items()}

    def to_frame(self, *, interval: bool = True) -> pd.DataFrame:
        """A row per row; shares are of the variance, ``distance_from_…`` adds up to their part.

        Shapley values, where known, are shares of the variance too, ``…_error`` their standard
        errors. Without ``interval``, its ends are left out: they take longer than all the rest.
        """
        columns: dict[str, Any] = {"mean": self.mean, "std": self.parts.std}
        if interval:
            columns |= dict(zip(("lower", "upper"), self.interval.T, strict=True))
        columns |= {f"{name}_share": share for name, share in self.shares.items()}
        variance = np.square(self.parts.std)[:, None]
        relative = np.where(variance > 0, variance, 1.0)
        columns |= self._by_column("distance_from_{}", self.distance_by_column / relative)
        for part, found in (("noise", self.by_noise), ("disagreement", self.by_disagreement)):
            if found is not None:
                columns |= self._by_column(part + "_from_{}", found.values / relative)
                columns |= self._by_column(part + "_from_{}_error", found.error / relative)
        columns["nearest"] = [" ".join(map(str, rows)) for rows in self.neighbors.tolist()]
        columns |= {"unlike": list(self.unlike), "narrow": list(self.narrow)}
        return pd.DataFrame(columns, index=self.index)

    def _by_column(self, title: str, values: Floats) -> dict[str, Floats]:
        return {title.format(name): values[:, place] for place, name in enumerate(self.names)}

    def text(self, row: int) -> str:
        """The receipt of one row, counted from 0, in sentences."""
        shares = sorted(((float(s[row]), name) for name, s in self.shares.items()), reverse=True)
        lower, upper = self.interval[row].tolist()
        lines = [
            f"Predicted {number(self.mean[row], 4)}; {percent(self.coverage)} interval "
            f"{number(lower, 4)} to {number(upper, 4)}.",
            "Of its variance, "
            + listed_plainly([f"{percent(s, 0)} is {_MEANING[name]}" for s, name in shares])
            + ".",
        ]
        if self.unlike[row]:
            lines.append(f"Unlike the training rows: {self.unlike[row]}.")
        if self.parts.distance[row] > 0:
            lines.append(self._distance_line(row))
        near = ", ".join(map(str, self.neighbors[row]))
        lines.append(f"Nearest training rows: {near}.")
        for part, found in (("Noise", self.by_noise), ("Disagreement", self.by_disagreement)):
            if found is not None:
                lines.append(self._shapley_line(part, found, row))
        return "\n".join([*lines, f"What would narrow it most: {self.narrow[row]}."])

    def _distance_line(self, row: int) -> str:
        shares = self.distance_by_column[row] / self.parts.distance[row] ** 2
        order = np.argsort(-shares, kind="stable")[:_NAMED]
        named = [f"{self.names[j]} {percent(float(shares[j]), 0)}" for j in order if shares[j] > 0]
        return f"The distance by column: {', '.join(named)}."

    def _shapley_line(self, part: str, found: Attribution, row: int) -> str:
        """Columns by the size of their effect, against the part's mean over training rows."""
        whole = float(np.square(self.parts.std[row])) or 1.0
        shares, errors = found.values[row] / whole, found.error[row] / whole
        order = np.argsort(-np.abs(shares), kind="stable")[:_NAMED]
        named = [
            f"{self.names[j]} {'+' if shares[j] > 0 else '−'}{percent(abs(float(shares[j])), 0)}"
            f" ± {percent(float(errors[j]), 0)}"
            for j in order
            if abs(shares[j]) >= _WORTH_NAMING
        ]
        usual = percent(float(found.baseline[row]) / whole, 0)
        effects = ", ".join(named) or "no column changes it much"
        return f"{part}, in shares of the variance: {usual} for a usual row; {effects}."
