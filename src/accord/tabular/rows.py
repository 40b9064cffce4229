"""Rows as people have them: in any form, with columns that have a role.

Roles are those of the target, its bounds and tolerance, of weights, groups and time.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from accord._types import ArrowFrame, Floats, Indices
from accord._wording import count, listed, quoted
from accord.splits import groups_of_copies
from accord.tables import (
    ConformedRows,
    Schema,
    Surprises,
    Suspect,
    Table,
    TableError,
    TableFile,
    TrainingData,
    conform,
    read_table,
    time_column,
    with_gaps,
)
from accord.tabular.card import as_floats

# Rows to learn from or to predict: a frame, an array, or a file.
Array: TypeAlias = NDArray[Any]
Rows: TypeAlias = pd.DataFrame | ArrowFrame | Array | Sequence[Any] | Table | TableFile | str | Path

# What columns are called whose values are given without a name.
_NAMES = {"target": "y", "weight": "row weight"}


def as_table(X: Rows, *, max_rows: int | None = None) -> Table:
    """Rows in any of their forms as a table; an array's columns are x0, x1, …"""
    if isinstance(X, Table):
        return X
    if isinstance(X, ArrowFrame | TableFile | str | Path):
        return read_table(X, max_rows=max_rows)
    return read_table(named(array_of(X)), max_rows=max_rows)


def array_of(X: Any) -> Array:
    """Rows without names of columns as an array; a table in a form that hides them is refused."""
    if hasattr(X, "collect"):
        raise TypeError(
            f"rows must be a frame, an array or a file, got a {type(X).__name__}: a query that has "
            "not run. Call its method collect first."
        )
    if hasattr(X, "toarray"):
        raise TypeError(
            f"rows must be a frame, an array or a file, got a sparse {type(X).__name__}. Call its "
            "method toarray first."
        )
    if isinstance(X, Mapping) or (isinstance(X, list) and X and isinstance(X[0], Mapping)):
        raise TypeError(
            "rows must be a frame, an array or a file, got names with values. Make a frame of "
            "them: pandas.DataFrame(...)."
        )
    return np.asarray(X)


def conformed(X: Rows, schema: Schema) -> ConformedRows:
    """Rows in a model's form, found by the names of their columns; words among numbers warn."""
    table = as_table(X)
    nameless = not isinstance(X, Table | ArrowFrame | TableFile | str | Path)
    if nameless and set(schema.names).isdisjoint(table.data.column_names):
        raise ValueError(
            f"rows must come with the names of the model's columns, {listed(schema.names)}, got an "
            f"array of shape {np.asarray(X).shape}. Make a pandas.DataFrame(X, columns=…) of it."
        )
    found = conform(table.data, schema, source=table.name)
    for sentence in Surprises(words=found.surprises().words).sentences():
        warnings.warn(sentence, UserWarning, stacklevel=4)
    return found


def named(X: NDArray[Any]) -> pd.DataFrame:
    """An array as a frame, its columns x0, x1, …"""
    if X.ndim != 2:
        raise ValueError(
            f"X must have rows and columns, got shape {X.shape}. Take one row of a frame as "
            "frame.iloc[[0]], one column as frame[['name']]; reshape an array."
        )
    return pd.DataFrame(X, columns=[f"x{place}" for place in range(X.shape[1])])


