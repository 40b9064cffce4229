"""Receipts for arrays: every feature is a column and a number."""

from typing import Any, Protocol

import numpy as np
import pandas as pd

from accord._types import Bools, Floats, Indices
from accord.distributions import Distribution
from accord.explanation import Columns, Receipts, explain, rounded, unlike_number
from accord.trust import Proximity


class Answering(Protocol):
    """A fitted model whose predictions widen away from its training rows."""

    @property
    def proximity_(self) -> Proximity: ...

    def answer(self, X: Any) -> tuple[Distribution, Bools]: ...


def array_receipts(
    model: Answering, X: Any, *, coverage: float, permutations: int, seed: int
) -> Receipts:
    """Receipts of the rows of an array or a frame of numbers."""
    names = [str(name) for name in X.columns] if isinstance(X, pd.DataFrame) else None
    x = np.asarray(X, dtype=np.float64)
    proximity = model.proximity_
    columns = Columns.of(names or [f"x{place}" for place in range(x.shape[1])])

    def answer(rows: Floats) -> Distribution:
        framed = rows if names is None else pd.DataFrame(rows, columns=X.columns)
        return model.answer(framed)[0]

    return explain(
        answer,
        proximity,
        x,
        columns=columns,
        cells=_Cells(proximity, x),
        reference_numbers=proximity.reference_rows_,
        coverage=coverage,
        permutations=permutations,
        seed=seed,
        index=X.index if isinstance(X, pd.DataFrame) else None,
    )


class _Cells:
    """Numbers, none of them missing."""

    def __init__(self, proximity: Proximity, x: Floats) -> None:
        self.values = x
        self.missing, self.new = np.zeros(x.shape, bool), np.zeros(x.shape, bool)
        self.references = rounded(proximity.references())
        self.ordered = np.sort(self.references, axis=0)
        self.sampled = len(self.references) < len(proximity.training_distances_)

    def known(self, column: int) -> Bools:
        return np.ones(len(self.references), bool)

    def unlike(self, row: int, column: int, near: Indices) -> str:
        return unlike_number(
            float(rounded(self.values[row, column])),
            self.ordered[:, column],
            self.references[near, column],
            sampled=self.sampled,
        )
