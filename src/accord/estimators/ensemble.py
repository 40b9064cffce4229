"""What every ensemble of networks shares: its settings, scaling, training plan and members.

A concrete estimator states in ``_plan`` which tasks it wants trained and what it makes of the
result. ``fit`` trains that plan alone; :func:`accord.estimators.fit_together` trains many at once.
"""

import inspect
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from accord._checks import (
    check_choice,
    check_count,
    check_non_negative,
    check_positive,
    check_probability,
)
from accord._types import Floats
from accord.estimators.distributional import DistributionalRegressor
from accord.training import (
    ACTIVATIONS,
    Activation,
    Architecture,
    EpochReport,
    GaussianLikelihood,
    Listener,
    Objective,
    Optimizer,
    Scaling,
    Schedule,
    Settings,
    StoppingRows,
    Task,
    Trained,
    raw_outputs,
    train,
)

TargetScaling = Literal["range", "standard", "none"]
_TARGET_SCALINGS = {"range": Scaling.range, "standard": Scaling.standard, "none": Scaling.none}
_DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True)
class Rows:
    """Checked training rows in their own units.

    **Shape**: x (N, d); y (N, T); weight (N,); each column of ``more`` (N, T).
    """

    x: Floats
    y: Floats
    weight: Floats | None = None
    more: dict[str, Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, rows: NDArray[Any]) -> "Rows":
        weight = None if self.weight is None else self.weight[rows]
        more = {name: column[rows] for name, column in self.more.items()}
        return Rows(self.x[rows], self.y[rows], weight, more)


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


def carry_out(plans: Sequence[TrainingPlan], *, listener: Listener | None = None) -> None:
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


# What all ensembles have in common, described once. It takes the place of "{settings}" in the
# docstring of each, so that ``help`` shows every parameter in place.
_SETTINGS = """\
    n_members: Networks in the ensemble.
    hidden: Units of each hidden layer.
    epochs: Passes through the training rows.
    random_state: Seed of everything random; the same seed gives the same model.
    activation: Of the hidden layers: ``"relu"``, ``"gelu"``, ``"silu"`` or ``"tanh"``.
    dropout: Share of hidden units dropped in training.
    target_scaling: Targets to the ``"range"`` [0, 1], to ``"standard"`` deviation 1, or as
        they are (``"none"``).
    batch_size: Rows per step.
    optimizer: ``"adam"`` or ``"adamw"``.
    learning_rate: Step size of the optimizer.
    weight_decay: Of the optimizer.
    schedule: Learning rate ``"constant"``, or falling to 0 as a ``"cosine"``.
    clip_norm: Largest norm of each member's gradient; None for no limit.
    early_stopping: Stop a member once its loss on held-out rows no longer improves, and
        restore its best state.
    validation_fraction: Share of the rows held out for early stopping.
    patience: Epochs without improvement before a member stops.
    warm_start: Let ``fit`` go on from the networks of the last one.
    device: Where torch trains and predicts.
    dtype: Precision of the networks.
    memory_budget: Bytes; larger stacks of networks are trained in slices.
    verbose: 1 for a progress bar."""


