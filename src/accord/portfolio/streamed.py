"""Networks trained further on all rows of a table of which only a sample fits in memory.

The sample has decided everything: encodings, folds, recipes and their weights. What it chose goes
on to learn, from where the sample left it, on all rows in a random order, chunk after chunk. Rows
that a fold was held out with are kept from its networks here, too: the sample's own rows, their
copies, their groups and their stretch of time. So the same held-out rows judge the networks before
and after, and choose between them.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from accord._types import Bools
from accord.portfolio.crossfit import (
    Candidate,
    LeaderboardEntry,
    TrainingTable,
    judged_out_of_fold,
)
from accord.portfolio.encoding import ScaledRows, TargetScale, alone_far_out, extreme
from accord.portfolio.folds import Part
from accord.portfolio.networks import NetworkModel, batch_size
from accord.portfolio.recipes import NetworkRecipe, Recipe
from accord.tables import Records, ShuffledRows
from accord.training import Listener

# About so many steps are taken on a stream, as far as batches of these sizes allow.
_STEPS = 4_000
_LARGEST_BATCH = 4_096
_KNOWN = ("weight", "tolerance", "lower", "upper")


def record_type(n_features: int, known: Iterable[str]) -> np.dtype[Any]:
    """A row on disk: features, target, what else is known of it, and which row it goes with.

    ``like`` is the place in the sample of a row that it is held out together with, −1 for none.
    """
    more = [(name, np.float64) for name in _KNOWN if name in set(known)]
    return np.dtype(
        [("x", np.float32, (n_features,)), ("y", np.float64), ("like", np.int32), *more]
    )


@final
@dataclass(frozen=True)
class MoreRows:
    """All rows of a table in a random order, and how often networks go through them.

    That is ``passes`` times, and more often where a recipe's own number of steps takes more.
    ``key`` tells the rows from all others. ``share`` of this work is done where time is short:
    chunks are alike, so that the first ones are a random sample of all rows.
    """

    rows: ShuffledRows
    n_rows: int
    key: str = ""
    passes: int = 1
    share: float = 1.0

    def n_chunks(self, recipe: NetworkRecipe) -> int:
        """Chunks that networks learn from; 0 where there is no time."""
        for_its_steps = round(recipe.steps * self.batch_size(recipe) / max(1, self.n_rows))
        return int(self.share * max(self.passes, for_its_steps) * self.rows.n_parts)

    def n_seen(self, recipe: NetworkRecipe) -> int:
        """Rows that are learnt from, each at least once; about, where time is short."""
        return round(min(1.0, self.n_chunks(recipe) / self.rows.n_parts) * self.n_rows)

    def batch_size(self, recipe: NetworkRecipe) -> int:
        """Rows of a step: more where there are many, since larger products are quicker."""
        wished = 2 ** round(math.log2(max(1, self.passes * self.n_rows) / _STEPS))
        return int(np.clip(wished, batch_size(recipe, self.n_rows), _LARGEST_BATCH))

    def work(self, recipe: NetworkRecipe, n_features: int, n_folds: int) -> float:
        """What training takes, in the unit of the recipes."""
        batch, passes = self.batch_size(recipe), self.n_chunks(recipe) / self.rows.n_parts
        longer = replace(recipe, steps=round(passes * self.n_rows / batch), largest_batch=batch)
        return longer.work(30 * batch, n_features, n_folds)


def most_work(more: MoreRows, recipes: Iterable[Recipe], n_features: int, n_folds: int) -> float:
    """That of the network which takes longest: about what is to be expected of a blend."""
    works = [
        more.work(recipe, n_features, n_folds)
        for recipe in recipes
        if isinstance(recipe, NetworkRecipe)
    ]
    return max(works, default=0.0)


def worth_more(tried: Sequence[Candidate], board: Sequence[LeaderboardEntry]) -> list[Candidate]:
    """The networks that were selected, or else the best of all, the best first."""
    by_name = {c.recipe.name: c for c in tried if isinstance(c.recipe, NetworkRecipe)}
    networks = [entry for entry in board if entry.name in by_name]
    chosen = [entry for entry in networks if entry.weight > 0] or networks[:1]
    return [by_name[entry.name] for entry in chosen]


@final
class FoldedStream:
    """The stream of one training: chunks in the order of its seed, and who may see which rows."""

    def __init__(
        self,
        more: MoreRows,
        table: TrainingTable,
        parts: Sequence[Part],
        scale: TargetScale,
        *,
        seed: int,
    ) -> None:
        self.more, self.scale, self.seed = more, scale, seed
        self.n_chunks, self.censored = more.n_chunks, table.lower is not None
        self.batch_size = more.batch_size
        # the last place is that of rows that go with none of the sample
        self._outside = np.ones((len(parts), len(table) + 1), bool)
        for fold, part in enumerate(parts):
            self._outside[fold, :-1] = False
            self._outside[fold, part.train] = True
        self._mean_weight = float(table.weight.mean())
        z = scale.scaled(table.y)
        self._extremes_are_errors = bool((alone_far_out(z) == extreme(z)).all())

    def chunk(self, number: int) -> tuple[ScaledRows, Bools]:
        """Rows in the order in which they are learnt from, and by which folds; (folds, n)."""
        turn, place = divmod(number, self.more.rows.n_parts)
        part = np.random.default_rng([self.seed, turn]).permutation(self.more.rows.n_parts)[place]
        records = self.more.rows.part(int(part))
        order = np.random.default_rng([self.seed, turn, int(part) + 1]).permutation(len(records))
        table = self._table(records[order])
        rows = table.scaled(self.scale)
        kept = np.ones(len(table), bool)
        if self._extremes_are_errors:
            kept = ~(extreme(rows.z) & table.measured)
        more = {name: values[kept] for name, values in rows.more.items()}
        seen = self._outside[:, records["like"][order][kept]]
        return ScaledRows(rows.x[kept], rows.z[kept], rows.weight[kept], more), seen

    def _table(self, records: Records) -> TrainingTable:
        known: dict[str, Any] = {
            name: records[name] for name in _KNOWN if name in (records.dtype.names or ())
        }
        weight = known.pop("weight", np.ones(len(records))) / self._mean_weight
        measured = np.ones(len(records), bool)
        if "lower" in known:
            measured = known["lower"] == known["upper"]
        x = records["x"].astype(np.float64)
        return TrainingTable(x, records["y"], weight, measured, 0.0, **known)


def trained_further(
    tried: Candidate,
    table: TrainingTable,
    parts: Sequence[Part],
    more: MoreRows,
    *,
    seed: int,
    listener: Listener | None = None,
    state: dict[str, Any] | None = None,
    keep: Callable[[dict[str, Any]], None] | None = None,
) -> Candidate:
    """A recipe that was tried on the sample, trained further, and judged on the same rows."""
    start = time.perf_counter()
    model, recipe = tried.model, tried.recipe
    if not isinstance(model, NetworkModel) or not isinstance(recipe, NetworkRecipe):
        raise TypeError(f"only networks are trained further, got {recipe.name}.")
    rows = "all rows" if more.n_chunks(recipe) >= more.rows.n_parts else "more rows"
    recipe = replace(
        recipe, name=f"{recipe.name}, {rows}", about=f"{recipe.about}; trained further on {rows}"
    )
    stream = FoldedStream(more, table, parts, tried.scale, seed=seed)
    model = model.further(recipe, stream, seed=seed, listener=listener, state=state, keep=keep)
    scaled = table.scaled(tried.scale)
    return judged_out_of_fold(
        recipe, model, table, scaled, tried.scale, parts, seed=seed, start=start
    )
