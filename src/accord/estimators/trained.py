"""What every regressor has that is trained by the loop: its settings, rows, seeds and curves."""

import inspect
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight

from accord._checks import (
    RandomState,
    check_choice,
    check_count,
    check_non_negative,
    check_positive,
    check_probability,
    drawn_seeds,
)
from accord._progress import shown
from accord._types import Floats
from accord.estimators.distributional import DistributionalRegressor
from accord.training import (
    EpochReport,
    Listener,
    Optimizer,
    Scaling,
    Schedule,
    Settings,
    StoppingRows,
    Task,
    Trained,
)

TargetScaling = Literal["range", "standard", "none"]
Precision = Literal["float32", "float64"]
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


# What the ensembles have in common, described once. Each text takes the place of its name in braces
# in the docstring of each class, as far as the class has the parameters, so that ``help`` shows
# every one in place.
_SETTINGS = """\
    n_members: Networks in the ensemble.
    hidden: Units of each hidden layer.
    epochs: Passes through the training rows.
    random_state: Seed of everything random; the same seed gives the same model.
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
    device: Where torch trains and predicts.
    dtype: Precision of the networks.
    verbose: 1 for a progress bar.
    activation: Of the hidden layers: ``"relu"``, ``"gelu"``, ``"silu"`` or ``"tanh"``.
    dropout: Share of hidden units dropped in training.
    warm_start: Let ``fit`` go on from the networks of the last one."""
_RULE = """\
    rule: When a prediction agrees with its target, in place of a tolerance: a rule of
        :mod:`accord.agreement`, its words (``"within 0.5 or error inside 1.9 2.1"``) or a
        callable ``(y_hat, y) -> bool``, in target units. A rule on ŷ − y that allows errors of
        a finite length implies the density that is predicted with. Any other (one-sided,
        inside a range, relative to the target, a callable) implies none; it can be trained on
        with ``predictive="model"``, and ``fit`` refuses it otherwise. So can a share of rows,
        ``Share(Within(0.5), 0.95)`` or ``"95% within 0.5"``, which is asked of each batch as a
        whole: rows beyond the share may be as wrong as they like. A rule with numbers per row
        goes to ``fit(y_rule=...)``."""
_MEMBERS = """\
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
        may be: with 1e-6, σ is never below a thousandth of the scale."""
_SHARED = {"settings": _SETTINGS, "rule": _RULE, "members": _MEMBERS}


# A dataclass, so that a setting which all share stands once: its ``__init__`` has every field as a
# keyword and only assigns, which is what scikit-learn asks of one.
@dataclass(kw_only=True, eq=False, repr=False)
class TrainedRegressor(DistributionalRegressor):
    """A regressor whose networks are trained by the loop, with its settings; abstract."""

    n_members: int = 5
    epochs: int = 40
    random_state: RandomState = None
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
    device: str = "cpu"
    dtype: Precision = "float32"
    verbose: int = 0

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__doc__:  # there is none under ``python -OO``
            text = inspect.cleandoc(cls.__doc__)
            for place, words in _SHARED.items():
                described = re.split(r"\n(?=    \w)", words)
                own = [each for each in described if hasattr(cls, each.split(":")[0].strip())]
                text = text.replace(f"    {{{place}}}", "\n".join(own))
            cls.__doc__ = text

    def _check_loop_settings(self) -> None:
        for name in ("n_members", "epochs", "batch_size", "patience"):
            check_count(name, getattr(self, name))
        if self.clip_norm is not None:
            check_positive("clip_norm", self.clip_norm, remedy="Use None for no bound.")
        _check_device(self.device)
        check_choice("target_scaling", self.target_scaling, tuple(_TARGET_SCALINGS))
        check_choice("optimizer", self.optimizer, get_args(Optimizer))
        check_choice("schedule", self.schedule, get_args(Schedule))
        check_choice("dtype", self.dtype, tuple(_DTYPES))
        check_positive("learning_rate", self.learning_rate)
        check_non_negative("weight_decay", self.weight_decay)
        check_probability("validation_fraction", self.validation_fraction, strict=True)

    def _target_scaling(self, y: Floats) -> Scaling:
        return _TARGET_SCALINGS[self.target_scaling](y)

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
        }
        return Settings(**(options | changes))

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

    def _seeds(self) -> list[int]:
        """One seed per member, all from ``random_state``."""
        return drawn_seeds(self.random_state, self.n_members)

    def _keep_run(self, trained: Trained, y_scaling: Scaling) -> None:
        """How training went, as numpy."""
        self.y_shift_, self.y_scale_ = y_scaling.shift, y_scaling.scale
        self.history_ = trained.history
        self.held_out_history_ = trained.held_out_history
        self.n_iter_ = int(trained.n_epochs.max())
        self.n_restarts_ = trained.restarts

    @property
    def _y_scaling(self) -> Scaling:
        return Scaling(self.y_shift_, self.y_scale_)


def checked_weight(sample_weight: Any, X: Floats) -> Floats | None:
    """Weights of the rows, none of them negative."""
    if sample_weight is None:
        return None
    weight: Floats = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    return weight


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


def listening(verbose: int, title: str) -> Listener | None:
    """A listener that draws a bar on standard error, or None if ``verbose`` is 0."""
    if not verbose:
        return None
    show = shown(True)

    def listen(report: EpochReport) -> None:
        done = f"epoch {report.epoch}/{report.n_epochs}, loss {report.loss:.3f}"
        show(report.epoch / report.n_epochs, f"{title} ({report.n_members} networks), {done}")

    return listen
