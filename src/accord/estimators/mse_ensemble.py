"""The simplest ensemble: squared error, and the members' disagreement as uncertainty."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from accord._checks import check_choice, check_count
from accord.distributions import Decomposed, Distribution, Normal
from accord.ensemble import Scaling
from accord.estimators.distributional import Floats
from accord.estimators.network_ensemble import Rows, TargetScaling
from accord.estimators.plain_ensemble import PlainEnsembleRegressor
from accord.networks import Activation
from accord.objectives import MeanHead, SquaredError
from accord.training import Objective, Optimizer, Schedule

# Members that agree exactly still need a density: a share of the targets' scale.
_FLOOR = 1e-6


class MSEEnsembleRegressor(PlainEnsembleRegressor):
    """Ensemble trained on squared error; its uncertainty is the members' empirical variance.

    The prediction is N(μ*, K⁻¹Σμ_k² − μ*²). All of it is epistemic: the members know nothing of
    the noise, which makes this the over-confident baseline that the others are measured against.

    Args:
        n_members: Networks in the ensemble, at least 2.
        mean_head: From raw output to the mean of the scaled target.
        hidden, activation, dropout, target_scaling, epochs, batch_size, optimizer, learning_rate,
            weight_decay, schedule, clip_norm, early_stopping, validation_fraction, patience,
            device, dtype, memory_budget, warm_start, random_state, verbose: As in
            :class:`~accord.estimators.BVMRegressor`.

    Example:
        >>> import numpy as np
        >>> from accord import MSEEnsembleRegressor
        >>> x = np.linspace(-1, 1, 100)[:, None]
        >>> model = MSEEnsembleRegressor(random_state=0).fit(x, x[:, 0] ** 2)
        >>> mean, std = model.predict([[0.5], [5.0]], return_std=True)
        >>> bool(std[1] > 2 * std[0])  # far from the data the members part
        True
    """

    def __init__(
        self,
        *,
        n_members: int = 5,
        hidden: Sequence[int] = (50,),
        activation: Activation = "relu",
        dropout: float = 0.0,
        target_scaling: TargetScaling = "standard",
        mean_head: MeanHead = "identity",
        epochs: int = 40,
        batch_size: int = 16,
        optimizer: Optimizer = "adam",
        learning_rate: float = 3e-3,
        weight_decay: float = 0.0,
        schedule: Schedule = "constant",
        clip_norm: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 10,
        device: str = "cpu",
        dtype: Literal["float32", "float64"] = "float32",
        memory_budget: int = 2 * 2**30,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_members = n_members
        self.hidden = hidden
        self.activation = activation
        self.dropout = dropout
        self.target_scaling = target_scaling
        self.mean_head = mean_head
        self.epochs = epochs
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.clip_norm = clip_norm
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.device = device
        self.dtype = dtype
        self.memory_budget = memory_budget
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _outputs_per_target(self) -> int:
        return 1

    def _objective(self) -> Objective:
        check_count("n_members", self.n_members, minimum=2)
        check_choice("mean_head", self.mean_head, ("identity", "sigmoid"))
        return self._loss

    @property
    def _loss(self) -> SquaredError:
        return SquaredError(self.mean_head)

    def _adversarial_step(self, rows: Rows, x_scaling: Scaling) -> None:
        return None

    def _predictive(self, X: Floats) -> Distribution:
        outputs = self._outputs(X, self._loss.mean)
        members = self._shaped(self.y_shift_ + self.y_scale_ * outputs)
        floor = self._shaped(_FLOOR * self.y_scale_)
        std = np.maximum(members.std(axis=0), floor)
        return Decomposed(Normal(members.mean(axis=0), std), std)
