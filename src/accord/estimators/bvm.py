"""The paper's method as an estimator: networks trained to agree with the data within ε."""

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from accord._checks import check_choice, check_non_negative
from accord._numerics import FamilyName, family_with_variance
from accord._types import Floats
from accord.distributions import Distribution, LocationScale, with_moments
from accord.estimators.ensemble import NetworkEnsembleRegressor, Rows, TrainingPlan, warn_if_useless
from accord.estimators.predictive import Combine, ensemble_distribution, member_moments
from accord.estimators.presets import PRESETS
from accord.estimators.rules import Kernel, RuleLike, check_density, stated_rule, training_rule
from accord.estimators.tolerance import (
    CHOICES,
    FALLBACK,
    MIN_ROWS,
    RELATIVE_FALLBACK,
    Candidate,
    Search,
    ToleranceCurve,
    ToleranceRule,
    check_tolerance,
    growth_for,
    known_rows,
    mean_losses,
    rule_for,
    softened,
    stated_half_width,
    target_knowledge,
)
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
    Settings,
    Task,
    Trained,
    VarianceHead,
)
from accord.trust import Growth

Tolerance = float | str
# Where a learnt tolerance starts, as a fraction of the range: of the order of the first σ, since
# its gradient vanishes like (ε/σ)².
_LEARNT_FROM = 0.25


