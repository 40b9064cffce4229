"""The loss of an agreement rule over several outputs that depend on each other."""

from typing import final

import torch
from torch import Tensor, nn

from accord._checks import check_finite, check_floating, check_not_empty, check_same_shape
from accord._numerics import log_normal_in_any, log_normal_where, training_points
from accord.agreement import Agreeing, JointRule, agreeing_errors
from accord.losses.inputs import Reduction, check_reduction, reduced


@final
class JointAgreementLoss(nn.Module):
    """−log P(A): how improbable it is that all outputs of a row agree with its targets together.

    The outputs are jointly normal, ŷ = μ + L z. What ``AllWithin``, ``NormWithin`` and
    ``EachOutput`` allow is made of boxes and ellipsoids, and so is what ``&``, ``|`` and ``~`` make
    of them: disjoint regions, over each of which P(A) is integrated one output after the other, the
    last in closed form. A callable is asked at 2,048 points of a box around the errors that agree,
    and at 1,024 D around it; where no point agrees the loss is +∞, with gradient 0. In either case
    the gradient is that of the sum which is computed.

    Args:
        rule: a rule over several outputs.
        reduction: "none", "mean" or "sum", over the rows.

    Attributes:
        error: of the loss in the last call, the largest over its rows: the difference from an
            integration with fewer points. Below 1e-6 for `AllWithin` of two outputs whose
            correlation is at most 0.95, with tolerances of at most a standard deviation and targets
            within four of the mean; about 0.01 for a callable that says the same.

    **Shape**: input and target (..., D), cholesky (..., D, D) with L in its lower triangle.

    Example:
        >>> from accord.agreement import AllWithin
        >>> loss = JointAgreementLoss(AllWithin([0.5, 0.5]))
        >>> mean, target = torch.tensor([[1.0, 2.0]]), torch.tensor([[1.1, 2.0]])
        >>> loss(mean, target, torch.tensor([[[1.0, 0.0], [0.8, 0.6]]]))
        tensor(1.5436)
    """

    def __init__(self, rule: JointRule, *, reduction: Reduction = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        if not isinstance(rule, JointRule):
            raise TypeError(
                f"rule must be one over several outputs, got {rule!r}. Use AllWithin or NormWithin "
                "here, and AgreementLoss for one output at a time."
            )
        self.rule, self.reduction = rule, reduction
        self.error = 0.0

    def forward(self, input: Tensor, target: Tensor, cholesky: Tensor) -> Tensor:
        """The loss of means, targets and Cholesky factors."""
        _check_outputs(input, target, cholesky)
        y = target.detach().reshape(-1, target.shape[-1])
        shift = (input - target).reshape(y.shape)
        lower = cholesky.reshape(*y.shape, y.shape[-1])
        spread = lower.detach().square().sum(-1).sqrt() + shift.detach().abs()
        allowed = agreeing_errors(self.rule, y, spread)
        log_p = _log_probability(allowed, y, shift, lower)
        with torch.no_grad():
            other = _log_probability(allowed, y, shift, lower, coarse=True)
            self.error = float((log_p - other).abs().nan_to_num(0.0).max())
        return reduced(-log_p.to(input.dtype).reshape(input.shape[:-1]), self.reduction)

    def extra_repr(self) -> str:
        return f"{self.rule!r}, reduction={self.reduction!r}"


def _log_probability(
    allowed: Agreeing, y: Tensor, shift: Tensor, cholesky: Tensor, *, coarse: bool = False
) -> Tensor:
    regions, rule = allowed
    if rule is None:
        points = training_points(y.shape[-1], coarse=coarse)
        return log_normal_in_any(regions, shift, cholesky, points)

    def agrees(errors: Tensor) -> Tensor:
        return torch.from_numpy(rule((y + errors).cpu(), y.cpu())).to(y.device)

    return log_normal_where(agrees, regions, shift, cholesky, coarse=coarse)


def _check_outputs(input: Tensor, target: Tensor, cholesky: Tensor) -> None:
    for name, value in (("input", input), ("target", target), ("cholesky", cholesky)):
        check_floating(name, value)
        check_not_empty(name, value)
        check_finite(name, value)
    check_same_shape(input=input, target=target)
    if tuple(cholesky.shape) != (*input.shape, input.shape[-1]):
        raise ValueError(
            f"cholesky must have the shape {(*input.shape, input.shape[-1])} of the outputs' "
            f"covariances, got {tuple(cholesky.shape)}. Expand one that all rows share."
        )
