"""Deep evidential regression: a normal-inverse-gamma distribution per row."""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from accord._checks import check_choice, check_non_negative
from accord._types import Floats
from accord.distributions import Decomposed, Distribution, Mixture, VaryingStudentT
from accord.estimators.ensemble import PlainEnsembleRegressor
from accord.estimators.trained import Rows, TargetScaling
from accord.training import ByAutograd, Columns, Objective, Scaling

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
        return nll + self.penalty * error.abs() * (2 * nu + alpha)


@dataclass(kw_only=True, eq=False, repr=False)
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
    add up to the Student-t's variance exactly. Several members are combined as a mixture.

    Args:
        {settings}
        uncertainty: ``"corrected"``, or ``"original"`` with four free outputs.
        penalty: λ, on evidence for wrong predictions.

    Example:
        >>> import numpy as np
        >>> from accord import EvidentialRegressor
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(-1, 1, (400, 1))
        >>> model = EvidentialRegressor(random_state=0).fit(x, x[:, 0] + rng.normal(size=400) / 10)
        >>> model.predict_uncertainty([[0.5]]).aleatoric.round(1)
        array([0.1])
    """

    uncertainty: Literal["corrected", "original"] = "corrected"
    penalty: float = 0.01
    n_members: int = 1
    target_scaling: TargetScaling = "standard"

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
