"""Ways to recalibrate a model by what held-out rows say, all with one interface.

Variance scaling stretches every prediction by one factor; isotonic calibration maps its cdf; extra
layers are a small network behind the model, trained on the calibration rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from accord._checks import (
    RandomState,
    check_count,
    check_finite,
    check_positive,
    check_same_shape,
    generator_from,
)
from accord._types import Floats
from accord.distributions import (
    Distribution,
    MonotoneCurve,
    Reshaped,
    curve_through_scores,
    normal_scores,
)
from accord.metrics import as_array

# log of the smallest and largest factor: three orders of magnitude either way.
_RANGE = (-6.9, 6.9)
_GRID = 70


class Calibrator(BaseEstimator, ABC):  # type: ignore[misc]
    """Learns from predictions for held-out rows and their targets; then maps predictions.

    Outputs are calibrated each by itself. Rows that the model was trained on must not be used: its
    errors on them are too small.
    """

    n_outputs_: int

    @abstractmethod
    def fit(self, dist: Distribution, y: ArrayLike) -> Self:
        """Learn from predictions ``dist`` for held-out rows and their targets ``y``.

        **Shape**: dist and y (n,), or (n, K) for K outputs.
        """

    @abstractmethod
    def __call__(self, dist: Distribution) -> Distribution:
        """The calibrated form of new predictions.

        **Shape**: (N,), or (N, K) for K outputs; the result likewise.
        """


def checked_targets(dist: Distribution, y: ArrayLike, *, at_least: int) -> Floats:
    """The targets of calibration rows as an array that fits the predictions."""
    check_is_distribution(dist)
    targets = np.asarray(y, dtype=np.float64)
    check_same_shape(dist=np.empty(dist.shape), y=targets)
    check_finite("y", targets, remedy="Leave out rows without a target.")
    if len(targets) < at_least:
        raise ValueError(
            f"calibration needs at least {at_least} held-out rows, got {len(targets)}. "
            "Hold out more rows, or use method 'variance', which needs the fewest."
        )
    return targets


def moments_of(dist: Distribution) -> tuple[Floats, Floats]:
    """Mean and standard deviation as arrays, which methods on (μ, σ) need finite."""
    mean, std = as_array("mean", dist.mean), as_array("std", dist.std)
    for name, values in (("mean", mean), ("standard deviation", std)):
        check_finite(f"the {name} of dist", values, remedy="Use method 'isotonic'.")
    return mean, std


def checked_outputs(calibrator: Calibrator, dist: Distribution) -> None:
    """Refuse predictions of another number of outputs than ``calibrator`` was fitted on."""
    check_is_fitted(calibrator, "n_outputs_")
    check_is_distribution(dist)
    n_outputs = dist.shape[1] if len(dist.shape) == 2 else 1
    if n_outputs != calibrator.n_outputs_:
        raise ValueError(
            f"dist must have {calibrator.n_outputs_} outputs, as in fit, got {n_outputs}. "
            "Calibrate and predict the same outputs."
        )


def check_is_distribution(dist: Any) -> None:
    """Refuse what is no distribution over rows, or rows and outputs."""
    if not isinstance(dist, Distribution):
        raise TypeError(
            f"dist must be a Distribution, got {type(dist).__name__}. "
            "Use model.predict_dist(X), or Normal(mean, std)."
        )
    if len(dist.shape) not in (1, 2):
        raise ValueError(
            f"dist must have shape (N,) or (N, K), got {dist.shape}. Select the rows to calibrate."
        )


class VarianceScaling(Calibrator):
    """Stretch every prediction about its mean by one factor s, the same for all rows.

    s minimises the calibration rows' negative log-likelihood. For Gaussian predictions that is
    s² = n⁻¹ Σ (yᵢ − μᵢ)² / σᵢ² (Levi et al., 2019; Laves et al., 2021); for other predictions a
    search in one dimension finds it. A single number, it is learned from few rows, and keeps the
    order in which the model ranks its own uncertainty.

    Attributes:
        factor_: s of each output, (K,).

    Example:
        >>> from accord.distributions import Normal
        >>> y = np.array([2.0, -2.0, 2.0, -2.0])
        >>> scaling = VarianceScaling().fit(Normal(np.zeros(4), 1.0), y)
        >>> scaling(Normal([5.0], 3.0))
        Normal(mean=[5.], std=[6.])
    """

    def fit(self, dist: Distribution, y: ArrayLike) -> Self:
        """Find the factor from predictions for held-out rows and their targets.

        **Shape**: dist and y (n,), or (n, K) for K outputs; n ≥ 2.
        """
        targets = checked_targets(dist, y, at_least=2)
        mean, std = moments_of(dist)
        if dist.as_normal() is not None:
            squares = np.square((targets - mean) / std)
            factor = np.sqrt(np.atleast_1d(squares.mean(axis=0)))
        else:
            factor = _most_likely_factors(dist, targets, mean)
        self.factor_ = np.clip(factor, *np.exp(_RANGE))
        self.n_outputs_ = len(self.factor_)
        return self

    def __call__(self, dist: Distribution) -> Distribution:
        """The predictions, stretched.

        **Shape**: (N,), or (N, K) for K outputs.
        """
        checked_outputs(self, dist)
        return dist.rescaled(self.factor_)


def _most_likely_factors(dist: Distribution, y: Floats, mean: Floats) -> Floats:
    """The best of a grid of factors, then a search between its neighbours, per output."""

    def losses(log_factor: float) -> Floats:
        """−log of the stretched density, f(μ + (y − μ)/s)/s, averaged over the rows."""
        log_density = as_array("log_prob", dist.log_prob(mean + (y - mean) * np.exp(-log_factor)))
        return np.atleast_1d(log_factor - log_density.mean(axis=0))

    grid = np.linspace(*_RANGE, _GRID)
    on_grid = np.stack([losses(step) for step in grid])
    log_factors = [
        _refined(partial(_entry, losses, k), grid, column) for k, column in enumerate(on_grid.T)
    ]
    factors: Floats = np.exp(log_factors)
    return factors


def _entry(losses: Callable[[float], Floats], k: int, log_factor: float) -> float:
    # Finite, though a target outside a bounded support has no likelihood: the search subtracts.
    return min(float(losses(log_factor)[k]), 1e100)


def _refined(loss: Callable[[float], float], grid: Floats, on_grid: Floats) -> float:
    best = int(np.argmin(on_grid))
    around = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    # With bounded support the loss can be infinite on one side: then the search may end worse off.
    found = minimize_scalar(loss, bounds=around, method="bounded", options={"xatol": 1e-8})
    return float(found.x if found.fun < on_grid[best] else grid[best])


class IsotonicCalibration(Calibrator):
    """Replace every predicted cdf F by R ∘ F, with R the distribution function of the values F(y).

    If a predicted 90 % quantile lies above 70 % of the held-out targets, R(0.9) = 0.7 (Kuleshov,
    Fenner and Ermon, Accurate uncertainties for deep learning, 2018). R is followed at few knots,
    between normal scores Φ⁻¹(F), and goes on straight beyond them: the result has a density
    everywhere, finite and positive, and Gaussian tails beyond the calibration rows. It
    corrects bias, spread and shape (skewness, heavy tails), all of them alike in every row.

    Attributes:
        knots_: Normal scores of the predictions at the knots, (K, number of knots).
        values_: What they become, (K, number of knots).

    Example:
        >>> from accord.distributions import Normal
        >>> rng = np.random.default_rng(0)
        >>> skewed = rng.exponential(size=2000)
        >>> isotonic = IsotonicCalibration().fit(Normal(np.zeros(2000), 1.0), skewed)
        >>> isotonic(Normal([0.0], 1.0)).interval(0.8).round(1)      # in truth 0.1 and 2.3
        array([[0.1, 2.4]])
    """

    def fit(self, dist: Distribution, y: ArrayLike) -> Self:
        """Find the map from predictions for held-out rows and their targets.

        **Shape**: dist and y (n,), or (n, K) for K outputs; n ≥ 10.
        """
        targets = checked_targets(dist, y, at_least=10)
        scores = normal_scores(dist, targets).reshape(len(targets), -1)
        curves = [curve_through_scores(column) for column in scores.T]
        self.knots_ = np.stack([curve.knots for curve in curves])
        self.values_ = np.stack([curve.values for curve in curves])
        self.n_outputs_ = len(curves)
        return self

    def __call__(self, dist: Distribution) -> Distribution:
        """The predictions with their cdf mapped.

        **Shape**: (N,), or (N, K) for K outputs.
        """
        checked_outputs(self, dist)
        pairs = zip(self.knots_, self.values_, strict=True)
        return Reshaped(dist, [MonotoneCurve(knots, values) for knots, values in pairs])


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
        checked_outputs(self, dist)
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
