"""What all losses share, and the likelihood that BVM is compared with."""

import math
from typing import Literal, NamedTuple, final, get_args

import torch
from torch import Tensor, nn

from accord._checks import (
    check_choice,
    check_finite,
    check_floating,
    check_non_negative,
    check_not_empty,
    check_probability,
    check_same_shape,
)
from accord._numerics import gaussian_nll

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
    _check_pair(input, target)
    dtype = torch.promote_types(input.dtype, target.dtype)
    spread = fitted("var", var, input, dtype)
    if any_outside(spread, floor, math.inf):
        check_non_negative("var", spread, remedy="Send it through softplus or exp.")
        check_finite("var", spread)
        spread = spread + (spread.detach().clamp(min=floor) - spread.detach())
    return Prepared(input.to(dtype), spread, target.to(dtype))


def _check_pair(input: Tensor, target: Tensor) -> None:
    check_floating("input", input)
    check_floating("target", target)
    check_same_shape(input=input, target=target)
    check_not_empty("input", input)


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


class Loss(nn.Module):
    """A loss of a predicted mean and variance; abstract.

    Variances below ``eps`` count as ``eps``, as in torch.
    """

    def __init__(self, *, eps: float = 1e-6, reduction: Reduction = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        check_non_negative("eps", eps)
        self.eps, self.reduction = eps, reduction


@final
class GaussianNLLLoss(Loss):
    """−log N(t; μ, σ²) = ½[log 2πσ² + (t − μ)²/σ²], weighted by σ^{2β}.

    Unlike torch's, it always has the constant ½ log 2π, and so is a likelihood for β = 0. The
    weight counts as a constant (Seitzer et al., 2022): β = 1 gives the mean the gradient of squared
    error.

    Args:
        beta: exponent of the variance, in [0, 1]; 0.5 is the recommended β-NLL.
        eps: least variance; smaller ones count as this, as in torch.
        reduction: "none", "mean" or "sum".

    **Shape**: input and target of one shape; var a number, or with 1 where it does not vary.

    Example:
        >>> mu, t, var = torch.zeros(3), torch.ones(3), torch.full((3,), 2.0)
        >>> bool(GaussianNLLLoss()(mu, t, var) == nn.GaussianNLLLoss(full=True)(mu, t, var))
        True
    """

    def __init__(
        self, *, beta: float = 0.0, eps: float = 1e-6, reduction: Reduction = "mean"
    ) -> None:
        super().__init__(eps=eps, reduction=reduction)
        check_probability("beta", beta, remedy="Use 0.5, between likelihood and squared error.")
        self.beta = beta

    def forward(
        self,
        input: Tensor,
        target: Tensor,
        var: Tensor | float,
        *,
        target_std: Tensor | float | None = None,
    ) -> Tensor:
        """``target_std`` is the measurement error of each target, whose square adds to var."""
        mu, variance, t = prepared(input, target, var, floor=self.eps)
        variance = with_noise(variance, target_std, mu)
        loss = gaussian_nll(mu, variance, t)
        if self.beta:
            loss = variance.detach() ** self.beta * loss
        return reduced(loss, self.reduction)
