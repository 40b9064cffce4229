"""What stacks of networks are trained on: losses as functions of raw outputs, with their gradients.

A network has two outputs per target, the mean's and the variance's, each sent through its head.
The agreement objective is −log q(t), q the density of agreement (docs/theory.md): with
z = (t − μ)/σ and h = ε/σ,

    loss = log σ − log([F(z + h) − F(z − h)] / 2h),

which is NLL for ε = 0. Its gradients are closed forms of the same primitive, so that a training
step needs no autograd; :class:`ByAutograd` serves every other loss.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, final

import torch
from torch import Tensor

from accord._numerics import (
    FamilyName,
    StandardFamily,
    agreement_loss,
    agreement_slopes,
    family_named,
    log_between,
)
from accord.training import Columns

MeanHead = Literal["identity", "sigmoid"]
VarianceHead = Literal["sigmoid", "softplus", "exp"]

# Keeps a variance from collapsing, as torch.nn.GaussianNLLLoss does; targets have about unit range.
VARIANCE_FLOOR = 1e-6

Result = tuple[Tensor, Tensor, Tensor | None]


@dataclass(frozen=True)
class Heads:
    """How raw outputs become means and variances of scaled targets.

    **Shape**: raw (…, 2T), means first → mean and variance (…, T) each.
    """

    mean: MeanHead = "sigmoid"
    variance: VarianceHead = "sigmoid"

    def __call__(self, raw: Tensor) -> tuple[Tensor, Tensor]:
        mean, variance = raw.chunk(2, -1)
        if self.mean == "sigmoid":
            mean = torch.sigmoid(mean)
        match self.variance:
            case "sigmoid":
                variance = torch.sigmoid(variance)
            case "softplus":
                variance = torch.nn.functional.softplus(variance)
            case "exp":
                variance = torch.exp(variance)
        return mean, variance + VARIANCE_FLOOR

    def chain(
        self, raw: Tensor, mean: Tensor, variance: Tensor, grads: tuple[Tensor, Tensor]
    ) -> Tensor:
        """Gradient by the raw outputs, from those by mean and variance."""
        grad_mean, grad_variance = grads
        if self.mean == "sigmoid":
            grad_mean = grad_mean * mean * (1 - mean)
        bare = variance - VARIANCE_FLOOR
        match self.variance:
            case "sigmoid":
                grad_variance = grad_variance * bare * (1 - bare)
            case "softplus":
                grad_variance = grad_variance * torch.sigmoid(raw.chunk(2, -1)[1])
            case "exp":
                grad_variance = grad_variance * bare
        return torch.cat((grad_mean, grad_variance), -1)


@final
@dataclass(frozen=True)
class GaussianLikelihood:
    """NLL of a Gaussian; with ``beta`` > 0 each row weighted by its own variance^β (β-NLL)."""

    heads: Heads
    beta: float = 0.0
    n_extra: int = 0

    def __call__(self, raw: Tensor, columns: Columns, weight: Tensor, extra: Tensor) -> Result:
        mean, variance = self.heads(raw)
        residual = mean - columns["target"]
        precision = variance.reciprocal()
        scaled = residual * precision
        loss = 0.5 * (torch.log(2 * torch.pi * variance) + residual * scaled)
        weight = weight.unsqueeze(-1)
        if self.beta:
            weight = weight * variance**self.beta
        grads = scaled * weight, 0.5 * weight * (precision - scaled * scaled)
        return loss.sum(-1), self.heads.chain(raw, mean, variance, grads), None


@final
@dataclass(frozen=True)
class SquaredError:
    """(μ − t)², summed over the targets; a network has one output per target, its mean's."""

    head: MeanHead = "identity"
    n_extra: int = 0

    def mean(self, raw: Tensor) -> Tensor:
        return torch.sigmoid(raw) if self.head == "sigmoid" else raw

    def __call__(self, raw: Tensor, columns: Columns, weight: Tensor, extra: Tensor) -> Result:
        mean = self.mean(raw)
        residual = mean - columns["target"]
        grad = 2 * residual * weight.unsqueeze(-1)
        if self.head == "sigmoid":
            grad = grad * mean * (1 - mean)
        return residual.square().sum(-1), grad, None


