"""The door between what a user holds (numbers, lists, numpy arrays, tensors) and torch."""

from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from accord._checks import check_finite, check_floating, check_not_empty

Generator = np.random.Generator | np.random.RandomState
Values: TypeAlias = Any
"""A numpy array (float64) or a tensor: the kind from which the distribution was built."""


def to_tensors(**values: Values) -> tuple[list[Tensor], bool]:
    """The named parameters as tensors of one kind and shape, and whether none was a tensor before.

    Scalars take the shape of the others; other shapes must agree exactly.

    >>> (mean, std), from_numpy = to_tensors(mean=[0.0, 1.0], std=2)
    >>> std, from_numpy
    (tensor([2., 2.], dtype=torch.float64), True)
    """
    given = [value for value in values.values() if isinstance(value, Tensor)]
    dtype, device = _kind_of(values, given)
    tensors = {name: to_tensor(name, value, dtype, device) for name, value in values.items()}
    for name, tensor in tensors.items():
        check_finite(name, tensor)
    shape = _common_shape(tensors)
    return [tensor.expand(shape) for tensor in tensors.values()], not given


def to_tensor(name: str, value: Values, dtype: torch.dtype, device: torch.device) -> Tensor:
    """One non-empty value as a tensor of the given kind, keeping its gradient."""
    check_floating(name, value)
    is_tensor = isinstance(value, Tensor)
    tensor: Tensor = value if is_tensor else torch.from_numpy(_float_array(name, value))
    check_not_empty(name, tensor)
    return tensor.to(dtype=dtype, device=device)


def broadcast(*tensors: Tensor) -> list[Tensor]:
    """The tensors expanded to their common shape."""
    shape = np.broadcast_shapes(*(tensor.shape for tensor in tensors))
    return [tensor.expand(shape) for tensor in tensors]


def _kind_of(values: dict[str, Values], given: list[Tensor]) -> tuple[torch.dtype, torch.device]:
    for name, value in values.items():
        check_floating(name, value)
    if not given:
        return torch.float64, torch.device("cpu")
    dtype = given[0].dtype
    for tensor in given[1:]:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return dtype, given[0].device


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


def shown(tensor: Tensor) -> str:
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
