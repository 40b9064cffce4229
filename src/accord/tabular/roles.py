"""Columns with a role of their own: the target, its kin and its bounds, groups, time."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from accord._types import Floats
from accord.tables import OptionError, Table, TableError, TrainingData, quoted, read_table
from accord.tabular.profile import as_floats

Bounds = tuple[float | None, float | None]


def named(X: NDArray[Any]) -> pd.DataFrame:
    """An array as a table, its columns x0, x1, …"""
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns, got shape {X.shape}. Reshape it.")
    return pd.DataFrame(X, columns=[f"x{place}" for place in range(X.shape[1])])


def with_roles(X: Any, given: dict[str, Any]) -> tuple[Table, dict[str, str]]:
    """The table with values for the target and its kin as columns, and those columns' names."""
    if isinstance(X, np.ndarray):
        X = named(X)
    table = X if isinstance(X, Table) else read_table(X)
    data, roles = table.data, {}
    for role, value in given.items():
        if value is None:
            continue
        if isinstance(value, str):
            roles[role] = value
            continue
        values = np.asarray(value)
        if values.shape != (data.num_rows,):
            raise ValueError(
                f"{role} must have one value per row, ({data.num_rows},), got {values.shape}."
            )
        wish = getattr(value, "name", None) or ("y" if role == "target" else f"y {role}")
        roles[role] = _free_name(str(wish), data.column_names)
        data = data.append_column(roles[role], pa.array(values, from_pandas=True))
    return replace(table, data=data), roles


def _free_name(wish: str, taken: Sequence[str]) -> str:
    while wish in taken:
        wish += "_"
    return wish


def groups_of(table: Table, data: TrainingData, name: str | None) -> NDArray[np.int64] | None:
    """A number per group of rows; a row without a group is a group of its own."""
    if name is None:
        return None
    column = table.data.column(name).take(pa.array(data.rows - 1)).to_pandas()
    codes, _ = pd.factorize(column)
    alone = codes < 0
    codes[alone] = codes.max() + 1 + np.arange(alone.sum())
    if len(np.unique(codes)) < 2:
        raise TableError(
            f"group column {quoted(name)} must hold at least 2 groups, got 1. Name another column."
        )
    return np.asarray(codes, dtype=np.int64)


def order_of(table: Table, data: TrainingData, name: str | None) -> Floats | None:
    """The moment of each row, as a number."""
    if name is None:
        return None
    if name not in table.data.column_names:
        raise OptionError(f"time column {quoted(name)} is not in {table.name}. Check its name.")
    if name in data.schema.names and data.X[name].dtype.kind != "O":
        return as_floats(data.X[[name]])[:, 0]
    column = table.data.column(name).take(pa.array(data.rows - 1)).to_pandas()
    moments = np.asarray(pd.to_numeric(column, errors="coerce"), dtype=np.float64)
    if np.isnan(moments).all():
        raise TableError(
            f"time column {quoted(name)} must hold numbers or dates, got text such as "
            f"{quoted(column.iloc[0], limit=40)}. Name another column."
        )
    return moments


def checked_bounds(bounds: Any) -> Bounds:
    """The lowest and the highest value that a target can have, either None."""
    try:
        low, high = bounds
        ends = [None if end is None else float(end) for end in (low, high)]
    except (TypeError, ValueError):
        raise ValueError(
            f"bounds must be a pair (lower, upper), either end None, got {bounds!r}. "
            "Use (0, None) for values that cannot be negative."
        ) from None
    if ends[0] is not None and ends[1] is not None and not ends[0] < ends[1]:
        raise ValueError(f"the lower bound must be below the upper one, got {bounds!r}.")
    return ends[0], ends[1]
