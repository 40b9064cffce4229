"""How new data differ from those that a model was trained on."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from scipy import stats

from accord._types import Bools, Floats
from accord._wording import count, listed, percent
from accord.tabular import TableProfile, as_floats
from accord.trust import UNUSUAL_SHARE

# Chance that an undrifted table is called drifted, over all its columns.
_FALSE_ALARM = 0.01
# Categories with fewer training rows than this are compared together, and unseen ones with them.
_RARE = 5
# With many rows every difference is significant: smaller ones than this do not matter.
_SMALLEST_DISTANCE = 0.1


@dataclass(frozen=True)
class ColumnDrift:
    """Distance between a column's distributions, 0 (the same) to 1 (nothing in common)."""

    name: str
    distance: float
    p_value: float
    drifted: bool


@dataclass(frozen=True)
class Drift:
    """All columns, the target if it is known, and unusual rows beside the expected share.

    ``n_rows`` is how many rows would tell as much beside a share that is known exactly.
    """

    columns: tuple[ColumnDrift, ...]
    target: ColumnDrift | None
    unusual: float
    unusual_expected: float
    n_rows: int

    @property
    def drifted(self) -> list[str]:
        """Columns with another distribution than in training."""
        return [column.name for column in self.columns if column.drifted]

    @property
    def any(self) -> bool:
        return bool(self.drifted) or self.many_unusual or self.target_drifted

    @property
    def target_drifted(self) -> bool:
        return self.target is not None and self.target.drifted

    @property
    def many_unusual(self) -> bool:
        """More unusual rows than chance explains, and so many that it matters."""
        found = round(self.unusual * self.n_rows)
        test = stats.binomtest(found, self.n_rows, self.unusual_expected, alternative="greater")
        return bool(test.pvalue < _FALSE_ALARM and self.unusual > 1.5 * self.unusual_expected)

    def sentences(self) -> list[str]:
        """The statement of drift, in plain words."""
        shifted = self.drifted
        if shifted and len(self.columns) == 1:
            first = (
                f"The only column, {listed(shifted)}, has another distribution than in training."
            )
        elif shifted:
            verb = "has" if len(shifted) == 1 else "have"
            first = (
                f"{len(shifted)} of {count(len(self.columns), 'column')} {verb} another "
                f"distribution than in training: {listed(shifted)}."
            )
        elif len(self.columns) == 1:
            first = "The only column has the same distribution as in training."
        else:
            all_of_them = "Both" if len(self.columns) == 2 else f"All {len(self.columns)}"
            first = (
                f"{all_of_them} columns, each by itself, have the same distribution as in training."
            )
        combined = self.many_unusual and not shifted
        second = (
            f"{percent(self.unusual)} of the rows are unlike the training rows; "
            f"{percent(self.unusual_expected)} would be expected"
            f"{': their combinations of values are new.' if combined else '.'}"
        )
        third = ["The target itself has another distribution than in training."]
        return [first, second, *(third if self.target_drifted else [])]


def measure_drift(
    X: pd.DataFrame,
    usual: TableProfile,
    *,
    unusual: Bools,
    y: Floats | None = None,
    usual_target: TableProfile | None = None,
    separate: tuple[float, float] = (1.0, 1.0),
) -> Drift:
    """Compare a table, column by column, with the profile of the training table.

    ``separate`` is the share of these rows, and of the training rows, that repeat no other one:
    copies tell nothing more. New categories where training rows had many that were nobody else's
    are no drift.

    **Shape**: X (n, d), unusual (n,), y (m,): the targets that are known.
    """
    level = _FALSE_ALARM / (len(usual.names) + 1)  # Bonferroni
    compare = partial(_compare, level=level, separate=separate)
    columns = tuple(compare(X, usual, place) for place in range(len(usual.names)))
    target = None
    if y is not None and len(y) and usual_target is not None:
        target = compare(pd.DataFrame({usual_target.names[0]: y}), usual_target, 0)
    expected = UNUSUAL_SHARE + max(usual.single.values(), default=0.0)
    n, before = len(X) * separate[0], usual.n_rows * separate[1]
    # where training rows are few, the share of them that is unusual is not known well either
    n_rows = max(1, round(n * before / (n + before)))
    return Drift(columns, target, float(np.mean(unusual)), expected, n_rows)


def _compare(
    X: pd.DataFrame,
    usual: TableProfile,
    place: int,
    *,
    level: float,
    separate: tuple[float, float],
) -> ColumnDrift:
    name = usual.names[place]
    column = X[name]
    present = column.dropna()
    n, before = len(column) * separate[0], usual.n_rows * separate[1]
    known = len(present) * separate[0]
    found = [_gaps(float(column.isna().mean()), n, usual.missing[place], before)]
    if len(present) and name in usual.shares:
        found.append(_categories(present, usual.shares[name], known, before))
    elif len(present):
        values = as_floats(present.to_frame())[:, 0]
        found.append(_numbers(values, usual.quantiles[place], known, before))
    # Missing or different values: the clearer sign of the two counts.
    distance, p_value = min(found, key=lambda pair: pair[1])
    return ColumnDrift(name, distance, p_value, p_value < level and distance > _SMALLEST_DISTANCE)


def _gaps(missing: float, n: float, before: float, n_before: float) -> tuple[float, float]:
    """Two shares of missing values, by the normal approximation."""
    pooled = (missing * n + before * n_before) / (n + n_before)
    error = np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / n_before))
    gap = abs(missing - before)
    return gap, float(2 * stats.norm.sf(gap / error)) if error > 0 else 1.0


def _numbers(values: Floats, quantiles: Floats, n: float, n_before: float) -> tuple[float, float]:
    """Kolmogorov–Smirnov distance to the training quantiles; both samples are finite."""
    grid = np.unique(np.concatenate([quantiles, values]))
    now = np.searchsorted(np.sort(values), grid, side="right") / len(values)
    distance = float(np.max(np.abs(now - _cdf(grid, quantiles))))
    size = n * n_before / (n + n_before)
    return distance, float(stats.kstwobign.sf(distance * np.sqrt(size)))


def _cdf(grid: Floats, quantiles: Floats) -> Floats:
    """The training cdf: linear between quantiles, with jumps where several agree."""
    steps = len(quantiles) - 1
    below = np.searchsorted(quantiles, grid, side="right") - 1
    start = np.clip(below, 0, steps - 1)
    gap = quantiles[start + 1] - quantiles[start]
    part = np.where(gap > 0, (grid - quantiles[start]) / np.where(gap > 0, gap, 1.0), 0.0)
    return np.clip(np.where(below < 0, 0.0, (below + part * (below < steps)) / steps), 0.0, 1.0)


def _categories(
    values: "pd.Series[str]", shares: dict[str, float], n: float, n_before: float
) -> tuple[float, float]:
    """Total variation distance and a chi-squared test; rare and unseen categories are one."""
    found = values.value_counts(normalize=True)
    common = {name: share for name, share in shares.items() if share * n_before >= _RARE}
    now = np.array([float(found.get(name, 0.0)) for name in common])
    then = np.array(list(common.values()))
    now, then = (np.append(part, max(0.0, 1 - part.sum())) for part in (now, then))
    distance = 0.5 * float(np.abs(now - then).sum())
    table = np.stack([now * n, then * n_before])
    table[:, -1] = np.where(table[:, -1] < 1e-6, 0.0, table[:, -1])  # rounding
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] < 2:
        return distance, 1.0
    return distance, float(stats.chi2_contingency(table).pvalue)
