"""Frames of any library as Arrow tables."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from accord._types import ArrowFrame
from accord._wording import quoted
from accord.tables.schema import TableError, check_names


def arrow_of(frame: pd.DataFrame | ArrowFrame) -> pa.Table:
    """A frame's columns with their types, as plain as the rest of the package takes them."""
    if isinstance(frame, pd.DataFrame):
        names = [str(name) for name in frame.columns]
        check_names("the DataFrame", names)
        return _from_pandas(frame.set_axis(names, axis=1))
    data = pa.table(frame)
    check_names("the DataFrame", data.column_names)
    return pa.table({name: _in_strings(data.column(name)) for name in data.column_names})


def _from_pandas(frame: pd.DataFrame) -> pa.Table:
    """A frame as a table; cells of several types in one column as text, as a file has them."""
    frame = _without_pandas_types(frame)
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError):
        return pa.table({name: _column_of(name, frame[name]) for name in frame.columns})


def _without_pandas_types(frame: pd.DataFrame) -> pd.DataFrame:
    """Periods as their first moment and intervals, also those of pandas.cut, as categories."""
    found: dict[str, Any] = {}
    for name, column in frame.items():
        kind = column.dtype
        cells = kind.categories.dtype if isinstance(kind, pd.CategoricalDtype) else kind
        if isinstance(cells, pd.IntervalDtype):
            found[str(name)] = column.astype("category").cat.rename_categories(str)
        elif isinstance(kind, pd.PeriodDtype):
            found[str(name)] = column.dt.start_time
    return frame.assign(**found)


def _column_of(name: str, column: "pd.Series[Any]") -> pa.Array:
    if isinstance(column.dtype, pd.SparseDtype):
        column = pd.Series(np.asarray(column))
    elif column.dtype == object and column.dropna().map(type).nunique() > 1:
        column = column.map(str, na_action="ignore")
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError) as error:
        sample = column.dropna().iloc[0]
        raise TableError(
            f"a column must hold numbers, texts, dates or truth values, but {quoted(name)} of the "
            f"DataFrame holds {quoted(sample, limit=40)} ({type(sample).__name__}). Convert it, or "
            "leave it out."
        ) from error


def _in_strings(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts and categories as plain strings, for which alone Arrow has all functions."""
    kind = column.type
    if pa.types.is_dictionary(kind) and _is_view(kind.value_type):
        chunks = [c.dictionary.cast(pa.string()).take(c.indices) for c in column.chunks]
        return pa.chunked_array(chunks, pa.string())
    return column.cast(pa.string()) if _is_view(kind) else column


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_large_string(kind))
