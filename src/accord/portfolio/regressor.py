"""The default regressor: a portfolio of models, chosen, blended and calibrated out of fold."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags, column_or_1d
from sklearn.utils.validation import _check_sample_weight

from accord._checks import RandomState, check_choice, check_positive, drawn_seeds
from accord._processes import one_thread
from accord._progress import Progress
from accord._types import Bools, Floats, Indices
from accord.distributions import Distribution
from accord.estimators import DistributionalRegressor
from accord.portfolio.blanks import Blank, Blanks, blanked, only_ones, rows_with, split_blanks
from accord.portfolio.blend import Member, Prediction, blend_of, greedy_weights
from accord.portfolio.crossfit import (
    Candidate,
    Clock,
    TrainingTable,
    held_out_rows,
    leaderboard,
    recipes_of,
    relevance,
)
from accord.portfolio.encoding import Bounds, checked_bounds, ends_of
from accord.portfolio.evidence import HeldOutEvidence, Levels
from accord.portfolio.folds import HeldOut, Part, held_out_parts, own_places
from accord.portfolio.gross_errors import notes_on_gross_errors, tried_trimmed
from accord.portfolio.local import (
    Widening,
    choose_tolerance,
    feature_weights,
    growth_at,
    growth_of,
    unlike_usual,
)
from accord.portfolio.recipes import EFFORTS, Effort
from accord.portfolio.rows import CountedRows, EncodedTable
from accord.portfolio.screening import notes_on_screening, screened
from accord.portfolio.streamed import MoreRows, worth_more
from accord.portfolio.units import PortfolioUnits, pays_for_processes, rows_seen
from accord.trust import Growth, Proximity, Receipts, array_receipts
from accord.work import Checkpoint, kept_in, local_workers

if TYPE_CHECKING:
    from distributed import Client

# Below this many rows, products of all models are small enough for one thread.
_FEW_ROWS = 2_000
# With fewer seconds than this, all of them go into the recipes.
_SCREENING_BUDGET = 30.0
# Held-out rows that a choice is made on.
_SELECTION_ROWS = 8_000
# Out-of-fold predictions are evidence about a model, not part of it, and are not saved.
_EVIDENCE = ("held_out_", "judged_", "shifted_")


class PortfolioRegressor(DistributionalRegressor):
    """The default: several kinds of models, chosen and calibrated on rows left out.

    A few recipes (lines; curves of each feature, added up; smooth networks; networks on piecewise
    linear features, with one or five components per row; Gaussian processes, one with networks for
    its errors; boosted trees; the logarithm of the target) are trained on every fold of the rows.
    What each says of the rows that it has not seen is calibrated, and a blend is selected greedily
    by the likelihood of those rows. A local tolerance, chosen on parts of the table that are unlike
    the rest, widens predictions away from the data. Intervals are by rank: as wide as the held-out
    rows needed them, and for rows unlike the training rows as wide as the parts that are unlike the
    rest needed them.

    The models of the folds themselves predict, so that what was judged is what is used. Intervals
    follow cross-conformal prediction: whatever the models, an interval of coverage c holds a row
    of the same kind with probability of about 2c − 1 at least (Barber et al., Predictive inference
    with the jackknife+, 2021), and in practice about c.

    Args:
        effort: How much to try: ``"quick"``, ``"standard"`` or ``"best"``.
        time_budget: Seconds to spend; fewer recipes are tried, and fewer parts unlike the rest
            rehearsed, where all would take longer.
        bounds: Lowest and highest possible target, either None: predictions stay between them.
        n_jobs: Processes that train, −1 for one per processor, where there is enough to do for
            them. None trains in this one. In a script, more than one needs the usual
            ``if __name__ == "__main__":``.
        random_state: Seed of everything random.

    Attributes:
        leaderboard_: Recipes with their out-of-fold NLL and weight, best first.
        held_out_: Out-of-fold predictions of the training rows.
        judged_: The same by fold, each with intervals that were learnt from the other folds' rows:
            what a new row can expect.
        shifted_: Predictions of the most unusual rows by models that had seen none of them, one
            part; no part where rows are too few.
        proximity_: Distance to the training rows.
        left_out_: Places of the columns that do not matter; no model looks at them.
        widening_: What makes predictions wider away from the training rows: the local tolerance,
            what an unknown category or number costs, and the levels of intervals.
        rows_seen_: Rows that networks of the blend have learnt from.
        notes_: What was decided about the table, in sentences.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-1, 1, (200, 2))
        >>> y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=200)
        >>> model = PortfolioRegressor(effort="quick", random_state=0).fit(X, y)
        >>> model.predict_interval([[0.5, 0.0]], coverage=0.9).shape
        (1, 2)
    """

    widening_: Widening

    def __init__(
        self,
        *,
        effort: Effort = "standard",
        time_budget: float | None = None,
        bounds: Bounds | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.effort = effort
        self.time_budget = time_budget
        self.bounds = bounds
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
        y_tolerance: ArrayLike | None = None,
        y_lower: ArrayLike | None = None,
        y_upper: ArrayLike | None = None,
        progress: Progress | None = None,
        checkpoint: str | Path | Checkpoint | None = None,
        client: "Client | None" = None,
    ) -> Self:
        """Try the recipes, blend the best, and calibrate the blend.

        Args:
            X, y: Features and targets. :class:`accord.TableRegressor` gives the features as an
                ``EncodedTable``, which says more about them.
            sample_weight: How much each row counts in training and in choosing models. Rows with 0
                are left out; standard deviations and intervals count every other row once. Gaussian
                processes learn without weights.
            groups: Rows of one group are held out together.
            time: When each row was measured; stretches of time are held out together.
            y_tolerance: Half-width within which each target is known, in its units.
            y_lower, y_upper: Bounds of targets that are only known to lie between them, NaN for no
                bound; a target without any is known.
            progress: Called with the share of the work that is done.
            checkpoint: A folder for what is finished, from which the same call goes on after it
                was stopped, at whatever moment; removed at the end.
            client: A Dask client, whose workers train.

        **Shape**: X (N, d), y (N,), all others (N,).
        """
        clock = Clock(self.time_budget, progress)
        given = X if isinstance(X, EncodedTable) else EncodedTable(X)
        counted = self._counted(
            given.features,
            y,
            sample_weight,
            groups=groups,
            time=time,
            tolerance=y_tolerance,
            lower=y_lower,
            upper=y_upper,
        )
        if given.more is not None:
            counted.check_whole()
        seed = drawn_seeds(self.random_state, 1)[0]
        table, self.notes_ = counted.table, counted.notes
        parts = held_out_parts(
            table.x,
            table.y,
            table.measured,
            groups=counted.groups,
            time=counted.time,
            seed=seed,
        )
        jobs = self.n_jobs if pays_for_processes(self.effort, len(table)) else None
        with (
            local_workers(client, jobs, module="accord.portfolio") as workers,
            one_thread(when=len(table) < _FEW_ROWS),
            kept_in(checkpoint) as kept,
        ):
            blanks, watched = split_blanks(table.x, given.blanks)
            table = replace(table, watched=len(watched))
            lacking = rows_with(table.x, blanks)
            table = self._screened(table, parts, seed, overwrite=given is X)
            units = PortfolioUnits(
                table, parts, seed=seed, clock=clock, workers=workers, checkpoint=kept
            )
            candidates = self._try_recipes(units, given.more)
            predictions = self._blend(units.table, parts, candidates)
            self.rows_seen_ = len(table)
            if given.more is not None:
                further = units.train_further(worth_more(candidates, self.leaderboard_), given.more)
                predictions = self._blend(table, parts, [*candidates, *further.candidates])
                self.rows_seen_, notes = rows_seen(self.members_, further, len(table))
                self.notes_ += notes
            self.notes_ += notes_on_gross_errors(units.table, self.members_)
            changes = relevance(self.members_, table.x, table.y, seed=seed)
            self._calibrate(units, predictions, changes, counted.places)
            self.widening_ = self.widening_.with_blanks(
                blanks,
                lacking,
                changes,
                parts,
                partial(self._evidence, table),
                watched=watched,
                alone=only_ones(table.x, parts) if watched else (),
                seed=seed,
            )
        clock.finish()
        return self

    def _counted(self, X: Any, y: Any, sample_weight: Any, **stated: Any) -> CountedRows:
        """Checked rows, with what is stated of each."""
        check_choice("effort", self.effort, EFFORTS)
        if self.time_budget is not None:
            check_positive("time_budget", self.time_budget, remedy="Give seconds, or None.")
        if self.bounds is not None:
            checked_bounds(self.bounds)
        if self.n_jobs not in (None, -1):
            check_positive("n_jobs", self.n_jobs)
        if np.asarray(y).shape[1:] == (1,):
            y = column_or_1d(y, warn=True)
        x, targets = self._checked_pair(X, y)
        if targets.shape[1] > 1:
            raise ValueError(
                f"y must be one target per row, got {targets.shape[1]}. Fit one model per target."
            )
        weight = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
        return CountedRows.of(x, targets, weight, bounds=self.bounds, **stated)

    def _screened(
        self, table: TrainingTable, parts: Sequence[Part], seed: int, *, overwrite: bool
    ) -> TrainingTable:
        """The table without the columns that do not matter; sets ``left_out_``."""
        self.left_out_, n = np.arange(0), int(table.varies.sum())
        if self.time_budget is None or self.time_budget >= _SCREENING_BUDGET:
            table, self.left_out_ = screened(table, parts, seed=seed, overwrite=overwrite)
        self.notes_ += notes_on_screening(len(self.left_out_), n)
        return table

    def _try_recipes(self, units: PortfolioUnits, more: MoreRows | None) -> list[Candidate]:
        """The recipes, each trained on all folds, as far as time allows."""
        tried = units.try_recipes(recipes_of(units.table, self.effort), more)
        self.notes_ += tried.notes
        if not tried.candidates:
            raise ValueError(
                "no model could be trained on these rows. Check the target and the features for "
                f"extreme values. {' '.join(self.notes_)}"
            )
        again = [] if more else tried_trimmed(units, tried.candidates, self.effort)
        return tried.candidates + again

    def _blend(
        self, table: TrainingTable, parts: Sequence[Part], candidates: list[Candidate]
    ) -> list[Prediction]:
        """Select and weigh; sets ``members_`` and ``leaderboard_``."""
        used = held_out_rows(table, parts)
        (y, upper), weight = table.targets(used), table.weight[used]
        density = np.stack([candidate.log_density for candidate in candidates])
        some = np.random.default_rng(0).permutation(len(used))[:_SELECTION_ROWS]
        weights = greedy_weights(density[:, some], weight[some])
        chosen = [c.recipe for c, share in zip(candidates, weights, strict=True) if share > 0]
        self.scale_ = table.scale_for(max(chosen, key=lambda recipe: recipe.trimmed), "identity")
        found = [
            (Member(c.recipe.name, c.model, c.scale, c.calibration, 0.0, c.stray), c.held_out)
            for c in candidates
        ]
        predictions = blend_of(
            found, weights, self.scale_, y=y, upper=upper, row_weight=np.ones(len(used)), some=some
        )
        self.members_ = [prediction.member for prediction in predictions]
        self.leaderboard_ = leaderboard(candidates, weights, weight, log_unit=table.log_unit)
        return predictions

    def _calibrate(
        self, units: PortfolioUnits, predictions: list[Prediction], changes: Floats, places: Indices
    ) -> None:
        """Sets what widens predictions away from the data, and what held-out rows say of it.

        ``changes`` says how much predictions change with each feature, (d,); ``places`` where the
        rows stand among those that were given, (N,).
        """
        table = units.table
        self.feature_weight_ = feature_weights(changes)
        growth = growth_of(table.x, table.y, self.feature_weight_)
        neighbours = growth.proximity_
        neighbours.reference_rows_ = places[neighbours.reference_rows_]
        rows, values = held_out_rows(table, units.parts), growth.leave_one_out()
        y, upper = table.targets(rows)
        usual = HeldOutEvidence(
            predictions, y, table.weight[rows], *growth_at(growth, values[rows]), upper
        )
        shifted = units.unlike_the_rest(self.members_, self.scale_, changes)
        tolerance = choose_tolerance(usual, [part for _, part in shifted], seed=units.seed)
        levels = Levels.needed([(rows, usual)], tolerance)
        rehearsed = Levels.needed(shifted, tolerance)
        self.widening_ = Widening(
            growth,
            tolerance,
            levels.sorted(),
            rehearsed.sorted(),
            self.scale_.scale,
            ends_of(self.bounds),
        )

        def ranked(evidence: HeldOutEvidence, own: Indices) -> Distribution:
            """Intervals by rank among what all but the ``own`` rows needed."""
            return self.widening_.ranked(
                evidence.distribution(tolerance),
                levels.sorted(without=own),
                rehearsed.sorted(without=own),
                unlike_usual(evidence.growth),
            )

        def known(rows: Indices, some: Indices) -> Indices:
            """Those of some of the rows that have a target to compare with."""
            return some[table.measured[rows[some]]]

        def held_out(some: Indices, own: Indices) -> HeldOut:
            measured = known(rows, some)
            dist, value = ranked(usual[measured], own), values[rows[measured]]
            return HeldOut(places[rows[measured]], dist, value, growth.is_unusual(value))

        self.held_out_ = held_out(np.arange(len(rows)), rows[:0])
        self.judged_ = tuple(
            held_out(own, rows[own])
            for own in own_places(rows, units.parts)
            if len(known(rows, own))
        )
        self.shifted_ = tuple(
            # back from the logarithm of growth
            HeldOut(
                places[own[some]],
                ranked(part[some], own),
                np.expm1(part.growth[some]),
                np.ones(len(some), bool),
            )
            for own, part in shifted[:1]
            if len(some := known(own, np.arange(len(own))))
        )

    def _predictions(self, x: Floats, fold: int | None = None) -> list[Prediction]:
        """What each member predicts, by the models of one fold or of all."""
        return [
            Prediction.of(member, member.model.components(x, fold), self.scale_)
            for member in self.members_
        ]

    def _evidence(
        self, table: TrainingTable, rows: Indices, fold: int, put: Sequence[Blank]
    ) -> HeldOutEvidence:
        """Held-out rows as the models of one fold predict them with some blanks put in."""
        rows = rows[table.judging[rows]]
        x, (y, upper) = blanked(table.x[rows], put), table.targets(rows)
        growth = self.widening_.growth
        growths = growth_at(growth, growth(x))
        return HeldOutEvidence(self._predictions(x, fold), y, table.weight[rows], *growths, upper)

    def _predictive(self, X: Floats) -> Distribution:
        return self._answer(X)[0]

    def answer(self, X: Any, *, as_known: bool = False) -> tuple[Distribution, Bools]:
        """Predictive distributions, and which rows are unusual, with one search for neighbours.

        ``as_known`` does not widen them for features that say nothing.

        **Shape**: X (N, d) → (N,) each.
        """
        return self._answer(self._checked(X), as_known=as_known)

    def _answer(self, X: Floats, *, as_known: bool = False) -> tuple[Distribution, Bools]:
        growth = self.widening_.growth
        values = growth.cut_off(X)
        dist = self.widening_.answer(
            self._predictions(X), X, growth_at(growth, values), as_known=as_known
        )
        return dist, self.widening_.is_unusual(values, X)

    @property
    def growth_(self) -> Growth:
        """How far rows are from the training rows, in units in which these differ."""
        return self.widening_.growth

    @property
    def proximity_(self) -> Proximity:
        return self.growth_.proximity_

    @property
    def blanks_(self) -> Blanks:
        """How much wider rows are whose features say nothing."""
        return self.widening_.blanks

    def is_unusual(self, X: Any) -> Bools:
        """Whether rows lie farther from the training rows than all but 5 % of these do.

        So are rows with features that say nothing (a category that no training row had), where that
        widens their answer.

        **Shape**: X (N, d) → (N,).
        """
        x = self._checked(X)
        return self.widening_.is_unusual(self.growth_.cut_off(x), x)

    def explain_uncertainty(
        self, X: Any, *, coverage: float = 0.95, permutations: int = 0, random_state: int = 0
    ) -> Receipts:
        """Why each interval is as wide as it is: its parts, by feature, and what would narrow it.

        Noise, disagreement and distance, and distance by feature, are exact and quick. With
        ``permutations`` (64 are many), noise and disagreement are split by feature too, as Shapley
        values with standard errors: about ``permutations`` × (features + 1) predictions per row.

        **Shape**: X (N, d).
        """
        return array_receipts(
            self.predict_dist,
            self.proximity_,
            X,
            coverage=coverage,
            permutations=permutations,
            seed=random_state,
        )

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {k: v for k, v in state.items() if k not in _EVIDENCE}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags
