"""A Gaussian process, and networks that learn from its errors how unsure to be.

The process is sure of its means where rows are many and close, and takes the noise for the same
everywhere. Its errors of single training rows, each predicted from the others, are a table of their
own: networks learn from the features and the process's mean m of what e = (y − m) / s is drawn, s
the process's deviation, and answer a new row by m + s e. Far from all rows s grows, whatever the
networks say there; the answer is at most as far out as any training target, and as unsure. As they
make up for what s lacks, it is of fewer rows than the mean: it takes the square of their number for
each answer, where the mean takes the number.
"""

from collections.abc import Sequence
from typing import Self, final

import numpy as np

from accord._types import Floats, Indices
from accord.portfolio.components import Components
from accord.portfolio.encoding import FARTHEST_TRAINED, ScaledRows, trained_on
from accord.portfolio.gaussian_process import GaussianProcessModel
from accord.portfolio.networks import NetworkModel
from accord.portfolio.recipes import CorrectedRecipe
from accord.training import Listener

_DEVIATION_ROWS = 1_000


@final
class CorrectedModel:
    """A Gaussian process per fold, and networks for the errors of each.

    Attributes:
        process_, narrow_: Gaussian processes with the same kernels: for means, and of fewer rows
            for deviations.
        errors_: Networks of errors in these deviations, one stack over folds and seeds.
    """

    def __init__(self, recipe: CorrectedRecipe) -> None:
        self.recipe = recipe

    def fit(
        self, rows: ScaledRows, folds: Sequence[Indices], *, seed: int, listener: Listener | None
    ) -> Self:
        process = GaussianProcessModel(self.recipe.process)
        self.process_ = process.fit(rows, folds, seed=seed, listener=None)
        self.narrow_ = process.of_fewer(_DEVIATION_ROWS, rows, folds, seed=seed)
        errors = self._errors(rows, folds, seed)
        network = NetworkModel(self.recipe.network)
        self.errors_ = network.fit(*errors, seed=seed, listener=listener)
        return self

    def fit_again(
        self, rows: ScaledRows, folds: Sequence[Indices], *, seed: int, listener: Listener | None
    ) -> "CorrectedModel":
        other = CorrectedModel(self.recipe)
        other.process_ = self.process_.fit_again(rows, folds, seed=seed, listener=None)
        other.narrow_ = other.process_.of_fewer(_DEVIATION_ROWS, rows, folds, seed=seed)
        errors = other._errors(rows, folds, seed)
        other.errors_ = self.errors_.fit_again(*errors, seed=seed, listener=listener)
        return other

    def _errors(
        self, rows: ScaledRows, folds: Sequence[Indices], seed: int
    ) -> tuple[ScaledRows, list[Indices]]:
        """What the networks learn from: the rows of all folds, one fold after the other."""
        every = np.concatenate(list(folds))
        number = np.repeat(np.arange(len(folds)), [len(own) for own in folds])
        mean = self.process_.left_out(rows, folds, "mean", seed)[number, every]
        std = self.narrow_.left_out(rows, folds, "std", seed)[number, every]
        self.process_.forget()  # means take no inverse
        errors = (trained_on(rows.z)[every] - mean) / std
        more = {name: values[every] / std for name, values in rows.more.items()}
        table = ScaledRows(_beside(rows.x[every], mean), errors, rows.weight[every], more)
        return table, [np.flatnonzero(number == fold) for fold in range(len(folds))]

    def components(self, x: Floats, fold: int | None = None) -> Components:
        means, deviations = self.process_.means(x, fold), self.narrow_.components(x, fold).std
        folds = range(len(means)) if fold is None else [fold]
        answers = []
        for number, mean, std in zip(folds, means, deviations, strict=True):
            errors = self.errors_.components(_beside(x, mean), number)
            mean, std = mean[:, None] + std * errors.mean, std * errors.std
            mean = np.clip(mean, -FARTHEST_TRAINED, FARTHEST_TRAINED)
            answers.append(Components(errors.weight, mean, np.minimum(std, FARTHEST_TRAINED)))
        return Components.stacked(answers)


def _beside(x: Floats, mean: Floats) -> Floats:
    """Features, and what the process says; (N, d + 1)."""
    return np.column_stack([x, mean])
