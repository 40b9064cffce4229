"""What the regressors share that are trained to agree with the data under a rule or a tolerance."""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypedDict, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike

from accord._checks import check_choice
from accord._numerics import FamilyName, family_with_variance
from accord._types import Floats
from accord.agreement import Share
from accord.distributions import Distribution, LocationScale, with_moments
from accord.estimators.distributional import DistributionalRegressor
from accord.estimators.ensemble import Combine, ensemble_distribution
from accord.estimators.rules import (
    AllowedErrors,
    RuleLike,
    check_density,
    stated_rule,
    training_rule,
)
from accord.estimators.tolerance import (
    PlannedEnsemble,
    check_tolerance,
    rule_for,
    stated_half_width,
    target_knowledge,
)
from accord.estimators.trained import Rows
from accord.training import (
    VARIANCE_FLOOR,
    AgreementObjective,
    ByAutograd,
    CensoredLoss,
    GaussianLikelihood,
    Heads,
    MeanHead,
    Objective,
    Scaling,
    Trained,
    VarianceHead,
)

Tolerance = float | str
Predictive = Literal["smoothed", "model"]
# Where a learnt tolerance starts, as a fraction of the range: of the order of the first σ, since
# its gradient vanishes like (ε/σ)².
_LEARNT_FROM = 0.25


class FitOptions(TypedDict, total=False):
    """What `AgreementRegressor.fit` takes about the rows besides their targets."""

    sample_weight: ArrayLike | None
    y_tolerance: ArrayLike | None
    y_std: ArrayLike | None
    y_lower: ArrayLike | None
    y_upper: ArrayLike | None
    y_rule: RuleLike | None
    y_dist: Distribution | ArrayLike | None


@dataclass(kw_only=True, eq=False, repr=False)
class StatedAgreement:
    """The most important settings: fields of the last base come first in the signature."""

    tolerance: Tolerance = "local"
    rule: RuleLike | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class _Members:
    """What a member predicts, and what is made of them: first base, last in the signature."""

    family: FamilyName = "normal"
    df: float | None = None
    predictive: Predictive = "smoothed"
    combine: Combine = "mixture"
    mean_head: MeanHead = "sigmoid"
    variance_head: VarianceHead = "sigmoid"
    variance_floor: float = VARIANCE_FLOOR


