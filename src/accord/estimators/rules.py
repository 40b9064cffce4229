"""Training on any rule of agreement: its intervals for every row, and the density it implies.

Seen as a function of the target, the probability of agreement p(A | t) is up to a constant the
density of t if each prediction agrees with equally much of the line: for a rule on ŷ − t whose
agreeing errors e have a finite total length L, q(t) = p(A | t)/L is the density of ŷ − e with e
uniform on these errors (docs/theory.md). That is what training on the rule maximises, and so what
is to be predicted with. Other rules (one-sided, inside a range, relative to the datum) imply none.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from accord._checks import check_finite
from accord._numerics import FamilyName, StandardFamily
from accord._types import Floats
from accord.agreement import (
    Acceptance,
    Ends,
    Known,
    Predicate,
    Rule,
    Share,
    Side,
    acceptance,
    parse_rule,
    side_of,
)
from accord.distributions import (
    Distribution,
    Empirical,
    LocationScale,
    Mixture,
    Normal,
    Smoothed,
)
from accord.training import (
    AgreementObjective,
    ByAutograd,
    Heads,
    Objective,
    RuleLoss,
    Scaling,
    ShareObjective,
)

Members = Callable[[Floats, Floats], LocationScale]
"""Distributions of a family from their means and standard deviations."""

RuleLike = Rule | Share | Predicate | str
_MOST_STEPS = 1024  # intervals per row


@dataclass(frozen=True)
class AllowedErrors:
    """The errors y − ŷ that a rule allows for, uniform on boxes, each center ± half_width.

    **Shape**: center and half_width (K,), in target units.
    """

    center: Floats
    half_width: Floats

    def smoothed(self, family: Members, mean: Floats, std: Floats) -> Distribution:
        """Each member convolved with the errors, which count as noise.

        ``family`` makes distributions of means and standard deviations.

        **Shape**: mean and std (M, …), as is the result.
        """
        axes = (len(self.center), *(1 for _ in mean.shape))
        center, half = self.center.reshape(axes), self.half_width.reshape(axes)
        if len(self.center) == 1:
            return Smoothed(family(mean + center[0], std), np.broadcast_to(half[0], mean.shape))
        members = family(mean + center, np.broadcast_to(std, (len(center), *mean.shape)))
        smoothed = Smoothed(members, np.broadcast_to(half, members.shape))
        return Mixture(smoothed, self.half_width, spread="noise")


@dataclass(frozen=True)
class TrainingRule:
    """What a rule asks of the rows of a training set; of a share of them where ``share`` is given.

    **Shape**: each array of ``accepted`` (K, N · T); noise (N, T) in target units, or None.
    """

    rule: Rule
    accepted: Acceptance | None  # None: exact agreement with known targets
    noise: Floats | None  # normal measurement error, which has a closed form
    kernel: AllowedErrors | None  # None where the rule implies no density
    share: float | None = None

    @property
    def is_plain(self) -> bool:
        """Whether each row has one finite interval, for which training has a closed gradient."""
        if self.accepted is None:
            return True
        if self.share is not None:
            return False
        steps = self.accepted.intervals
        one = len(steps.lower) == 1 and not bool(self.accepted.log_weight.any())
        return one and bool((steps.lower.isfinite() & steps.upper.isfinite()).all())

    @property
    def _ends(self) -> Ends:
        if self.accepted is None:
            return "finite"
        steps = self.accepted.intervals
        return steps.ends_of(steps.lower <= steps.upper)

    @property
    def error(self) -> float:
        """Of the probability of agreement, the largest over the rows."""
        return 0.0 if self.accepted is None else float(self.accepted.error.max())

    @property
    def half_length(self) -> float:
        """Half the length of the errors that are allowed for: ε of a plain tolerance."""
        return 0.0 if self.kernel is None else float(self.kernel.half_width.sum())

    def objective(self, heads: Heads, family: FamilyName, df: float | None) -> Objective:
        """With closed gradients for one finite interval per row, by autograd otherwise."""
        if self.is_plain or self.accepted is None:
            return AgreementObjective(heads, family, df)
        n_steps = len(self.accepted.intervals.lower)
        loss = RuleLoss(heads, n_steps, self._ends, family, df)
        return ByAutograd(loss) if self.share is None else ShareObjective(loss, self.share)

    def columns(self, y: Floats, scaling: Scaling) -> dict[str, Floats]:
        """What the objective needs of each row, in scaled units."""
        columns = {"target": scaling.scaled(y), "tolerance": np.zeros(y.shape)}
        if self.noise is not None:
            columns["noise"] = (self.noise / scaling.scale) ** 2
        if self.accepted is None:
            return columns
        steps = self.accepted.intervals
        middle = steps.origin.numpy().reshape(y.shape)
        lower, upper, log_weight = (
            np.moveaxis(x.numpy().reshape(-1, *y.shape), 0, -1)
            for x in (steps.lower, steps.upper, self.accepted.log_weight)
        )
        if self.is_plain:
            center = middle + (lower + upper)[..., 0] / 2
            columns["target"] = scaling.scaled(center)
            columns["tolerance"] = (upper - lower)[..., 0] / 2 / scaling.scale
            return columns
        del columns["tolerance"]
        columns["target"] = scaling.scaled(middle)
        # a density of agreement is per unit of the target, here of the scaled one
        scale = scaling.scale[:, None]
        unit = np.zeros_like(scale)
        if self.rule.is_density:
            unit = np.log(scale)
        elif self.kernel is not None:
            unit = -np.log(2 * self.half_length / scale)
        flat = (len(y), -1)
        return columns | {
            "lower": (lower / scale).reshape(flat),
            "upper": (upper / scale).reshape(flat),
            "log_weight": (log_weight + unit).reshape(flat),
        }


def stated_rule(rule: RuleLike | None, y_rule: RuleLike | None) -> Rule | Share | None:
    """What a user gave, as a rule: for all rows alike, per row, or for a share of them."""
    given = rule if y_rule is None else y_rule
    if given is None:
        return None
    found: Any = parse_rule(given) if isinstance(given, str) else given
    stated = found if isinstance(found, Share) else Rule.of(found)
    if y_rule is None and stated.per_row:
        raise ValueError(
            f"rule must have the same numbers for all rows, got {stated!r}. "
            "Give a rule with a number per row to fit(y_rule=...)."
        )
    return stated


def training_rule(
    rule: Rule | Share,
    y: Floats,
    *,
    shape: tuple[int, ...],
    family: StandardFamily,
    std: Floats | None = None,
    dist: Distribution | ArrayLike | None = None,
) -> TrainingRule:
    """The rule for targets y (N, T), which users gave in ``shape``."""
    if isinstance(rule, Share):
        of_rows = Rule.of(rule.rule)
        found = training_rule(of_rows, y, shape=shape, family=family, std=std, dist=dist)
        if of_rows.is_density:
            raise ValueError(
                f"a share of rows must agree with a probability, got {rule!r}, which has a "
                "density. Use a small tolerance, as in ShareWithin(0.01)."
            )
        return replace(found, kernel=None, share=rule.share)
    law = _law(y, shape, std, dist)
    flat = rule.flattened(shape)
    kernel = _kernel(flat, y.size)
    noise = law.as_normal() if law is not None else None
    if noise is not None and family.takes_normal_noise and flat.depends_on == "difference":
        y, law = np.asarray(noise.mean).reshape(y.shape), None
        std = np.asarray(noise.std).reshape(y.shape)
    else:
        std = None
    middle = torch.from_numpy(y.reshape(-1).copy())
    if law is None and flat.is_density:
        _check_can_agree(torch.from_numpy(flat(middle, middle)), rule)
        return TrainingRule(rule, None, std, kernel)
    side: Side = Known(middle) if law is None else side_of(law)
    accepted = acceptance(flat, side, among=_predictions(middle))
    _check_steps(accepted, rule)
    return TrainingRule(rule, accepted, std, kernel)


def check_density(rule: TrainingRule) -> None:
    """Refuse a rule that implies no density to predict with."""
    if rule.kernel is None:
        got = rule.rule if rule.share is None else Share(rule.rule, rule.share)
        raise ValueError(
            "rule must imply a density of the target to be predicted with: one on ŷ − y that "
            f"allows errors of a finite length, got {got!r}. Use predictive='model' to "
            "train on it all the same and predict with the networks' own density."
        )


def _law(
    y: Floats, shape: tuple[int, ...], std: Floats | None, dist: Distribution | ArrayLike | None
) -> Distribution | None:
    if std is not None and dist is not None:
        raise ValueError("y_std and y_dist must not both be given, got both. Use y_dist alone.")
    if std is not None:
        return Normal(y.reshape(shape), std.reshape(shape)) if (std > 0).any() else None
    if dist is None or isinstance(dist, Distribution):
        law = dist
    else:
        draws = np.asarray(dist, dtype=np.float64)
        check_finite("y_dist", draws, remedy="Leave such rows out.")
        law = Empirical(np.moveaxis(draws, -1, 0)) if draws.ndim else None
    if law is not None and law.shape != shape:
        raise ValueError(
            f"y_dist must be a distribution of shape {shape}, or draws of shape {(*shape, 'S')}, "
            f"got rows of shape {law.shape}. Give one row for each target."
        )
    return law


def _predictions(y: torch.Tensor) -> Distribution:
    """Where predictions are expected: about the targets, and well beyond their range."""
    low, high = y.min(), y.max()
    spread = high - low if bool(high > low) else high.abs().clamp(min=1.0)
    return Normal(((low + high) / 2).expand_as(y).numpy(), spread.expand_as(y).numpy())


def _kernel(rule: Rule, n: int) -> AllowedErrors | None:
    """The boxes of y − ŷ; with a number per row, one box with their mean and mean variance."""
    if rule.depends_on != "difference":
        return None
    if rule.is_density:
        return AllowedErrors(np.zeros(1), np.zeros(1))
    allowed = rule.intervals(torch.zeros(n, dtype=torch.float64))
    if allowed is None:
        return None
    lower, upper = allowed.lower_bounds.numpy(), allowed.upper_bounds.numpy()
    filled = lower <= upper
    if not np.isfinite(lower[filled]).all() or not np.isfinite(upper[filled]).all():
        return None
    lower, upper = np.where(filled, lower, 0.0), np.where(filled, upper, 0.0)
    center, half = -(lower + upper) / 2, (upper - lower) / 2
    if not half.sum(axis=0).all():
        return None
    if not rule.per_row:
        kept = half[:, 0] > 0
        return AllowedErrors(center[kept, 0], half[kept, 0])
    share = half / half.sum(axis=0)
    mean = float((share * center).sum(axis=0).mean())
    square = float((share * (center**2 + half**2 / 3)).sum(axis=0).mean())
    return AllowedErrors(np.array([mean]), np.sqrt(3 * np.array([max(square - mean**2, 0.0)])))


def _check_steps(accepted: Acceptance, rule: Rule) -> None:
    steps = accepted.intervals
    _check_can_agree((steps.upper > steps.lower).any(0), rule)
    if len(steps.lower) > _MOST_STEPS:
        raise ValueError(
            f"rule must allow at most {_MOST_STEPS} separate ranges of a prediction to be trained "
            f"on, got {len(steps.lower)} from {rule!r}. Use fewer draws of each target, or a rule "
            "that changes its answer less often."
        )


def _check_can_agree(can: torch.Tensor, rule: Rule) -> None:
    if not bool(can.all()):
        row = int(torch.nonzero(~can)[0])
        raise ValueError(
            f"every target must have predictions that agree with it, got none for target {row} "
            f"under {rule!r}. Widen the rule, or leave such rows out."
        )
