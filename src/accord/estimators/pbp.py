"""Probabilistic backpropagation as an estimator."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from accord._checks import RandomState, check_count, drawn_seeds
from accord._types import Floats
from accord.distributions import Decomposed, Distribution, Normal
from accord.estimators.distributional import DistributionalRegressor
from accord.estimators.trained import listening
from accord.training import (
    EpochReport,
    Listener,
    Posterior,
    Scaling,
    initial_posterior,
    output_moments,
    train_pbp,
)

# Hidden values held at a time while predicting.
_CHUNK_VALUES = 2**21


class PBPRegressor(DistributionalRegressor):
    """Bayesian network learnt by probabilistic backpropagation, one row at a time.

    Every weight has a Gaussian posterior, moved by the gradient of each row's evidence
    (:mod:`accord.training.probabilistic_backprop`). Nothing has to be tuned: noise level and weight
    prior are inferred too. The prediction is N(m, v + noise), v its epistemic part. Several outputs
    are learnt by independent networks. Rows have no weights: each updates the posterior as a whole,
    and for a part of a row there is no such update. Repeat rows instead.

    Args:
        hidden: Units of each hidden layer (ReLU).
        epochs: Passes through the data.
        random_state: Seed of initial means and of the rows' order.
        verbose: 1 for a progress bar.

    Attributes:
        weight_mean_, weight_var_: (T, P) posterior of each target's weights.
        noise_, weight_prior_: (2, T) shape and rate of the noise's and of the weight prior's
            precision, for standardised targets.
        history_: (epochs, T) mean −log evidence of the rows as they came.

    Example:
        >>> import numpy as np
        >>> from accord import PBPRegressor
        >>> x = np.linspace(-1, 1, 100)[:, None]
        >>> model = PBPRegressor(random_state=0).fit(x, np.sin(3 * x[:, 0]))
        >>> mean, std = model.predict([[0.5], [5.0]], return_std=True)
        >>> bool(std[1] > 2 * std[0])  # far from the data, and says so
        True
    """

    def __init__(
        self,
        *,
        hidden: Sequence[int] = (50,),
        epochs: int = 40,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.hidden = hidden
        self.epochs = epochs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from features (N, d) and targets (N,) or (N, T)."""
        fit_as_stack([(self, X, y)], listening(self.verbose, type(self).__name__))
        return self

    def _start(self, X: Any, y: Any) -> "_Start":
        check_count("epochs", self.epochs)
        for size in self.hidden:
            check_count("hidden", size)
        X, y = self._checked_pair(X, y)
        x_scaling, y_scaling = Scaling.standard(X), Scaling.standard(y)
        seeds = drawn_seeds(self.random_state, y.shape[1])
        return _Start(
            np.broadcast_to(x_scaling.scaled(X), (y.shape[1], *X.shape)),
            y_scaling.scaled(y).T,
            (X.shape[1], *self.hidden, 1),
            self.epochs,
            [np.random.default_rng(seed) for seed in seeds],
            x_scaling,
            y_scaling,
        )

    def _keep(self, start: "_Start", posterior: Posterior, history: Floats) -> None:
        self.weight_mean_, self.weight_var_ = posterior.mean, posterior.var
        self.noise_, self.weight_prior_ = posterior.noise, posterior.prior
        self.prior_factors_ = posterior.factors
        self.x_shift_, self.x_scale_ = start.x_scaling.shift, start.x_scaling.scale
        self.y_shift_, self.y_scale_ = start.y_scaling.shift, start.y_scaling.scale
        self.layer_sizes_ = np.array(start.sizes)
        self.history_ = history
        self.n_iter_ = len(history)

    def _predictive(self, X: Floats) -> Distribution:
        sizes = tuple(int(size) for size in self.layer_sizes_)
        posterior = Posterior(
            sizes,
            self.weight_mean_,
            self.weight_var_,
            self.noise_,
            self.weight_prior_,
            self.prior_factors_,
        )
        x = (X - self.x_shift_) / self.x_scale_
        chunk = max(1, _CHUNK_VALUES // (len(self.weight_mean_) * max(sizes)))
        parts = [
            output_moments(posterior, x[start : start + chunk]) for start in range(0, len(x), chunk)
        ]
        mean, var = (np.concatenate(moments, axis=1).T for moments in zip(*parts, strict=True))
        location = self.y_shift_ + self.y_scale_ * mean
        epistemic = self.y_scale_ * np.sqrt(var)
        std = self.y_scale_ * np.sqrt(var + posterior.noise_var)
        return Decomposed(
            Normal(self._shaped(location), self._shaped(std)), self._shaped(epistemic)
        )


@dataclass(frozen=True)
class _Start:
    """One estimator's standardised rows, a network per target.

    **Shape**: x (T, N, d), y (T, N).
    """

    x: Floats
    y: Floats
    sizes: tuple[int, ...]
    epochs: int
    generators: list[np.random.Generator]
    x_scaling: Scaling
    y_scaling: Scaling

    @property
    def kind(self) -> tuple[Any, ...]:
        """What estimators must have in common to take their steps together."""
        return self.y.shape[1], self.sizes, self.epochs


def fit_as_stack(
    jobs: Sequence[tuple[PBPRegressor, Any, Any]], listener: Listener | None = None
) -> None:
    """Fit estimators, those with equally many rows and equal networks in common steps."""
    starts = [(estimator, estimator._start(X, y)) for estimator, X, y in jobs]
    groups: dict[tuple[Any, ...], list[tuple[PBPRegressor, _Start]]] = {}
    for estimator, start in starts:
        groups.setdefault(start.kind, []).append((estimator, start))
    for group in groups.values():
        _fit_group(group, listener)


def _fit_group(group: list[tuple[PBPRegressor, _Start]], listener: Listener | None) -> None:
    _, sizes, epochs = group[0][1].kind
    generators = [rng for _, start in group for rng in start.generators]
    x = np.concatenate([start.x for _, start in group])
    y = np.concatenate([start.y for _, start in group])
    posterior = initial_posterior(sizes, generators)
    history: list[Floats] = []
    try:
        for loss in train_pbp(posterior, x, y, epochs=epochs, generators=generators):
            history.append(loss)
            if listener is not None:
                listener(EpochReport(len(history), epochs, len(x), float(loss.mean())))
    except KeyboardInterrupt:
        warnings.warn(
            f"training was interrupted after {len(history)} of {epochs} passes; the model keeps "
            "what it has learnt so far.",
            RuntimeWarning,
            stacklevel=4,
        )
    losses = np.array(history).reshape(-1, len(x))
    first = 0
    for estimator, start in group:
        own = slice(first, first + len(start.x))
        first = own.stop
        estimator._keep(start, posterior.part(own), losses[:, own])
