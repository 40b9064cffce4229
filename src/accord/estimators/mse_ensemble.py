"""The simplest ensemble: squared error, and the members' disagreement as uncertainty."""

from dataclasses import dataclass

import numpy as np

from accord._checks import check_choice, check_count
from accord.distributions import Decomposed, Distribution, Normal
from accord.ensemble import Scaling
from accord.estimators.distributional import Floats
from accord.estimators.network_ensemble import Rows, TargetScaling
from accord.estimators.plain_ensemble import PlainEnsembleRegressor
from accord.objectives import MeanHead, SquaredError
from accord.training import Objective

# Members that agree exactly still need a density: a share of the targets' scale.
_FLOOR = 1e-6


@dataclass(kw_only=True, eq=False, repr=False)
class MSEEnsembleRegressor(PlainEnsembleRegressor):
    """Ensemble trained on squared error; its uncertainty is the members' empirical variance.

    The prediction is N(μ*, K⁻¹Σμ_k² − μ*²). All of it is epistemic: the members know nothing of
    the noise, which makes this the over-confident baseline that the others are measured against.

    Args:
        n_members: Networks in the ensemble, at least 2.
        mean_head: From raw output to the mean of the scaled target.
        Others as in :class:`~accord.estimators.network_ensemble.NetworkEnsembleRegressor`.

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
