"""What is known about the uncertainty of each row, as arrays, as a table and in words."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from accord._types import Floats, Indices
from accord._wording import count, listed_plainly, number, percent
from accord.distributions import Distribution

# Columns that a receipt in words names, and the share below which none is worth a word.
_NAMED = 3
_WORTH_NAMING = 0.05
# A smaller share of the variance would be written as 0 %.
_WORTH_A_PART = 0.005
_MEANING = {
    "noise": "noise in the data",
    "disagreement": "disagreement between models",
    "distance": "distance from the training rows",
}
Show = Callable[[float], str]

# As many training rows as this, or this share of them, are few.
_FEW_ROWS, _FEW_SHARE = 5, 0.02
# A gap between neighbouring values is one if it spans this share of all values' range.
_GAP = 0.1


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

    def __repr__(self) -> str:
        rows = count(len(self), "row")
        return f"<Receipts of {rows}: text(0) for one in sentences, to_frame() for all>"

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

    @property
    def _variance(self) -> Floats:
        """What shares are of; 1 where there is no variance."""
        variance = np.square(self.parts.std)
        return np.where(variance > 0, variance, 1.0)

    @property
    def _attributed(self) -> dict[str, Attribution]:
        """The parts that were split by column, other than distance, which always is."""
        found = {"noise": self.by_noise, "disagreement": self.by_disagreement}
        return {part: split for part, split in found.items() if split is not None}

    def to_frame(self, *, interval: bool = True) -> pd.DataFrame:
        """A row per row; shares are of the variance, ``distance_from_…`` adds up to their part.

        Shapley values, where known, are shares of the variance too, ``…_error`` their standard
        errors. Without ``interval``, its ends are left out: they take longer than all the rest.
        """
        columns: dict[str, Any] = {"mean": self.mean, "std": self.parts.std}
        if interval:
            columns |= dict(zip(("lower", "upper"), self.interval.T, strict=True))
        columns |= {f"{name}_share": share for name, share in self.shares.items()}
        whole = self._variance[:, None]
        columns |= self._by_column("distance_from_{}", self.distance_by_column / whole)
        for part, found in self._attributed.items():
            columns |= self._by_column(part + "_from_{}", found.values / whole)
            columns |= self._by_column(part + "_from_{}_error", found.error / whole)
        columns["nearest"] = [" ".join(map(str, rows)) for rows in self.neighbors.tolist()]
        columns |= {"unlike": list(self.unlike), "narrow": list(self.narrow)}
        return pd.DataFrame(columns, index=self.index)

    def _by_column(self, title: str, values: Floats) -> dict[str, Floats]:
        return {title.format(name): values[:, place] for place, name in enumerate(self.names)}

    def to_json(self, row: int) -> dict[str, Any]:
        """The receipt of one row, counted from 0, for machines; shares are of the variance."""
        whole = self._variance[row]

        def by_column(values: Floats) -> dict[str, float]:
            return dict(zip(self.names, (values[row] / whole).tolist(), strict=True))

        lower, upper = self.interval[row].tolist()
        document: dict[str, Any] = {
            "mean": self.mean[row],
            "std": self.parts.std[row],
            "lower": lower,
            "upper": upper,
            "shares": {name: share[row] for name, share in self.shares.items()},
            "distance_by_column": by_column(self.distance_by_column),
            "nearest": self.neighbors[row].tolist(),
            "unlike": self.unlike[row],
            "narrow": self.narrow[row],
            "text": self.text(row),
        }
        for part, found in self._attributed.items():
            document[f"{part}_by_column"] = by_column(found.values)
            document[f"{part}_error"] = by_column(found.error)
        return document

    def text(self, row: int) -> str:
        """The receipt of one row, counted from 0, in sentences."""
        shares = sorted(((float(s[row]), name) for name, s in self.shares.items()), reverse=True)
        lower, upper = self.interval[row].tolist()
        named = [part for part in shares if part[0] >= _WORTH_A_PART] or shares[:1]
        parts = listed_plainly(
            [f"{percent(share, 0)} is {_MEANING[part]}" for share, part in named]
        )
        lines = [
            f"Predicted {number(self.mean[row], 4)}; {percent(self.coverage)} interval "
            f"{number(lower, 4)} to {number(upper, 4)}.",
            f"Of its variance, {parts}.",
        ]
        if self.unlike[row]:
            lines.append(f"Unlike the training rows: {self.unlike[row]}.")
        if self.parts.distance[row] > 0:
            lines.append(self._distance_line(row))
        near = ", ".join(map(str, self.neighbors[row]))
        lines.append(f"Nearest training rows: {near}.")
        for part, found in self._attributed.items():
            lines.append(self._shapley_line(part.capitalize(), found, row))
        return "\n".join([*lines, f"What would narrow it most: {self.narrow[row]}."])

    def _distance_line(self, row: int) -> str:
        shares = self.distance_by_column[row] / self.parts.distance[row] ** 2
        order = np.argsort(-shares, kind="stable")[:_NAMED]
        named = [
            f"{self.names[j]} {percent(float(shares[j]), 0)}"
            for j in order
            if shares[j] >= _WORTH_A_PART
        ]
        return f"The distance by column: {', '.join(named)}."

    def _shapley_line(self, part: str, found: Attribution, row: int) -> str:
        """Columns by the size of their effect, against the part's mean over training rows."""
        usual, own = (
            float(found.baseline[row]),
            float(found.baseline[row] + found.values[row].sum()),
        )
        larger = max(usual, own) or 1.0
        shares, errors = found.values[row] / larger, found.error[row] / larger
        order = np.argsort(-np.abs(shares), kind="stable")[:_NAMED]
        named = [
            f"{self.names[j]} {'+' if shares[j] > 0 else '−'}{percent(abs(float(shares[j])), 0)}"
            f" ± {percent(float(errors[j]), 0)}"
            for j in order
            if abs(shares[j]) >= _WORTH_NAMING
        ]
        here, there = (number(math.sqrt(max(variance, 0.0))) for variance in (own, usual))
        effects = ", ".join(named) or "no column changes it much"
        return (
            f"{part}: a deviation of {here}, of a usual row {there}. By column, in shares of the "
            f"larger one's variance: {effects}."
        )


