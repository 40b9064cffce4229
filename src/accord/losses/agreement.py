"""The losses of any agreement rule: of one output, of several together, of all rows."""

from typing import final

import torch
from torch import Tensor, nn

from accord._checks import (
    check_finite,
    check_floating,
    check_not_empty,
    check_same_shape,
)
from accord._numerics import (
    FamilyName,
    family_with_variance,
    log_at_least,
    log_normal_in_any,
)
from accord.agreement import (
    Acceptance,
    Agreeing,
    DatasetRule,
    Exact,
    Found,
    Intervals,
    JointRule,
    MeanErrorWithin,
    Predicate,
    Rule,
    Share,
    Within,
    acceptance,
    agreeing_errors,
    log_probability_in_family,
    search,
    side_of,
)
from accord.distributions import Distribution, of_family
from accord.losses.likelihoods import (
    Loss,
    Reduction,
    check_reduction,
    prepared,
    reduced,
    with_noise,
)

_MOST_MISSED = 0.01  # of the probability of agreement: an error of 0.01 in the loss


@final
class AgreementLoss(Loss):
    """−log P(A): how improbable it is that the prediction agrees with the target under a rule.

    A rule that allows intervals of ŷ has the closed form P(A) = Σ_k [F(upper_k) − F(lower_k)], F
    being the cdf of the prediction. Of a Python callable, the intervals are searched for (see
    :func:`accord.agreement.search`), in float64 on the processor; they do not depend on the
    prediction, so that the gradient is exact. A callable is refused where random draws show that a
    stretch was missed which changes the loss by 0.01 or more. :class:`accord.agreement.Exact` gives
    the negative log-likelihood. A prediction that cannot agree costs +∞, with gradient 0.

    The target may itself be uncertain: any distribution of Accord stands in its place, with draws
    as :class:`accord.distributions.Empirical`. Then P(A) = ∫ ρ(ŷ) a(ŷ) dŷ, where a(ŷ) is the
    probability that the data agree with ŷ, in steps (:func:`accord.agreement.acceptance`).

    Args:
        rule: a rule for single rows, or a callable ``(y_hat, y) -> bool``.
        family: distribution of the prediction.
        df: degrees of freedom of "student-t", above 2.
        eps: least variance; smaller ones count as this, as in torch.
        reduction: "none", "mean" or "sum".

    Attributes:
        error: of P(A) in the last call, the largest over its elements: 0 for a closed form; the
            standard error of the search for a callable, as `probability_of_agreement` states it;
            a bound of the absolute error for an uncertain target.

    **Shape**: input and target of one shape; var and target_std a number, or with 1 where they do
    not vary.

    Example: a unit that had not failed after 3 hours.

        >>> from accord.agreement import AtLeast
        >>> survived = AgreementLoss(AtLeast())
        >>> survived(torch.tensor([2.0, 3.0]), torch.tensor([3.0, 3.0]), torch.ones(2))
        tensor(1.2671)

    A target known up to a Laplace error:

        >>> from accord.agreement import Within
        >>> from accord.distributions import Laplace
        >>> measured = Laplace(mean=[3.0, 3.0], scale=0.5)
        >>> loss = AgreementLoss(Within(0.2))
        >>> round(loss(torch.tensor([2.0, 3.0]), measured, torch.ones(2)).item(), 2)
        2.19
    """

    def __init__(
        self,
        rule: Rule | Predicate,
        *,
        family: FamilyName = "normal",
        df: float | None = None,
        eps: float = 1e-6,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(eps=eps, reduction=reduction)
        self.rule = Rule.of(rule)
        self.family, self.df = family_with_variance(family, df), df
        self.error = 0.0

    def forward(
        self,
        input: Tensor,
        target: Tensor | Distribution,
        var: Tensor | float,
        *,
        target_std: Tensor | float | None = None,
    ) -> Tensor:
        """``target_std``: the measurement error of each target, for a rule on ŷ − y."""
        if isinstance(target, Distribution):
            return self._of_uncertain(input, target, var, target_std)
        mu, variance, t = prepared(input, target, var, floor=self.eps)
        if target_std is not None and not self._takes_noise:
            raise ValueError(
                "target_std must come with the normal family and a rule on the difference, got "
                f"{self.family.name!r} and {self.rule!r}. Give the target as a distribution, "
                "Normal(target, target_std)."
            )
        variance = with_noise(variance, target_std, mu).expand_as(mu)
        scale = torch.sqrt(variance / self.family.variance)
        return reduced(-self._log_probability(mu, scale, t), self.reduction)

    def _of_uncertain(
        self,
        input: Tensor,
        target: Distribution,
        var: Tensor | float,
        target_std: Tensor | float | None,
    ) -> Tensor:
        if target_std is not None:
            raise ValueError(
                "target_std must be None where the target is a distribution, got both. "
                "Put the measurement error into the distribution."
            )
        middle = torch.as_tensor(target.quantile(0.5)).to(input)
        normal = target.as_normal() if self._takes_noise else None
        if normal is not None:  # two normals have a closed form
            std = torch.as_tensor(normal.std).to(input)
            return self.forward(input, middle, var, target_std=std)
        mu, variance, t = prepared(input, middle, var, floor=self.eps)
        rule = self.rule.flattened(tuple(t.shape))
        accepted = acceptance(rule, side_of(target))
        self.error = float(accepted.error.max())
        scale = torch.sqrt(variance.expand_as(mu) / self.family.variance)
        return reduced(-self._log_accepted(accepted, mu, scale), self.reduction)

    def extra_repr(self) -> str:
        return f"{self.rule!r}, family={self.family}, reduction={self.reduction!r}"

    @property
    def _takes_noise(self) -> bool:
        return self.family.takes_normal_noise and self.rule.depends_on == "difference"

    def _log_probability(self, mu: Tensor, scale: Tensor, t: Tensor) -> Tensor:
        if self.rule.is_density:
            log_density = self.family.log_pdf((t - mu) / scale) - torch.log(scale)
            return torch.where(self._allows_equality(t), log_density, -torch.inf)
        allowed = self.rule.intervals(t)
        if allowed is not None:
            self.error = 0.0
            return log_probability_in_family(self.family, allowed, mu, scale)
        found = self._searched(mu.detach(), scale.detach(), t.detach())
        self.error = float(found.error.max())
        exact = Acceptance(found.intervals, torch.zeros_like(found.intervals.lower), found.error)
        return self._log_accepted(exact, mu, scale)

    def _log_accepted(self, accepted: Acceptance, mu: Tensor, scale: Tensor) -> Tensor:
        """In float64, since the steps are; back in the dtype and on the device of the mean."""
        flat = accepted.intervals
        shape, device = tuple(mu.shape), mu.device
        origin = flat.origin.reshape(shape).to(device)
        lower, upper, log_weight = (
            x.reshape(-1, *shape).to(device) for x in (flat.lower, flat.upper, accepted.log_weight)
        )
        allowed = Intervals(origin, lower, upper, anchored=flat.anchored, ends=flat.ends)
        log_p = log_probability_in_family(
            self.family, allowed, mu.double(), scale.double(), log_weight
        )
        return log_p.to(mu.dtype)

    def _allows_equality(self, t: Tensor) -> Tensor:
        if isinstance(self.rule, Exact):
            return torch.ones_like(t, dtype=torch.bool)
        return torch.as_tensor(self.rule(t, t), device=t.device)

    def _searched(self, mu: Tensor, scale: Tensor, t: Tensor) -> Found:
        """The intervals of a callable, searched for where the predictions have their mass."""
        flat = [x.double().cpu().reshape(-1) for x in (mu, scale, t)]
        rule = self.rule.flattened(tuple(t.shape))
        law = of_family(self.family, flat[0], flat[1])
        found = search(rule, flat[2], law)
        log_p = log_probability_in_family(self.family, found.intervals, flat[0], flat[1])
        _check_found(rule, found.share, log_p.exp())
        return found


def _check_found(rule: Rule, share: Tensor, probability: Tensor) -> None:
    """Refuse a rule whose intervals were not all found: its gradient would be a wrong one."""
    wrong = share > _MOST_MISSED * probability
    if bool(wrong.any()):
        raise ValueError(
            "a callable rule must change its answer few enough times for all its intervals to be "
            f"found, got {rule!r}, whose answer was missed for {float(share.max()):.1%} of the "
            "predictions of a row. Use a rule with intervals in the loss, such as "
            "Within(0.3) | ErrorInside(1.9, 2.1), and probability_of_agreement to judge a model "
            "by this one."
        )


@final
class DatasetAgreementLoss(nn.Module):
    """−log P(A)/N: how improbable it is that N rows together agree with their targets.

    For :class:`accord.agreement.Share` ("95 % of the rows within ε") each row agrees with a
    probability of its own, and the number of rows that do is a sum of independent yes/no variables,
    whose distribution is computed exactly (docs/theory.md). Rows beyond the share that must agree
    cost next to nothing, however wrong they are: a few gross errors among the targets do not pull
    at the prediction. For :class:`accord.agreement.MeanErrorWithin` of normal predictions the mean
    error is normal. The probability of other rules over all rows is known by draws only, which have
    no gradient; they are refused.

    The statement is about the rows that are given. On batches it is asked of each batch: of 32
    rows, "95 %" lets one disagree, of 20 as well. Take batches in which the share is a whole number
    of rows, and large enough to hold their part of those that need not agree.

    Args:
        rule: a share of rows, or a mean error.
        family, df, eps: of the prediction, as in :class:`AgreementLoss`.
        reduction: "none", "mean" or "sum", over the leading axes.

    **Shape**: input and target (..., N), var and target_std as in :class:`AgreementLoss` → (...).

    Example: the last target is wrong, and need not agree.

        >>> from accord.agreement import ShareWithin
        >>> loss = DatasetAgreementLoss(ShareWithin(0.5, share=0.75))
        >>> mean, target = torch.zeros(4), torch.tensor([0.1, -0.2, 0.0, 9.0])
        >>> loss(mean, target, torch.full((4,), 0.04))
        tensor(0.0266)
    """

    def __init__(
        self,
        rule: DatasetRule,
        *,
        family: FamilyName = "normal",
        df: float | None = None,
        eps: float = 1e-6,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__()
        check_reduction(reduction)
        of_rows: Rule | Predicate
        match rule:
            case Share():
                of_rows = rule.rule
            case MeanErrorWithin() if family == "normal":
                of_rows = Within(rule.limit)
            case _:
                raise TypeError(
                    "rule must be Share(rule, share), or MeanErrorWithin(limit) with the normal "
                    f"family, got {rule!r} with {family!r}. The probability of other rules over "
                    "all rows has no gradient: judge a model by them with probability_of_agreement."
                )
        self.rule, self.reduction = rule, reduction
        self.of_rows = AgreementLoss(of_rows, family=family, df=df, eps=eps, reduction="none")
        if self.of_rows.rule.is_density:
            raise ValueError(
                f"a share of rows must agree with a probability, got {rule!r}, which has a "
                "density. Use a small tolerance, as in ShareWithin(0.01)."
            )

    def forward(
        self,
        input: Tensor,
        target: Tensor,
        var: Tensor | float,
        *,
        target_std: Tensor | float | None = None,
    ) -> Tensor:
        """The loss of means, targets and variances; ``target_std`` is the targets' own error."""
        n = input.shape[-1] if input.ndim else 0
        if isinstance(self.rule, Share):
            log_rows = -self.of_rows(input, target, var, target_std=target_std)
            log_p = log_at_least(log_rows, n - self.rule.least(n))
        else:
            mu, variance, t = prepared(input, target, var, floor=self.of_rows.eps)
            variance = with_noise(variance, target_std, mu).expand_as(mu).sum(-1) / n**2
            log_p = -self.of_rows(mu.mean(-1), t.mean(-1), variance)
        return reduced(-log_p / n, self.reduction)

    def extra_repr(self) -> str:
        return f"{self.rule!r}, family={self.of_rows.family}, reduction={self.reduction!r}"


@final
class JointAgreementLoss(nn.Module):
    """−log P(A): how improbable it is that all outputs of a row agree with its targets together.

    The outputs are jointly normal, ŷ = μ + L z. What ``AllWithin``, ``NormWithin`` and
    ``EachOutput`` allow is made of boxes and ellipsoids, and so is what ``&``, ``|`` and ``~`` make
    of them: disjoint regions, over each of which P(A) is integrated one output after the other, the
    last in closed form. A callable is asked at 2,048 points of a box around the errors that agree,
    and at 1,024 D around it; where no point agrees the loss is +∞, with gradient 0, and where no
    box is found it is refused. The gradient is that of the sum which is computed.

    Args:
        rule: a rule over several outputs, or a callable on vectors, (..., D) → (...).
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

    def __init__(self, rule: JointRule | Predicate, *, reduction: Reduction = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        self.rule, self.reduction = JointRule.of(rule), reduction
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
        return log_normal_in_any(regions, shift, cholesky, coarse=coarse)

    def agrees(errors: Tensor) -> Tensor:
        return torch.from_numpy(rule((y + errors).cpu(), y.cpu())).to(y.device)

    return log_normal_in_any(regions, shift, cholesky, agrees=agrees, coarse=coarse)


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
