"""Answers as people's tables want them."""

from typing import Any

import numpy as np
import pandas as pd

from accord._types import Floats
from accord.distributions import Distribution


def framed(X: Any, values: Floats, names: list[str]) -> pd.DataFrame | Floats:
    """``values`` as a DataFrame with the index of ``X`` if that is one."""
    if not isinstance(X, pd.DataFrame):
        return values
    return pd.DataFrame(values, index=X.index, columns=names)


def uncertainty_frame(dist: Distribution, X: Any) -> pd.DataFrame:
    """The mean of each row and the parts of its standard deviation."""
    return pd.DataFrame(
        {
            "mean": np.asarray(dist.mean),
            "noise": np.asarray(dist.noise),
            "disagreement": np.asarray(dist.disagreement),
            "distance": np.asarray(dist.distance),
            "total": np.asarray(dist.std),
        },
        index=X.index if isinstance(X, pd.DataFrame) else None,
    )
