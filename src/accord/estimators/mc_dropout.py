"""MC dropout: one network, and the thinned networks that dropout makes of it as a posterior."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord._checks import check_count, check_positive
from accord._types import Floats
from accord.distributions import Distribution, Mixture, Normal
from accord.estimators.ensemble import NetworkEnsembleRegressor, TrainingPlan
from accord.estimators.trained import Rows, TargetScaling
from accord.training import Scaling, SquaredError, Task, Trained, raw_outputs

# Weights of thinned networks held at a time while predicting.
_CHUNK_VALUES = 2**23


@dataclass(frozen=True)
class _GridPoint:
    rate: float
    precision: float


@dataclass(kw_only=True, eq=False, repr=False)
class _Dropout:
    """What is the method's own: fields of the last base come first in the signature."""

    dropout_rate: float | Sequence[float] = (0.005, 0.01, 0.05, 0.1)
    precision: float | Sequence[float] = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0)
    n_passes: int = 200


@dataclass(kw_only=True, eq=False, repr=False)
class MCDropoutRegressor(NetworkEnsembleRegressor, _Dropout):
    r"""A network with dropout before every weight layer, kept on to predict.

    The method of Gal & Ghahramani (2016). Training on squared error with the weight decay

    .. math:: \lambda = \frac{l^2 (1 - p)}{2 N \tau}

    (dropout rate p, prior length scale l, noise precision τ) is variational inference; the
    posterior consists of the thinned networks that dropout makes. ``n_passes`` of them predict
    means :math:`\hat y_t`, and the prediction is :math:`T^{-1} \sum_t N(\hat y_t, 1/\tau)`, so that
    its log-density is a log-sum-exp over the passes. All rows meet the same thinned networks: a
    prediction does not depend on its neighbours.

    Where ``dropout_rate`` or ``precision`` are several, the pair with the highest log-likelihood on
    held-out rows is taken, and its network is trained on all rows; the whole grid is one stack.

    Args:
        dropout_rate: p, one or several.
        precision: τ times the variance of the targets, one or several: 1 means all noise.
        n_passes: T, thinned networks in the prediction; each costs a number per row.
        hidden: Units of each hidden layer.
        epochs: Passes through the training rows.
        random_state: Seed of everything random; the same seed gives the same model.
        batch_size: Rows per step.
        optimizer: ``"adam"`` or ``"adamw"``.
        learning_rate: Step size of the optimizer.
        schedule: Learning rate ``"constant"``, or falling to 0 as a ``"cosine"``.
        clip_norm: Largest norm of the gradient; None for no limit.
        validation_fraction: Share of the rows held out for the choice.
        device: Where torch trains and predicts.
        dtype: Precision of the networks.
        verbose: 1 for a progress bar.
        activation: Of the hidden layers: ``"relu"``, ``"gelu"``, ``"silu"`` or ``"tanh"``.
        length_scale: l, of the weights' prior.

    Attributes:
        dropout_rate_, precision_: What was chosen.
        grid_log_likelihood_: (rates, precisions) held-out log-likelihood, if there was a choice.

    Example:
        >>> import numpy as np
        >>> from accord import MCDropoutRegressor
        >>> x = np.linspace(-1, 1, 100)[:, None]
        >>> model = MCDropoutRegressor(precision=(10.0, 100.0), epochs=50, random_state=0)
        >>> mean, std = model.fit(x, x[:, 0] ** 2).predict([[0.5], [5.0]], return_std=True)
        >>> bool(std[1] > 2 * std[0])  # far from the data the passes part
        True
    """

    epochs: int = 400
    validation_fraction: float = 0.2
    batch_size: int = 32
    learning_rate: float = 1e-3
    length_scale: float = 0.01
    # Fixed by the method.
    n_members: int = field(default=1, init=False)
    dropout: float = field(default=0.0, init=False)
    target_scaling: TargetScaling = field(default="standard", init=False)
    weight_decay: float = field(default=0.0, init=False)
    early_stopping: bool = field(default=False, init=False)
    patience: int = field(default=1, init=False)
    warm_start: bool = field(default=False, init=False)

    def fit(self, X: Any, y: Any, *, sample_weight: ArrayLike | None = None) -> Self:
        """Train on features (N, d) and targets (N,) or (N, T), each row with its weight."""
        return self._train(self._plan(X, y, sample_weight=sample_weight))

    def _plan(  # type: ignore[override]
        self, X: Any, y: Any, *, sample_weight: ArrayLike | None = None
    ) -> TrainingPlan:
        rows = self._rows(X, y, sample_weight)
        grid = self._grid()
        (seed,) = self._seeds()
        self.__dict__.pop("grid_log_likelihood_", None)  # of an earlier fit
        if len(grid) == 1:
            return self._final_plan(rows, grid[0], seed)
        if len(rows) < 2:
            raise ValueError(
                "a choice among dropout rates and precisions needs at least 2 rows, got "
                "n_samples = 1. Give one dropout_rate and one precision."
            )
        order = np.random.default_rng(seed).permutation(len(rows))
        kept = round((1 - self.validation_fraction) * len(rows))
        kept = min(max(kept, 1), len(rows) - 1)
        seen, held_out = rows[order[:kept]], rows[order[kept:]]

        def choose(trained: list[Trained]) -> TrainingPlan:
            scalings = self._scalings(seen)
            scores = [
                self._score(network.parameters, point, scalings, held_out, seed)
                for point, network in zip(grid, trained, strict=True)
            ]
            shape = np.size(self.dropout_rate), np.size(self.precision)
            self.grid_log_likelihood_ = np.reshape(scores, shape)
            return self._final_plan(rows, grid[int(np.argmax(scores))], seed)

        return self._grid_plan(seen, grid, seed, choose)

    def _grid_plan(
        self,
        rows: Rows,
        grid: list[_GridPoint],
        seed: int,
        finish: Callable[[list[Trained]], TrainingPlan | None],
    ) -> TrainingPlan:
        rates = np.atleast_1d(np.asarray(self.dropout_rate, dtype=float))
        return TrainingPlan(
            [self._grid_task(rows, point, seed) for point in grid],
            self._architecture(
                rows, rows.y.shape[1], dropout=float(rates.max()), input_dropout=True
            ),
            SquaredError(),
            self._settings(),
            finish,
        )

    def _final_plan(self, rows: Rows, point: _GridPoint, seed: int) -> TrainingPlan:
        def keep(trained: list[Trained]) -> None:
            self._keep(trained[0], *self._scalings(rows))
            self.dropout_rate_, self.precision_ = point.rate, point.precision
            self.pass_seed_ = seed

        return self._grid_plan(rows, [point], seed, keep)

    def _grid(self) -> list[_GridPoint]:
        rates = np.atleast_1d(np.asarray(self.dropout_rate, dtype=float))
        precisions = np.atleast_1d(np.asarray(self.precision, dtype=float))
        if not (rates.size and np.all((rates >= 0) & (rates < 1))):
            raise ValueError(f"dropout_rate must be in [0, 1), got {self.dropout_rate}.")
        check_positive("precision", precisions)
        check_positive("length_scale", self.length_scale)
        check_count("n_passes", self.n_passes)
        return [_GridPoint(float(p), float(tau)) for p, tau in product(rates, precisions)]

    def _grid_task(self, rows: Rows, point: _GridPoint, seed: int) -> Task:
        x_scaling, y_scaling = self._scalings(rows)
        decay = self.length_scale**2 * (1 - point.rate) / (2 * len(rows) * point.precision)
        return self._task(
            x_scaling.scaled(rows.x),
            {"target": y_scaling.scaled(rows.y)},
            rows.weight,
            [seed],
            dropout=point.rate,
            penalty=2 * decay,  # the gradient of λ‖w‖² is 2λw
        )

    def _score(
        self,
        parameters: list[NDArray[Any]],
        point: _GridPoint,
        scalings: tuple[Scaling, Scaling],
        held_out: Rows,
        seed: int,
    ) -> float:
        dist = self._mixture(parameters, point, scalings, held_out.x, seed)
        log_density = dist.log_prob(self._shaped(held_out.y)).reshape(len(held_out), -1)
        return float(np.average(log_density.sum(axis=1), weights=held_out.weight))

    def _mixture(
        self,
        parameters: list[NDArray[Any]],
        point: _GridPoint,
        scalings: tuple[Scaling, Scaling],
        X: Floats,
        seed: int,
    ) -> Mixture:
        """T⁻¹ Σ N(ŷ_t, 1/τ) in target units."""
        x_scaling, y_scaling = scalings
        thinned = _thinned(parameters, point.rate, self.n_passes, np.random.default_rng(seed))
        x = x_scaling.scaled(X)
        outputs = [raw_outputs(block, x, self.activation, self.device) for block in thinned]
        mean = self._shaped(y_scaling.shift + y_scaling.scale * np.concatenate(outputs))
        std = self._shaped(y_scaling.scale / np.sqrt(point.precision))
        return Mixture(Normal(mean, np.broadcast_to(std, mean.shape) if std.ndim else std))

    def _predictive(self, X: Floats) -> Distribution:
        point = _GridPoint(self.dropout_rate_, self.precision_)
        scalings = self._x_scaling, self._y_scaling
        return self._mixture(self.parameters_, point, scalings, X, self.pass_seed_)


def _thinned(
    parameters: list[NDArray[Any]], rate: float, n_passes: int, rng: np.random.Generator
) -> list[list[NDArray[Any]]]:
    """Parameters of thinned networks, in blocks along a leading axis of passes.

    Dropping an input of a layer is dropping its row of weights.
    """
    n_layers = len(parameters) // 2
    size = sum(block.size for block in parameters)
    step = max(1, _CHUNK_VALUES // size)
    blocks = []
    for start in range(0, n_passes, step):
        count = min(step, n_passes - start)
        weights = [
            weight
            * (rng.random((count, weight.shape[1], 1)) >= rate).astype(weight.dtype)
            / (1 - rate)
            for weight in parameters[:n_layers]
        ]
        biases = [np.repeat(bias, count, axis=0) for bias in parameters[n_layers:]]
        blocks.append([*weights, *biases])
    return blocks