@final
@dataclass(frozen=True)
class Agreement:
    """−log density of agreement within each row's tolerance, for any standard family.

    Columns: ``target``; ``tolerance`` (0 where agreement is exact), unless it is learnt; optionally
    ``noise``, the variance of the target's own measurement error (Gaussian family).
    """

    heads: Heads
    family: FamilyName = "normal"
    df: float | None = None
    learn_tolerance: bool = False

    @property
    def n_extra(self) -> int:
        return int(self.learn_tolerance)

    @cached_property
    def standard(self) -> StandardFamily:
        return family_named(self.family, df=self.df)

    def __call__(self, raw: Tensor, columns: Columns, weight: Tensor, extra: Tensor) -> Result:
        mean, head_variance = self.heads(raw)
        noise = columns.get("noise")
        variance = head_variance if noise is None else head_variance + noise
        target = columns["target"]
        if self.learn_tolerance:
            eps = torch.exp(extra).unsqueeze(1).expand_as(target)
        else:
            eps = columns["tolerance"]
        slopes = agreement_slopes(
            self.standard, mean, variance, target, eps, density=True, by_eps=self.learn_tolerance
        )
        weight = weight.unsqueeze(-1)
        grads = slopes.mu * weight, slopes.var * weight
        grad = self.heads.chain(raw, mean, head_variance, grads)
        grad_extra = None
        if slopes.eps is not None:
            grad_extra = (slopes.eps * eps * weight).sum((1, 2)).unsqueeze(-1)
        return slopes.loss.sum(-1), grad, grad_extra


@final
@dataclass(frozen=True)
class ByAutograd:
    """Any differentiable loss of raw outputs and columns, per sample (M, B)."""

    loss: Callable[[Tensor, Columns], Tensor]
    n_extra: int = 0

    def __call__(self, raw: Tensor, columns: Columns, weight: Tensor, extra: Tensor) -> Result:
        with torch.enable_grad():
            raw = raw.detach().requires_grad_()
            loss = self.loss(raw, columns)
            (grad,) = torch.autograd.grad((loss * weight).sum(), raw)
        return loss.detach(), grad, None


@dataclass(frozen=True)
class CensoredLoss:
    """−log probability of agreement where a row's target is only known to lie between bounds.

    Rows whose ``lower`` equals ``upper`` are known, and agree within their ``tolerance`` as in
    :class:`Agreement`; for the others the rule is ``lower`` ≤ ŷ ≤ ``upper``, either infinite.
    """

    heads: Heads
    family: FamilyName = "normal"
    df: float | None = None

    def __call__(self, raw: Tensor, columns: Columns) -> Tensor:
        family = family_named(self.family, df=self.df)
        mean, variance = self.heads(raw)
        if "noise" in columns:
            variance = variance + columns["noise"]
        sigma = torch.sqrt(variance / family.variance)
        lower, upper, eps = columns["lower"], columns["upper"], columns["tolerance"]
        known = lower == upper
        low = _standardised(lower, known, mean, sigma)
        high = _standardised(upper, known, mean, sigma)
        # where a row is known, any proper interval keeps the unused branch finite
        low, high = torch.where(known, -1.0, low), torch.where(known, 1.0, high)
        between = -log_between(family, low, high)
        density = agreement_loss(family, mean, variance, columns["target"], eps, density=True)
        return torch.where(known, density, between).sum(-1)


def _standardised(bound: Tensor, unused: Tensor, mean: Tensor, sigma: Tensor) -> Tensor:
    """(bound − μ)/σ, whose gradient is 0 and not 0 · ∞ where the bound is infinite or unused."""
    skipped = unused | torch.isinf(bound)
    finite = (torch.where(skipped, 0.0, bound) - mean) / sigma
    return torch.where(skipped, bound, finite)
