"""Which columns matter: those without which rows that were left out become less likely.

A column of noise does harm in a small table: networks learn from it what is not there, and a row
that is unusual in nothing else looks unusual. So each column is tested. Cheap models are
trained on the folds, on normal scores of the targets, so that no outlier decides; a column is
shuffled among rows that they have not seen, and the mean loss of log density over its standard
error is a statistic t. If the column says nothing that the others do not say, shuffled rows are as
likely as before, and t is about standard normal. A column may also say how noisy a row is: so may
the rank correlation of the best model's absolute errors with the column, and with its distance
from the column's median.

A column is left out if chance would often give such statistics, and if the best model does as well
when it is trained without all such columns: several that say little may say something together. If
it does not, only columns with still smaller statistics are. Columns that hardly vary are never left
out: no test could show that they matter.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.linalg import LinAlgError
from scipy.special import ndtri

from accord._types import Bools, Floats, Indices
from accord.portfolio.components import bounded_below
from accord.portfolio.crossfit import Candidate, TrainingTable, held_out_rows, try_recipe
from accord.portfolio.folds import Part, at_most
from accord.portfolio.recipes import BoostingRecipe, GaussianProcessRecipe, NetworkRecipe, Recipe
from accord.training import DivergedError

# Below so many rows a test finds little; more rows and columns are not needed or take long.
_FEWEST_ROWS, _MOST_ROWS, _MOST_COLUMNS = 200, 4_000, 150
_GAUSSIAN_PROCESS_COLUMNS = 60
_LINE = NetworkRecipe("line", "linear", hidden=(), steps=600, learning_rate=1e-2, seeds=1)
_NETWORK = NetworkRecipe("screen", "two layers of 128, trained briefly", steps=400, seeds=1)
# Up to so many rows a network is trained, and the process knows all of them. From more rows trees
# learn more in about the same time, and the process knows some, so that it takes no longer.
# Both are needed: errors that are mostly a model's own lack of fit say nothing about the noise.
_FEW_ROWS, _SOME_ROWS = 1_000, 500
_TREES = BoostingRecipe(trees=60, rate=0.2)
# Held-out rows that columns are shuffled among, and how often: less often where columns are many.
_SHUFFLED_ROWS, _MOST_SHUFFLES, _SHUFFLED_COLUMNS = 1_000, 5, 100
# Noise has a larger statistic once in 160 times; where a model does worse without such columns,
# columns are left out that are below the second: noise is once in 6 times above it.
_SIGNIFICANT, _LEAST_SIGNIFICANT = 2.5, 1.0
# Mean nats on held-out rows that a model may lose without columns, and count as good.
_AS_GOOD = 0.002
# So many deviations of a rank correlation, of either sign and the larger of two, are as rare.
_RANKED = 3.2
# Rows that must differ from a column's most common value for a test to mean anything.
_VARIED_ROWS = 10


def screened(
    table: TrainingTable, parts: Sequence[Part], *, seed: int, overwrite: bool
) -> tuple[TrainingTable, Indices]:
    """The table without the columns that do not matter, and which these are.

    With ``overwrite``, the rows themselves are changed.
    """
    idle = ~columns_that_matter(table, parts, seed=seed)
    kept = table.without(idle, overwrite=overwrite) if idle.any() else table
    return kept, np.flatnonzero(idle)


def notes_on_screening(n_left_out: int, n: int) -> tuple[str, ...]:
    """That some of the features are left out, where some are."""
    if not n_left_out:
        return ()
    words = "features is" if n_left_out == 1 else "features are"
    return (f"{n_left_out} of {n} {words} left out: held-out rows are predicted as well without.",)


def columns_that_matter(table: TrainingTable, parts: Sequence[Part], *, seed: int) -> Bools:
    """Which columns the models of a portfolio should see, (d,)."""
    varies = table.varies
    n, d = len(table), int(varies.sum())
    matter = np.ones(len(varies), bool)
    testable = table.measured.all() and np.ptp(table.y) > 0
    if n < _FEWEST_ROWS or not 0 < d <= _MOST_COLUMNS or not testable:
        return matter
    sample = _Sample.of(table, parts, at_most(np.arange(n), _MOST_ROWS, seed), varies, seed)
    tried = sample.tried(_recipes(*sample.table.x.shape))
    if not tried:
        return matter
    best = max(tried, key=lambda candidate: sample.score(bounded_below(candidate.log_density))[0])
    statistics = [sample.statistics(candidate) for candidate in tried]
    largest = np.stack([*statistics, sample.noise_statistics(best)]).max(axis=0)
    largest[~_varied(sample.table.x)] = np.inf
    for least in (_SIGNIFICANT, _LEAST_SIGNIFICANT):
        kept = largest > least
        if not kept.all() and sample.without(~kept).does_as_well_as(best):
            matter[varies] = kept
            break
    return matter


def _recipes(n: int, d: int) -> list[Recipe]:
    few = n <= _FEW_ROWS
    recipes: list[Recipe] = [_LINE, _NETWORK if few else _TREES]
    if d <= _GAUSSIAN_PROCESS_COLUMNS:
        recipes.append(GaussianProcessRecipe(kernels=1, rows=_FEW_ROWS if few else _SOME_ROWS))
    return recipes


def _shuffles(recipe: Recipe, n: int, d: int) -> int:
    if n > _FEW_ROWS and isinstance(recipe, GaussianProcessRecipe):
        return 1  # each takes as long as all of those of another model
    return int(np.clip(_SHUFFLED_COLUMNS // d, 1, _MOST_SHUFFLES))


def _varied(x: Floats) -> Bools:
    """Which columns have enough rows besides those of their most common value."""
    counts = [np.unique(column, return_counts=True)[1] for column in x.T]
    return np.array([own.sum() - own.max() >= _VARIED_ROWS for own in counts], bool)


@dataclass(frozen=True)
class _Sample:
    """Some rows of a table with their folds, in the columns that vary."""

    table: TrainingTable
    parts: Sequence[Part]
    seed: int

    @staticmethod
    def of(
        table: TrainingTable, parts: Sequence[Part], rows: Indices, columns: Bools, seed: int
    ) -> "_Sample":
        def within(own: Indices) -> Indices:
            return np.searchsorted(rows, np.intersect1d(own, rows))

        own = [Part(within(part.train), within(part.test)) for part in parts]
        x = table.x[np.ix_(rows, np.flatnonzero(columns))]
        y, weight = normal_scores(table.y[rows]), table.weight[rows]
        some = TrainingTable(x, y, weight, table.measured[rows])
        return _Sample(some, [p for p in own if len(p.train) and len(p.test)], seed)

    def without(self, columns: Bools) -> "_Sample":
        return replace(self, table=self.table.without(columns))

    def tried(self, recipes: Sequence[Recipe]) -> list[Candidate]:
        """Those of the recipes that can be trained on these rows."""
        found = []
        for recipe in recipes:
            with suppress(LinAlgError, DivergedError):
                found.append(
                    try_recipe(recipe, self.table, self.parts, seed=self.seed, listener=None)
                )
        return found

    def does_as_well_as(self, other: Candidate) -> bool:
        """Whether held-out rows are as likely when the same recipe is trained on this sample."""
        before = bounded_below(other.log_density)
        after = [bounded_below(own.log_density) for own in self.tried([other.recipe])]
        return any(self.score(own - before)[0] >= -_AS_GOOD for own in after)

    def score(self, values: Floats) -> tuple[float, float]:
        """Weighted mean of the held-out rows' values and its standard error."""
        return _mean_and_error(values, self.table.weight[held_out_rows(self.table, self.parts)])

    def statistics(self, tried: Candidate) -> Floats:
        """t of each column, (d,)."""
        table, random = self.table, np.random.default_rng(self.seed)
        used = held_out_rows(table, self.parts)
        some = at_most(used, _SHUFFLED_ROWS, self.seed)
        own = [np.intersect1d(part.test, some) for part in self.parts]
        asked = [(fold, rows) for fold, rows in enumerate(own) if len(rows)]
        n_shuffles = _shuffles(tried.recipe, *table.x.shape)
        losses = []
        for fold, rows in asked:
            before = bounded_below(tried.log_density[np.searchsorted(used, rows)])
            after = [self._shuffled(tried, fold, rows, random) for _ in range(n_shuffles)]
            losses.append(before - np.mean(after, axis=0))
        loss, weight = np.concatenate(losses, axis=1), table.weight[np.concatenate(own)]
        found = [_mean_and_error(column, weight) for column in loss]
        return np.array([mean / error if error > 0 else 0.0 for mean, error in found])

    def noise_statistics(self, tried: Candidate) -> Floats:
        """t of the rank correlation of absolute errors with each column or its middle, (d,)."""
        used = held_out_rows(self.table, self.parts)
        z, x = tried.scale.scaled(self.table.y[used]), self.table.x[used]
        ranks = normal_scores(np.abs(z - tried.held_out.center))
        both = np.stack([x, np.abs(x - np.median(x, axis=0))])
        found = np.array([[_correlation(ranks, column) for column in own.T] for own in both])
        return np.asarray(np.abs(found).max(axis=0) * np.sqrt(len(used)) * _SIGNIFICANT / _RANKED)

    def _shuffled(
        self, tried: Candidate, fold: int, rows: Indices, random: np.random.Generator
    ) -> Floats:
        """log density of rows with each column in turn shuffled among them; (d, n)."""
        x, y = self.table.x[rows], self.table.y[rows]
        n, d = x.shape
        copies = np.tile(x, (d, 1, 1))
        for column in range(d):
            copies[column, :, column] = random.permutation(x[:, column])
        part = tried.model.components(copies.reshape(n * d, d), fold)
        density = tried.calibration.log_density(part, np.tile(tried.scale.scaled(y), d))
        slope = tried.scale.log_slope(y) + self.table.log_unit
        return bounded_below(density.reshape(d, n) + slope)


def normal_scores(values: Floats) -> Floats:
    """Quantiles of the standard normal at the ranks of values; equal values have equal ones."""
    from scipy.stats import rankdata  # a second to import, which a prediction can do without

    return np.asarray(ndtri((rankdata(values) - 0.5) / len(values)))


def _correlation(a: Floats, column: Floats) -> float:
    b = normal_scores(column)
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0 else 0.0


def _mean_and_error(values: Floats, weight: Floats) -> tuple[float, float]:
    share = weight / weight.sum()
    mean = float(share @ values)
    return mean, float(np.sqrt(np.square(share) @ np.square(values - mean)))
