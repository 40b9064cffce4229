"""Ensembles whose members all minimise one loss: likelihood, squared error, or evidence."""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from accord._checks import check_choice, check_count, check_non_negative, check_positive
from accord._types import Floats
from accord.distributions import Decomposed, Distribution, Mixture, Normal, VaryingStudentT
from accord.estimators.ensemble import Combine, PlainEnsembleRegressor, ensemble_distribution
from accord.estimators.trained import Rows, TargetScaling
from accord.training import (
    VARIANCE_FLOOR,
    ByAutograd,
    Columns,
    GaussianLikelihood,
    Heads,
    MeanHead,
    Objective,
    Scaling,
    SquaredError,
    VarianceHead,
)

# Keeps ν and β away from 0, and with them the predictive variance finite.
_LEAST_EVIDENCE = 1e-4


@dataclass(kw_only=True, eq=False, repr=False)
class DeepEnsembleRegressor(PlainEnsembleRegressor):
    r"""Ensemble of Gaussian networks trained on NLL, combined as a mixture.

    The method of Lakshminarayanan et al. (2017). With ``adversarial``, every step also learns from
    each row's fast-gradient-sign neighbour :math:`x + s\, \mathrm{sign}(\partial \ell/\partial x)`,
    s being ``adversarial_step`` times each feature's range. With ``beta``, each row's NLL is
    weighted by its own :math:`\sigma^{2\beta}` (Seitzer et al., 2022), which keeps rows that the
    network explains as noise from being given up.

    Args:
        {settings}
        adversarial: Also train on adversarial neighbours.
        adversarial_step: Their distance, as a share of each feature's range.
        beta: 0 for NLL, 0.5 as recommended for β-NLL, 1 for gradients of the mean as under MSE.
        {members}

    Example:
        >>> import numpy as np
        >>> from accord import DeepEnsembleRegressor
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(-1, 1, (400, 1))
        >>> y = x[:, 0] + (0.1 + 0.2 * (x[:, 0] > 0)) * rng.normal(size=400)
        >>> model = DeepEnsembleRegressor(random_state=0).fit(x, y)
        >>> model.predict_uncertainty([[-0.5], [0.5]])["noise"].round(1).tolist()
        [0.1, 0.3]
    """

    adversarial: bool = False
    adversarial_step: float = 0.01
    beta: float = 0.0
    combine: Combine = "mixture"
    target_scaling: TargetScaling = "standard"
    mean_head: MeanHead = "identity"
    variance_head: VarianceHead = "softplus"
    variance_floor: float = VARIANCE_FLOOR

    @property
    def _heads(self) -> Heads:
        return Heads(self.mean_head, self.variance_head, self.variance_floor)

    def _objective(self) -> tuple[Objective, int]:
        check_choice("combine", self.combine, get_args(Combine))
        check_non_negative("beta", self.beta, remedy="Use 0 for NLL.")
        check_positive("adversarial_step", self.adversarial_step)
        return GaussianLikelihood(self._heads, self.beta), 2

    def _adversarial_step(self, rows: Rows, x_scaling: Scaling) -> torch.Tensor | None:
        if not self.adversarial:
            return None
        return torch.as_tensor(self.adversarial_step * np.ptp(rows.x, axis=0) / x_scaling.scale)

    def _predictive(self, X: Floats) -> Distribution:
        scalings = self._x_scaling, self._y_scaling
        mean, std = self._member_moments(self._heads, X, self.parameters_, scalings)
        members = Normal(self._shaped(mean), self._shaped(std))
        return ensemble_distribution(members, combine=self.combine)


# Members that agree exactly still need a density: a share of the targets' scale.
_LEAST_SPREAD = 1e-6


@dataclass(kw_only=True, eq=False, repr=False)
class MSEEnsembleRegressor(PlainEnsembleRegressor):
    """Ensemble trained on squared error; its uncertainty is the members' empirical variance.

    The prediction of K ≥ 2 members is N(μ*, K⁻¹Σμ_k² − μ*²). All of it is epistemic: they know
    nothing of the noise, which makes this the over-confident baseline for the others.

    Args:
        {settings}
        {members}

    Example:
        >>> import numpy as np
        >>> from accord import MSEEnsembleRegressor
        >>> x = np.linspace(-1, 1, 100)[:, None]
        >>> model = MSEEnsembleRegressor(random_state=0).fit(x, x[:, 0] ** 2)
        >>> mean, std = model.predict([[0.5], [5.0]], return_std=True)
        >>> bool(std[1] > 2 * std[0])  # far from the data the members part
        True
    """

    target_scaling: TargetScaling = "standard"
    mean_head: MeanHead = "identity"

    def _objective(self) -> tuple[Objective, int]:
        check_count("n_members", self.n_members, minimum=2)
        return self._loss, 1

    @property
    def _loss(self) -> SquaredError:
        return SquaredError(self.mean_head)

    def _predictive(self, X: Floats) -> Distribution:
        outputs = self._outputs(X, self._loss.mean)
        members = self._shaped(self.y_shift_ + self.y_scale_ * outputs)
        floor = self._shaped(_LEAST_SPREAD * self.y_scale_)
        std = np.maximum(members.std(axis=0), floor)
        return Decomposed(Normal(members.mean(axis=0), std), std)


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
        nu = softplus(nu) + _LEAST_EVIDENCE
        shape = nu if self.tied else softplus(alpha[0]) + _LEAST_EVIDENCE
        return _Evidence(gamma, nu, shape + 1, softplus(beta) + _LEAST_EVIDENCE)

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
        >>> model.predict_uncertainty([[0.5]])["noise"].round(1).tolist()
        [0.1]
    """

    uncertainty: Literal["corrected", "original"] = "corrected"
    penalty: float = 0.01
    n_members: int = 1
    target_scaling: TargetScaling = "standard"

    @property
    def _loss(self) -> EvidentialLoss:
        return EvidentialLoss(self.uncertainty == "corrected", self.penalty)

    def _objective(self) -> tuple[Objective, int]:
        check_choice("uncertainty", self.uncertainty, ("corrected", "original"))
        check_non_negative("penalty", self.penalty, remedy="Use 0 for the likelihood alone.")
        return ByAutograd(self._loss), self._loss.outputs_per_target

    def _predictive(self, X: Floats) -> Distribution:
        evidence = self._loss.evidence(torch.as_tensor(self._outputs(X)))
        gamma, nu, alpha, beta = (self._shaped(part.numpy()) for part in evidence)
        scale = self._shaped(self.y_scale_)
        width = scale * np.sqrt(beta * (1 + nu) / (nu * alpha))
        members = VaryingStudentT(2 * alpha, self._shaped(self.y_shift_) + scale * gamma, width)
        # of the variance w²α/(α − 1), one part in 1 + ν; for α = ν + 1 that is w²/ν
        parts = Decomposed(members, members.std / np.sqrt(1 + nu))
        return parts[0] if len(self.parameters_[0]) == 1 else Mixture(parts)
