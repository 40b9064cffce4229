"""The losses that BVM is compared with: squared error and negative log-likelihoods."""

from typing import final

import torch
from torch import Tensor, nn

from accord._checks import (
    check_floating,
    check_non_negative,
    check_not_empty,
    check_probability,
    check_same_shape,
)
from accord._numerics import gaussian_nll
from accord.losses.inputs import Reduction, check_reduction, prepared, reduced, with_noise


@final
class MSELoss(nn.Module):
    """(t − μ)², with a variance accepted and left aside.

    Args:
        reduction: "none", "mean" or "sum".

    **Shape**: input and target of one shape; the output has it with "none", else ().

    Example:
        >>> MSELoss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(2.)
    """

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float | None = None) -> Tensor:
        check_floating("input", input)
        check_floating("target", target)
        check_same_shape(input=input, target=target)
        check_not_empty("input", input)
        return reduced((target - input).square(), self.reduction)


@final
class GaussianNLLLoss(nn.Module):
    """−log N(t; μ, σ²) = ½[log 2πσ² + (t − μ)²/σ²].

    Unlike torch's, it always has the constant ½ log 2π, and so is a likelihood.

    Args:
        eps: least variance; smaller ones count as this, as in torch.
        reduction: "none", "mean" or "sum".

    **Shape**: input and target of one shape; var a number, or with 1 where it does not vary.

    Example:
        >>> mu, t, var = torch.zeros(3), torch.ones(3), torch.full((3,), 2.0)
        >>> bool(GaussianNLLLoss()(mu, t, var) == nn.GaussianNLLLoss(full=True)(mu, t, var))
        True
    """

    def __init__(self, *, eps: float = 1e-6, reduction: Reduction = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        check_non_negative("eps", eps)
        self.eps, self.reduction = eps, reduction

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
        return reduced(gaussian_nll(mu, variance, t), self.reduction)


@final
class LaplaceNLLLoss(nn.Module):
    """−log of the Laplace density, log 2b + |t − μ|/b, with b = √(var/2) from the variance.

    Args:
        eps: least variance; smaller ones count as this.
        reduction: "none", "mean" or "sum".

    **Shape**: input and target of one shape; var a number, or with 1 where it does not vary.

    Example:
        >>> LaplaceNLLLoss()(torch.zeros(1), torch.ones(1), torch.full((1,), 2.0))
        tensor(1.6931)
    """

    def __init__(self, *, eps: float = 1e-6, reduction: Reduction = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        check_non_negative("eps", eps)
        self.eps, self.reduction = eps, reduction

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        mu, variance, t = prepared(input, target, var, floor=self.eps)
        scale = torch.sqrt(variance / 2)
        return reduced(torch.log(2 * scale) + (t - mu).abs() / scale, self.reduction)


@final
class BetaNLLLoss(nn.Module):
    """σ^{2β} −log N(t; μ, σ²), the weight taken as a constant (Seitzer et al., 2022).

    β = 0 is the Gaussian likelihood, β = 1 gives the mean the gradient of squared error.

    Args:
        beta: exponent of the variance, in [0, 1].
        eps: least variance; smaller ones count as this.
        reduction: "none", "mean" or "sum".

    **Shape**: input and target of one shape; var a number, or with 1 where it does not vary.

    Example:
        >>> mu = torch.zeros(1, requires_grad=True)
        >>> BetaNLLLoss(beta=1.0)(mu, torch.ones(1), torch.full((1,), 4.0)).backward()
        >>> mu.grad
        tensor([-1.])
    """

    def __init__(
        self, beta: float = 0.5, *, eps: float = 1e-6, reduction: Reduction = "mean"
    ) -> None:
        super().__init__()
        check_reduction(reduction)
        check_non_negative("eps", eps)
        check_probability("beta", beta, remedy="Use 0.5, between likelihood and squared error.")
        self.beta, self.eps, self.reduction = beta, eps, reduction

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
        weight = variance.detach() ** self.beta
        return reduced(weight * gaussian_nll(mu, variance, t), self.reduction)