# A dataclass, so that a setting which all share stands once: its ``__init__`` has every field as a
# keyword and only assigns, which is what scikit-learn asks of one.
@dataclass(kw_only=True, eq=False, repr=False)
class NetworkEnsembleRegressor(DistributionalRegressor):
    """An ensemble of stacked networks; abstract. Its settings are described in ``_SETTINGS``."""

    n_members: int = 5
    hidden: Sequence[int] = (50,)
    epochs: int = 40
    random_state: int | np.random.RandomState | None = None
    activation: Activation = "relu"
    dropout: float = 0.0
    target_scaling: TargetScaling = "range"
    batch_size: int = 16
    optimizer: Optimizer = "adam"
    learning_rate: float = 3e-3
    weight_decay: float = 0.0
    schedule: Schedule = "constant"
    clip_norm: float | None = None
    early_stopping: bool = False
    validation_fraction: float = 0.1
    patience: int = 10
    warm_start: bool = False
    device: str = "cpu"
    dtype: Literal["float32", "float64"] = "float32"
    memory_budget: int = 2 * 2**30
    verbose: int = 0

    parameters_: list[NDArray[Any]] = field(init=False)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__doc__:  # there is none under ``python -OO``
            cls.__doc__ = inspect.cleandoc(cls.__doc__).replace("    {settings}", _SETTINGS)

    @abstractmethod
    def _plan(self, X: Any, y: Any, **fit_options: Any) -> TrainingPlan:
        """Check the input and state what is to be trained."""

    def _train(self, plan: TrainingPlan) -> Self:
        with listening(self.verbose, type(self).__name__) as listener:
            carry_out([plan], listener=listener)
        return self

    def _rows(self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True) -> Rows:
        """Check ``X``, ``y`` and the settings, and remember names and numbers of columns."""
        self._check_settings()
        X, y = self._checked_pair(X, y, reset=reset)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
        return Rows(X, y, sample_weight)

    def _check_settings(self) -> None:
        for name in ("n_members", "epochs", "batch_size", "patience"):
            check_count(name, getattr(self, name))
        if not isinstance(self.hidden, Sequence):
            raise ValueError(
                f"hidden must list the units of each hidden layer, got {self.hidden!r}. "
                "Write (50,) for one layer of 50."
            )
        for size in self.hidden:
            check_count("hidden", size)
        if self.clip_norm is not None:
            check_positive("clip_norm", self.clip_norm, remedy="Use None for no bound.")
        _check_device(self.device)
        check_choice("activation", self.activation, ACTIVATIONS)
        check_choice("target_scaling", self.target_scaling, tuple(_TARGET_SCALINGS))
        check_choice("optimizer", self.optimizer, ("adam", "adamw"))
        check_choice("schedule", self.schedule, ("constant", "cosine"))
        check_choice("dtype", self.dtype, tuple(_DTYPES))
        check_positive("learning_rate", self.learning_rate)
        check_non_negative("weight_decay", self.weight_decay)
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), got {self.dropout}. Use 0 for none.")
        check_probability("validation_fraction", self.validation_fraction, strict=True)

    def _continues(self) -> bool:
        """Whether this fit goes on from the last one's networks and scaling."""
        return bool(self.warm_start) and hasattr(self, "parameters_")

    def _settings(self, **changes: Any) -> Settings:
        options: dict[str, Any] = {
            "epochs": self.epochs,
            "batch_size": self.batch_size,
            "optimizer": self.optimizer,
            "learning_rate": self.learning_rate,
            "weight_decay": self.weight_decay,
            "schedule": self.schedule,
            "clip_norm": self.clip_norm,
            "patience": self.patience if self.early_stopping else None,
            "device": self.device,
            "dtype": _DTYPES[self.dtype],
            "memory_budget": self.memory_budget,
        }
        return Settings(**(options | changes))

    def _architecture(self, rows: Rows, outputs_per_target: int, **changes: Any) -> Architecture:
        options: dict[str, Any] = {
            "n_inputs": rows.x.shape[1],
            "hidden": tuple(self.hidden),
            "n_outputs": outputs_per_target * rows.y.shape[1],
            "activation": self.activation,
            "dropout": self.dropout,
        }
        return Architecture(**(options | changes))

    def _scalings(self, rows: Rows, goes_on: bool = False) -> tuple[Scaling, Scaling]:
        """Of features and of targets; the ones already learnt if the fit goes on."""
        if goes_on:
            return self._x_scaling, self._y_scaling
        return Scaling.standard(rows.x), _TARGET_SCALINGS[self.target_scaling](rows.y)

    def _task(
        self,
        x: Floats,
        columns: dict[str, Floats],
        weight: Floats | None,
        seeds: Sequence[int],
        **options: Any,
    ) -> Task:
        """Scaled rows as a task; some of them held out if training stops early."""
        tensors = {name: torch.as_tensor(column) for name, column in columns.items()}
        rows = torch.as_tensor(x)
        weights = None if weight is None else torch.as_tensor(weight)
        if not self.early_stopping:
            return Task(rows, tensors, tuple(seeds), weights, **options)
        order = np.random.default_rng(seeds[0]).permutation(len(x))
        n_held = min(max(1, round(self.validation_fraction * len(x))), len(x) - 1)
        if n_held < 1:
            raise ValueError(
                f"early_stopping needs at least 2 rows, got n_samples = {len(x)}. "
                "Use early_stopping=False."
            )
        held, kept = torch.as_tensor(order[:n_held]), torch.as_tensor(order[n_held:])
        return Task(
            rows[kept],
            {name: column[kept] for name, column in tensors.items()},
            tuple(seeds),
            None if weights is None else weights[kept],
            held_out=StoppingRows(
                rows[held],
                {name: c[held] for name, c in tensors.items()},
                None if weights is None else weights[held],
            ),
            **options,
        )

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

    def _seeds(self) -> list[int]:
        """One seed per member, all from ``random_state``."""
        generator = check_random_state(self.random_state)
        return [int(seed) for seed in generator.randint(2**31 - 1, size=self.n_members)]

    def _keep(self, trained: Trained, x_scaling: Scaling, y_scaling: Scaling) -> None:
        """Learned state, as numpy."""
        self.parameters_ = trained.parameters
        self.x_shift_, self.x_scale_ = x_scaling.shift, x_scaling.scale
        self.y_shift_, self.y_scale_ = y_scaling.shift, y_scaling.scale
        self.history_ = trained.history
        self.held_out_history_ = trained.held_out_history
        self.n_iter_ = int(trained.n_epochs.max())
        self.n_restarts_ = trained.restarts

    @property
    def _x_scaling(self) -> Scaling:
        return Scaling(self.x_shift_, self.x_scale_)

    @property
    def _y_scaling(self) -> Scaling:
        return Scaling(self.y_shift_, self.y_scale_)

    def _outputs(
        self, X: Floats, transform: Callable[[torch.Tensor], torch.Tensor] | None = None
    ) -> Floats:
        """Outputs of all members in scaled units, (M, N, outputs)."""
        x = self._x_scaling.scaled(X)
        return raw_outputs(self.parameters_, x, self.activation, self.device, transform)


