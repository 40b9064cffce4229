"""Minus the log-probability of agreement: within a tolerance, the ε-BVM loss, and of classes."""

import math
from collections.abc import Sequence
from typing import final

import numpy as np
import torch
from torch import Tensor, nn

from accord._checks import (
    check_count,
    check_finite,
    check_floating,
    check_non_negative,
    check_not_empty,
    check_positive,
)
from accord._numerics import (
    NORMAL,
    FamilyName,
    StandardFamily,
    agreement_loss,
    family_with_variance,
)
from accord.agreement import Exact, Predicate, Rule
from accord.losses.likelihoods import (
    Loss,
    Reduction,
    any_outside,
    check_reduction,
    fitted,
    prepared,
    reduced,
    with_noise,
)

USE_ZERO = "Use 0 for exact agreement (NLL)."


def bvm_loss(
    mu: Tensor,
    var: Tensor,
    target: Tensor,
    tolerance: Tensor | float,
    *,
    family: StandardFamily = NORMAL,
    density: bool = False,
) -> Tensor:
    """−log P(|ŷ − t| ≤ ε) per element, for ŷ of mean ``mu`` and variance ``var`` in a family.

    With ``density``, plus log 2ε: the negative log-likelihood of the target under the family
    convolved with Uniform(−ε, ε). Elements with ε = 0 are the negative log-likelihood in either
    form. The inputs are not checked: this is the core of :class:`BVMLoss`, for loops of one's own.

    **Shape**: all broadcast together.

    Example:
        >>> t = torch.zeros(2)
        >>> bvm_loss(torch.tensor([0.0, 3.0]), torch.ones(2), t, 1.0)
        tensor([0.3817, 3.7846])
    """
    eps = torch.as_tensor(tolerance, dtype=mu.dtype, device=mu.device)
    return agreement_loss(family, mu, var, target, eps, density=density)


