"""What every ensemble of networks shares: its settings, scaling, training plan and members.

A concrete estimator states in ``_plan`` which tasks it wants trained and what it makes of the
result. ``fit`` trains that plan alone; :func:`accord.estimators.fit_together` trains many at once.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from accord._checks import check_choice, check_count
from accord._types import Floats
from accord.distributions import (
    Decomposed,
    Distribution,
    Mixture,
    Smoothed,
    gaussian_match,
)
from accord.estimators.pbp import PBPRegressor, fit_as_stack
from accord.estimators.trained import (
    Rows,
    TrainedRegressor,
    checked_weight,
    listening,
    warn_if_useless,
)
from accord.training import (
    ACTIVATIONS,
    Activation,
    Architecture,
    GaussianLikelihood,
    Heads,
    Listener,
    Objective,
    Scaling,
    Settings,
    Task,
    Trained,
    raw_outputs,
    train,
)


@dataclass(frozen=True)
class TrainingPlan:
    """Tasks to train as part of one stack, and what to do with the trained members.

    ``finish`` may return a plan that follows from what was learnt.
    """

    tasks: list[Task]
    architecture: Architecture
    objective: Objective
    settings: Settings
    finish: Callable[[list[Trained]], "TrainingPlan | None"]


def train_plans(plans: Sequence[TrainingPlan], *, listener: Listener | None = None) -> None:
    """Train the plans, alike ones as one stack, and then those that follow from them."""
    while plans:
        following: list[TrainingPlan | None] = []
        for group in _groups(plans):
            tasks = [task for plan in group for task in plan.tasks]
            first = group[0]
            trained = iter(
                train(tasks, first.architecture, first.objective, first.settings, listener=listener)
            )
            following += [plan.finish([next(trained) for _ in plan.tasks]) for plan in group]
        plans = [plan for plan in following if plan is not None]


def _groups(plans: Sequence[TrainingPlan]) -> list[list[TrainingPlan]]:
    groups: list[list[TrainingPlan]] = []
    for plan in plans:
        for group in groups:
            if _alike(plan, group[0]):
                group.append(plan)
                break
        else:
            groups.append([plan])
    return groups


def _alike(one: TrainingPlan, other: TrainingPlan) -> bool:
    return (
        one.architecture == other.architecture
        and one.objective == other.objective
        and one.settings == other.settings
        and list(one.tasks[0].columns) == list(other.tasks[0].columns)
        and (one.tasks[0].adversarial_step is None) == (other.tasks[0].adversarial_step is None)
    )


@dataclass(kw_only=True, eq=False, repr=False)
class _Size:
    """What matters most: fields of the last base come first in the signature."""

    n_members: int = 5
    hidden: Sequence[int] = (50,)


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkEnsembleRegressor(TrainedRegressor, _Size):
    """An ensemble of stacked networks, with the settings of all that are; abstract."""

    activation: Activation = "relu"
    dropout: float = 0.0
    warm_start: bool = False

    parameters_: list[NDArray[Any]] = field(init=False)

    @abstractmethod
    def _plan(self, X: Any, y: Any, **fit_options: Any) -> TrainingPlan:
        """Check the input and state what is to be trained."""

    def _train(self, plan: TrainingPlan) -> Self:
        train_plans([plan], listener=listening(self.verbose, type(self).__name__))
        return self

    def _rows(self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True) -> Rows:
        """Check ``X``, ``y`` and the settings, and remember names and numbers of columns."""
        self._check_settings()
        X, y = self._checked_pair(X, y, reset=reset)
        return Rows(X, y, checked_weight(sample_weight, X))

    def _check_settings(self) -> None:
        self._check_loop_settings()
        if not isinstance(self.hidden, Sequence):
            raise ValueError(
                f"hidden must list the units of each hidden layer, got {self.hidden!r}. "
                "Write (50,) for one layer of 50."
            )
        for size in self.hidden:
            check_count("hidden", size)
        check_choice("activation", self.activation, ACTIVATIONS)
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), got {self.dropout}. Use 0 for none.")

    def _continues(self) -> bool:
        """Whether this fit goes on from the last one's networks and scaling."""
        return bool(self.warm_start) and hasattr(self, "parameters_")

    def _architecture(self, rows: Rows, n_outputs: int, **changes: Any) -> Architecture:
        options: dict[str, Any] = {
            "n_inputs": rows.x.shape[1],
            "hidden": tuple(self.hidden),
            "n_outputs": n_outputs,
            "activation": self.activation,
            "dropout": self.dropout,
        }
        return Architecture(**(options | changes))

    def _scalings(self, rows: Rows, goes_on: bool = False) -> tuple[Scaling, Scaling]:
        """Of features and of targets; the ones already learnt if the fit goes on."""
        if goes_on:
            return self._x_scaling, self._y_scaling
        return Scaling.standard(rows.x), self._target_scaling(rows.y)

    def _kept_parameters(self, seeds: Sequence[int]) -> list[NDArray[Any]]:
        """Where a fit that goes on starts from, if the networks are still of the same shape."""
        kept = self.parameters_
        n_layers = len(kept) // 2
        was = len(kept[0]), tuple(weight.shape[2] for weight in kept[: n_layers - 1])
        if was != (now := (len(seeds), tuple(self.hidden))):
            raise ValueError(
                f"n_members and hidden must stay {was} to go on from the last fit, got {now}. "
                "Set them back, or use warm_start=False."
            )
        return kept

    def _keep(self, trained: Trained, x_scaling: Scaling, y_scaling: Scaling) -> None:
        """Learned state, as numpy."""
        self.parameters_ = trained.parameters
        self.x_shift_, self.x_scale_ = x_scaling.shift, x_scaling.scale
        self._keep_run(trained, y_scaling)

    @property
    def _x_scaling(self) -> Scaling:
        return Scaling(self.x_shift_, self.x_scale_)

    def _outputs(
        self, X: Floats, transform: Callable[[torch.Tensor], torch.Tensor] | None = None
    ) -> Floats:
        """Outputs of all members in scaled units, (M, N, outputs)."""
        x = self._x_scaling.scaled(X)
        return raw_outputs(self.parameters_, x, self.activation, self.device, transform)

    def _member_moments(
        self,
        heads: Heads,
        x: Floats,
        parameters: Sequence[NDArray[Any]],
        scalings: tuple[Scaling, Scaling],
    ) -> tuple[Floats, Floats]:
        """Mean and standard deviation of each member in target units.

        ``scalings`` are those of features and targets.

        **Shape**: x (N, d) → (M, N, T) each.
        """
        x_scaling, y_scaling = scalings

        def transform(raw: torch.Tensor) -> torch.Tensor:
            return torch.cat(heads(raw), -1)

        scaled = x_scaling.scaled(x)
        outputs = raw_outputs(parameters, scaled, self.activation, self.device, transform)
        mean, variance = np.split(outputs, 2, axis=-1)
        return y_scaling.shift + y_scaling.scale * mean, y_scaling.scale * np.sqrt(variance)


