"""The units of work of a portfolio: a recipe on all folds, and a chosen model on shifted parts.

Each is a function of the table, the folds, the recipe and the seed alone. Recipes do not depend on
each other, nor do the chosen models; only the choice between them needs all recipes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

from numpy.linalg import LinAlgError

from accord._code import code_digest
from accord._types import Floats, Indices
from accord.portfolio.blend import Member, Prediction
from accord.portfolio.crossfit import Candidate, Clock, TrainingTable, learnt_from, try_recipe
from accord.portfolio.encoding import TargetScale
from accord.portfolio.evidence import HeldOutEvidence
from accord.portfolio.folds import ASKED_ROWS, Part, at_most, shifted_parts, thinned
from accord.portfolio.local import SHIFTED_ROWS, feature_weights, growth_at, growth_of
from accord.portfolio.models import Model
from accord.portfolio.recipes import Effort, NetworkRecipe, Recipe
from accord.portfolio.streamed import MoreRows, most_work, trained_further
from accord.training import DivergedError, Listener
from accord.work import Checkpoint, Done, InProcess, Workers, carry_out, digest

Shared = tuple[TrainingTable, list[Part]]

# With fewer rows, processes would start for longer than they work; each has a copy of the table.
_PROCESS_ROWS: dict[Effort, int] = {"quick": 3_000, "standard": 250, "best": 150}
_MOST_PROCESS_ROWS = 200_000
# Rows that say how usual rows are to models of a shifted part.
_GROWTH_ROWS = 50_000
# So many shifted parts are looked at, however little time is left.
_FEWEST_SHIFTED = 2
# A recipe that ends like this is left out, and the others are tried.
_UNTRAINABLE = (LinAlgError, DivergedError)


def pays_for_processes(effort: Effort, n: int) -> bool:
    """Whether the units on n rows are worth the start of processes of their own."""
    return _PROCESS_ROWS[effort] <= n <= _MOST_PROCESS_ROWS


@dataclass(frozen=True)
class Tried:
    """The recipes that could be trained, and what is to be said of the others.

    ``n_seen`` of ``n_rows`` is how many rows they have seen, where these are not the table's.
    """

    candidates: list[Candidate]
    notes: tuple[str, ...]
    n_seen: int = 0
    n_rows: int = 0


@final
class PortfolioUnits:
    """Does the units of one fit: by whom, and kept where."""

    def __init__(
        self,
        table: TrainingTable,
        parts: Sequence[Part],
        *,
        seed: int,
        clock: Clock,
        workers: Workers,
        checkpoint: Checkpoint | None,
    ) -> None:
        self.parts, self.seed = list(parts), seed
        self.clock, self.workers, self.checkpoint = clock, workers, checkpoint
        self._seconds: dict[str, float] = {}
        self.take(table)

    def take(self, table: TrainingTable) -> None:
        """From now on the units are of this table."""
        self.table = table
        self._shared = self.workers.share((table, self.parts))
        kept = self.checkpoint is not None
        self._about = digest(code_digest(), table, self.parts, self.seed) if kept else ""

    def try_recipes(self, recipes: Sequence[Recipe], more: MoreRows | None = None) -> Tried:
        """The recipes, each trained on all folds, as far as time allows.

        If networks are to be trained on ``more`` rows later, time is left for that.
        The cheapest are begun first where time may run out, or one is done after the other;
        several workers begin with the longest, so that none waits long for the last.
        """
        size = (*self.table.x.shape, len(self.parts))
        recipes = sorted(recipes, key=lambda recipe: recipe.work(*size))
        works = [recipe.work(*size) for recipe in recipes]
        later = 0.0 if more is None else most_work(more, recipes, *size[1:])
        self.clock.plan(works, later)
        order = list(range(len(recipes)))
        if self.clock.budget is None and not self.workers.in_process:
            order.reverse()
        found: dict[int, Candidate] = {}
        notes: list[str] = []
        skipped: list[str] = []

        def begin(place: int) -> tuple[Any, ...] | None:
            work = works[order[place]]
            if found and not self.clock.affords(work):
                skipped.append(recipes[order[place]].name)
                return None
            return recipes[order[place]], self._shared, self.seed, self._listener(work)

        for done in self._carry_out(
            _candidate, Candidate, [recipes[number] for number in order], begin
        ):
            number = order[done.number]
            took = done.value.seconds if done.error is None and not done.again else None
            self.clock.end(works[number], took)
            notes += _taken(done, recipes[number], number, found)
        self._seconds |= {candidate.recipe.name: candidate.seconds for candidate in found.values()}
        if skipped:
            notes.append(f"Not tried, for lack of time: {', '.join(skipped)}.")
        return Tried([found[number] for number in sorted(found)], tuple(notes))

    def train_further(self, tried: Sequence[Candidate], more: MoreRows) -> Tried:
        """The networks among what was tried, trained on all rows, in this process.

        What they have learnt is kept every minute, and a run that was stopped goes on from there.
        """
        size = (self.table.x.shape[1], len(self.parts))
        networks = [(c, c.recipe) for c in tried if isinstance(c.recipe, NetworkRecipe)]
        if not networks:
            return Tried([], ("No network could be trained: of all rows, a sample is used.",))
        share = self.clock.affordable([more.work(recipe, *size) for _, recipe in networks])
        more = replace(more, share=share)
        networks = [(c, recipe) for c, recipe in networks if more.n_chunks(recipe)]
        if not networks:
            note = f"There was no time to train on all {more.n_rows:,} rows: a sample is used."
            return Tried([], (note,))
        works = [more.work(recipe, *size) for _, recipe in networks]
        questions = [(more.key, more.n_chunks(recipe), recipe) for _, recipe in networks]

        def begin(place: int) -> tuple[Any, ...]:
            shared, listener = (self.table, self.parts), self.clock.begin(works[place])
            state = None
            if self.checkpoint is not None:
                state = self.checkpoint, digest("unfinished", self._about, questions[place])
            return networks[place][0], shared, more, self.seed, listener, state

        units = self._carry_out(_further, Candidate, questions, begin, workers=InProcess())
        found: dict[int, Candidate] = {}
        notes: list[str] = []
        for done in units:
            self.clock.end(works[done.number])
            notes += _taken(done, networks[done.number][1], done.number, found)
        kept = [found[number] for number in sorted(found)]
        n_seen = max(more.n_seen(recipe) for _, recipe in networks)
        return Tried(kept, tuple(notes), n_seen, more.n_rows)

    def fit_again(self, members: Sequence[Member], parts: Sequence[Part]) -> list[Model]:
        """The members' models on other parts of the table."""
        shared = self.workers.share(list(parts))
        found: dict[int, Model] = {}

        def begin(place: int) -> tuple[Any, ...]:
            listener = self.clock.shifting(len(members)) if self.workers.in_process else None
            return members[place], self._shared, shared, self.seed, listener

        questions = [(member.model.recipe, list(parts)) for member in members]
        for done in self._carry_out(_fit_again, object, questions, begin):
            if done.error is not None:
                raise done.error
            found[done.number] = done.value
            self.clock.shifted(len(found), len(members))
        return [found[number] for number in range(len(members))]

    def unlike_the_rest(
        self, members: Sequence[Member], scale: TargetScale, changes: Floats
    ) -> list[tuple[Indices, HeldOutEvidence]]:
        """Parts unlike the rest, predicted by the members' models trained without them.

        ``changes`` says how much predictions change with each feature, (d,).
        """
        table, seed = self.table, self.seed
        if len(table) < SHIFTED_ROWS:
            return []
        parts = thinned(shifted_parts(table.x, changes, seed=seed), ASKED_ROWS, seed=seed)
        judging = table.judging
        parts = [p for p in parts if judging[p.test].any() and table.measured[p.train].any()]
        parts = parts[: self._number_in_time(members, len(parts))]
        models = self.fit_again(members, parts)
        found = []
        for fold, part in enumerate(parts):
            test = part.test[judging[part.test]]
            predictions = [
                Prediction.of(member, model.components(table.x[test], fold), scale)
                for member, model in zip(members, models, strict=True)
            ]
            near = at_most(part.train, _GROWTH_ROWS, seed)
            growth = growth_of(table.x[near], table.y[near], feature_weights(changes))
            growths = growth_at(growth, growth(table.x[test]))
            y, upper = table.targets(test)
            evidence = HeldOutEvidence(predictions, y, table.weight[test], *growths, upper)
            found.append((test, evidence))
        return found

    def _number_in_time(self, members: Sequence[Member], most: int) -> int:
        """How many parts the members can be trained on; as long as a fold took them, they take."""
        seconds = sum(self._seconds.get(member.model.recipe.name, 0.0) for member in members)
        at_a_time = len(self.parts) * min(self.workers.count, len(members))
        return max(_FEWEST_SHIFTED, self.clock.fitting(seconds / at_a_time, most))

    def _carry_out(
        self,
        unit: Callable[..., Any],
        kind: type[Any],
        questions: Sequence[Any],
        begin: Callable[[int], tuple[Any, ...] | None],
        workers: Workers | None = None,
    ) -> Iterator[Done]:
        workers = workers or self.workers
        keys = [
            "" if self.checkpoint is None else digest(unit.__name__, self._about, question)
            for question in questions
        ]
        return carry_out(unit, keys, begin, workers=workers, checkpoint=self.checkpoint, kind=kind)

    def _listener(self, work: float) -> Listener | None:
        return self.clock.begin(work) if self.workers.in_process else None


