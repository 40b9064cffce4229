"""What all losses ask of their inputs, and how they reduce."""

import math
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from accord._checks import (
    check_choice,
    check_finite,
    check_floating,
    check_non_negative,
    check_not_empty,
    check_same_shape,
)

Reduction = Literal["none", "mean", "sum"]


class Prepared(NamedTuple):
    """Mean, variance and target of one dtype; the variance fits the others' shape."""

    mu: Tensor
    var: Tensor
    target: Tensor


def prepared(input: Tensor, target: Tensor, var: Tensor | float, *, floor: float) -> Prepared:
    """The inputs, checked; variances below the floor count as the floor, as in torch.

    Their gradient is that at the floor, so that a collapsed variance can recover.
    """
    check_floating("input", input)
    check_floating("target", target)
    check_same_shape(input=input, target=target)
    check_not_empty("input", input)
    dtype = torch.promote_types(input.dtype, target.dtype)
    spread = fitted("var", var, input, dtype)
    if any_outside(spread, floor, math.inf):
        check_non_negative("var", spread, remedy="Send it through softplus or exp.")
        check_finite("var", spread)
        spread = spread + (spread.detach().clamp(min=floor) - spread.detach())
    return Prepared(input.to(dtype), spread, target.to(dtype))


def fitted(name: str, value: Tensor | float, input: Tensor, dtype: torch.dtype) -> Tensor:
    """A number, or a tensor with the sizes of the input or 1 in their place, in that dtype."""
    if not isinstance(value, Tensor):
        return torch.as_tensor(value, dtype=dtype, device=input.device)
    check_floating(name, value)
    fits = value.ndim == input.ndim and all(
        size in (1, full) for size, full in zip(value.shape, input.shape, strict=True)
    )
    if value.ndim and not fits:
        raise ValueError(
            f"{name} must be a number or have the shape {tuple(input.shape)} of input, 1 where it "
            f"does not vary, got {tuple(value.shape)}. Reshape it, for instance with unsqueeze(-1)."
        )
    return value.to(input.device, dtype)


def with_noise(var: Tensor, target_std: Tensor | float | None, input: Tensor) -> Tensor:
    """The variance of ŷ − y when the target is itself measured with a Gaussian error."""
    if target_std is None:
        return var
    std = fitted("target_std", target_std, input, var.dtype)
    if any_outside(std, 0.0, math.inf):
        check_non_negative("target_std", std, remedy="Use 0 for targets without error.")
        check_finite("target_std", std)
    return var + std.square()


def any_outside(value: Tensor, least: float, most: float) -> bool:
    """Whether an element is NaN or not in [least, most), or out of sight (under ``vmap``)."""
    if torch._C._functorch.is_functorch_wrapped_tensor(value):
        return True
    lowest, highest = torch.aminmax(value.detach())
    return not (lowest.item() >= least and highest.item() < most)


def check_reduction(reduction: str) -> None:
    check_choice("reduction", reduction, get_args(Reduction))


def reduced(loss: Tensor, reduction: Reduction) -> Tensor:
    match reduction:
        case "mean":
            if loss.dtype == torch.float16:  # whose sum of some thousand rows overflows
                return (loss.sum(dtype=torch.float32) / loss.numel()).to(loss.dtype)
            return loss.sum() / loss.numel()  # whose gradient takes no memory, unlike mean's
        case "sum":
            return loss.sum()
        case _:
            return loss
