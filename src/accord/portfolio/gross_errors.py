"""Rows that no model believes, and trimmed recipes, which learn from all others.

A sensor that fails, a comma in the wrong place: a few targets in a hundred that have nothing to do
with the rest. Least squares and bell curves follow them, so that means are several times as wrong
as the other rows would allow. So, where a few rows that the best model finds absurd make up most of
its squared error, every recipe is tried again, trimmed: without these rows in training, in the
scale of targets and in calibration. For them, its answers have one more curve
(:class:`accord.portfolio.components.Stray`), as wide as they are far off, and with their share of
the weight: new rows will have such errors too. They stay among the rows that choose the models: if
they were no errors, and could be predicted, trimmed recipes are not chosen.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from accord._types import Bools, Floats, Indices
from accord.portfolio.blend import LocalTolerance, Member, Prediction, distribution_of
from accord.portfolio.components import mean_score
from accord.portfolio.crossfit import Candidate, TrainingTable, held_out_rows, recipes_of
from accord.portfolio.encoding import TargetScale, alone_far_out
from accord.portfolio.folds import Part
from accord.portfolio.recipes import Effort, Recipe
from accord.portfolio.units import PortfolioUnits

# Robust deviations from what is predicted that are absurd.
_ABSURD = 5.0
# Half of a normal's values are within so many deviations.
_MEDIAN_OF_NORMAL = 0.6745
# More of the rows than this are no few errors; with less of the squared error they do no harm.
_MOST_ROWS, _LEAST_ERROR = 0.1, 0.5


def tried_trimmed(
    units: PortfolioUnits, tried: Sequence[Candidate], effort: Effort
) -> list[Candidate]:
    """Trimmed recipes, if some rows are absurd; from then on the units know which."""
    absurd = gross_errors(tried, units.table, units.parts)
    if not absurd.any():
        return []
    units.take(replace(units.table, absurd=absurd))
    recipes = recipes_of(units.table, effort)
    return units.try_recipes([_trimmed(recipe) for recipe in recipes]).candidates


def _trimmed(recipe: Recipe) -> Recipe:
    about = f"{recipe.about}; learns nothing from rows with absurd targets"
    return replace(recipe, name=f"{recipe.name}, trimmed", about=about, trimmed=True)


def gross_errors(
    candidates: Sequence[Candidate], table: TrainingTable, parts: Sequence[Part]
) -> Bools:
    """Rows with targets that are absurd to the best model, if they are few and do harm; (N,)."""
    used, absurd = held_out_rows(table, parts), np.zeros(len(table), bool)
    if not table.measured.all() or _mostly_one_value(table.y[used]):
        return absurd
    weight = table.weight[used]
    best = max(candidates, key=lambda c: mean_score(c.log_density, weight))
    distance, error = _errors(best, table, used)
    far = distance > _ABSURD
    # what is alone far out teaches no model anything
    alone = alone_far_out(TargetScale.of(table.y).scaled(table.y[used]))
    squares = np.square(np.where(alone, 0.0, error / (np.abs(error).max() or 1.0)))
    if far.mean() <= _MOST_ROWS and squares[far].sum() > _LEAST_ERROR * squares.sum():
        absurd[used[far]] = True
    return absurd


def notes_on_gross_errors(table: TrainingTable, members: Sequence[Member]) -> tuple[str, ...]:
    """A sentence on absurd rows, if a model in use does not believe them."""
    if table.absurd is None or not any(member.model.recipe.trimmed for member in members):
        return ()
    far = table.y[table.absurd]
    farthest = far[np.argmax(np.abs(far - np.median(table.y)))]
    words = "target is" if len(far) == 1 else "targets are"
    return (
        f"{len(far)} {words} far from what other rows suggest (farthest: {farthest:g}). Models "
        "learn nothing from them, and expect as many among new rows. Check for errors.",
    )


def _mostly_one_value(y: Floats) -> bool:
    """Whether half of the targets are the same, so that others are rare events and no errors."""
    return bool(2 * np.unique(y, return_counts=True)[1].max() >= len(y))


def _errors(tried: Candidate, table: TrainingTable, used: Indices) -> tuple[Floats, Floats]:
    """Held-out errors from the median, in robust deviations and in target units; (n,) each.

    A deviation is the distance to the row's own quartile on that side, stretched alike for all rows
    so that half of all errors are within it: absurd rows make models state too wide ones.
    """
    member = Member(tried.recipe.name, tried.model, tried.scale, tried.calibration, 1.0)
    evidence = Prediction.of(member, tried.held_out, tried.scale)
    none = np.zeros(len(used))
    dist = distribution_of([evidence], LocalTolerance(), none, none)
    low, middle, high = np.asarray(dist.quantile([0.25, 0.5, 0.75])).reshape(len(used), 3).T
    error = table.y[used] - middle
    own = np.maximum(np.where(error > 0, high - middle, middle - low), 1e-300)
    ratio = np.abs(error) / own
    return _MEDIAN_OF_NORMAL * ratio / max(float(np.median(ratio)), 1e-300), error
