"""The loss of any agreement rule."""

from typing import final

import torch
from torch import Tensor, nn

from accord._checks import check_non_negative
from accord._numerics import (
    NORMAL,
    FamilyName,
    StandardFamily,
    family_with_variance,
    log_between,
    log_within,
)
from accord.agreement import Exact, Intervals, Predicate, Rule, as_rule, missed, trace
from accord.distributions import Distribution, of_family
from accord.losses.inputs import (
    Reduction,
    check_reduction,
    prepared,
    reduced,
    with_noise,
)

_DRAWS = 256  # per row, that the intervals of a callable are checked against
_MOST_MISSED = 0.01  # of those draws


@final
class AgreementLoss(nn.Module):
    """−log P(A): how improbable it is that the prediction agrees with the target under a rule.

    A rule that allows intervals of ŷ has the closed form P(A) = Σ_k [F(upper_k) − F(lower_k)], F
    being the cdf of the prediction. Of a Python callable, the intervals are searched for (see
    :func:`accord.agreement.trace`), in float64 on the processor; they do not depend on the
    prediction, so that the gradient is exact. A callable whose intervals cannot be found, which
    random draws show, is refused. :class:`accord.agreement.Exact` gives the negative
    log-likelihood. A prediction that cannot agree costs +∞, with gradient 0.

    Args:
        rule: a rule for single rows, or a callable ``(y_hat, y) -> bool``.
        family: distribution of the prediction.
        df: degrees of freedom of "student-t", above 2.
        eps: least variance; smaller ones count as this, as in torch.
        reduction: "none", "mean" or "sum".

    **Shape**: input and target of one shape; var and target_std a number, or with 1 where they do
    not vary.

    Example: a unit that had not failed after 3 hours.

        >>> from accord.agreement import AtLeast
        >>> survived = AgreementLoss(AtLeast())
        >>> survived(torch.tensor([2.0, 3.0]), torch.tensor([3.0, 3.0]), torch.ones(2))
        tensor(1.2671)
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
        super().__init__()
        check_reduction(reduction)
        check_non_negative("eps", eps)
        self.rule = as_rule(rule)
        self.family = family_with_variance(family, df)
        self.df, self.eps, self.reduction = df, eps, reduction

    def forward(
        self,
        input: Tensor,
        target: Tensor,
        var: Tensor | float,
        *,
        target_std: Tensor | float | None = None,
    ) -> Tensor:
        """``target_std``: the measurement error of each target, for a rule on ŷ − y."""
        mu, variance, t = prepared(input, target, var, floor=self.eps)
        if target_std is not None and not self._takes_noise:
            raise ValueError(
                "target_std must come with the normal family and a rule on the difference, got "
                f"{self.family.name!r} and {self.rule!r}. Use probability_of_agreement."
            )
        variance = with_noise(variance, target_std, mu).expand_as(mu)
        scale = torch.sqrt(variance / self.family.variance)
        return reduced(-self._log_probability(mu, scale, t), self.reduction)

    def extra_repr(self) -> str:
        return f"{self.rule!r}, family={self.family}, reduction={self.reduction!r}"

    @property
    def _takes_noise(self) -> bool:
        return self.family is NORMAL and self.rule.depends_on == "difference"

    def _log_probability(self, mu: Tensor, scale: Tensor, t: Tensor) -> Tensor:
        if self.rule.is_density:
            log_density = self.family.log_pdf((t - mu) / scale) - torch.log(scale)
            return torch.where(self._allows_equality(t), log_density, -torch.inf)
        allowed = self.rule.intervals(t)
        if allowed is not None:
            return _log_measure(self.family, allowed, mu, scale)
        allowed = self._traced(mu.detach(), scale.detach(), t.detach())
        return _log_measure(self.family, allowed, mu.double(), scale.double()).to(mu.dtype)

    def _allows_equality(self, t: Tensor) -> Tensor:
        if isinstance(self.rule, Exact):
            return torch.ones_like(t, dtype=torch.bool)
        return torch.as_tensor(self.rule(t, t), device=t.device)

    def _traced(self, mu: Tensor, scale: Tensor, t: Tensor) -> Intervals:
        """The intervals of a callable, searched for where the predictions have their mass."""
        flat = [x.double().cpu().reshape(-1) for x in (mu, scale, t)]
        rule = self.rule.flattened(tuple(t.shape))
        law = of_family(self.family, flat[0], flat[1])
        found = trace(rule, flat[2], law)
        _check_found(rule, flat[2], law, found)
        lower, upper = (x.reshape(-1, *t.shape).to(t.device) for x in (found.lower, found.upper))
        origin = torch.zeros_like(t, dtype=torch.float64)
        return Intervals(origin, lower, upper, anchored=False, ends="either")


def _log_measure(family: StandardFamily, allowed: Intervals, mu: Tensor, scale: Tensor) -> Tensor:
    def between(lower: Tensor, upper: Tensor) -> Tensor:
        half = (upper - lower) / 2 / scale
        return log_between(family, (lower - mu) / scale, (upper - mu) / scale, half)

    return allowed.log_measure(
        within=lambda center, half: log_within(family, (center - mu) / scale, half / scale),
        between=between,
        below=lambda x: family.log_cdf((x - mu) / scale),
        above=lambda x: family.log_sf((x - mu) / scale),
    )


def _check_found(rule: Rule, y: Tensor, law: Distribution, found: Intervals) -> None:
    """Refuse a rule whose intervals were not all found: its gradient would be a wrong one."""
    _, share = missed(rule, y, law, found, n_draws=_DRAWS)
    if float(share.mean()) > _MOST_MISSED:
        raise ValueError(
            "a callable rule must change its answer few enough times for all its intervals to be "
            f"found, got {rule!r}, whose answer was missed for {float(share.mean()):.1%} of the "
            "predictions. Use a rule with intervals, such as Within or Inside, in the loss, and "
            "probability_of_agreement to judge a model by this one."
        )
