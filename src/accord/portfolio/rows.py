"""The rows that a portfolio learns from: as given, and checked, without those of weight 0.

Scales of targets, distances and Gaussian processes know no weights. So a row of weight 0 is left
out before anything looks at it, with all that is stated of it. What is said of rows later names
them by their places among all rows that were given.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord._types import Floats, Indices
from accord._wording import count
from accord.estimators import target_knowledge
from accord.portfolio.blanks import Blank
from accord.portfolio.crossfit import TrainingTable
from accord.portfolio.encoding import Bounds, check_contained, notes_on_targets
from accord.portfolio.streamed import MoreRows

_FEWEST_ROWS = 8


@final
@dataclass(frozen=True)
class EncodedTable:
    """Features that a table was encoded as: given to be trained on, and changed meanwhile.

    Attributes:
        features: (N, d).
        blanks: Features with the values that they have where nothing is known, such as those of a
            category that no row has, or of a missing number: how much wider such rows must be is
            learnt, where no or few rows are such. Where features are the same in all rows, nothing
            can be learnt, and such rows are wider by the targets' spread.
        more: All rows of a table of which these are a sample; networks of the blend are trained
            further on them, and used if that makes held-out rows more likely.
    """

    features: Any
    blanks: Sequence[Blank] = ()
    more: MoreRows | None = None


@dataclass(frozen=True)
class CountedRows:
    """The rows that count, of ``n_given``, and their ``places`` among these.

    **Shape**: places (N,); groups and time (N,), None where they are not stated.
    """

    table: TrainingTable
    places: Indices
    n_given: int
    groups: NDArray[Any] | None
    time: NDArray[Any] | None

    @staticmethod
    def of(
        x: Floats,
        targets: Floats,
        weight: Floats,
        *,
        bounds: Bounds | None,
        groups: Any = None,
        time: Any = None,
        tolerance: Any = None,
        lower: Any = None,
        upper: Any = None,
    ) -> "CountedRows":
        """**Shape**: x (n, d), targets (n, 1), all others (n,)."""
        n = len(x)
        known = target_knowledge(targets, tolerance=tolerance, lower=lower, upper=upper)
        places = np.flatnonzero(weight > 0)
        groups, time = (
            _of_each(name, values, n, places)
            for name, values in (("groups", groups), ("time", time))
        )
        if len(places) < n:  # or else nothing is copied
            x, targets, weight = x[places], targets[places], weight[places]
            known = {name: values[places] for name, values in known.items()}
        _check_number(len(places), n)
        table = TrainingTable.of(x, targets[:, 0], weight, known)
        _check_measured(table)
        y, measured = np.zeros(n), np.zeros(n, bool)  # a message names the rows that were given
        y[places], measured[places] = table.y, table.measured
        check_contained(y, measured, bounds)
        return CountedRows(table, places, n, groups, time)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on rows that were left out, and on the targets of the others."""
        table, absent = self.table, self.n_given - len(self.places)
        words = count(absent, "row of weight 0 is", "rows of weight 0 are")
        left_out = (f"{words} left out.",) if absent else ()
        return (*left_out, *notes_on_targets(table.y, table.measured, table.rounding))

    def check_whole(self) -> None:
        """Refuse rows of weight 0 in a sample: further rows name its rows by their places."""
        if len(self.places) < self.n_given:
            raise ValueError(
                "weights of a sample of more rows must be positive, got "
                f"{self.n_given - len(self.places)} of 0. Draw the sample from rows that count."
            )


def _of_each(name: str, values: Any, n: int, places: Indices) -> NDArray[Any] | None:
    """What is stated of each of ``n`` rows, of some of them."""
    if values is None:
        return None
    stated = np.asarray(values)
    if stated.shape[:1] != (n,):
        raise ValueError(
            f"{name} must have one value per row, ({n},), got {stated.shape}. Give one of each."
        )
    return np.asarray(stated[places])


def _check_number(n: int, n_given: int) -> None:
    if n < _FEWEST_ROWS:
        counted = "" if n == n_given else f" with a positive weight, of {n_given}"
        raise ValueError(
            f"at least {_FEWEST_ROWS} rows are needed to hold some out, got n_samples = "
            f"{n}{counted}. Use BVMRegressor for fewer."
        )


def _check_measured(table: TrainingTable) -> None:
    measured = int(table.measured.sum())
    if measured < _FEWEST_ROWS:
        raise ValueError(
            f"training needs at least {_FEWEST_ROWS} rows with a measured target, got {measured} "
            f"beside {len(table) - measured} censored ones. Add measured rows."
        )
