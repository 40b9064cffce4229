"""Losses per sample, behind the call of ``torch.nn.GaussianNLLLoss``: ``loss(input, target, var)``."""

from typing import Literal

import torch
from torch import Tensor, nn

from accord._numerics import NORMAL, FamilyName, StandardFamily, family_named, log_agreement

Reduction = Literal["none", "mean", "sum"]


def bvm_loss(
    mu: Tensor,
    var: Tensor,
    target: Tensor,
    tolerance: Tensor | float,
    *,
    family: StandardFamily = NORMAL,
    density: bool = False,
) -> Tensor:
    """−log P(|ŷ − t| ≤ ε) per element, for ŷ of mean ``mu`` and variance ``var``.

    With ``density``, plus log 2ε: the negative log-likelihood of the target under the family convolved with
    Uniform(−ε, ε). Elements with ε = 0 are the negative log-likelihood in either form.
    """
    eps = torch.as_tensor(tolerance, dtype=mu.dtype, device=mu.device)
    return -log_agreement(family, mu, var, target, eps, density=density)


class BVMLoss(nn.Module):
    """Minus the log-probability that the prediction agrees with the target within a tolerance."""

    def __init__(
        self,
        tolerance: Tensor | float,
        *,
        family: FamilyName = "normal",
        df: float | None = None,
        density: bool = False,
        learn_tolerance: bool = False,
        eps: float = 1e-6,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__()
        self.family = family_named(family, df=df)
        self.density, self.eps, self.reduction = density, eps, reduction
        value = torch.as_tensor(tolerance, dtype=torch.get_default_dtype())
        self.log_tolerance = nn.Parameter(value.log()) if learn_tolerance else None
        self.register_buffer("_tolerance", value)

    @property
    def tolerance(self) -> Tensor:
        fixed: Tensor = self._tolerance
        return fixed if self.log_tolerance is None else self.log_tolerance.exp()

    def forward(
        self,
        input: Tensor,
        target: Tensor,
        var: Tensor,
        *,
        tolerance: Tensor | float | None = None,
        target_std: Tensor | float | None = None,
    ) -> Tensor:
        eps = self.tolerance.to(input.dtype) if tolerance is None else tolerance
        if self.eps > 0:
            var = var + (var.detach().clamp(min=self.eps) - var.detach())
        if target_std is not None:
            var = var + torch.as_tensor(target_std, dtype=var.dtype, device=var.device) ** 2
        loss = bvm_loss(input, var, target, eps, family=self.family, density=self.density)
        return {"none": lambda x: x, "mean": torch.mean, "sum": torch.sum}[self.reduction](loss)