@dataclass(kw_only=True, eq=False, repr=False)
class _Tolerance:
    """The most important setting: fields of the last base come first in the signature."""

    tolerance: Tolerance = "local"
    rule: RuleLike | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class BVMRegressor(NetworkEnsembleRegressor, _Tolerance):
    """Ensemble of networks trained on the probability of agreement with the data.

    Each member predicts a mean and a variance per row and minimises −log P(|ŷ − t| ≤ ε). The
    prediction is the mixture of the members, each smoothed by the tolerance, because that is the
    density whose likelihood training maximises (docs/theory.md). The default, a local tolerance, is
    0 at the training rows, so that training is then NLL, and grows where there are none.

    Args:
        tolerance: ε. A number is in the target's units (0: exact agreement, NLL); ``"1%"`` is a
            share of the training targets' range; ``"learn"`` trains it; ``"validate"`` and
            ``"robust"`` choose it by NLL on held-out rows or on the rows' own outliers; ``"local"``
            lets it grow away from the data (:mod:`accord.estimators.tolerance`). Tolerances that
            differ by row go to ``fit(y_tolerance=...)``.
        rule: When a prediction agrees with its target, in place of a tolerance: a rule of
            :mod:`accord.agreement`, its words (``"within 0.5 or error inside 1.9 2.1"``) or a
            callable ``(y_hat, y) -> bool``, in target units. A rule on ŷ − y that allows errors of
            a finite length implies the density that is predicted with. Any other (one-sided,
            inside a range, relative to the target, a callable) implies none; it can be trained on
            with ``predictive="model"``, and ``fit`` refuses it otherwise. A rule with numbers per
            row goes to ``fit(y_rule=...)``.
        {settings}
        family: Predictive family of a member: ``"normal"``, ``"laplace"``, ``"logistic"`` or
            ``"student-t"``.
        df: Degrees of freedom of the Student-t family.
        predictive: ``"smoothed"`` by the tolerance, or the ``"model"`` alone, as in the paper.
        combine: The members' ``"mixture"``, or the Gaussian with its ``"moments"``.
        mean_head: From raw output to the mean of the scaled target: ``"identity"``, or
            ``"sigmoid"``, which confines it to the training range.
        variance_head: From raw output to the variance of the scaled target: ``"sigmoid"``,
            ``"softplus"`` or ``"exp"``.
        variance_floor: Added to every variance, in scaled units (a share of the squared range or
            of the squared standard deviation), so that none collapses. It bounds how sure a member
            may be: with 1e-6, σ is never below a thousandth of the scale.

    Attributes:
        tolerance_: ε in use, in the target's units (ε₀ if local; the members' mean if learnt; the
            root mean square if given per row); an array (T,) for several targets.
        rule_center_, rule_half_width_: (K,) the errors y − ŷ that a rule allows for, as boxes;
            empty without a rule that implies a density.
        rule_error_: Error of the probability of agreement in training under a rule; 0 for a closed
            form.
        tolerance_curve_: Scores behind the choice of ε, or None if there was none.
        parameters_: The members' weights and biases, with a leading member axis.
        history_: (epochs, M) training loss.

    Example:
        >>> import numpy as np
        >>> from accord import BVMRegressor
        >>> x = np.linspace(-1, 1, 200)[:, None]
        >>> y = x[:, 0] ** 2 + 0.05 * np.sin(40 * x[:, 0])
        >>> model = BVMRegressor(random_state=0).fit(x, y)
        >>> mean, std = model.predict([[0.5], [5.0]], return_std=True)
        >>> bool(std[1] > 2 * std[0])  # far from the data, and says so
        True
    """

    family: FamilyName = "normal"
    df: float | None = None
    predictive: Literal["smoothed", "model"] = "smoothed"
    combine: Combine = "mixture"
    mean_head: MeanHead = "sigmoid"
    variance_head: VarianceHead = "sigmoid"
    variance_floor: float = VARIANCE_FLOOR

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
            X, y: Features (N, d) and targets (N,) or (N, T).
            sample_weight: Weight of each row in the loss.
            y_tolerance: Half-width within which each target is known, in its units (an
                instrument's tolerance, rounding); takes the place of ``tolerance``.
            y_std: Standard deviation of each target's measurement error (normal family). The
                prediction is then of the quantity itself, without that error.
            y_lower, y_upper: Bounds of targets that are only known to lie between them; either
                may be infinite, and NaN means that the row is known. ``y`` then only
                sets the scale.
            y_rule: Rule of agreement whose numbers may differ by row, in place of ``rule``. New
                rows are predicted with the mean of the rows' rules (mean and variance of the
                errors they allow).
            y_dist: What is known of each target, in place of ``y``, which then only sets the
                scale: a distribution of the shape of y, or draws (N, S) or (N, T, S). Needs a rule,
                or a tolerance that is stated. The prediction is of the quantity itself, without
                that uncertainty.
        """
        return self._train(
            self._plan(
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
        )

    def partial_fit(self, X: Any, y: Any, *, sample_weight: ArrayLike | None = None) -> Self:
        """Train for one epoch on these rows, going on from what has been learnt so far.

        The first call sets scaling and tolerance; later ones keep them.
        """
        goes_on = hasattr(self, "parameters_")
        return self._train(self._plan(X, y, sample_weight=sample_weight, goes_on=goes_on, epochs=1))

    @classmethod
    def preset(cls, name: str, **overrides: Any) -> Self:
        """The paper's settings by the name of its experiment, each open to change.

        A ``rule`` takes the place of the preset's tolerance.

        >>> BVMRegressor.preset("table3", random_state=1).batch_size
        16
        """
        check_choice("preset", name, tuple(PRESETS))
        settings = dict(PRESETS[name])
        if overrides.get("rule") is not None:
            del settings["tolerance"]
        return cls(**{**settings, **overrides})

    def without_tolerance(self) -> Self:
        """This fitted model, predicting the networks alone: ``predictive="model"``."""
        bare: Self = copy(self).set_params(predictive="model")
        return bare

    def _plan(  # type: ignore[override]  # the options of this class's fit
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
        goes_on: bool | None = None,
        epochs: int | None = None,
    ) -> TrainingPlan:
        goes_on = self._continues() if goes_on is None else goes_on
        rows = self._rows(X, y, sample_weight, reset=not goes_on)
        self._check_own_settings()
        known = target_knowledge(
            rows.y, tolerance=y_tolerance, std=y_std, lower=y_lower, upper=y_upper
        )
        rows = replace(rows, more=known)
        if self._learns(rows) and "lower" in rows.more:
            raise ValueError(
                "tolerance='learn' needs targets that are all known, got bounds (y_lower or "
                "y_upper). Use tolerance='local', or a number."
            )
        settings = self._settings(epochs=self.epochs if epochs is None else epochs)
        candidate = self._rule_candidate(rows, y_rule, y_dist)
        if candidate is not None:
            return self._final_plan(candidate, settings, goes_on=goes_on)
        if self._chooses(rows) and not goes_on:
            return self._search_plan(rows, settings)
        return self._final_plan(self._candidate(rows, goes_on), settings, goes_on=goes_on)

    def _rule_candidate(
        self, rows: Rows, y_rule: RuleLike | None, y_dist: Distribution | ArrayLike | None
    ) -> Candidate | None:
        """The ensemble to train on a rule; None where a tolerance says it all."""
        shape = rows.y.shape[:1] if self.single_output_ else rows.y.shape
        stated = stated_rule(self.rule, y_rule)
        if stated is None and y_dist is None:
            return None
        rule = rule_for(stated, self.tolerance, rows, shape)
        std = rows.more.get("std")
        trained = training_rule(rule, rows.y, shape=shape, family=self.family, std=std, dist=y_dist)
        if self.predictive == "smoothed":
            check_density(trained)
        return Candidate(rows, np.full(rows.y.shape[1], trained.half_length), rule=trained)

    def _learns(self, rows: Rows) -> bool:
        """Whether the tolerance is trained, since the rows do not come with their own."""
        by_name = isinstance(self.tolerance, str) and self.tolerance == "learn"
        return by_name and "tolerance" not in rows.more

    def _chooses(self, rows: Rows) -> bool:
        """Whether the tolerance is to be chosen, and there are rows enough to choose on."""
        by_name = isinstance(self.tolerance, str) and self.tolerance in CHOICES
        return by_name and "tolerance" not in rows.more and len(rows) >= MIN_ROWS

    def _search_plan(self, rows: Rows, settings: Settings) -> TrainingPlan:
        """Every candidate on every inner split; the chosen one is then trained on all rows."""
        choice: Any = self.tolerance
        search = Search.over(choice, rows, check_random_state(self.random_state))

        def finish(trained: list[Trained]) -> TrainingPlan:
            results = zip(search.candidates, trained, search.tests, strict=True)
            curve = search.choose(
                [self._scores(c, members, test, search.rules(c)) for c, members, test in results]
            )
            half_width = curve.chosen * Scaling.range(rows.y).scale
            chosen = Candidate(rows, half_width, growth_for(choice, rows))
            return self._final_plan(chosen, settings, curve=curve)

        return self._plan_for(search.candidates, settings, finish)

    def _final_plan(
        self,
        candidate: Candidate,
        settings: Settings,
        *,
        curve: ToleranceCurve | None = None,
        goes_on: bool = False,
    ) -> TrainingPlan:
        def finish(trained: list[Trained]) -> None:
            scalings = self._scalings(candidate.rows, goes_on)
            self._keep(trained[0], *scalings)
            if candidate.rule is None or candidate.rule.kernel is not None:
                warn_if_useless(self.history_, scalings[1].scaled(candidate.rows.y))
            if not goes_on:
                self._keep_tolerance(candidate, curve)
            self._keep_learnt_tolerance(trained[0])

        return self._plan_for([candidate], settings, finish, goes_on=goes_on)

    def _plan_for(
        self,
        candidates: list[Candidate],
        settings: Settings,
        finish: Callable[[list[Trained]], TrainingPlan | None],
        *,
        goes_on: bool = False,
    ) -> TrainingPlan:
        seeds, rows = self._seeds(), candidates[0].rows
        return TrainingPlan(
            [self._candidate_task(candidate, seeds, goes_on) for candidate in candidates],
            self._architecture(rows, outputs_per_target=2),
            self._objective(candidates[0]),
            settings,
            finish,
        )

    def _check_own_settings(self) -> None:
        check_choice("predictive", self.predictive, ("smoothed", "model"))
        check_choice("combine", self.combine, ("mixture", "moments"))
        check_choice("mean_head", self.mean_head, ("identity", "sigmoid"))
        check_choice("variance_head", self.variance_head, ("sigmoid", "softplus", "exp"))
        check_non_negative("variance_floor", self.variance_floor)
        family_with_variance(self.family, self.df)
        check_tolerance(self.tolerance)

    def _candidate(self, rows: Rows, goes_on: bool) -> Candidate:
        """The ensemble to train where there is nothing to choose."""
        if goes_on:
            kept = np.atleast_1d(self.tolerance_)
            return Candidate(rows, kept, self.growth_, self.target_range_)
        target_range = Scaling.range(rows.y).scale
        if "tolerance" in rows.more:
            # the root mean square, so that the smoothed variance is right on average
            return Candidate(rows, np.sqrt(np.mean(rows.more["tolerance"] ** 2, axis=0)))
        if self.tolerance == "learn":
            return Candidate(rows, _LEARNT_FROM * target_range)
        if self.tolerance in CHOICES:
            half_width = FALLBACK * target_range
            return Candidate(rows, half_width, growth_for(str(self.tolerance), rows))
        return Candidate(rows, stated_half_width(self.tolerance, target_range))

    def _candidate_task(self, candidate: Candidate, seeds: list[int], goes_on: bool) -> Task:
        x_scaling, y_scaling = self._scalings(candidate.rows, goes_on)
        columns = candidate.columns(y_scaling)
        extra: tuple[float, ...] = ()
        if self._objective(candidate).n_extra:
            extra = (math.log(float(columns["tolerance"].mean())),)
        return self._task(
            x_scaling.scaled(candidate.rows.x),
            columns,
            candidate.rows.weight,
            seeds,
            initial=self._kept_parameters(seeds) if goes_on else None,
            extra=extra,
        )

    @property
    def _heads(self) -> Heads:
        return Heads(self.mean_head, self.variance_head, self.variance_floor)

    def _objective(self, candidate: Candidate) -> Objective:
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

    def _keep_tolerance(self, candidate: Candidate, curve: ToleranceCurve | None) -> None:
        self.tolerance_curve_: ToleranceCurve | None = curve
        self.growth_: Growth | None = candidate.growth
        self.target_range_ = candidate.target_range
        self.tolerance_ = self._of_targets(candidate.tolerance)
        self.relative_tolerance_ = 0.0 if candidate.growth is None else RELATIVE_FALLBACK
        if curve is not None:
            self.relative_tolerance_ = curve.relative
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

    def _scores(
        self, candidate: Candidate, trained: Trained, test: Rows, rules: list[ToleranceRule]
    ) -> list[float]:
        """Mean NLL of a trained candidate on rows it has not seen, under each rule."""
        test = known_rows(test)
        if not len(test):
            return [0.0] * len(rules)  # nothing to distinguish the rules by
        scalings = self._scalings(candidate.rows)
        mean, std = self._member_moments(trained.parameters, test.x, scalings)
        growth = None if candidate.growth is None else candidate.growth(test.x)
        return mean_losses(rules, test, self._members, (mean, std), growth)

    def _members(self, mean: Floats, std: Floats) -> LocationScale:
        return with_moments(self.family, mean, std, self.df)

    def _member_moments(
        self, parameters: list[NDArray[Any]], x: Floats, scalings: tuple[Scaling, Scaling]
    ) -> tuple[Floats, Floats]:
        """Mean and standard deviation of each member in target units, (M, N, T) each."""
        return member_moments(
            parameters, x, self._heads, scalings, activation=self.activation, device=self.device
        )

    def _predictive(self, X: Floats) -> Distribution:
        scalings = self._x_scaling, self._y_scaling
        mean, std = self._member_moments(self.parameters_, X, scalings)
        eps = None
        if self.predictive == "smoothed" and self.rule_center_.size:
            kernel = Kernel(self.rule_center_, self.rule_half_width_)
            smoothed = kernel.smoothed(self._members, self._shaped(mean), self._shaped(std))
            return ensemble_distribution(smoothed, combine=self.combine)
        if self.predictive == "smoothed":
            eps = self._half_width(X, mean, std)
            if isinstance(self.tolerance, str) and self.tolerance in CHOICES:
                std = softened(std, eps)
        members = self._members(self._shaped(mean), self._shaped(std))
        tolerance = None if eps is None else self._shaped(eps)
        return ensemble_distribution(members, tolerance=tolerance, combine=self.combine)

    def _half_width(self, X: Floats, mean: Floats, std: Floats) -> Floats:
        """The tolerance at each row in target units, broadcastable to (M, N, T)."""
        if self.member_tolerance_.size:
            return np.asarray(self.member_tolerance_[:, None])
        half_width, kappa = np.atleast_1d(self.tolerance_), self.relative_tolerance_
        rule = ToleranceRule(half_width, self.target_range_, self.growth_, kappa)
        return rule.at(None if self.growth_ is None else self.growth_(X), mean, std)
