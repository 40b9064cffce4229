"""The types of arrays and frames that signatures use."""

from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.intp]


@runtime_checkable
class ArrowFrame(Protocol):
    """A frame of any library that hands over its columns as Arrow data: polars, pyarrow, pandas."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


Frame = TypeVar("Frame", bound=ArrowFrame)
