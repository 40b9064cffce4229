"""The paper's method as an estimator: networks trained to agree with the data within ε."""

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from accord._checks import check_choice, check_finite, check_non_negative, check_scalar
from accord._numerics import FamilyName, family_with_variance
from accord._types import Floats
from accord.distributions import Distribution, with_moments
from accord.estimators.ensemble import (
    NetworkEnsembleRegressor,
    Rows,
    TrainingPlan,
    warn_if_useless,
)
from accord.estimators.predictive import (
    Combine,
    ensemble_distribution,
    member_moments,
)
from accord.estimators.presets import PRESETS
from accord.estimators.tolerance import (
    CHOICES,
    FALLBACK,
    MIN_ROWS,
    RELATIVE_FALLBACK,
    Candidate,
    Search,
    ToleranceCurve,
    ToleranceRule,
    growth_for,
    percentage,
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

        >>> BVMRegressor.preset("table3", random_state=1).batch_size
        16
        """
        check_choice("preset", name, tuple(PRESETS))
        return cls(**{**PRESETS[name], **overrides})

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
        if self._chooses(rows) and not goes_on:
            return self._search_plan(rows, settings)
        return self._final_plan(self._candidate(rows, goes_on), settings, goes_on=goes_on)

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
            self._objective(rows),
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
        if isinstance(self.tolerance, str):
            if self.tolerance not in ("learn", *CHOICES):
                percentage(self.tolerance)
        else:
            remedy = "Use 0 for exact agreement (NLL)."
            check_scalar("tolerance", self.tolerance)
            check_non_negative("tolerance", self.tolerance, remedy=remedy)
            check_finite("tolerance", self.tolerance, remedy=remedy)

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
        if self._objective(candidate.rows).n_extra:
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

    def _objective(self, rows: Rows) -> Objective:
        heads = self._heads
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
        known = np.ones(len(test), bool)
        if "lower" in test.more:
            known = (test.more["lower"] == test.more["upper"]).all(axis=1)
        if not known.any():
            return [0.0] * len(rules)  # nothing to distinguish the rules by
        test = test[np.flatnonzero(known)]
        weight = test.weight if test.weight is not None and test.weight.any() else None
        scalings = self._scalings(candidate.rows)
        mean, std = self._member_moments(trained.parameters, test.x, scalings)
        if "std" in test.more:
            std = np.hypot(std, test.more["std"])
        growth = None if candidate.growth is None else candidate.growth(test.x)
        scores = []
        for rule in rules:
            eps = rule.at(growth, mean, std)
            members = with_moments(self.family, mean, softened(std, eps), self.df)
            dist = ensemble_distribution(members, tolerance=eps)
            losses = -np.asarray(dist.log_prob(test.y))
            scores.append(float(np.average(losses.mean(axis=1), weights=weight)))
        return scores

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
        if self.predictive == "smoothed":
            eps = self._half_width(X, mean, std)
            if isinstance(self.tolerance, str) and self.tolerance in CHOICES:
                std = softened(std, eps)
        members = with_moments(self.family, self._shaped(mean), self._shaped(std), self.df)
        tolerance = None if eps is None else self._shaped(eps)
        return ensemble_distribution(members, tolerance=tolerance, combine=self.combine)

    def _half_width(self, X: Floats, mean: Floats, std: Floats) -> Floats:
        """The tolerance at each row in target units, broadcastable to (M, N, T)."""
        if self.member_tolerance_.size:
            return np.asarray(self.member_tolerance_[:, None])
        half_width, kappa = np.atleast_1d(self.tolerance_), self.relative_tolerance_
        rule = ToleranceRule(half_width, self.target_range_, self.growth_, kappa)
        return rule.at(None if self.growth_ is None else self.growth_(X), mean, std)
