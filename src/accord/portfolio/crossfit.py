"""Recipes tried on a table: trained on every fold, calibrated and scored on the rows left out."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from accord._processes import one_thread
from accord._progress import Progress, silent
from accord._types import Bools, Floats, Indices
from accord.portfolio.blend import Member
from accord.portfolio.components import (
    DEGREES,
    NO_STRAY,
    Calibration,
    Components,
    Stray,
    calibrated,
    mean_score,
)
from accord.portfolio.encoding import (
    ScaledRows,
    TargetScale,
    TargetTransform,
    alone_far_out,
    resolution,
)
from accord.portfolio.folds import Part
from accord.portfolio.models import Model, model_for
from accord.portfolio.recipes import Effort, NetworkRecipe, Recipe, recipes_for
from accord.training import EpochReport, Listener

# Calibration is chosen on at most so many rows: more say little more.
_CALIBRATION_ROWS = 5_000
# A heavy tail of a logarithm has no mean; only the normal curve is tried there.
_LOG_DEGREES = (math.inf,)

# Features are shuffled one by one among so many rows; where they are more, correlations serve.
_PERMUTED_FEATURES, _PERMUTED_ROWS = 150, 200
_LARGEST_CHANGE = 5.0

# From this many rows on, trees and matrices are worth more than one thread.
_ROWS_FOR_THREADS = 5_000
# Work that a second is expected to do before anything has been measured.
_USUAL_SPEED = 8e9
# The share of the work that goes into shifted parts.
_SHIFTING = 0.3
# The share of the rest of a time budget that recipes are tried in, if more rows are to come.
_TRYING = 0.5


@dataclass(frozen=True)
class TrainingTable:
    """A training table, its targets in their own units.

    ``rounding`` is half the step of targets that come in steps, else 0; ``lower`` and ``upper`` are
    bounds of targets that are not known, equal where they are; ``absurd`` are rows that trimmed
    recipes do not believe (:mod:`accord.portfolio.gross_errors`). Weights are positive. So many
    features as are ``watched`` are the same in all rows, and no reason to try other recipes.

    **Shape**: x (N, d); all others (N,).
    """

    x: Floats
    y: Floats
    weight: Floats
    measured: Bools
    rounding: float = 0.0
    tolerance: Floats | None = None
    lower: Floats | None = None
    upper: Floats | None = None
    absurd: Bools | None = None
    watched: int = 0

    @staticmethod
    def of(x: Floats, y: Floats, weight: Floats, known: Mapping[str, Floats]) -> "TrainingTable":
        """Rows with what is known of single targets, each (N, 1), by its name."""
        tolerance, lower, upper = (
            known[name][:, 0] if name in known else None for name in ("tolerance", "lower", "upper")
        )
        measured = np.ones(len(y), bool) if lower is None else np.asarray(lower == upper)
        rounding = resolution(y[measured]) / 2
        return TrainingTable(x, y, weight, measured, rounding, tolerance, lower, upper)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def judging(self) -> Bools:
        """Which rows say how good a prediction is: something is known of their targets; (N,)."""
        if self.lower is None or self.upper is None:
            return np.ones(len(self), bool)
        return np.asarray(np.isfinite(self.lower) | np.isfinite(self.upper))

    @property
    def varies(self) -> Bools:
        """Which features are not the same in all rows; (d,)."""
        return np.asarray(np.ptp(self.x, axis=0) > 0)

    @property
    def reached(self) -> Floats:
        """What is known of each target: itself, or an end of what it may be; (n,)."""
        if self.lower is None or self.upper is None:
            return self.y
        ends = np.where(np.isfinite(self.upper), self.upper, self.lower)
        return ends[np.isfinite(ends)]

    def believed(self, recipe: Recipe) -> Bools:
        """Which rows a recipe takes for true, (N,)."""
        doubted = self.absurd if recipe.trimmed else None
        return np.ones(len(self), bool) if doubted is None else ~doubted

    def scale_for(self, recipe: Recipe, transform: TargetTransform) -> TargetScale:
        """The scale of the targets that a recipe takes for true."""
        return TargetScale.of(self.y[self.measured & self.believed(recipe)], transform)

    def targets(self, rows: Indices) -> tuple[Floats, Floats | None]:
        """Targets of some rows; of censored ones their lower ends, and then the upper ends of all.

        **Shape**: (n,) each.
        """
        if self.lower is None or self.upper is None:
            return self.y[rows], None
        return self.lower[rows], self.upper[rows]

    @property
    def log_unit(self) -> float:
        """log of one scaled unit, per which densities are compared, whatever targets are in."""
        return math.log(TargetScale.of(self.y[self.measured]).scale)

    def without(self, columns: Bools, *, overwrite: bool = False) -> "TrainingTable":
        """The same with some columns constant: no model and no distance looks at those, (d,).

        With ``overwrite``, the rows themselves are changed, of which there is no copy then.
        """
        x = self.x if overwrite else self.x.copy()
        x[:, columns] = np.median(self.x[:, columns], axis=0)
        return replace(self, x=x)

    def scaled(self, scale: TargetScale) -> ScaledRows:
        more: dict[str, Floats] = {}
        if self.tolerance is not None:
            more["tolerance"] = self.tolerance * np.exp(scale.log_slope(self.y))
        if self.lower is not None and self.upper is not None:
            more |= {"lower": scale.scaled(self.lower), "upper": scale.scaled(self.upper)}
        return ScaledRows(self.x, scale.scaled(self.y), self.weight, more)


@dataclass(frozen=True)
class Candidate:
    """A recipe that was tried: its model, and how its parts did on rows that they had not seen.

    ``held_out`` and ``log_density`` are of the rows that were held out and say something; densities
    are per scaled unit of the targets (:attr:`TrainingTable.log_unit`), of censored ones
    probabilities.
    """

    recipe: Recipe
    model: Model
    scale: TargetScale
    calibration: Calibration
    held_out: Components
    log_density: Floats
    seconds: float
    stray: Stray = NO_STRAY


@dataclass(frozen=True)
class LeaderboardEntry:
    """A line of the leaderboard: a recipe, its out-of-fold score and its share of the blend."""

    name: str
    about: str
    nll: float
    weight: float
    seconds: float


def leaderboard(
    candidates: Sequence[Candidate], weights: Floats, row_weight: Floats, *, log_unit: float
) -> tuple[LeaderboardEntry, ...]:
    """Recipes that were tried, the best first, with the NLL of targets in their own units."""
    entries = [
        LeaderboardEntry(
            c.recipe.name,
            c.recipe.about,
            log_unit - mean_score(c.log_density, row_weight),
            w,
            c.seconds,
        )
        for c, w in zip(candidates, weights.tolist(), strict=True)
    ]
    return tuple(sorted(entries, key=lambda entry: entry.nll))


def recipes_of(table: TrainingTable, effort: Effort) -> list[Recipe]:
    """The recipes to try on a table; once rows are absurd, those for the others."""
    scale = TargetScale.of(table.y[table.measured]).scale
    return recipes_for(
        effort,
        table.x[:, table.watched :],  # how many there are is all that is asked
        table.reached if table.absurd is None else table.y[~table.absurd],
        censored=not table.measured.all(),
        rounding=table.rounding / scale,
    )


def try_recipe(
    recipe: Recipe,
    table: TrainingTable,
    parts: Sequence[Part],
    *,
    seed: int,
    listener: Listener | None,
) -> Candidate:
    """Train a recipe on all folds and calibrate it on what they left out."""
    start = time.perf_counter()
    scale = table.scale_for(recipe, recipe.transform)
    rows = table.scaled(scale)
    trains = learnt_from(recipe, table, rows, parts)
    # networks choose threads by their own size
    few = not isinstance(recipe, NetworkRecipe) and len(table) < _ROWS_FOR_THREADS
    with one_thread(when=few):
        model = model_for(recipe).fit(rows, trains, seed=seed, listener=listener)
    return judged_out_of_fold(recipe, model, table, rows, scale, parts, seed=seed, start=start)


def judged_out_of_fold(
    recipe: Recipe,
    model: Model,
    table: TrainingTable,
    rows: ScaledRows,
    scale: TargetScale,
    parts: Sequence[Part],
    *,
    seed: int,
    start: float,
) -> Candidate:
    """A model calibrated and scored on what its folds left out; ``start`` is when it was begun."""
    # no density finer than the target's own steps, or rounded values would have infinite ones
    rounding = table.rounding / scale.scale if recipe.transform == "identity" else 0.0
    eps = max(recipe.tolerance, rounding, _typical(rows.more.get("tolerance")))
    used = held_out_rows(table, parts)
    held_out = out_of_fold(model, table.x, parts, used)
    y, upper = table.targets(used)
    z, ends = scale.scaled(y), None if upper is None else scale.scaled(upper)
    believes = table.believed(recipe)[used]
    stray = NO_STRAY
    if not believes.all() and recipe.transform == "identity":  # far off in a logarithm is anywhere
        stray = Stray.of((z - held_out.center)[~believes], len(used))
    believed = np.flatnonzero(believes)
    some = believed[np.random.default_rng(seed).permutation(len(believed))[:_CALIBRATION_ROWS]]
    calibration = calibrated(
        held_out[some],
        z[some],
        np.ones(len(some)),  # as intervals by rank do: how sure to be is asked of all rows alike
        upper=None if ends is None else ends[some],
        tolerance_variance=eps**2 / 3,
        degrees=_LOG_DEGREES if recipe.transform == "log" else DEGREES,
    )
    density = calibration.log_density(held_out.with_stray(stray), z, upper=ends)
    known = table.measured[used]
    density[known] += scale.log_slope(y[known]) + table.log_unit
    seconds = time.perf_counter() - start
    return Candidate(recipe, model, scale, calibration, held_out, density, seconds, stray)


def learnt_from(
    recipe: Recipe, table: TrainingTable, rows: ScaledRows, parts: Sequence[Part]
) -> list[Indices]:
    """The rows that each part learns from: not from targets that are likely errors."""
    wrong = alone_far_out(rows.z) & table.measured | ~table.believed(recipe)
    return [part.train[~wrong[part.train]] for part in parts]


def held_out_rows(table: TrainingTable, parts: Sequence[Part]) -> Indices:
    """The rows that the parts ask about and that say how good an answer is, in order."""
    asked = np.sort(np.concatenate([part.test for part in parts]))
    return np.asarray(asked[table.judging[asked]])


def out_of_fold(model: Model, x: Floats, parts: Sequence[Part], rows: Indices) -> Components:
    """Each of some rows predicted by the part that had not seen it."""
    own = [np.intersect1d(part.test, rows, assume_unique=True) for part in parts]
    pieces = [model.components(x[part], fold) for fold, part in enumerate(own)]
    return Components.assembled(pieces, [np.searchsorted(rows, part) for part in own])


def _typical(tolerance: Floats | None) -> float:
    """One tolerance for all rows: the root mean square, which keeps the mean variance."""
    return 0.0 if tolerance is None else float(np.sqrt(np.mean(np.square(tolerance))))


def relevance(members: Sequence[Member], x: Floats, y: Floats, *, seed: int) -> Floats:
    """How much predictions change, in mean, when a feature is shuffled among rows; (d,).

    Where features are very many, their correlation with the target serves: it is cheap.
    """
    varying = np.flatnonzero(np.ptp(x, axis=0) > 0)
    if len(varying) > _PERMUTED_FEATURES:
        return _correlation(x, y)
    random = np.random.default_rng(seed)
    rows = random.permutation(len(x))[:_PERMUTED_ROWS]
    some = x[rows]
    # drawn for all of them: what is drawn for one must not depend on which others vary
    mixed = [random.permutation(column) for column in some.T]
    shuffled = np.tile(some, (len(varying), 1))
    for place, feature in enumerate(varying):
        own = slice(place * len(some), (place + 1) * len(some))
        shuffled[own, feature] = mixed[feature]
    change = np.zeros(x.shape[1])
    if not len(varying):
        return change
    for member in members:
        before = member.model.components(some, 0).center
        after = member.model.components(shuffled, 0).center
        difference = np.abs(after.reshape(-1, len(some)) - before)
        moved = np.minimum(difference, _LARGEST_CHANGE).mean(axis=1)
        change[varying] += member.weight * moved
    return change


def _correlation(x: Floats, y: Floats) -> Floats:
    ranks = np.argsort(np.argsort(y))
    centred = x - x.mean(axis=0)
    spread = np.sqrt(np.square(centred).sum(axis=0))
    target = ranks - ranks.mean()
    size = float(np.sqrt(np.square(target).sum())) or 1.0
    return np.asarray(np.abs(centred.T @ target) / np.where(spread > 0, spread * size, 1.0))


class Clock:
    """How far the work is, and whether there is time for more.

    The speed is measured on the recipes that have been tried, so that what a further one takes is
    known before it is begun; the first ones, which take next to nothing, hardly count beside what
    is usual. Some of the time is kept for the shifted parts.
    """

    def __init__(self, budget: float | None, progress: Progress | None) -> None:
        self.started = time.perf_counter()
        self.budget, self.progress = budget, progress or silent
        self.done = self.timed = self.seconds = 0.0

    def plan(self, works: Sequence[float], later: float = 0.0) -> None:
        """The recipes to come, by their work.

        ``later`` is about the work of training on more rows than these, for which half of the time
        is kept.
        """
        self.total = (self.done + sum(works) + later) / (1 - _SHIFTING)
        self.trying = (1 - _SHIFTING) * (_TRYING if later else 1.0)

    def affords(self, work: float) -> bool:
        """Whether a further recipe fits in the time budget."""
        if self.budget is None:
            return True
        return self._used + self._expected(work) <= self.trying * self.budget

    def affordable(self, works: Sequence[float]) -> float:
        """The share of some work that fits in the time budget; the recipes have been tried.

        From now on the bar moves by this work.
        """
        done, share = self.done / self.total, 1.0
        if self.budget is not None:
            left = (1 - _SHIFTING) * self.budget - self._used
            share = float(np.clip(left / self._expected(sum(works)), 0.0, 1.0))
        # what is done now takes the place of what was thought to come
        self.total = share * sum(works) / max(1 - _SHIFTING - done, 1e-9)
        self.done = done * self.total
        return share

    def fitting(self, seconds: float, most: int) -> int:
        """How many things that take so many seconds each fit in what is left, of ``most``."""
        if self.budget is None or seconds <= 0:
            return most
        return int(np.clip((self.budget - self._used) / seconds, 0, most))

    @property
    def _used(self) -> float:
        return time.perf_counter() - self.started

    def _expected(self, work: float) -> float:
        """Seconds for further work, at the speed of what has been tried and of a usual second."""
        return work * (self.seconds + 1.0) / (self.timed + _USUAL_SPEED)

    def begin(self, work: float) -> Listener:
        """A listener for the epochs of a recipe."""
        return self._between(self.done / self.total, (self.done + work) / self.total)

    def end(self, work: float, seconds: float | None = None) -> None:
        """A recipe is done, in so many seconds; None if that says nothing of the speed."""
        self.done += work
        if seconds is not None:
            self.timed += work
            self.seconds += seconds
        self._tell(self.done / self.total)

    def shifting(self, n_models: int) -> Listener:
        """A listener for one of some models on the shifted parts."""
        before = max(self._shown, 1 - _SHIFTING)
        return self._between(before, before + _SHIFTING / n_models)

    def shifted(self, n_done: int, n_models: int) -> None:
        """So many of the models have learnt from the shifted parts."""
        self._tell(1 - _SHIFTING + _SHIFTING * n_done / n_models)

    def finish(self) -> None:
        self._tell(1.0)

    _shown = 0.0

    def _between(self, before: float, after: float) -> Listener:
        def listen(report: EpochReport) -> None:
            self._tell(before + (after - before) * report.epoch / report.n_epochs)

        return listen

    def _tell(self, share: float) -> None:
        self._shown = min(max(self._shown, share), 1.0)
        self.progress(self._shown, "Training")