class AgreementRegressor(_Members, DistributionalRegressor):
    """A regressor trained on −log of the probability of agreement; abstract.

    The concrete classes are a :class:`StatedAgreement` as well.
    """

    tolerance: Tolerance
    rule: RuleLike | None
    y_scale_: Floats

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: ArrayLike | None = None,
        y_tolerance: ArrayLike | None = None,
        y_std: ArrayLike | None = None,
        y_lower: ArrayLike | None = None,
        y_upper: ArrayLike | None = None,
        y_rule: RuleLike | None = None,
        y_dist: Distribution | ArrayLike | None = None,
    ) -> Self:
        """Train the ensemble.

        Args:
            X, y: Features (N, d), or inputs (N, …) of a module, and targets (N,) or (N, T).
            sample_weight: Weight of each row in the loss.
            y_tolerance: Half-width within which each target is known, in its units (an
                instrument's tolerance, rounding); takes the place of ``tolerance``.
            y_std: Standard deviation of each target's measurement error (normal family). The
                prediction is then of the quantity itself, without that error.
            y_lower, y_upper: Bounds of targets that are only known to lie between them, NaN for no
                bound: one alone leaves the other side open, and a target without any is known.
                ``y`` of the others only sets the scale.
            y_rule: Rule of agreement whose numbers may differ by row, in place of ``rule``. New
                rows are predicted with the mean of the rows' rules (mean and variance of the
                errors they allow).
            y_dist: What is known of each target, in place of ``y``, which then only sets the
                scale: a distribution of the shape of y, or draws (N, S) or (N, T, S). Needs a rule,
                or a tolerance that is stated. The prediction is of the quantity itself, without
                that uncertainty.
        """
        return self._fit(
            X,
            y,
            sample_weight=sample_weight,
            y_tolerance=y_tolerance,
            y_std=y_std,
            y_lower=y_lower,
            y_upper=y_upper,
            y_rule=y_rule,
            y_dist=y_dist,
        )

    @abstractmethod
    def _fit(self, X: Any, y: Any, **options: Unpack[FitOptions]) -> Self:
        """Check rows and settings, and train."""

    def _check_agreement_settings(self) -> None:
        check_choice("predictive", self.predictive, get_args(Predictive))
        check_choice("combine", self.combine, get_args(Combine))
        family_with_variance(self.family, self.df)
        check_tolerance(self.tolerance)

    def _informed(self, rows: Rows, options: FitOptions) -> tuple[Rows, PlannedEnsemble | None]:
        """The rows with what is known of their targets, and the ensemble to train on a rule."""
        known = target_knowledge(
            rows.y,
            tolerance=options.get("y_tolerance"),
            std=options.get("y_std"),
            lower=options.get("y_lower"),
            upper=options.get("y_upper"),
        )
        rows = replace(rows, more=known)
        self._check_learnable(rows)
        return rows, self._rule_candidate(rows, options.get("y_rule"), options.get("y_dist"))

    def _check_learnable(self, rows: Rows) -> None:
        if self._learns(rows) and "lower" in rows.more:
            raise ValueError(
                "tolerance='learn' needs targets that are all known, got bounds (y_lower or "
                "y_upper). Use a number, such as tolerance=0."
            )

    def _rule_candidate(
        self, rows: Rows, y_rule: RuleLike | None, y_dist: Distribution | ArrayLike | None
    ) -> PlannedEnsemble | None:
        """The ensemble to train on a rule; None where a tolerance says it all."""
        shape = rows.y.shape[:1] if self.single_output_ else rows.y.shape
        stated = stated_rule(self.rule, y_rule)
        if stated is None and y_dist is None:
            return None
        default = type(self).tolerance
        rule = rule_for(stated, self.tolerance, rows, shape, unstated=default)
        if isinstance(rule, Share) and rows.weight is not None and np.ptp(rows.weight) > 0:
            raise ValueError(
                f"sample_weight must be the same for all rows under {rule!r}, which counts them, "
                "got different ones. Repeat rows instead."
            )
        family, std = family_with_variance(self.family, self.df), rows.more.get("std")
        trained = training_rule(rule, rows.y, shape=shape, family=family, std=std, dist=y_dist)
        if self.predictive == "smoothed":
            check_density(trained)
        return PlannedEnsemble(rows, np.full(rows.y.shape[1], trained.half_length), rule=trained)

    def _learns(self, rows: Rows) -> bool:
        """Whether the tolerance is trained, since the rows do not come with their own."""
        by_name = isinstance(self.tolerance, str) and self.tolerance == "learn"
        return by_name and "tolerance" not in rows.more

    def _stated_candidate(self, rows: Rows) -> PlannedEnsemble:
        """The ensemble to train where the tolerance is given or learnt."""
        if "tolerance" in rows.more:
            # the root mean square, so that the smoothed variance is right on average
            return PlannedEnsemble(rows, np.sqrt(np.mean(rows.more["tolerance"] ** 2, axis=0)))
        target_range = Scaling.range(rows.y).scale
        if self.tolerance == "learn":
            return PlannedEnsemble(rows, _LEARNT_FROM * target_range)
        return PlannedEnsemble(rows, stated_half_width(self.tolerance, target_range))

    @property
    def _heads(self) -> Heads:
        return Heads(self.mean_head, self.variance_head, self.variance_floor)

    def _objective(self, candidate: PlannedEnsemble) -> Objective:
        heads, rows = self._heads, candidate.rows
        if candidate.rule is not None:
            return candidate.rule.objective(heads, self.family, self.df)
        if "lower" in rows.more:
            return ByAutograd(CensoredLoss(heads, self.family, self.df))
        if "tolerance" in rows.more:
            return AgreementObjective(heads, self.family, self.df)
        exact = self.tolerance == 0 or (self.tolerance == "local" and len(rows) > 1)
        if exact and self.family == "normal" and "std" not in rows.more:
            return GaussianLikelihood(heads)
        return AgreementObjective(heads, self.family, self.df, learn_tolerance=self._learns(rows))

    def _first_extra(
        self, candidate: PlannedEnsemble, columns: dict[str, Floats]
    ) -> tuple[float, ...]:
        """Where the objective's own parameters start: the logarithm of a tolerance to learn."""
        if not self._objective(candidate).n_extra:
            return ()
        return (math.log(float(columns["tolerance"].mean())),)

    def _keep_tolerance(self, candidate: PlannedEnsemble) -> None:
        self.tolerance_ = self._of_targets(candidate.tolerance)
        kernel = None if candidate.rule is None else candidate.rule.kernel
        self.rule_center_ = np.empty(0) if kernel is None else kernel.center
        self.rule_half_width_ = np.empty(0) if kernel is None else kernel.half_width
        self.rule_error_ = 0.0 if candidate.rule is None else candidate.rule.error

    def _keep_learnt_tolerance(self, members: Trained) -> None:
        """Each member's own in target units, (M, T), or empty; it is learnt in scaled units."""
        learnt = np.exp(members.extra.astype(np.float64))
        self.member_tolerance_ = learnt * self.y_scale_ if learnt.size else learnt
        if learnt.size:
            self.tolerance_ = self._of_targets(self.member_tolerance_.mean(axis=0))

    def _of_targets(self, values: Floats) -> Any:
        """(T,) as the user gave the targets: a number for a single one."""
        return float(values[0]) if self.single_output_ else values

    def _members(self, mean: Floats, std: Floats) -> LocationScale:
        return with_moments(self.family, mean, std, self.df)

    def _constant_half_width(self, mean: Floats) -> Floats:
        """A tolerance that is the same for all rows, broadcastable to the moments (M, N, T)."""
        if self.member_tolerance_.size:
            return np.asarray(self.member_tolerance_[:, None])
        return np.broadcast_to(np.atleast_1d(self.tolerance_), mean.shape[1:])

    def _agreeing(self, mean: Floats, std: Floats, eps: Floats | None = None) -> Distribution:
        """The ensemble with these moments, smoothed by the rule it was trained on, or by ``eps``.

        **Shape**: mean and std (M, N, T).
        """
        if self.predictive == "smoothed" and self.rule_center_.size:
            kernel = AllowedErrors(self.rule_center_, self.rule_half_width_)
            smoothed = kernel.smoothed(self._members, self._shaped(mean), self._shaped(std))
            return ensemble_distribution(smoothed, combine=self.combine)
        members = self._members(self._shaped(mean), self._shaped(std))
        tolerance = None if eps is None else self._shaped(eps)
        return ensemble_distribution(members, tolerance=tolerance, combine=self.combine)
