"""The two sides of an agreement, model and data, in the form in which the routes work with them.

Each side is known exactly, given as draws, or given as a distribution. Inside, rows are flattened
to one axis and numbers are float64, whatever the caller holds.
"""

from dataclasses import dataclass
from math import prod
from typing import Any, final

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from accord._checks import check_finite, check_floating, check_not_empty
from accord.agreement.boolean import to_array
from accord.distributions import Distribution, Empirical


@final
@dataclass(frozen=True, eq=False)
class Known:
    """Exact values, (n,)."""

    values: Tensor

    def take(self, rows: Any) -> "Known":
        return Known(self.values[rows])


@final
@dataclass(frozen=True, eq=False)
class Sampled:
    """Equally likely draws, (S, n), joint over the rows."""

    draws: Tensor

    def take(self, rows: Any) -> "Sampled":
        return Sampled(self.draws[:, rows])


@final
@dataclass(frozen=True, eq=False)
class Uncertain:
    """A distribution with batch shape (n,), independent over the rows."""

    law: Distribution

    def take(self, rows: Any) -> "Uncertain":
        return Uncertain(self.law[rows])


Side = Known | Sampled | Uncertain


@final
@dataclass(frozen=True, eq=False)
class Pair:
    """Model and data with n rows each."""

    model: Side
    data: Side
    n: int

    def take(self, rows: Tensor) -> "Pair":
        return Pair(self.model.take(rows), self.data.take(rows), len(rows))


def pair_of(
    model: Distribution | ArrayLike | Tensor, data: Distribution | ArrayLike | Tensor
) -> tuple[Pair, tuple[int, ...]]:
    """Both sides, flattened, and the shape of the data."""
    check_floating("model", model)
    check_floating("data", data)
    shape = data.shape if isinstance(data, Distribution) else to_array(data).shape
    data_side = side_of(data) if isinstance(data, Distribution) else _known("data", data)
    if isinstance(model, Distribution):
        _check_rows(model.shape, shape)
        return Pair(side_of(model), data_side, prod(shape)), shape
    values = to_array(model)
    if values.shape[1:] == shape and values.ndim == len(shape) + 1:
        check_not_empty("model", values)
        check_finite("model", values)
        draws = torch.from_numpy(values.reshape(len(values), -1))
        return Pair(Sampled(draws), data_side, prod(shape)), shape
    _check_rows(values.shape, shape)
    return Pair(_known("model", values), data_side, prod(shape)), shape


def _known(name: str, values: ArrayLike | Tensor) -> Known:
    array = to_array(values)
    check_not_empty(name, array)
    check_finite(name, array, remedy="Leave such rows out.")
    return Known(torch.from_numpy(array.reshape(-1).copy()))


def side_of(law: Distribution) -> Side:
    """A distribution as a side, flattened, in float64 and cut from any graph."""
    # Float64 whatever the caller trains in: errors are stated below what float32 can hold.
    double = law._map(lambda tensor, _: tensor.detach().cpu().double())._replace(_numpy=True)
    flat = double._flat()
    if isinstance(flat, Empirical):
        return Sampled(torch.as_tensor(flat.draws))
    return Uncertain(flat)


def _check_rows(model: tuple[int, ...], data: tuple[int, ...]) -> None:
    if model != data:
        raise ValueError(
            f"model and data must have the same shape, got model {model} and data {data}. "
            f"Pass values or a distribution of shape {data}, or draws of shape {('S', *data)}."
        )
