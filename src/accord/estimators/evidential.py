"""Deep evidential regression: a normal-inverse-gamma distribution per row."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from accord._checks import check_choice, check_non_negative
from accord.distributions import Decomposed, Distribution, Mixture
from accord.distributions.varying_student_t import VaryingStudentT
from accord.ensemble import Scaling
from accord.estimators.distributional import Floats
from accord.estimators.network_ensemble import Rows, TargetScaling
from accord.estimators.plain_ensemble import PlainEnsembleRegressor
from accord.networks import Activation
from accord.objectives import ByAutograd
from accord.training import Columns, Objective, Optimizer, Schedule

# Keeps ν and β away from 0, and with them the predictive variance finite.
_FLOOR = 1e-4


class _Evidence(NamedTuple):
    """Parameters of NIG(μ, σ² | γ, ν, α, β), a value per row and target."""

    gamma: Tensor
    nu: Tensor
    alpha: Tensor
    beta: Tensor


@dataclass(frozen=True)
class EvidentialLoss:
    r"""−log of the Student-t evidence, and a penalty on evidence for wrong predictions.

    .. math::

        \ell = \tfrac12 \log\frac{\pi}{\nu} - \alpha \log\Omega
            + (\alpha + \tfrac12) \log\left[(t - \gamma)^2 \nu + \Omega\right]
            + \log\frac{\Gamma(\alpha)}{\Gamma(\alpha + \tfrac12)}
            + \lambda\, |t - \gamma|\, (2\nu + \alpha),
        \qquad \Omega = 2 \beta (1 + \nu).

    With ``tied``, α = ν + 1 instead of an output of its own.
    """

    tied: bool
    penalty: float

    @property
    def outputs_per_target(self) -> int:
        return 3 if self.tied else 4

    def evidence(self, raw: Tensor) -> _Evidence:
        gamma, nu, beta, *alpha = raw.chunk(self.outputs_per_target, -1)
        nu = softplus(nu) + _FLOOR
        shape = nu if self.tied else softplus(alpha[0]) + _FLOOR
        return _Evidence(gamma, nu, shape + 1, softplus(beta) + _FLOOR)

    def __call__(self, raw: Tensor, columns: Columns) -> Tensor:
        gamma, nu, alpha, beta = self.evidence(raw)
        error = columns["target"] - gamma
        omega = 2 * beta * (1 + nu)
        nll = 0.5 * torch.log(math.pi / nu) - alpha * torch.log(omega)
        nll = nll + (alpha + 0.5) * torch.log(error.square() * nu + omega)
        nll = nll + torch.lgamma(alpha) - torch.lgamma(alpha + 0.5)
        return (nll + self.penalty * error.abs() * (2 * nu + alpha)).sum(-1)


class EvidentialRegressor(PlainEnsembleRegressor):
    r"""Network that predicts a normal-inverse-gamma distribution of mean and variance per row.

    The method of Amini et al. (2020). Mean and variance integrated out, the prediction is a
    Student-t with 2α degrees of freedom and the scale
    :math:`w = \sqrt{\beta (1 + \nu) / (\nu \alpha)}`.

    Meinert et al. (2023) show that data determine only that Student-t, three numbers, and not all
    four outputs: ν is free to drift, and with it the original split into
    :math:`\mathrm{E}\,\sigma^2 = \beta / (\alpha - 1)` (aleatoric) and
    :math:`\mathrm{Var}\,\mu = \beta / (\nu (\alpha - 1))` (epistemic). Corrected, α is tied to
    ν + 1, the aleatoric part is w itself and the epistemic part :math:`w / \sqrt\nu`; their squares
    add up to the Student-t's variance exactly.

    Args:
        uncertainty: ``"corrected"``, or ``"original"`` with four free outputs.
        penalty: λ, on evidence for wrong predictions.
        n_members: Networks; several are combined as a mixture.
        hidden, activation, dropout, target_scaling, epochs, batch_size, optimizer, learning_rate,
            weight_decay, schedule, clip_norm, early_stopping, validation_fraction, patience,
            device, dtype, memory_budget, warm_start, random_state, verbose: As in
            :class:`~accord.estimators.BVMRegressor`.

    Example:
        >>> import numpy as np
        >>> from accord import EvidentialRegressor
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(-1, 1, (400, 1))
        >>> model = EvidentialRegressor(random_state=0).fit(x, x[:, 0] + rng.normal(size=400) / 10)
        >>> model.predict_uncertainty([[0.5]]).aleatoric.round(1)
        array([0.1])
    """

    def __init__(
        self,
        *,
        uncertainty: Literal["corrected", "original"] = "corrected",
        penalty: float = 0.01,
        n_members: int = 1,
        hidden: Sequence[int] = (50,),
        activation: Activation = "relu",
        dropout: float = 0.0,
        target_scaling: TargetScaling = "standard",
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
        self.uncertainty = uncertainty
        self.penalty = penalty
        self.n_members = n_members
        self.hidden = hidden
        self.activation = activation
        self.dropout = dropout
        self.target_scaling = target_scaling
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
    def _loss(self) -> EvidentialLoss:
        return EvidentialLoss(self.uncertainty == "corrected", self.penalty)

    @property
    def _outputs_per_target(self) -> int:
        return self._loss.outputs_per_target

    def _objective(self) -> Objective:
        check_choice("uncertainty", self.uncertainty, ("corrected", "original"))
        check_non_negative("penalty", self.penalty, remedy="Use 0 for the likelihood alone.")
        return ByAutograd(self._loss)

    def _adversarial_step(self, rows: Rows, x_scaling: Scaling) -> None:
        return None

    def _predictive(self, X: Floats) -> Distribution:
        evidence = self._loss.evidence(torch.as_tensor(self._outputs(X)))
        gamma, nu, alpha, beta = (self._shaped(part.numpy()) for part in evidence)
        scale = self._shaped(self.y_scale_)
        width = scale * np.sqrt(beta * (1 + nu) / (nu * alpha))
        members = VaryingStudentT(2 * alpha, self._shaped(self.y_shift_) + scale * gamma, width)
        # of the variance w²α/(α − 1), one part in 1 + ν; for α = ν + 1 that is w²/ν
        parts = Decomposed(members, members.std / np.sqrt(1 + nu))
        return parts[0] if len(self.parameters_[0]) == 1 else Mixture(parts)