class PlainEnsembleRegressor(NetworkEnsembleRegressor):
    """An ensemble whose members all minimise one loss on all rows; abstract."""

    @abstractmethod
    def _objective(self) -> tuple[Objective, int]:
        """The loss, and how many numbers a network predicts for each target.

        The settings that only this estimator has are checked before.
        """

    def _adversarial_step(self, rows: Rows, x_scaling: Scaling) -> torch.Tensor | None:
        """Fast-gradient-sign step per scaled feature, or None for plain training."""
        return None

    def fit(self, X: Any, y: Any, *, sample_weight: ArrayLike | None = None) -> Self:
        """Train on features (N, d) and targets (N,) or (N, T), each row with its weight."""
        return self._train(self._plan(X, y, sample_weight=sample_weight))

    def _plan(  # type: ignore[override]
        self, X: Any, y: Any, *, sample_weight: ArrayLike | None = None
    ) -> TrainingPlan:
        goes_on = self._continues()
        rows = self._rows(X, y, sample_weight, reset=not goes_on)
        objective, n_outputs = self._objective()
        scalings = x_scaling, y_scaling = self._scalings(rows, goes_on)
        seeds = self._seeds()
        task = self._task(
            x_scaling.scaled(rows.x),
            {"target": y_scaling.scaled(rows.y)},
            rows.weight,
            seeds,
            initial=self._kept_parameters(seeds) if goes_on else None,
            adversarial_step=self._adversarial_step(rows, x_scaling),
        )

        def finish(trained: list[Trained]) -> None:
            self._keep(trained[0], *scalings)
            if isinstance(objective, GaussianLikelihood) and not objective.beta:
                warn_if_useless(self.history_, y_scaling.scaled(rows.y))

        return TrainingPlan(
            [task],
            self._architecture(rows, n_outputs * rows.y.shape[1]),
            objective,
            self._settings(),
            finish,
        )


Combine = Literal["mixture", "moments"]


def ensemble_distribution(
    members: Distribution, *, tolerance: Floats | None = None, combine: Combine = "mixture"
) -> Distribution:
    """The members' uniform mixture, each smoothed by the tolerance.

    With ``combine="moments"``, the Gaussian with the mixture's moments, as the paper evaluates it.

    **Shape**: members (M, N) or (M, N, T); tolerance broadcasts against them.
    """
    if tolerance is not None and np.any(tolerance):
        members = Smoothed(members, np.broadcast_to(tolerance, members.shape))
    mixture = Mixture(members)
    if combine == "mixture":
        return mixture
    return Decomposed(gaussian_match(mixture), mixture.disagreement, mixture.distance)


Job = tuple[Any, ...]  # (estimator, X, y) or (estimator, X, y, fit options)


def fit_together(jobs: Iterable[Job], *, listener: Listener | None = None) -> list[Any]:
    """Fit estimators, each on its own data, training equal networks as one stack.

    A job is ``(estimator, X, y)`` or ``(estimator, X, y, fit_options)``. Estimators whose networks,
    loss and training settings are the same share a stack, whatever their data and seeds; the result
    is that of fitting them one by one, to rounding. Others are simply fitted.

    >>> import numpy as np
    >>> from accord.estimators import DeepEnsembleRegressor, fit_together
    >>> x = np.linspace(0, 1, 64)[:, None]
    >>> jobs = [(DeepEnsembleRegressor(random_state=s, epochs=2), x, x[:, 0]) for s in range(3)]
    >>> len(fit_together(jobs))
    3
    """
    estimators, plans, filters = [], [], []
    for estimator, X, y, *options in jobs:
        fit_options: Mapping[str, Any] = options[0] if options else {}
        estimators.append(estimator)
        if isinstance(estimator, NetworkEnsembleRegressor):
            plans.append(estimator._plan(X, y, **fit_options))
        elif isinstance(estimator, PBPRegressor) and not fit_options:
            filters.append((estimator, X, y))
        else:
            estimator.fit(X, y, **fit_options)
    fit_as_stack(filters, listener)
    train_plans(plans, listener=listener)
    return estimators
