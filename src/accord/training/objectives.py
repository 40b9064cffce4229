"""What stacks of networks are trained on: losses as functions of raw outputs, with their gradients.

A network has two outputs per target, the mean's and the variance's, each sent through its head.
The agreement objective is −log q(t), q the density of agreement (docs/theory.md): with
z = (t − μ)/σ and h = ε/σ,

    loss = log σ − log([F(z + h) − F(z − h)] / 2h),

which is NLL for ε = 0. Its gradients are closed forms of the same primitive, so that a training
step needs no autograd; :class:`ByAutograd` serves every other loss.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal, final, get_args

import torch
from torch import Tensor

from accord._checks import check_choice, check_non_negative
from accord._numerics import (
    FamilyName,
    StandardFamily,
    agreement_loss,
    agreement_slopes,
    family_named,
    gaussian_nll_slopes,
    log_at_least,
    log_between,
)
from accord.agreement import Ends, Intervals, log_probability_in_family
from accord.training.tasks import Columns

MeanHead = Literal["identity", "sigmoid"]
VarianceHead = Literal["sigmoid", "softplus", "exp"]

# The default that keeps a variance from collapsing, as torch.nn.GaussianNLLLoss does; targets have
# about unit range.
VARIANCE_FLOOR = 1e-6

LossAndSlopes = tuple[Tensor, Tensor, Tensor | None]


@dataclass(frozen=True)
class Heads:
    """How raw outputs become means and variances of scaled targets.

    ``floor`` is added to every variance.

    **Shape**: raw (…, 2T), means first → mean and variance (…, T) each.
    """

    mean: MeanHead = "sigmoid"
    variance: VarianceHead = "sigmoid"
    floor: float = VARIANCE_FLOOR

    def __post_init__(self) -> None:
        check_choice("mean_head", self.mean, get_args(MeanHead))
        check_choice("variance_head", self.variance, get_args(VarianceHead))
        check_non_negative("variance_floor", self.floor)

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
        return mean, variance + self.floor

    def with_slopes(self, raw: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Means, variances, and their slopes by the raw outputs, laid out as ``raw`` is."""
        if self.mean == self.variance == "sigmoid":  # the paper's heads, in the fewest operations
            value = torch.sigmoid(raw)
            mean, variance = value.chunk(2, -1)
            return mean, variance + self.floor, _sigmoid_slope(value)
        mean, variance = self(raw)
        slopes = torch.ones_like(raw)
        mean_slope, variance_slope = slopes.chunk(2, -1)
        if self.mean == "sigmoid":
            mean_slope.copy_(_sigmoid_slope(mean))
        match self.variance:
            case "sigmoid":
                variance_slope.copy_(_sigmoid_slope(variance - self.floor))
            case "softplus":
                variance_slope.copy_(torch.sigmoid(raw.chunk(2, -1)[1]))
            case "exp":
                variance_slope.copy_(variance - self.floor)
        return mean, variance, slopes


def _sigmoid_slope(value: Tensor) -> Tensor:
    return torch.addcmul(value, value, value, value=-1)


def _chained(slopes: Tensor, by_mean: Tensor, by_variance: Tensor, weight: Tensor) -> Tensor:
    """The gradient by raw outputs, in place of the heads' slopes."""
    mean_part, variance_part = slopes.chunk(2, -1)
    mean_part.mul_(by_mean)
    variance_part.mul_(by_variance)
    return slopes.mul_(weight)


@final
@dataclass(frozen=True)
class GaussianLikelihood:
    """NLL of a Gaussian; with ``beta`` > 0 each row weighted by its own variance^β (β-NLL)."""

    heads: Heads
    beta: float = 0.0
    n_extra: ClassVar[int] = 0

    def __call__(
        self, raw: Tensor, columns: Columns, weight: Tensor, extra: Tensor
    ) -> LossAndSlopes:
        mean, variance, slopes = self.heads.with_slopes(raw)
        loss, by_mean, by_variance = gaussian_nll_slopes(mean, variance, columns["target"])
        if self.beta:
            factor = variance**self.beta
            by_mean, by_variance = by_mean * factor, by_variance * factor
        return loss, _chained(slopes, by_mean, by_variance, weight), None


@final
@dataclass(frozen=True)
class SquaredError:
    """(μ − t)²; a network has one output per target, its mean's."""

    head: MeanHead = "identity"
    n_extra: ClassVar[int] = 0

    def __post_init__(self) -> None:
        check_choice("mean_head", self.head, get_args(MeanHead))

    def mean(self, raw: Tensor) -> Tensor:
        return torch.sigmoid(raw) if self.head == "sigmoid" else raw

    def __call__(
        self, raw: Tensor, columns: Columns, weight: Tensor, extra: Tensor
    ) -> LossAndSlopes:
        mean = self.mean(raw)
        residual = mean - columns["target"]
        grad = 2 * residual * weight
        if self.head == "sigmoid":
            grad = grad * mean * (1 - mean)
        return residual.square(), grad, None


