"""A table ready for regression, with the names and units of what it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from accord._types import Floats

if TYPE_CHECKING:
    import pandas as pd

    from accord.distributions import Normal

__all__ = ["Dataset", "Truth"]


@dataclass(frozen=True)
class Truth:
    """The law from which a toy's targets were drawn: t ~ N(μ(x), σ²(x)).

    **Shape**: ``mean`` and ``std`` map features (N, d) to (N,).
    """

    mean: Callable[[Floats], Floats]
    std: Callable[[Floats], Floats]

    def dist(self, X: Floats) -> Normal:
        """The true distribution of the targets, row by row."""
        from accord.distributions import Normal

        return Normal(self.mean(X), self.std(X))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Dataset:
    """Features and targets with their names, units, origin and licence.

    Units are as the source states them, and empty where it states none. ``holdout`` holds the
    test rows that belong to the set (the stocks of January 2017), ``truth`` the law of a toy.

    **Shape**: X (N, d), y (N,).

    Example:
        >>> from accord.datasets import load
        >>> load("diabetes")
        Dataset('diabetes', N=442, d=10, target='progression')
    """

    name: str
    X: Floats
    y: Floats
    feature_names: tuple[str, ...]
    target_name: str
    feature_units: tuple[str, ...]
    target_unit: str
    description: str
    licence: str
    holdout: Dataset | None = None
    truth: Truth | None = None

    @property
    def frame(self) -> pd.DataFrame:
        """Features and target as one data frame, the target in the last column."""
        import pandas as pd

        columns = [*self.feature_names, self.target_name]
        return pd.DataFrame(np.column_stack([self.X, self.y]), columns=columns)

    def __repr__(self) -> str:
        n, d = self.X.shape
        unit = f" [{self.target_unit}]" if self.target_unit else ""
        return f"Dataset({self.name!r}, N={n}, d={d}, target='{self.target_name}{unit}')"