def four_digits(value: float) -> str:
    return number(value, 4)


def rounded(values: Floats) -> Floats:
    """Values to 9 digits: what standardising and its reverse leave of equal numbers is equal."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa, 9), exponent)


def unlike_number(
    value: float,
    training: Floats,
    near: Floats,
    *,
    sampled: bool = False,
    show: Show = four_digits,
    beyond: str = "",
) -> str:
    """How a number stands among the training rows' and those of the nearest rows.

    ``sampled`` says that ``training`` are some of the rows only; ``beyond`` follows the value.

    **Shape**: training (R,), ascending; near (k,).

    >>> ages = np.r_[np.arange(20.0, 80.0), 88.0, 90.0]
    >>> unlike_number(93.0, ages, ages[-3:])
    '93: no training row is above 90'
    >>> unlike_number(89.0, ages, ages[-3:])
    '89: only 1 of 62 training rows is as high'
    >>> unlike_number(40.0, ages, np.array([43.0, 42.0, 44.0]))
    '40: the nearest training rows have 42 to 44'
    """
    rows = "sampled training row" if sampled else "training row"
    below = int(np.searchsorted(training, value, side="right"))
    above = len(training) - int(np.searchsorted(training, value, side="left"))
    shown = show(value) + beyond
    if above == 0:
        return f"{shown}: no {rows} is above {show(float(training[-1]))}"
    if below == 0:
        return f"{shown}: no {rows} is below {show(float(training[0]))}"
    fewest, side = min((above, "high"), (below, "low"))
    few = fewest <= min(max(_FEW_ROWS, _FEW_SHARE * len(training)), len(training) / 4)
    if few:
        verb = "is" if fewest == 1 else "are"
        return f"{shown}: only {fewest:,} of {count(len(training), rows)} {verb} as {side}"
    left, right = float(training[below - 1]), float(training[len(training) - above])
    if right - left > _GAP * (training[-1] - training[0]):
        return f"{shown}: no {rows} lies between {show(left)} and {show(right)}"
    low, high = float(near.min()), float(near.max())
    if low <= value <= high:
        return ""
    span = show(low) if show(low) == show(high) else f"{show(low)} to {show(high)}"
    return f"{shown}: the nearest training rows have {span}"


def unlike_gap(share: float, n_rows: int) -> str:
    """How common it is that a column's value is missing.

    >>> unlike_gap(0.0, 500), unlike_gap(0.01, 500), unlike_gap(0.5, 500)
    ('missing: no training row lacks it', 'missing: only 5 of 500 training rows lack it',
    'missing: the nearest training rows have it')
    """
    n = round(share * n_rows)
    if n == 0:
        return "missing: no training row lacks it"
    if n <= max(_FEW_ROWS, _FEW_SHARE * n_rows):
        verb = "lacks" if n == 1 else "lack"
        return f"missing: only {n:,} of {count(n_rows, 'training row')} {verb} it"
    return "missing: the nearest training rows have it"


def unlike_category(value: str, share: float | None, n_rows: int) -> str:
    """How common a category is; a share of None is unknown, but small.

    >>> unlike_category("Ulm", 0.004, 1000), unlike_category("Bonn", 0.0, 1000)
    ('Ulm: only 4 of 1,000 training rows have it', 'Bonn: no training row has it')
    >>> unlike_category("Köln", 0.3, 1000)
    'Köln: 300 of 1,000 training rows have it, not the nearest ones'
    """
    rows = count(n_rows, "training row")
    if share is None:
        return f"{value}: rare among the training rows"
    n = round(share * n_rows)
    if n == 0:
        return f"{value}: no training row has it"
    if n <= max(_FEW_ROWS, _FEW_SHARE * n_rows):
        return f"{value}: only {n:,} of {rows} {'has' if n == 1 else 'have'} it"
    return f"{value}: {n:,} of {rows} have it, not the nearest ones"
