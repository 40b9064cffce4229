"""Minus the log-probability that a predicted class agrees with the true one."""

from collections.abc import Sequence
from typing import final

import numpy as np
import torch
from torch import Tensor, nn

from accord._checks import check_count, check_floating, check_not_empty
from accord.agreement import Exact, Predicate, Rule, as_rule
from accord.losses.inputs import Reduction, check_reduction, reduced


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
        self.rule, self.reduction = as_rule(Exact() if rule is None else rule), reduction
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