def _check_device(device: str) -> None:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # torch's words for what it does not have
        raise ValueError(
            f"device must be one that torch has here, got {device!r}. Use 'cpu'."
        ) from error


# Nats per row by which a loss may exceed that of the targets' own distribution: networks that were
# trained for an epoch or two have not got far, but not worse than that.
_USELESS = 2.0


def warn_if_useless(history: Floats, targets: Floats) -> None:
    """Warn where networks explain the targets worse than these do themselves.

    ``history`` is the loss per epoch as a negative log-density of scaled ``targets``, summed over
    them; a Gaussian with their own mean and deviation has ½ log(2πe σ²) for each. Of a target that
    is constant no network can know more: there is nothing to warn of.

    **Shape**: history (epochs, M), targets (N, T).
    """
    variance = targets.var(axis=0)
    if not variance.all():
        return
    own = float(0.5 * np.log(2 * np.pi * np.e * variance).sum())
    reached = float(np.nanmedian(history[-1]))
    if reached > own + _USELESS * targets.shape[1]:
        warnings.warn(
            f"training ended at a loss of {reached:.3g}, worse than {own:.3g} without any "
            "network. Lower learning_rate, or train for more epochs.",
            ConvergenceWarning,
            stacklevel=2,
        )


class PlainEnsembleRegressor(NetworkEnsembleRegressor):
    """An ensemble whose members all minimise one loss on all rows; abstract."""

    @property
    @abstractmethod
    def _outputs_per_target(self) -> int:
        """Numbers that a network predicts for each target."""

    @abstractmethod
    def _objective(self) -> Objective:
        """The loss, after a check of the settings that only this estimator has."""

    @abstractmethod
    def _adversarial_step(self, rows: Rows, x_scaling: Scaling) -> torch.Tensor | None:
        """Fast-gradient-sign step per scaled feature, or None for plain training."""

    def fit(self, X: Any, y: Any, *, sample_weight: ArrayLike | None = None) -> Self:
        """Train on features (N, d) and targets (N,) or (N, T), each row with its weight."""
        return self._train(self._plan(X, y, sample_weight=sample_weight))

    def _plan(  # type: ignore[override]
        self, X: Any, y: Any, *, sample_weight: ArrayLike | None = None
    ) -> TrainingPlan:
        goes_on = self._continues()
        rows = self._rows(X, y, sample_weight, reset=not goes_on)
        objective = self._objective()
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
            self._architecture(rows, self._outputs_per_target),
            objective,
            self._settings(),
            finish,
        )


@contextmanager
def listening(verbose: int, title: str) -> Iterator[Listener | None]:
    """A listener that draws a bar on standard error, or None if ``verbose`` is 0."""
    if not verbose:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("epoch {task.completed}/{task.total}  loss {task.fields[loss]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        line = bar.add_task(title, total=None, loss="…")

        def listen(progress: EpochReport) -> None:
            bar.update(
                line,
                description=f"{title} ({progress.n_members} networks)",
                completed=progress.epoch,
                total=progress.n_epochs,
                loss=f"{progress.loss:.3f}",
            )

        yield listen
