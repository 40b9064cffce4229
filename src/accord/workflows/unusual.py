"""The rows of a table that are most unlike those a model has learnt from."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from accord.workflows.assessment import Assessment
from accord.workflows.profile import TableProfile

_SHOWN = 12


@dataclass(frozen=True)
class UnusualRow:
    """A row unlike the others: where it is, what was predicted, and in what it is unusual."""

    row: int
    observed: float
    mean: float
    lower: float
    upper: float
    peculiar: tuple[tuple[str, str], ...]

    @property
    def inside(self) -> bool:
        return self.lower <= self.observed <= self.upper


def most_unusual(
    judged: Assessment,
    X: pd.DataFrame,
    *,
    strangeness: NDArray[np.float64],
    usual: TableProfile,
    shown: int = _SHOWN,
) -> tuple[UnusualRow, ...]:
    """The strangest of the judged rows first, with what is peculiar about each.

    **Shape**: X (n, d), the judged rows; strangeness (n,).
    """
    order = np.argsort(-strangeness, kind="stable")[:shown]
    peculiar = usual.peculiarities(X.iloc[order])
    return tuple(
        UnusualRow(
            row=int(judged.rows[line]),
            observed=float(judged.y[line]),
            mean=float(judged.mean[line]),
            lower=float(judged.lower[line]),
            upper=float(judged.upper[line]),
            peculiar=words,
        )
        for line, words in zip(order, peculiar, strict=True)
    )