@final
class BVMLoss(Loss):
    """−log P(|ŷ − t| ≤ ε): how improbable it is that the prediction agrees with the target.

    ŷ has the predicted mean and variance, in a chosen family. For the normal one,

        loss = −log[Φ((t + ε − μ)/σ) − Φ((t − ε − μ)/σ)],

    the paper's equation. With ``density=True`` it is the negative log-likelihood of the target
    under the model convolved with Uniform(−ε, ε), that is the above plus log 2ε; only then can
    tolerances be compared or learnt. ε = 0 means exact agreement, and is the negative
    log-likelihood (NLL) in either form. The density form tends to it as ε → 0:
    NLL − ε²/6 [(t − μ)²/σ⁴ − 1/σ²] + O(ε⁴).

    Args:
        tolerance: ε ≥ 0 in the unit of the target, a number or a tensor that fits the input.
        family: distribution of the prediction.
        df: degrees of freedom of "student-t", above 2.
        density: whether to add log 2ε.
        learn_tolerance: make log ε a parameter, which starts at ``tolerance``; needs ``density``.
        eps: least variance; smaller ones count as this, as in torch.
        reduction: "none", "mean" or "sum".

    It is differentiable once, in reverse mode and under ``torch.func``; a second derivative and
    forward-mode differentiation raise an error. ``torch.compile`` breaks its graph here, so that
    ``fullgraph=True`` raises one too. In float32 the derivative by the mean has an error of up to
    2e-6/σ, which is more than a thousandth of it only where it is below 2e-3/σ: use float64 there.

    **Shape**: input and target of one shape; var, tolerance and target_std a number, or with 1
    where they do not vary.

    Example: in place of ``torch.nn.GaussianNLLLoss``.

        >>> _ = torch.manual_seed(0)
        >>> x = torch.linspace(-2, 2, 200).unsqueeze(1)
        >>> y = x**3 + torch.randn(200, 1)
        >>> net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 2))
        >>> loss_function = BVMLoss(tolerance=0.5)
        >>> optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        >>> losses = []
        >>> for _ in range(300):
        ...     mean, raw = net(x).split(1, dim=1)
        ...     loss = loss_function(mean, y, nn.functional.softplus(raw))
        ...     optimizer.zero_grad()
        ...     loss.backward()
        ...     optimizer.step()
        ...     losses.append(loss.item())
        >>> bool(losses[-1] < 0.5 * losses[0])
        True
    """

    fixed_tolerance: Tensor | float | None
    log_tolerance: nn.Parameter  # None where the tolerance is fixed

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
        super().__init__(eps=eps, reduction=reduction)
        self.family, self.density = family_with_variance(family, df), density
        _check_tolerance(tolerance)
        self._set_tolerance(tolerance, learn_tolerance)

    @property
    def tolerance(self) -> Tensor | float:
        """ε as it is now."""
        return self.log_tolerance.exp() if self.fixed_tolerance is None else self.fixed_tolerance

    def forward(
        self,
        input: Tensor,
        target: Tensor,
        var: Tensor | float,
        *,
        tolerance: Tensor | float | None = None,
        target_std: Tensor | float | None = None,
    ) -> Tensor:
        """The loss; ``tolerance`` and ``target_std`` are those of these rows.

        ``target_std`` is the measurement error of each target: for a normal model and a normal
        error, σ² + s² takes the place of σ².
        """
        mu, variance, t = prepared(input, target, var, floor=self.eps)
        if target_std is not None and not self.family.takes_normal_noise:
            raise ValueError(
                "target_std must be None unless the family is 'normal', got one with "
                f"{self.family.name!r}. Widen the tolerance instead."
            )
        variance = with_noise(variance, target_std, mu)
        if tolerance is not None:
            _check_tolerance(tolerance)
        width = self.tolerance if tolerance is None else tolerance
        eps = fitted("tolerance", width, mu, mu.dtype)
        loss = bvm_loss(mu, variance, t, eps, family=self.family, density=self.density)
        return reduced(loss, self.reduction)

    def extra_repr(self) -> str:
        width = "learnt" if self.fixed_tolerance is None else f"{self.fixed_tolerance}"
        form = f"family={self.family}, density={self.density}, reduction={self.reduction!r}"
        return f"tolerance={width}, {form}"

    def _set_tolerance(self, tolerance: Tensor | float, learn: bool) -> None:
        """A number stays one, exact in every dtype; a tensor moves with the module."""
        self.register_parameter("log_tolerance", None)
        if learn:
            if not self.density:
                raise ValueError(
                    "learn_tolerance must come with density=True, got density=False. "
                    "Without log 2ε, a larger tolerance always looks better."
                )
            check_positive("tolerance", tolerance, remedy="Start learning from a positive one.")
            start = torch.as_tensor(tolerance, dtype=torch.get_default_dtype())
            self.log_tolerance = nn.Parameter(start.detach().log())
            self.fixed_tolerance = None
        elif isinstance(tolerance, Tensor):
            self.register_buffer("fixed_tolerance", tolerance.detach().clone())
        else:
            self.fixed_tolerance = float(tolerance)


def _check_tolerance(tolerance: Tensor | float) -> None:
    if isinstance(tolerance, Tensor):
        check_floating("tolerance", tolerance)
        check_not_empty("tolerance", tolerance)
        if not any_outside(tolerance, 0.0, math.inf):
            return
    check_non_negative("tolerance", tolerance, remedy=USE_ZERO)
    check_finite("tolerance", tolerance, remedy="Use AgreementLoss for one-sided rules.")


