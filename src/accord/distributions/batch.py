"""Rows of parameters in tensors: from what a user holds, and evaluated for all rows at once."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from functools import reduce
from math import prod
from typing import Any, Self, TypeAlias, final

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from accord._checks import (
    check_finite,
    check_fits,
    check_floating,
    check_not_empty,
    check_not_nan,
)
from accord._types import Floats

TensorMap = Callable[[Tensor, int], Tensor]
Generator = np.random.Generator | np.random.RandomState
Values: TypeAlias = Floats | Any
"""A numpy array (float64) or a tensor: the kind from which the distribution was built.

Type checkers take it for an array, which it is unless tensors were given.
"""


# Elements evaluated at a time: temporaries take a few megabytes, whatever the number of rows.
_CHUNK = 2**17


class Batch(ABC):
    """One thing per element of ``shape``, its parameters held in tensors.

    Subclasses work on tensors; this class converts what a user hands over, selects rows, flattens
    the batch and goes through it in chunks. ``_numpy`` says in which kind to answer.
    """

    _numpy: bool

    @property
    @abstractmethod
    def _reference(self) -> Tensor:
        """A tensor of the batch's shape, dtype and device."""

    @property
    @abstractmethod
    def _width(self) -> int:
        """Numbers held per row: what a row costs to evaluate."""

    @abstractmethod
    def _map(self, function: TensorMap, lead: int = 0) -> Self:
        """The same distribution with ``function(tensor, lead)`` in place of each tensor.

        ``lead`` is the number of axes (of members) in front of the batch's own axes.
        """

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch's shape."""
        return tuple(self._reference.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("rows must exist to be counted, got shape (). Build it from lists.")
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Self:
        """The selected rows: an index, a slice, an index array, a mask, or a tuple of these."""
        index = tuple(as_index(part) for part in (rows if isinstance(rows, tuple) else (rows,)))
        if len(index) > len(self.shape):
            raise IndexError(
                f"at most {len(self.shape)} indices fit the shape {self.shape}, got {len(index)}. "
                "Index the rows only."
            )
        selected = self._map(lambda tensor, lead: tensor[(slice(None),) * lead + index])
        check_not_empty("the selection of rows", selected._reference)
        return selected

    @final
    def _receive(self, name: str, value: Values) -> Tensor:
        """A user's value as a tensor of this distribution's kind, checked to fit its shape."""
        tensor = self._convert(name, value)
        check_fits(name, tensor, self.shape, owner=type(self).__name__)
        check_not_nan(name, tensor)
        return tensor.expand(np.broadcast_shapes(tensor.shape, self.shape))

    @final
    def _convert(self, name: str, value: Values) -> Tensor:
        """A user's value as a tensor of this distribution's kind."""
        if self._numpy and isinstance(value, Tensor) and value.requires_grad:
            raise TypeError(
                f"{name} must not require a gradient where the {type(self).__name__} is built from "
                "arrays, got requires_grad=True. Build the distribution from tensors."
            )
        return to_tensor(name, value, self._reference.dtype, self._reference.device)

    @final
    def _answer(self, tensor: Tensor) -> Values:
        if not self._numpy:
            return tensor.to(self._reference.dtype)
        return tensor.detach().numpy()[()]

    @final
    def _replace(self, **attributes: Any) -> Self:
        """A copy with some attributes exchanged, without repeating the constructor's checks."""
        other = copy(self)
        vars(other).update(attributes)
        return other

    @final
    def _flat(self) -> Self:
        """The same distribution with its batch axes merged into one."""
        n, axes = prod(self.shape), len(self.shape)
        return self._map(lambda t, lead: t.reshape(*t.shape[:lead], n, *t.shape[lead + axes :]))

    @final
    def _exact(self) -> Self:
        """The same distribution with a flat batch, in float64 wherever the device has it."""
        dtype = torch.float32 if self._reference.device.type == "mps" else torch.float64
        return self._flat()._map(lambda tensor, _: tensor.to(dtype))

    @final
    def _evaluate(self, method: str, *values: Tensor) -> Tensor:
        """``method`` of the flattened distribution at ``values`` ``(..., *shape)``, in chunks."""
        exact, points = self._exact(), broadcast(*values)
        outer = points[0].shape[: points[0].ndim - len(self.shape)]
        points = [x.to(exact._reference.dtype).reshape(prod(outer), len(exact)) for x in points]
        columns = []
        for rows, part in exact._chunks(prod(outer)):
            step = max(1, _CHUNK // (self._width * len(part)))
            cells = [
                getattr(part, method)(*(x[start : start + step, rows] for x in points))
                for start in range(0, prod(outer), step)
            ]
            columns.append(torch.cat(cells))
        return torch.cat(columns, dim=-1).reshape((*outer, *self.shape))

    @final
    def _chunks(self, copies: int) -> Iterator[tuple[slice, Self]]:
        """Stretches of rows of a flat batch, each to be evaluated ``copies`` times at once."""
        n, step = len(self), max(1, _CHUNK // (self._width * max(1, copies)))
        for start in range(0, n, step):
            rows = slice(start, start + step)
            yield rows, self if step >= n else self._map(rows_of(rows))


def rows_of(rows: slice | Tensor) -> TensorMap:
    """What `Batch._map` takes to select rows of a flat batch."""
    return lambda tensor, lead: tensor[(slice(None),) * lead + (rows,)]


def to_tensors(**values: Values) -> tuple[list[Tensor], bool]:
    """The named parameters as tensors of one kind and shape, and whether none was a tensor before.

    Scalars take the shape of the others; other shapes must agree exactly.

    >>> (mean, std), from_numpy = to_tensors(mean=[0.0, 1.0], std=2)
    >>> std, from_numpy
    (tensor([2., 2.], dtype=torch.float64), True)
    """
    tensors, from_numpy = of_one_kind(**values)
    shape = _common_shape(dict(zip(values, tensors, strict=True)))
    return [tensor.expand(shape) for tensor in tensors], from_numpy


def of_one_kind(**values: Values) -> tuple[list[Tensor], bool]:
    """The named parameters as finite tensors of one kind, and whether none was a tensor before."""
    given = [value for value in values.values() if isinstance(value, Tensor)]
    for name, value in values.items():
        check_floating(name, value)
    dtype, device = torch.float64, torch.device("cpu")
    if given:
        dtype = reduce(torch.promote_types, [tensor.dtype for tensor in given])
        device = given[0].device
    tensors = [to_tensor(name, value, dtype, device) for name, value in values.items()]
    for name, tensor in zip(values, tensors, strict=True):
        check_finite(name, tensor)
    return tensors, not given


def to_tensor(name: str, value: Values, dtype: torch.dtype, device: torch.device) -> Tensor:
    """One non-empty value as a tensor of the given kind, keeping its gradient."""
    check_floating(name, value)
    tensor = value if isinstance(value, Tensor) else torch.from_numpy(_float_array(name, value))
    check_not_empty(name, tensor)
    return tensor.to(dtype=dtype, device=device)


def broadcast(*tensors: Tensor) -> list[Tensor]:
    """The tensors expanded to their common shape."""
    shape = np.broadcast_shapes(*(tensor.shape for tensor in tensors))
    return [tensor.expand(shape) for tensor in tensors]


def _float_array(name: str, value: Values) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        # A copy: a distribution does not change when the caller's array does.
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{name} must be a number or an array of numbers, got {value!r:.80}. "
            "Convert it to floats first."
        ) from error


def _common_shape(tensors: dict[str, Tensor]) -> tuple[int, ...]:
    shapes = {name: tuple(t.shape) for name, t in tensors.items() if t.ndim}
    if len(set(shapes.values())) > 1:
        got = " and ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(
            f"{', '.join(tensors)} must be scalars or have one shape, got {got}. "
            "Reshape one of them, for instance with ravel()."
        )
    return next(iter(shapes.values()), ())


def abridged(tensor: Tensor) -> str:
    """A tensor as ``repr`` shows it: a few numbers, or its shape where it has several axes."""
    if tensor.ndim > 1:
        return f"<{' × '.join(map(str, tensor.shape))}>"
    values = tensor.detach().cpu().double().numpy()
    return np.array2string(values, precision=4, threshold=6, edgeitems=2, separator=", ")


def as_index(part: Any) -> Any:
    """One index of rows as torch takes it."""
    if part is None or part is Ellipsis:
        raise TypeError(f"rows must be an index, slice, array or mask, got {part}. Name the rows.")
    if isinstance(part, int | slice | Tensor):
        return part
    return torch.from_numpy(np.array(part))


def torch_generator(rng: Generator) -> torch.Generator:
    """A torch generator seeded by the next number of a numpy generator."""
    return torch.Generator().manual_seed(int.from_bytes(rng.bytes(8), "little") >> 1)


def to_floats(value: ArrayLike | Tensor) -> Floats:
    """Numbers as a float64 array, cut from any graph."""
    if isinstance(value, Tensor):
        value = value.detach().cpu().numpy()
    return np.asarray(value, dtype=np.float64)