@final
@dataclass(frozen=True)
class AgreementObjective:
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

    def __call__(
        self, raw: Tensor, columns: Columns, weight: Tensor, extra: Tensor
    ) -> LossAndSlopes:
        mean, variance, head_slopes = self.heads.with_slopes(raw)
        if "noise" in columns:
            variance = variance + columns["noise"]
        target = columns["target"]
        if self.learn_tolerance:
            eps = torch.exp(extra).unsqueeze(1).expand_as(target)
        else:
            eps = columns["tolerance"]
        slopes = agreement_slopes(
            self.standard, mean, variance, target, eps, density=True, by_eps=self.learn_tolerance
        )
        grad_extra = None
        if slopes.eps is not None:
            grad_extra = (slopes.eps * eps * weight).sum((1, 2)).unsqueeze(-1)
        return slopes.loss, _chained(head_slopes, slopes.mu, slopes.var, weight), grad_extra


@final
@dataclass(frozen=True)
class MixtureObjective:
    """−log Σ_k w_k q_k(t), q_k the density of agreement of the k-th of K Gaussians per row.

    With ℓ_k = −log q_k and the posterior r_k = w_k q_k / Σ_j w_j q_j, the gradient by the k-th
    component is r_k times that of ℓ_k, and by its logit w_k − r_k: no autograd is needed. For K = 1
    this is :class:`AgreementObjective` of the Gaussian family.

    Columns: ``target``, and ``tolerance`` unless agreement is exact in every row.

    **Shape**: raw (M, B, 3K): means, variances, logits; (M, B, 2) for K = 1. Columns (M, B, 1).
    """

    n_components: int
    heads: Heads = field(default_factory=lambda: Heads("identity", "softplus"))
    n_extra: ClassVar[int] = 0

    @property
    def n_outputs(self) -> int:
        return 2 if self.n_components == 1 else 3 * self.n_components

    def components(self, raw: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Log-weights, means and variances of the components, each (…, K)."""
        mean, variance = self.heads(self._moments(raw))
        return self._log_weights(raw, mean), mean, variance

    def __call__(
        self, raw: Tensor, columns: Columns, weight: Tensor, extra: Tensor
    ) -> LossAndSlopes:
        mean, variance, slopes = self.heads.with_slopes(self._moments(raw))
        loss, by_mean, by_variance = self._each(mean, variance, columns)
        if self.n_components == 1:
            return loss, _chained(slopes, by_mean, by_variance, weight), None
        log_weights = self._log_weights(raw, mean)
        joint = log_weights - loss
        total = torch.logsumexp(joint, -1, keepdim=True)
        posterior = torch.exp(joint - total)
        moments = _chained(slopes, by_mean * posterior, by_variance * posterior, weight)
        logits = (torch.exp(log_weights) - posterior) * weight
        return -total, torch.cat([moments, logits], -1), None

    def _moments(self, raw: Tensor) -> Tensor:
        """Raw means and variances; the means start unequal, or all components would stay one."""
        if self.n_components == 1:
            return raw
        start = torch.linspace(-1, 1, self.n_components, dtype=raw.dtype, device=raw.device)
        return raw[..., : 2 * self.n_components] + torch.cat([start, torch.zeros_like(start)])

    def _log_weights(self, raw: Tensor, like: Tensor) -> Tensor:
        if self.n_components == 1:
            return torch.zeros_like(like)
        return torch.log_softmax(raw[..., 2 * self.n_components :], -1)

    def _each(
        self, mean: Tensor, variance: Tensor, columns: Columns
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The loss of each component alone, and its slopes by mean and variance."""
        target = columns["target"].expand_as(mean)
        if "tolerance" not in columns:
            return gaussian_nll_slopes(mean, variance, target)
        eps = columns["tolerance"].expand_as(mean)
        slopes = agreement_slopes(
            family_named("normal"), mean, variance, target, eps, density=True, by_eps=False
        )
        return slopes.loss, slopes.mu, slopes.var


@final
@dataclass(frozen=True)
class ByAutograd:
    """Any differentiable loss of raw outputs and columns, (M, B, T)."""

    loss: Callable[[Tensor, Columns], Tensor]
    n_extra: ClassVar[int] = 0

    def __call__(
        self, raw: Tensor, columns: Columns, weight: Tensor, extra: Tensor
    ) -> LossAndSlopes:
        # training is in inference mode, whose tensors autograd does not take
        with torch.inference_mode(False), torch.enable_grad():
            raw = raw.clone().requires_grad_()
            loss = self.loss(raw, {name: column.clone() for name, column in columns.items()})
            (grad,) = torch.autograd.grad((loss * weight.clone()).sum(), raw)
        return loss.detach(), grad, None


@final
@dataclass(frozen=True)
class ShareObjective:
    """−log P(at least a share of the rows agrees)/B, of the B rows of each batch together.

    ``loss`` is −log of the probability that a row agrees. Rows without weight are padding. Each row
    is given the loss of its batch, so that their mean is that loss.
    """

    loss: Callable[[Tensor, Columns], Tensor]
    share: float
    n_extra: ClassVar[int] = 0

    def __call__(
        self, raw: Tensor, columns: Columns, weight: Tensor, extra: Tensor
    ) -> LossAndSlopes:
        with torch.inference_mode(False), torch.enable_grad():
            raw, present = raw.clone().requires_grad_(), weight.clone() != 0
            own = self.loss(raw, {name: column.clone() for name, column in columns.items()})
            log_p = torch.where(present, -own, 0.0).movedim(1, -1)  # padding agrees
            n = present.sum(1)
            least = torch.ceil(self.share * n - 1e-9).long()
            loss = -log_at_least(log_p, n - least) / n.clamp(min=1)
            (grad,) = torch.autograd.grad(loss.sum(), raw)
        return loss.detach().unsqueeze(1).expand_as(own), grad, None


@dataclass(frozen=True)
class CensoredLoss:
    """−log probability of agreement where a row's target is only known to lie between bounds.

    Rows whose ``lower`` equals ``upper`` are known, and agree if |ŷ − t| ≤ ``tolerance``; for the
    others the rule is ``lower`` ≤ ŷ ≤ ``upper``, where either may be infinite.
    """

    heads: Heads
    family: FamilyName = "normal"
    df: float | None = None

    def __call__(self, raw: Tensor, columns: Columns) -> Tensor:
        mean, variance = _with_noise(self.heads, raw, columns)
        return _censored(family_named(self.family, df=self.df), mean, variance, columns)


@dataclass(frozen=True)
class RuleLoss:
    """−log Σ_k w_k P(lower_k ≤ ŷ − t ≤ upper_k): the loss of any rule, as weighted intervals.

    Which predictions agree with a row does not depend on the networks, so that it is found once,
    before training (:func:`accord.agreement.acceptance`).

    Columns: ``target``; ``lower``, ``upper`` and ``log_weight`` with ``n_steps`` numbers per
    target, all steps of the first target first, (M, B, T · n_steps); optionally ``noise``.
    """

    heads: Heads
    n_steps: int
    ends: Ends
    family: FamilyName = "normal"
    df: float | None = None

    def __call__(self, raw: Tensor, columns: Columns) -> Tensor:
        mean, variance = _with_noise(self.heads, raw, columns)
        family = family_named(self.family, df=self.df)
        lower, upper, log_weight = (
            columns[name].view(*mean.shape, self.n_steps).movedim(-1, 0)
            for name in ("lower", "upper", "log_weight")
        )
        steps = Intervals(columns["target"], lower, upper, anchored=True, ends=self.ends)
        scale = torch.sqrt(variance / family.variance)
        return -log_probability_in_family(family, steps, mean, scale, log_weight)


@dataclass(frozen=True)
class CensoredMixture:
    """:class:`CensoredLoss` of a mixture: −log Σ_k w_k P_k, P_k that of the k-th component."""

    mixture: MixtureObjective

    def __call__(self, raw: Tensor, columns: Columns) -> Tensor:
        log_weights, mean, variance = self.mixture.components(raw)
        own = {name: column.expand_as(mean) for name, column in columns.items()}
        loss = _censored(family_named("normal"), mean, variance, own)
        return -torch.logsumexp(log_weights - loss, -1, keepdim=True)


def _with_noise(heads: Heads, raw: Tensor, columns: Columns) -> tuple[Tensor, Tensor]:
    """Mean and variance, with that of the measurement where it is stated."""
    mean, variance = heads(raw)
    return mean, variance + columns["noise"] if "noise" in columns else variance


def _censored(family: StandardFamily, mean: Tensor, variance: Tensor, columns: Columns) -> Tensor:
    sigma = torch.sqrt(variance / family.variance)
    lower, upper, eps = columns["lower"], columns["upper"], columns["tolerance"]
    known = lower == upper
    low = _standardised(lower, known, mean, sigma)
    high = _standardised(upper, known, mean, sigma)
    # where a row is known, any proper interval keeps the unused branch finite
    low, high = torch.where(known, -1.0, low), torch.where(known, 1.0, high)
    between = -log_between(family, low, high)
    density = agreement_loss(family, mean, variance, columns["target"], eps, density=True)
    return torch.where(known, density, between)


def _standardised(bound: Tensor, unused: Tensor, mean: Tensor, sigma: Tensor) -> Tensor:
    """(bound − μ)/σ, whose gradient is 0 and not 0 · ∞ where the bound is infinite or unused."""
    skipped = unused | torch.isinf(bound)
    finite = (torch.where(skipped, 0.0, bound) - mean) / sigma
    return torch.where(skipped, bound, finite)