@final
class ClassAgreementLoss(nn.Module):
    """−log P(A): how improbable it is that a predicted class agrees with the true one.

    P(A) = Σ_c Σ_c' ρ(c | M) Θ(B(c, c')) ρ(c'), with ρ(c | M) the softmax of the network's outputs
    and ρ(c') what is known of the true class. Under `accord.agreement.Exact` with a known class it
    is the cross-entropy. Other rules let confusions pass: ``Within(1)`` a neighbouring grade, a
    callable any pairs that may be taken for each other. What is learnt is then the answer that most
    often passes: the softmax says which answer to give, and not how probable each class is.

    Args:
        n_classes: C, the number of outputs.
        rule: a rule for single rows, or a callable ``(predicted, true) -> bool``.
        classes: what the rule is asked about, a number for each class; 0 … C − 1 by default.
        reduction: "none", "mean" or "sum".

    Attributes:
        accepts: B(c, c'), the predicted class down and the true one across, (C, C).

    **Shape**: input (…, C); target (…) of class numbers, or (…, C) of their probabilities.

    Example: of three grades, the middle one passes for both others.

        >>> from accord.agreement import Within
        >>> logits = torch.tensor([[0.0, 1.0, 0.0]])
        >>> loss = ClassAgreementLoss(3, Within(1))
        >>> loss(logits, torch.tensor([0])), loss(logits, torch.tensor([1]))
        (tensor(0.2382), tensor(0.))
    """

    accepts: Tensor

    def __init__(
        self,
        n_classes: int,
        rule: Rule | Predicate | None = None,
        *,
        classes: Sequence[float] | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__()
        check_count("n_classes", n_classes)
        check_reduction(reduction)
        self.rule, self.reduction = Rule.of(Exact() if rule is None else rule), reduction
        values = np.arange(n_classes) if classes is None else np.asarray(classes)
        if values.shape != (n_classes,):
            raise ValueError(
                f"classes must hold a number for each of {n_classes} outputs, got shape "
                f"{values.shape}. Leave it out for 0, 1, 2, …"
            )
        if self.rule.per_row:
            raise ValueError(
                f"a rule about classes must be the same for all rows, got {self.rule!r}. "
                "Use one number in place of one per row."
            )
        table = torch.tensor(self.rule(values[:, None], values[None, :]))
        if not bool(table.any(0).all()):
            alone = int(torch.nonzero(~table.any(0))[0])
            raise ValueError(
                "every class must have a prediction that agrees with it, got none for class "
                f"{alone} under {self.rule!r}. Widen the rule, as in Exact() | other."
            )
        self.register_buffer("accepts", table, persistent=False)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """``input`` are the outputs before the softmax."""
        check_floating("input", input)
        check_not_empty("input", input)
        allowed = self._allowed(input, target)
        hidden = torch.where(allowed > 0, torch.log_softmax(input, -1), -torch.inf)
        weight = torch.where(allowed > 0, allowed, 1.0).log()
        return reduced(-torch.logsumexp(hidden + weight, -1).clamp(max=0.0), self.reduction)

    def extra_repr(self) -> str:
        return f"{len(self.accepts)}, {self.rule!r}, reduction={self.reduction!r}"

    def _allowed(self, input: Tensor, target: Tensor) -> Tensor:
        """How probable it is that each prediction would agree, Σ_c' B(c, c') ρ(c')."""
        table, n = self.accepts.to(input), len(self.accepts)
        if input.shape[-1:] != (n,):
            raise ValueError(
                f"input must have {n} outputs in its last axis, got shape {tuple(input.shape)}."
            )
        if target.is_floating_point() and target.shape == input.shape:
            total = target.sum(-1)
            if not bool((target >= 0).all() and torch.allclose(total, torch.ones_like(total))):
                raise ValueError(
                    "probabilities of the true class must not be negative and must add up to 1, "
                    f"got sums from {float(total.min()):g} to {float(total.max()):g}."
                )
            return target.to(input) @ table.T
        if target.is_floating_point() or target.shape != input.shape[:-1]:
            raise ValueError(
                f"target must hold class numbers of shape {tuple(input.shape[:-1])}, or "
                f"probabilities of shape {tuple(input.shape)}, got {target.dtype} of shape "
                f"{tuple(target.shape)}."
            )
        if bool(((target < 0) | (target >= n)).any()):
            raise ValueError(
                f"target must hold class numbers from 0 to {n - 1}, got {int(target.min())} to "
                f"{int(target.max())}."
            )
        return table.T[target.long()]
