"""Networks of one recipe, cross-fitted as one stack over folds and seeds."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
import torch
from numpy.typing import NDArray

from accord._types import Floats, Indices
from accord.portfolio.components import Components
from accord.portfolio.encoding import FeatureEncoding, ScaledRows, trained_on
from accord.portfolio.folds import at_most, first_of
from accord.portfolio.recipes import NetworkRecipe
from accord.training import (
    Architecture,
    ByAutograd,
    CensoredMixture,
    Chunk,
    Listener,
    MixtureObjective,
    Settings,
    Task,
    Trained,
    raw_outputs,
    train,
    train_on_stream,
)

if TYPE_CHECKING:
    from accord.portfolio.streamed import FoldedStream

# A batch holds about a thirtieth of the rows, in powers of 2.
_SMALLEST_BATCH = 16
_STEPS_PER_EPOCH = 30
# A network sees at most this many rows of a fold, which is more than its steps pass over often.
_NETWORK_ROWS = 100_000
# What is taken from the weight of each bell curve of a row. Training hardly ever asks for curves of
# less weight, so that they lie anywhere; far away, they would make up most of the row's variance.
LEAST_WEIGHT = 0.002


@final
class NetworkModel:
    """Networks of one recipe, as one stack over folds and seeds.

    Attributes:
        encoding_: How features are encoded.
        parameters_: Weights and biases with a leading axis over folds and seeds.
    """

    def __init__(self, recipe: NetworkRecipe) -> None:
        self.recipe = recipe

    def fit(
        self, rows: ScaledRows, folds: Sequence[Indices], *, seed: int, listener: Listener | None
    ) -> Self:
        recipe = self.recipe
        chosen = [first_of(own, _NETWORK_ROWS, len(rows.x), seed) for own in folds]
        shared = np.unique(np.concatenate(chosen))
        some = at_most(np.arange(len(rows.x)), _NETWORK_ROWS, seed)
        self.encoding_ = FeatureEncoding(bins=recipe.bins, scaled=recipe.scaled)
        self.encoding_.fit(rows.x[some], tails=True)
        x = torch.as_tensor(self.encoding_(rows.x[shared], np.float32))
        columns = self._columns(rows)
        weight = torch.as_tensor(rows.weight)
        tasks = [
            Task(
                x,
                {name: column[own] for name, column in columns.items()},
                tuple(hash_seed(seed, recipe.name, number, k) for k in range(recipe.seeds)),
                weight[own],
                rows=torch.as_tensor(np.searchsorted(shared, own)),
            )
            for number, own in enumerate(chosen)
        ]
        n_rows = max(len(own) for own in chosen)
        batch = batch_size(recipe, n_rows)
        epochs = max(1, round(recipe.steps / math.ceil(n_rows / batch)))
        trained = train(
            tasks,
            self._design(x.shape[1]),
            self._loss(censored="lower" in columns),
            _settings(recipe, batch, epochs),
            listener=listener,
        )
        return self._keep(trained)

    def _design(self, n_inputs: int) -> Architecture:
        recipe, n_outputs = self.recipe, MixtureObjective(self.recipe.components).n_outputs
        return Architecture(n_inputs, recipe.hidden, n_outputs, recipe.activation, recipe.dropout)

    def _loss(self, *, censored: bool) -> Any:
        objective = MixtureObjective(self.recipe.components)
        return ByAutograd(CensoredMixture(objective)) if censored else objective

    def _keep(self, trained: Sequence[Trained]) -> Self:
        if any(part.interrupted for part in trained):
            raise KeyboardInterrupt  # half a recipe says nothing of the whole one
        blocks = zip(*(part.parameters for part in trained), strict=True)
        self.parameters_: list[NDArray[Any]] = [np.concatenate(block) for block in blocks]
        return self

    def further(
        self,
        recipe: NetworkRecipe,
        stream: "FoldedStream",
        *,
        seed: int,
        listener: Listener | None,
        state: dict[str, Any] | None = None,
        keep: Callable[[dict[str, Any]], None] | None = None,
    ) -> "NetworkModel":
        """These networks, trained further on a stream of rows; ``recipe`` is what they are then.

        ``state`` and ``keep`` are those of :func:`accord.training.train_on_stream`.
        """
        model = NetworkModel(recipe)
        model.encoding_ = self.encoding_
        n_inputs, own = self.parameters_[0].shape[1], recipe.seeds
        tasks = [
            Task(
                torch.empty(0, n_inputs),
                {},
                tuple(hash_seed(seed, recipe.name, fold, k) for k in range(own)),
                initial=[block[fold * own : (fold + 1) * own] for block in self.parameters_],
            )
            for fold in range(len(self.parameters_[0]) // own)
        ]

        def chunk(number: int) -> Chunk:
            rows, seen = stream.chunk(number)
            return Chunk(
                lambda some: torch.from_numpy(self.encoding_(rows.x[some], np.float32)),
                model._columns(rows),
                torch.as_tensor(rows.weight),
                seen,
            )

        trained = train_on_stream(
            tasks,
            chunk,
            self._design(n_inputs),
            self._loss(censored=stream.censored),
            _settings(recipe, stream.batch_size(recipe), stream.n_chunks(recipe)),
            listener=listener,
            state=state,
            keep=keep,
        )
        return model._keep(trained)

    def fit_again(
        self, rows: ScaledRows, folds: Sequence[Indices], *, seed: int, listener: Listener | None
    ) -> "NetworkModel":
        fresh = NetworkModel(self.recipe.with_one_seed())
        return fresh.fit(rows, folds, seed=seed, listener=listener)

    def components(self, x: Floats, fold: int | None = None) -> Components:
        recipe = self.recipe
        objective = MixtureObjective(recipe.components)
        parameters = self.parameters_of(fold)

        def transform(raw: torch.Tensor) -> torch.Tensor:
            # in float64, as weights add up to 1
            return torch.cat(objective.components(raw.double()), -1)

        encoded = self.encoding_(x, np.float32)
        outputs = raw_outputs(parameters, encoded, recipe.activation, "cpu", transform, single=True)
        log_weight, mean, variance = np.split(outputs, 3, axis=-1)
        weight = np.maximum(np.exp(log_weight) - LEAST_WEIGHT, 0.0)
        weight /= weight.sum(axis=-1, keepdims=True)
        return Components(weight, mean, np.sqrt(variance))

    def parameters_of(self, fold: int | None) -> list[NDArray[Any]]:
        """Those of one fold's networks, or of all."""
        if fold is None:
            return self.parameters_
        own = slice(fold * self.recipe.seeds, (fold + 1) * self.recipe.seeds)
        return [block[own] for block in self.parameters_]

    def _columns(self, rows: ScaledRows) -> dict[str, torch.Tensor]:
        columns = {"target": trained_on(rows.z), **rows.more}
        if self.recipe.tolerance:
            given = rows.more.get("tolerance", np.zeros(len(rows.z)))
            columns["tolerance"] = np.maximum(given, self.recipe.tolerance)
        elif "lower" in columns and "tolerance" not in columns:
            columns["tolerance"] = np.zeros(len(rows.z))
        return {name: torch.as_tensor(values[:, None]) for name, values in columns.items()}


def batch_size(recipe: NetworkRecipe, n_rows: int) -> int:
    """Rows of a step."""
    batch = 2 ** round(math.log2(max(n_rows, 1) / _STEPS_PER_EPOCH))
    return int(np.clip(batch, _SMALLEST_BATCH, recipe.largest_batch))


def _settings(recipe: NetworkRecipe, batch_size: int, epochs: int) -> Settings:
    return Settings(
        epochs=epochs,
        batch_size=batch_size,
        optimizer="adamw",
        learning_rate=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        schedule="cosine",
        dealt=True,
    )


def hash_seed(seed: int, *parts: Any) -> int:
    """A seed for one network, from the portfolio's and from what the network is.

    >>> hash_seed(0, "short", 1, 0) == hash_seed(0, "short", 1, 0) != hash_seed(0, "short", 2, 0)
    True
    """
    words = [seed, *(ord(letter) for part in parts for letter in f"{part}/")]
    return int(np.random.SeedSequence(words).generate_state(1)[0] >> 1)
