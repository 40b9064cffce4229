"""The BVM around a network of your own: an ensemble of any torch module."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from accord._types import Floats
from accord.distributions import Distribution
from accord.estimators.agreeing import AgreementRegressor, FitOptions, StatedAgreement, Tolerance
from accord.estimators.tolerance import CHOICES, PlannedEnsemble
from accord.estimators.trained import (
    Rows,
    TargetScaling,
    TrainedRegressor,
    checked_weight,
    listening,
    warn_if_useless,
)
from accord.training import (
    MeanHead,
    ModuleDesign,
    Scaling,
    Trained,
    VarianceHead,
    fixed_values,
    made,
    module_outputs,
    train,
    trained_values,
)


@dataclass(kw_only=True, eq=False, repr=False)
class ModuleRegressor(AgreementRegressor, TrainedRegressor, StatedAgreement):
    """Ensemble of a torch module of your own, trained on the probability of agreement.

    The module is anything that maps a batch (B, …) to raw outputs (B, 2T) for T targets: a
    convolutional network, a recurrent one, a transformer. Its last layer is a linear one without
    activation. The first T outputs become the location of each target through ``mean_head``, the
    last T its scale through ``variance_head``, whatever the ``family``. All members are
    called at once where ``torch.func.vmap`` allows for it, and one after the other otherwise.

    Inputs reach the module as they are, in ``dtype``: scale them before, or in the module, and
    use ``x.long()`` for whole numbers such as those of an embedding. Targets are scaled here.
    Dropout and batch normalisation work as in any training loop; parameters whose
    ``requires_grad`` is False stay as they are.

    Args:
        make_module: Makes a new module on each call, without arguments: a function, or a class.
            Called for each member, with torch's random numbers seeded from ``random_state``.
        tolerance: ε. A number is in the target's units (0: exact agreement, NLL); ``"1%"`` is a
            share of the training targets' range; ``"learn"`` trains it. Tolerances that differ by
            row go to ``fit(y_tolerance=...)``.
        {rule}
        {settings}
        {members}

    Attributes:
        tolerance_: ε in use, in the target's units; an array (T,) for several targets.
        parameters_: The members' trained parameters by name, with a leading member axis.
        buffers_: Likewise what of the modules is not trained.
        history_: (epochs, M) training loss.

    Example:
        >>> import numpy as np
        >>> from torch import nn
        >>> from accord import ModuleRegressor
        >>> def make_module():
        ...     return nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 2))
        >>> x = np.linspace(-1, 1, 200)[:, None]
        >>> model = ModuleRegressor(make_module, tolerance=0.1, random_state=0)
        >>> model.fit(x, np.sin(3 * x[:, 0])).predict_interval([[0.5]], coverage=0.9).shape
        (1, 2)
    """

    make_module: Callable[[], nn.Module] = field(kw_only=False)
    tolerance: Tolerance = 0.0
    target_scaling: TargetScaling = "standard"
    batch_size: int = 32
    mean_head: MeanHead = "identity"
    variance_head: VarianceHead = "softplus"

    _any_shape: ClassVar[bool] = True
    _given_on_load: ClassVar[tuple[str, ...]] = ("make_module",)

    def _fit(self, X: Any, y: Any, **options: Unpack[FitOptions]) -> Self:
        self._check_settings()
        X, y = self._checked_pair(X, y)
        weight = checked_weight(options.get("sample_weight"), X)
        rows, by_rule = self._informed(Rows(X.reshape(len(X), -1), y, weight), options)
        self.input_shape_: tuple[int, ...] = X.shape[1:]
        self.precision_ = self._finest_precision(rows.x)
        return self._train(by_rule or self._stated_candidate(rows))

    def _check_settings(self) -> None:
        self._check_loop_settings()
        self._check_agreement_settings()
        if isinstance(self.make_module, nn.Module) or not callable(self.make_module):
            raise TypeError(
                "make_module must be a function or class that makes a new module, got "
                f"{type(self.make_module).__name__}. Write make_module=lambda: Network(...)."
            )
        if self.tolerance in CHOICES:
            raise ValueError(
                "tolerance of a module must be a number, a share of the targets' range such as "
                f"'1%', or 'learn', got {self.tolerance!r}. A choice needs distances between rows, "
                "which inputs of any shape do not have."
            )

    def _train(self, candidate: PlannedEnsemble) -> Self:
        rows, y_scaling = candidate.rows, self._target_scaling(candidate.rows.y)
        columns = candidate.columns(y_scaling)
        extra = self._first_extra(candidate, columns)
        task = self._task(rows.x, columns, rows.weight, self._seeds(), extra=extra)
        (trained,) = train(
            [task],
            self._design,
            self._objective(candidate),
            self._settings(),
            listener=listening(self.verbose, type(self).__name__),
        )
        self._keep(trained, y_scaling)
        self._keep_tolerance(candidate)
        self._keep_learnt_tolerance(trained)
        if candidate.is_density:
            warn_if_useless(self.history_, y_scaling.scaled(rows.y))
        return self

    @property
    def _design(self) -> ModuleDesign:
        return ModuleDesign(self.make_module, self.input_shape_, 2 * len(self.target_names_))

    def _keep(self, trained: Trained, y_scaling: Scaling) -> None:
        """Learned state, as numpy."""
        module = made(self.make_module, 0)
        self.parameters_: dict[str, NDArray[Any]] = dict(
            zip(trained_values(module), trained.parameters, strict=True)
        )
        self.buffers_: dict[str, NDArray[Any]] = dict(
            zip(fixed_values(module), trained.buffers, strict=True)
        )
        self._keep_run(trained, y_scaling)

    def _finest_precision(self, x: Floats) -> Literal["float32", "float64"]:
        """The precision to predict in: float64, where a row's answer hardly depends on its batch.

        A new module is tried out on two rows and on one, in its own precision first: what fails
        there is a fault of the module, shown before any training. One that then fails in float64
        makes tensors of its own in another precision, and only works in the one it is trained in.
        """
        module = made(self.make_module, 0)
        values = {n: v[None] for n, v in (trained_values(module) | fixed_values(module)).items()}
        for n_rows in (2, 1):
            self._called(values, x[:n_rows], self.dtype)
        if torch.device(self.device).type == "mps":
            return self.dtype
        try:
            self._called(values, x[:1], "float64")
        except Exception:  # in whatever words the module or torch says so
            return self.dtype
        return "float64"

    def _called(self, values: Mapping[str, torch.Tensor], x: Floats, dtype: str) -> torch.Tensor:
        """Raw outputs of all members, (M, N, 2T), from their parameters and buffers."""
        like = torch.empty(0, dtype=getattr(torch, dtype), device=self.device)
        module = made(self.make_module, 0).to(like)
        converted = {
            n: v.to(like) if v.is_floating_point() else v.to(like.device) for n, v in values.items()
        }
        return module_outputs(module, converted, torch.as_tensor(x).to(like), self._design)

    def _predictive(self, X: Floats) -> Distribution:
        if X.shape[1:] != self.input_shape_:
            raise ValueError(
                f"X must have rows of shape {self.input_shape_} as in fit, got {X.shape[1:]}."
            )
        values = {n: torch.as_tensor(v) for n, v in (self.parameters_ | self.buffers_).items()}
        raw = self._called(values, X.reshape(len(X), -1), self.precision_)
        moments = self._heads(raw)
        mean, variance = (values.double().cpu().numpy() for values in moments)
        mean, std = self.y_shift_ + self.y_scale_ * mean, self.y_scale_ * np.sqrt(variance)
        smoothed = self.predictive == "smoothed" and not self.rule_center_.size
        return self._agreeing(mean, std, self._constant_half_width(mean) if smoothed else None)

    def _check_loaded(self) -> None:
        """Refuse weights from a file that are not those of what ``make_module`` makes."""
        module = made(self.make_module, 0)
        made_now = {
            name: tuple(value.shape)
            for name, value in (trained_values(module) | fixed_values(module)).items()
        }
        saved = {n: value.shape[1:] for n, value in (self.parameters_ | self.buffers_).items()}
        if made_now != saved:
            differ = [n for n in made_now | saved if made_now.get(n) != saved.get(n)]
            raise ValueError(
                "make_module must make the network that was saved, and its parameters differ in "
                f"{', '.join(differ[:3])}"
            )
