"""Extra layers: a small network behind the model, trained on the calibration rows."""

from typing import Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from accord._checks import RandomState, check_count, check_positive, generator_from
from accord._types import Floats
from accord.calibration.calibrator import (
    Calibrator,
    VarianceScaling,
    checked_outputs,
    checked_targets,
    moments_of,
)
from accord.distributions import Distribution


class ExtraLayers(Calibrator):
    """Correct mean and deviation by a small network of (μ, log σ), trained on calibration rows.

    Layers put behind a trained model and trained by likelihood on held-out rows calibrate it
    (Rahimi et al., Post-hoc calibration of neural networks by g-layers, 2020). With h the
    standardised (μ, log σ) of a row,

        (a, b) = W₂ tanh(W₁h + c₁) + c₂,    Y' = μ + aσ + exp(b)(Y − μ),

    so the shape of the prediction stays and the correction, bounded by the tanh, may differ from
    row to row. Training starts from variance scaling. The loss is the negative log-likelihood of
    the calibration rows plus ½ penalty (‖W₁‖² + ‖W₂‖²): the fewer the rows, the closer to one shift
    and factor for all.

    Args:
        hidden: Width of the hidden layer.
        penalty: Weight of the squared parameters, in nats.
        max_iter: Steps of L-BFGS at most.
        random_state: Draws the starting values of W₁.

    Attributes:
        parameters_: W₁ (K, 2, hidden), c₁ (K, 1, hidden), W₂ (K, hidden, 2) and c₂ (K, 1, 2).

    Example:
        >>> from accord.distributions import Normal
        >>> rng = np.random.default_rng(0)
        >>> std = rng.uniform(1, 3, size=2000)          # said
        >>> y = std**2 * rng.normal(size=2000)          # in truth
        >>> layers = ExtraLayers(random_state=0).fit(Normal(np.zeros(2000), std), y)
        >>> layers(Normal([0.0, 0.0], [1.5, 2.5])).std.round(1)
        array([2.2, 6.3])
    """

    def __init__(
        self,
        *,
        hidden: int = 8,
        penalty: float = 10.0,
        max_iter: int = 100,
        random_state: RandomState = None,
    ) -> None:
        self.hidden = hidden
        self.penalty = penalty
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, dist: Distribution, y: ArrayLike) -> Self:
        """Train the layers on predictions for held-out rows and their targets.

        **Shape**: dist and y (n,), or (n, K) for K outputs; n ≥ 10.
        """
        check_count("hidden", self.hidden)
        check_count("max_iter", self.max_iter)
        check_positive("penalty", self.penalty, remedy="Use a small number for weak shrinkage.")
        targets = checked_targets(dist, y, at_least=10)
        features = _features(dist)
        self.center_ = features.mean(axis=1, keepdims=True)
        spread = features.std(axis=1, keepdims=True)
        self.scale_ = np.where(spread > 1e-8 * np.abs(self.center_) + 1e-12, spread, 1.0)
        self.n_outputs_ = len(features)
        self.parameters_ = self._train(dist, self._standardised(features), targets)
        return self

    def __call__(self, dist: Distribution) -> Distribution:
        """The predictions with mean and deviation corrected.

        **Shape**: (N,), or (N, K) for K outputs.
        """
        checked_outputs(self, dist, "n_outputs_")
        inputs = self._standardised(_features(dist))
        shift, log_factor = _outputs(inputs, [torch.from_numpy(p) for p in self.parameters_])
        shift, factor = (out.reshape(dist.shape) for out in (shift, log_factor.exp()))
        return dist.rescaled(factor.numpy(), shift=shift.numpy())

    def _standardised(self, features: Floats) -> Tensor:
        return torch.from_numpy((features - self.center_) / self.scale_)

    def _train(self, dist: Distribution, inputs: Tensor, targets: Floats) -> list[Floats]:
        parameters = self._start(VarianceScaling().fit(dist, targets).factor_)
        optimizer = torch.optim.LBFGS(
            parameters,
            max_iter=self.max_iter,
            tolerance_grad=1e-5,
            tolerance_change=1e-8,
            line_search_fn="strong_wolfe",
        )
        mean, std, y = (torch.tensor(part) for part in (*moments_of(dist), targets))

        def closure() -> Tensor:
            optimizer.zero_grad()
            shift, log_factor = (out.reshape(y.shape) for out in _outputs(inputs, parameters))
            undone = mean + (y - mean - shift * std) * torch.exp(-log_factor)
            log_density = dist._evaluate("_log_prob", undone.to(dist._reference)).double()
            size = sum(p.square().sum() for p in (parameters[0], parameters[2]))
            loss = (log_factor - log_density).sum() + 0.5 * self.penalty * size
            loss = loss / len(y)
            loss.backward()  # type: ignore[no-untyped-call]
            return loss

        optimizer.step(closure)  # type: ignore[no-untyped-call]
        trained = [p.detach().numpy() for p in parameters]
        if not all(np.isfinite(p).all() for p in trained):
            raise ValueError(
                f"training of the extra layers diverged, got penalty={self.penalty}. "
                "Raise the penalty, or use method 'variance'."
            )
        return trained

    def _start(self, factor: Floats) -> list[Tensor]:
        """Random directions in the first layer, one factor for all rows in the second."""
        rng, k = generator_from(self.random_state), len(factor)
        start = [
            rng.normal(size=(k, 2, self.hidden)),
            np.zeros((k, 1, self.hidden)),
            np.zeros((k, self.hidden, 2)),
            np.stack([np.zeros(k), np.log(factor)], axis=-1)[:, None, :],
        ]
        return [torch.from_numpy(part).requires_grad_() for part in start]


def _features(dist: Distribution) -> Floats:
    """(μ, log σ) per output.

    **Shape**: dist (N,) or (N, K) → (K, N, 2).
    """
    mean, std = moments_of(dist)
    pairs = np.stack([mean, np.log(std)], axis=-1)
    return np.moveaxis(pairs.reshape(len(pairs), -1, 2), 1, 0)


def _outputs(inputs: Tensor, parameters: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Shift and log-factor.

    **Shape**: inputs (K, N, 2) → two of (N, K).
    """
    w1, c1, w2, c2 = parameters
    shift, log_factor = (torch.tanh(inputs @ w1 + c1) @ w2 + c2).movedim(0, 1).unbind(-1)
    return shift, log_factor
