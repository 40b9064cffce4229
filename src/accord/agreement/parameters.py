"""The numbers of a rule: one for all rows or one per row, checked once and shown readably."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from accord._checks import check_finite, check_fits, check_floating, check_non_negative

Parameter = float | NDArray[np.float64] | Tensor
"""A rule's number: one for all rows, or one per row."""


def set_parameter(rule: Any, name: str) -> None:
    """Store an argument of a frozen rule as a float, a float64 array, or the tensor it was."""
    value = getattr(rule, name)
    check_floating(name, value)
    if not isinstance(value, Tensor):
        value = np.array(value, dtype=np.float64)
        value = float(value) if value.ndim == 0 else value
    object.__setattr__(rule, name, value)


def set_tolerance(rule: Any, name: str, *, finite: bool = True) -> None:
    """Store an argument that must not be negative."""
    set_parameter(rule, name)
    value = getattr(rule, name)
    check_non_negative(name, value, remedy="Use Exact() for exact agreement.")
    if finite:
        check_finite(name, value, remedy="Use AtLeast() or AtMost() for a one-sided rule.")


def as_rows(value: Parameter, name: str, y: Tensor) -> Tensor:
    """The parameter as a tensor that fits the data."""
    if isinstance(value, float):
        return y.new_tensor(value)
    check_fits("data", y, tuple(value.shape), owner=name)
    return value.to(y) if isinstance(value, Tensor) else y.new_tensor(value)


def as_array(value: Parameter, name: str, y: NDArray[np.float64]) -> NDArray[np.float64]:
    """The parameter as an array that fits the data."""
    array = to_array(value)
    check_fits("data", y, array.shape, owner=name)
    return array


def to_array(value: ArrayLike | Tensor) -> NDArray[np.float64]:
    """Numbers as a float64 array, cut from any graph."""
    if isinstance(value, Tensor):
        value = value.detach().cpu().numpy()
    return np.asarray(value, dtype=np.float64)


def in_words(value: Parameter, *, percent: bool = False) -> str:
    """A number as `parse_rule` reads it; per-row numbers by their range."""
    array = to_array(value) * (100 if percent else 1)
    unit = "%" if percent else ""
    if array.ndim == 0:
        return f"{float(array):.12g}{unit}"
    return f"{array.min():.12g}{unit}…{array.max():.12g}{unit} ({array.size} rows)"


def in_code(value: Parameter) -> str:
    """A number as Python reads it; per-row numbers shortened."""
    if isinstance(value, float):
        return repr(value)
    return np.array2string(to_array(value), precision=6, threshold=6, edgeitems=2, separator=", ")


def equal(a: Any, b: Any) -> bool:
    """Whether two fields of a rule are the same value."""
    if isinstance(a, float | np.ndarray | Tensor) and isinstance(b, float | np.ndarray | Tensor):
        return bool(np.array_equal(to_array(a), to_array(b)))
    return bool(a == b)