def rows_seen(
    members: Sequence[Member], further: Tried, n_sample: int
) -> tuple[int, tuple[str, ...]]:
    """How many rows a blend has learnt from, and what to say of it and of what was tried."""
    if not further.candidates:
        return n_sample, further.notes
    seen, of = further.n_seen, f"{further.n_rows:,} rows"
    rows = f"all {of}" if seen == further.n_rows else f"{seen:,} of {of}, for lack of time"
    sample = f"a sample of {n_sample:,}"
    if {member.name for member in members}.isdisjoint(c.recipe.name for c in further.candidates):
        note = f"Networks that were trained on {rows} did no better than those trained on {sample}."
        return n_sample, (*further.notes, note)
    note = f"Networks were trained on {rows}; chosen and judged on {sample}."
    return seen, (*further.notes, note)


def _taken(done: Done, recipe: Recipe, number: int, found: dict[int, Candidate]) -> list[str]:
    """Put a recipe that was tried among those found; what to say of one that cannot be trained."""
    if isinstance(done.error, _UNTRAINABLE):
        return [f"The model '{recipe.name}' could not be trained: {done.error}"]
    if done.error is not None:
        raise done.error
    found[number] = done.value
    return []


def _candidate(recipe: Recipe, shared: Shared, seed: int, listener: Listener | None) -> Candidate:
    table, parts = shared
    return try_recipe(recipe, table, parts, seed=seed, listener=listener)


def _further(
    tried: Candidate,
    shared: Shared,
    more: MoreRows,
    seed: int,
    listener: Listener | None,
    kept: tuple[Checkpoint, str] | None,
) -> Candidate:
    state, keep = None, None
    if kept is not None:
        checkpoint, key = kept
        state, keep = checkpoint.get(key, dict), partial(checkpoint.put, key)
    return trained_further(
        tried, *shared, more, seed=seed, listener=listener, state=state, keep=keep
    )


def _fit_again(
    member: Member, shared: Shared, parts: list[Part], seed: int, listener: Listener | None
) -> Model:
    table, _ = shared
    rows = table.scaled(member.scale)
    trains = learnt_from(member.model.recipe, table, rows, parts)
    return member.model.fit_again(rows, trains, seed=seed, listener=listener)
