"""The models of a portfolio, cross-fitted: one part per fold, which has not seen the other rows."""

from collections.abc import Sequence
from typing import Protocol, Self

from accord._types import Floats, Indices
from accord.portfolio.boosting import BoostingModel
from accord.portfolio.components import Components
from accord.portfolio.corrected import CorrectedModel
from accord.portfolio.encoding import ScaledRows
from accord.portfolio.gaussian_process import GaussianProcessModel
from accord.portfolio.networks import NetworkModel
from accord.portfolio.recipes import (
    BoostingRecipe,
    CorrectedRecipe,
    GaussianProcessRecipe,
    NetworkRecipe,
    Recipe,
    RidgeRecipe,
)
from accord.portfolio.ridge import RidgeModel
from accord.training import Listener


class Model(Protocol):
    """A model with one part per fold."""

    @property
    def recipe(self) -> Recipe:
        """What it was made by."""

    def fit(
        self, rows: ScaledRows, folds: Sequence[Indices], *, seed: int, listener: Listener | None
    ) -> Self:
        """Learn each part from the rows of its fold."""

    def fit_again(
        self, rows: ScaledRows, folds: Sequence[Indices], *, seed: int, listener: Listener | None
    ) -> "Model":
        """The same model on other folds, as cheaply as it can be had."""

    def components(self, x: Floats, fold: int | None = None) -> Components:
        """What one part predicts, or all parts as members."""


def model_for(recipe: Recipe) -> Model:
    """An unfitted model of a recipe."""
    match recipe:
        case NetworkRecipe():
            return NetworkModel(recipe)
        case GaussianProcessRecipe():
            return GaussianProcessModel(recipe)
        case CorrectedRecipe():
            return CorrectedModel(recipe)
        case BoostingRecipe():
            return BoostingModel(recipe)
        case RidgeRecipe():
            return RidgeModel(recipe)