def with_roles(
    X: Rows,
    given: dict[str, Any],
    *,
    max_rows: int | None = None,
) -> tuple[Table, dict[str, str]]:
    """The table with given values (targets, weights, bounds, …) as columns, and their names."""
    table = as_table(X, max_rows=max_rows)
    data, roles = table.data, {}
    for role, value in given.items():
        if value is None:
            continue
        # frames without names number their columns, and those with names in levels have tuples
        if np.ndim(value) == 0 or (isinstance(value, tuple) and str(value) in data.column_names):
            roles[role] = str(value)
            continue
        _check_order(role, value, X)
        values = np.asarray(value)
        if values.shape == (data.num_rows, 1):  # a frame or an array of one column
            values = values[:, 0]
        if values.shape != (data.num_rows,):
            raise ValueError(
                f"{role} must have one value per row, ({data.num_rows},), got {values.shape}."
            )
        wish = getattr(value, "name", None) or _NAMES.get(role, f"y {role}")
        roles[role] = _free_name(str(wish), data.column_names)
        column = read_table(pd.DataFrame({roles[role]: values})).data.column(0)
        data = data.append_column(roles[role], column)
    # values that are given belong to the rows at hand: there are none for the rest of a file
    return replace(table, data=data, origin=table.origin if data is table.data else None), roles


def _check_order(role: str, value: Any, X: Rows) -> None:
    """Refuse values whose labels are those of the rows in another order: which one is meant?"""
    if not (isinstance(X, pd.DataFrame) and isinstance(value, pd.Series | pd.DataFrame)):
        return
    rows, labels = X.index, value.index
    if len(rows) != len(labels) or rows.equals(labels) or not labels.is_unique:
        return
    if rows.isin(labels).all() and rows.is_unique:
        raise ValueError(
            f"{role} must have the rows of X in their order, got the same index in another one. "
            f"Align it by its index (.loc[X.index]), or give .to_numpy() if it is in order."
        )


def _free_name(wish: str, taken: Sequence[str]) -> str:
    while wish in taken:
        wish += "_"
    return wish


def groups_of(table: Table, places: NDArray[np.intp], name: str) -> NDArray[np.int64]:
    """A number per group of some rows of a table, given by their places in it.

    A row without a group is a group of its own.
    """
    column = with_gaps(table.data.column(name).take(pa.array(places))).to_pandas()
    codes, _ = pd.factorize(column)
    alone = codes < 0
    codes[alone] = codes.max() + 1 + np.arange(alone.sum())
    return np.asarray(codes, dtype=np.int64)


def held_together(
    table: Table, data: TrainingData, *, group: str | None, time: str | None
) -> NDArray[np.int64] | None:
    """Which rows are held out together: groups that are named, else copies of a row.

    Copies are sought among the columns, since encoded ones may differ from row to row.
    """
    if group is None:
        return None if time is not None else groups_of_copies(data.X, data.y)
    groups = groups_of(table, data.places, group)
    if len(np.unique(groups)) < 2:
        raise TableError(
            f"group column {quoted(group)} must hold at least 2 groups, got 1. Name another column."
        )
    return groups


def with_note_on_groups(table: Table, data: TrainingData, group: str | None) -> TrainingData:
    """The data, with a sentence on rows that have no group, if there are any."""
    if group is None:
        return data
    alone = with_gaps(table.data.column(group).take(pa.array(data.places))).null_count
    if not alone:
        return data
    own = "it is held out alone" if alone == 1 else "each is held out alone"
    note = f"{count(alone, 'row')} without a value of {quoted(group)}: {own}."
    return replace(data, notes=(*data.notes, note))


def order_of(
    table: Table, data: TrainingData, name: str | None, *, sample: Table | None = None
) -> Floats | None:
    """The moment of each row, as a number; read as in ``sample``, where the table is a batch."""
    if name is None:
        return None
    if name in data.schema.names and data.X[name].dtype.kind != "O":
        return as_floats(data.X[[name]])[:, 0]
    return time_column(table, name, sample=sample)[data.places]


def notes_on_splits(
    unheeded: Sequence[Suspect], together: Indices | None, *, group: str | None
) -> list[str]:
    """What could make held-out rows too easy, and what was done about it.

    **Shape**: together (N,), the same number for rows that are held out together.
    """
    notes = [suspect.sentence for suspect in unheeded]
    copies = 0
    if together is not None and group is None:
        copies = len(together) - len(np.unique(together))
    if copies:
        repeat = count(copies, "row repeats", "rows repeat")
        notes.append(f"{repeat} another one in every column: copies were held out together.")
    return notes
