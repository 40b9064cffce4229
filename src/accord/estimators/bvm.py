"""The paper's method as an estimator, trained to agree with the data within ε, and its recipes.

A recipe holds every setting of the networks that the paper prints, for its method and for its
rivals, under the names that the estimators use. A preset is a recipe with the tolerance and the
predictive of the paper's method. The paper gives ε as a share of the targets' range, written here
as a percentage; the toy's alone is in target units, since its targets are not scaled.
"""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from accord._checks import check_choice, sklearn_seed
from accord._types import Floats
from accord.distributions import Distribution
from accord.estimators.agreeing import AgreementRegressor, FitOptions, StatedAgreement
from accord.estimators.ensemble import NetworkEnsembleRegressor, TrainingPlan
from accord.estimators.tolerance import (
    CHOICES,
    FALLBACK,
    MIN_ROWS,
    RELATIVE_FALLBACK,
    PlannedEnsemble,
    Search,
    ToleranceCurve,
    ToleranceRule,
    growth_for,
    known_rows,
    mean_losses,
    softened,
)
from accord.estimators.trained import Rows, warn_if_useless
from accord.training import Scaling, Settings, Task, Trained
from accord.trust import Growth


@dataclass(kw_only=True, eq=False, repr=False)
class BVMRegressor(AgreementRegressor, NetworkEnsembleRegressor, StatedAgreement):
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
        {rule}
        {settings}
        {members}

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

    def _fit(self, X: Any, y: Any, **options: Unpack[FitOptions]) -> Self:
        return self._train(self._plan(X, y, **options))

    def partial_fit(self, X: Any, y: Any, *, sample_weight: ArrayLike | None = None) -> Self:
        """Train for one epoch on these rows, going on from what has been learnt so far.

        The first call sets scaling and tolerance; later ones keep them. ``sample_weight`` is the
        weight of each row in the loss.
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
        goes_on: bool | None = None,
        epochs: int | None = None,
        **options: Unpack[FitOptions],
    ) -> TrainingPlan:
        goes_on = self._continues() if goes_on is None else goes_on
        rows = self._rows(X, y, options.get("sample_weight"), reset=not goes_on)
        self._check_agreement_settings()
        rows, by_rule = self._informed(rows, options)
        settings = self._settings(epochs=self.epochs if epochs is None else epochs)
        if by_rule is not None:
            return self._final_plan(by_rule, settings, goes_on=goes_on)
        if self._chooses(rows) and not goes_on:
            return self._search_plan(rows, settings)
        return self._final_plan(self._candidate(rows, goes_on), settings, goes_on=goes_on)

    def _chooses(self, rows: Rows) -> bool:
        """Whether the tolerance is to be chosen, and there are rows enough to choose on."""
        by_name = isinstance(self.tolerance, str) and self.tolerance in CHOICES
        return by_name and "tolerance" not in rows.more and len(rows) >= MIN_ROWS

    def _search_plan(self, rows: Rows, settings: Settings) -> TrainingPlan:
        """Every candidate on every inner split; the chosen one is then trained on all rows."""
        choice: Any = self.tolerance
        search = Search.over(choice, rows, check_random_state(sklearn_seed(self.random_state)))

        def finish(trained: list[Trained]) -> TrainingPlan:
            results = zip(search.candidates, trained, search.tests, strict=True)
            curve = search.choose(
                [self._scores(c, members, test, search.rules(c)) for c, members, test in results]
            )
            half_width = curve.chosen * Scaling.range(rows.y).scale
            chosen = PlannedEnsemble(rows, half_width, growth_for(choice, rows))
            return self._final_plan(chosen, settings, curve=curve)

        return self._plan_for(search.candidates, settings, finish)

    def _final_plan(
        self,
        candidate: PlannedEnsemble,
        settings: Settings,
        *,
        curve: ToleranceCurve | None = None,
        goes_on: bool = False,
    ) -> TrainingPlan:
        def finish(trained: list[Trained]) -> None:
            scalings = self._scalings(candidate.rows, goes_on)
            self._keep(trained[0], *scalings)
            if candidate.is_density:
                warn_if_useless(self.history_, scalings[1].scaled(candidate.rows.y))
            if not goes_on:
                self._keep_tolerance(candidate)
                self._keep_choice(candidate, curve)
            self._keep_learnt_tolerance(trained[0])

        return self._plan_for([candidate], settings, finish, goes_on=goes_on)

    def _plan_for(
        self,
        candidates: list[PlannedEnsemble],
        settings: Settings,
        finish: Callable[[list[Trained]], TrainingPlan | None],
        *,
        goes_on: bool = False,
    ) -> TrainingPlan:
        seeds, rows = self._seeds(), candidates[0].rows
        return TrainingPlan(
            [self._candidate_task(candidate, seeds, goes_on) for candidate in candidates],
            self._architecture(rows, 2 * rows.y.shape[1]),
            self._objective(candidates[0]),
            settings,
            finish,
        )

    def _candidate(self, rows: Rows, goes_on: bool) -> PlannedEnsemble:
        """The ensemble to train where there is nothing to choose."""
        if goes_on:
            kept = np.atleast_1d(self.tolerance_)
            return PlannedEnsemble(rows, kept, self.growth_, self.target_range_)
        if "tolerance" not in rows.more and self.tolerance in CHOICES:
            half_width = FALLBACK * Scaling.range(rows.y).scale
            return PlannedEnsemble(rows, half_width, growth_for(str(self.tolerance), rows))
        return self._stated_candidate(rows)

    def _candidate_task(self, candidate: PlannedEnsemble, seeds: list[int], goes_on: bool) -> Task:
        x_scaling, y_scaling = self._scalings(candidate.rows, goes_on)
        columns = candidate.columns(y_scaling)
        return self._task(
            x_scaling.scaled(candidate.rows.x),
            columns,
            candidate.rows.weight,
            seeds,
            initial=self._kept_parameters(seeds) if goes_on else None,
            extra=self._first_extra(candidate, columns),
        )

    def _keep_choice(self, candidate: PlannedEnsemble, curve: ToleranceCurve | None) -> None:
        self.tolerance_curve_: ToleranceCurve | None = curve
        self.growth_: Growth | None = candidate.growth
        self.target_range_ = candidate.target_range
        self.relative_tolerance_ = 0.0 if candidate.growth is None else RELATIVE_FALLBACK
        if curve is not None:
            self.relative_tolerance_ = curve.relative

    def _scores(
        self, candidate: PlannedEnsemble, trained: Trained, test: Rows, rules: list[ToleranceRule]
    ) -> list[float]:
        """Mean NLL of a trained candidate on rows it has not seen, under each rule."""
        test = known_rows(test)
        if not len(test):
            return [0.0] * len(rules)  # nothing to distinguish the rules by
        scalings = self._scalings(candidate.rows)
        mean, std = self._member_moments(self._heads, test.x, trained.parameters, scalings)
        growth = None if candidate.growth is None else candidate.growth(test.x)
        return mean_losses(rules, test, self._members, (mean, std), growth)

    def predict_dist_and_growth(self, X: Any) -> tuple[Distribution, Floats]:
        """The predictive distribution of each row, and how far it lies from the training rows.

        The second is g of a local tolerance, from the one search that the first takes
        (:class:`accord.trust.Growth`); other tolerances have none.

        **Shape**: (N,), or (N, T) if fitted on several outputs, and (N,).
        """
        rows = self._checked(X)
        if self.growth_ is None:
            raise ValueError(
                f"a growth needs tolerance='local', got {self.tolerance!r}. Use predict_dist."
            )
        growth = self.growth_.cut_off(rows)
        return self._predictive(rows, growth), growth

    def _predictive(self, X: Floats, growth: Floats | None = None) -> Distribution:
        scalings = self._x_scaling, self._y_scaling
        mean, std = self._member_moments(self._heads, X, self.parameters_, scalings)
        if self.predictive == "model" or self.rule_center_.size:
            return self._agreeing(mean, std)
        eps = self._half_width(X, mean, std, growth)
        if isinstance(self.tolerance, str) and self.tolerance in CHOICES:
            std = softened(std, eps)
        return self._agreeing(mean, std, eps)

    def _half_width(self, X: Floats, mean: Floats, std: Floats, growth: Floats | None) -> Floats:
        """The tolerance at each row in target units, broadcastable to (M, N, T)."""
        if self.growth_ is None:
            return self._constant_half_width(mean)
        half_width, kappa = np.atleast_1d(self.tolerance_), self.relative_tolerance_
        rule = ToleranceRule(half_width, self.target_range_, self.growth_, kappa)
        return rule.at(self.growth_.cut_off(X) if growth is None else growth, mean, std)


Recipe = Mapping[str, Any]

# The paper states no floor, and one of 1e-12 already changes its networks: trained within ε, some
# of their variances fall to 2e-12. Far from the data a float32 variance may even be exactly 0,
# which has no density; this floor prevents that, and is lost in rounding above 1e-22.
_FLOOR = 1e-30
_NETWORK: Recipe = {
    "n_members": 5,
    "hidden": (50,),
    "activation": "relu",
    "epochs": 40,
    "target_scaling": "range",
    "mean_head": "sigmoid",
    "variance_head": "sigmoid",
    "variance_floor": _FLOOR,
}
_TABLE1: Recipe = {
    **_NETWORK,
    "optimizer": "adamw",
    "learning_rate": 3e-4,
    "weight_decay": 0.01,
    "batch_size": 32,
}
_STOCKS: Recipe = {
    **_NETWORK,
    "hidden": (50, 50, 50, 50),
    "optimizer": "adam",
    "learning_rate": 1e-3,
    "batch_size": 32,
}
RECIPES: Mapping[str, Recipe] = {
    "table1": _TABLE1,
    "table1-protein": {**_TABLE1, "hidden": (100,)},
    # ours: ten times the printed rate, which leaves the small sets half trained
    "table1-tuned": {**_TABLE1, "learning_rate": 3e-3},
    "stocks": _STOCKS,
    # the paper prints sigmoid heads for the UCI sets only; this is the other way to read it
    "stocks-identity": {**_STOCKS, "mean_head": "identity"},
    "table3": {**_NETWORK, "optimizer": "adam", "learning_rate": 3e-3, "batch_size": 16},
    # of the toy the paper prints one hidden layer of 100 units and unscaled targets; the rest is
    # ours, and the variance is not squeezed below 1, since the noise has variance 9
    "toy": {
        **_NETWORK,
        "hidden": (100,),
        "target_scaling": "none",
        "mean_head": "identity",
        "variance_head": "softplus",
        "optimizer": "adam",
        "learning_rate": 0.1,
        "epochs": 100,
        "batch_size": 4,
    },
    # the rivals that the paper quotes, by the recipes of their own papers
    "pbp": {"hidden": (50,), "epochs": 40},
    "mc-dropout": {"hidden": (50,), "epochs": 400, "batch_size": 32},
    # ours: a larger rate that falls to 0, standardised targets, the mean free to leave their range
    "cosine": {
        **_NETWORK,
        "optimizer": "adam",
        "learning_rate": 1e-2,
        "schedule": "cosine",
        "batch_size": 32,
        "target_scaling": "standard",
        "mean_head": "identity",
        "variance_head": "softplus",
    },
}


def _preset(recipe: str, tolerance: str | float) -> Recipe:
    return {
        **RECIPES[recipe],
        "tolerance": tolerance,
        "predictive": "model",
        "combine": "moments",
    }


PRESETS: Mapping[str, Recipe] = {
    "table1": _preset("table1", "1%"),
    "table1-protein": _preset("table1-protein", "1%"),
    "table1-tuned": _preset("table1-tuned", "1%"),
    "stocks": _preset("stocks", "1%"),
    "stocks-identity": _preset("stocks-identity", "1%"),
    "table3": _preset("table3", "1%"),
    "toy": _preset("toy", 1.0),
}
