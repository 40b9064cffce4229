"""The configurations that a portfolio tries, and how many of them for which effort.

No single recipe wins on tables: smooth functions want long training on few features, thresholds a
piecewise linear encoding, noise a short training or a line, a linear table the exact line. What is
best for the table at hand is found out of fold. The constants are general: they were settled on
training rows of many tables of different kinds, none for one of them. benchmarks/portfolio.py
measures them on test rows.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, TypeVar

import numpy as np

from accord._types import Floats
from accord.portfolio.encoding import TargetTransform, is_skewed
from accord.training import Activation

Effort = Literal["quick", "standard", "best"]
EFFORTS: tuple[Effort, ...] = ("quick", "standard", "best")


@dataclass(frozen=True)
class NetworkRecipe:
    """Networks with K bell curves per row.

    ``bins`` are those of the piecewise linear encoding of a feature, 0 for none; ``tolerance`` is
    the ε of training in scaled target units, 0 for likelihood; ``steps`` is the length of training.
    The last ``scaled`` features are on a scale of their own already.
    """

    name: str
    about: str
    hidden: tuple[int, ...] = (128, 128)
    activation: Activation = "silu"
    bins: int = 0
    components: int = 1
    tolerance: float = 0.0
    transform: TargetTransform = "identity"
    trimmed: bool = False
    dropout: float = 0.0
    steps: int = 2_500
    learning_rate: float = 3e-3
    weight_decay: float = 0.01
    largest_batch: int = 256
    seeds: int = 2
    scaled: int = 0

    def with_one_seed(self) -> "NetworkRecipe":
        return replace(self, seeds=1)

    def work(self, n: int, d: int, n_folds: int) -> float:
        """About how long it takes on n rows of d features: the same unit for all recipes."""
        sizes = (d * (1 + self.bins), *self.hidden, 3 * self.components)
        parameters = sum(a * b for a, b in pairwise(sizes))
        batch = min(self.largest_batch, max(16, n / 30))
        # each step has a cost of its own, whatever it multiplies
        return self.steps * (n_folds * self.seeds * (batch + 3) * parameters + 4e6)


@dataclass(frozen=True)
class GaussianProcessRecipe:
    """A Gaussian process with a length per feature, or one for all where they are many.

    Its covariance is a sum of so many ``kernels``, and it knows at most so many ``rows``.
    """

    name: str = "Gaussian process"
    about: str = "exact, Matérn 5/2 kernels with lengths that are learnt"
    transform: TargetTransform = "identity"
    tolerance: float = 0.0
    trimmed: bool = False
    kernels: int = 3
    rows: int = 2_500

    def work(self, n: int, d: int, n_folds: int) -> float:
        rows, learnt = min(n, self.rows), min(n, 1_500)
        return 1e9 + 4e3 * self.kernels * learnt**2 + 0.5 * rows**3


@dataclass(frozen=True)
class CorrectedRecipe:
    """A Gaussian process, and networks that learn how unsure to be from its errors."""

    process: GaussianProcessRecipe
    network: NetworkRecipe
    name: str = "corrected process"
    about: str = "a Gaussian process, and networks that learn from its errors how large they are"
    transform: TargetTransform = "identity"
    tolerance: float = 0.0
    trimmed: bool = False

    def work(self, n: int, d: int, n_folds: int) -> float:
        return self.process.work(n, d, n_folds) + self.network.work(n, d + 1, n_folds)


@dataclass(frozen=True)
class BoostingRecipe:
    """Boosted trees of depth 5.

    ``columns`` is the share of them that a split may choose from, and ``shrinkage`` the penalty on
    a leaf's value. Training stops early on rows that it does not learn from; if steps are
    ``counted``, one fold does so, with more patience, and all learn that long from all their rows.
    """

    name: str = "trees"
    about: str = "boosted trees, and a second booster for the deviation"
    transform: TargetTransform = "identity"
    tolerance: float = 0.0
    trimmed: bool = False
    trees: int = 200
    rate: float = 0.08
    smallest_leaf: int = 8
    columns: float = 1.0
    shrinkage: float = 1.0
    counted: bool = False

    def work(self, n: int, d: int, n_folds: int) -> float:
        return n_folds * self.trees * (2e7 + 32.0 * n * d)


@dataclass(frozen=True)
class RidgeRecipe:
    """A Bayesian linear model; with ``bins`` also of the features' piecewise linear encoding.

    ``sparse`` takes the lasso's weights, of few features among many.
    """

    name: str
    about: str
    bins: int = 0
    sparse: bool = False
    transform: TargetTransform = "identity"
    tolerance: float = 0.0
    trimmed: bool = False

    def work(self, n: int, d: int, n_folds: int) -> float:
        rows, inputs = min(n, RIDGE_ROWS), d * (1 + self.bins)
        products = float(min(rows, inputs) ** 2 * max(rows, inputs))
        if self.sparse:
            return n_folds * (5e8 + 20.0 * products)
        # the singular values, and a cost of its own
        return 2e8 + n_folds * 5.0 * products

    def is_affordable(self, n: int, d: int) -> bool:
        """Whether it takes seconds, and its singular vectors a few megabytes, at most.

        A sparse line has a vector for each of the few features that it uses, and of few features,
        or few rows, nothing to choose.
        """
        inputs = d * (1 + self.bins)
        few = min(n, inputs) * inputs <= (_MOST_ENCODED if self.bins else _MOST_DIRECTIONS)
        if self.sparse:
            few |= n * d <= _MOST_CELLS
            return few and d >= _SPARSE_FEATURES and n >= _SPARSE_ROWS
        return few


Recipe = NetworkRecipe | GaussianProcessRecipe | CorrectedRecipe | BoostingRecipe | RidgeRecipe
_RecipeT = TypeVar("_RecipeT", NetworkRecipe, RidgeRecipe, CorrectedRecipe)

_LINE = NetworkRecipe(
    "line", "linear mean and deviation", hidden=(), steps=1_000, learning_rate=1e-2, seeds=1
)
_SHORT = NetworkRecipe("short", "two layers of 128, trained briefly: for noise", steps=600)
_SMOOTH = NetworkRecipe(
    "smooth",
    "two layers of 64, trained long: for smooth functions",
    hidden=(64, 64),
    steps=6_000,
    learning_rate=7e-3,
    weight_decay=0.0,
    largest_batch=128,
)
_THRESHOLDS = NetworkRecipe(
    "thresholds",
    "piecewise linear encoding with 16 bins: for thresholds",
    bins=16,
    dropout=0.2,
    steps=1_200,
    learning_rate=2e-3,
)
_MIXTURE = NetworkRecipe(
    "mixture",
    "five components per row, piecewise linear encoding with 16 bins",
    bins=16,
    components=5,
    dropout=0.15,
    learning_rate=1.5e-3,
)
_TOLERANT = replace(
    _THRESHOLDS,
    name="tolerant",
    about="as thresholds, trained to agree within a tenth of the spread",
    tolerance=0.1,
)
_FINE = replace(
    _MIXTURE,
    name="fine mixture",
    about="eight components per row, 48 bins, layers of 256, trained long",
    bins=48,
    components=8,
    hidden=(256, 256),
    learning_rate=1e-3,
    steps=5_000,
)

_OF_ERRORS = NetworkRecipe(
    "errors", "five components per row", components=5, dropout=0.2, steps=1_000, scaled=1
)

_MANY_TREES = BoostingRecipe(
    trees=1_500, rate=0.05, smallest_leaf=3, columns=0.5, shrinkage=3.0, counted=True
)

# Rows that a fold of a linear model learns from: a line is known well enough with these.
RIDGE_ROWS = 20_000
# Numbers in the singular vectors of a fold: with bins fewer, as wide tables have no use for them.
_MOST_DIRECTIONS, _MOST_ENCODED = 500_000, 200_000
_SPARSE_FEATURES, _SPARSE_ROWS = 20, 30
# Numbers in a table for which the lasso takes seconds per fold.
_MOST_CELLS = 2_000_000
_RIDGES = (
    RidgeRecipe("ridge", "linear and exact, with the uncertainty of its weights"),
    RidgeRecipe("additive", "as ridge, of a curve per feature with 8 bins, added up", bins=8),
    RidgeRecipe("sparse", "linear, of few features among many, by the lasso", sparse=True),
)

_BY_EFFORT: dict[Effort, tuple[NetworkRecipe, ...]] = {
    "quick": (_LINE, _SHORT, replace(_MIXTURE, steps=1_200)),
    "standard": (_LINE, _SHORT, _SMOOTH, _THRESHOLDS, _TOLERANT, _MIXTURE),
    "best": (_LINE, _SHORT, _SMOOTH, _THRESHOLDS, _TOLERANT, _MIXTURE, _FINE),
}
_SEEDS: dict[Effort, int] = {"quick": 1, "standard": 2, "best": 4}
# From this many rows on, the models of different folds are seeds enough.
_ONE_SEED_ROWS = 5_000
# Training is as long as a recipe says for this many rows, and longer for more.
_ORDINARY_ROWS = 1_500
_SHORTEST, _LONGEST = 0.5, 2.0
# Inputs of a network: an encoding gets fewer bins where features are many.
_MOST_INPUTS, _FEWEST_BINS = 2_000, 4
# Where there is no room for any, what lives from its encoding or from few features is not tried.
_FOR_WIDE = ("line", "short", "mixture")
_GAUSSIAN_PROCESS_FEATURES = 2_000
# Fewer rows than these say little of more than one kernel.
_ROWS_FOR_KERNELS = 500
# Rows that the means of a corrected process know, and rows of tables that it is tried on.
_CORRECTED_ROWS = 5_000
_MOST_CORRECTED_ROWS: dict[Effort, int] = {"quick": 2_500, "standard": 20_000, "best": 50_000}
_TREES_ROWS, _TREES_FEATURES = 100, 2_000
# From this many rows on, more and smaller steps of boosting pay.
_ROWS_FOR_MANY_TREES = 2_000
# From this many rows on, there is so much to learn that long training pays.
_ROWS_FOR_FINE = 20_000
# Trees make up for the short training of "quick" from so many rows on; beyond, they are slow.
_ROWS_FOR_QUICK_TREES = range(5_000, 50_001)


def recipes_for(
    effort: Effort, x: Floats, y: Floats, *, censored: bool = False, rounding: float = 0.0
) -> list[Recipe]:
    """The recipes to try on a table.

    ``rounding`` is half the step of targets that come in steps, in scaled units. Where some are
    ``censored``, y has what is known of them.

    **Shape**: x (N, d), y (N,) or fewer.
    """
    n, d = x.shape
    networks = [
        _sized(recipe, effort, n, d)
        for recipe in _BY_EFFORT[effort]
        if not _is_wide(d) or recipe.name in _FOR_WIDE
    ]
    if rounding:
        networks = [r if not r.tolerance else _for_rounded(r, rounding) for r in networks]
    # how long the tail of censored targets is cannot be seen
    if is_skewed(y) or (censored and y.min() > 0):
        networks.append(_of_logarithm(networks[-1], "logarithm"))
    if effort == "standard" and n >= _ROWS_FOR_FINE and not _is_wide(d):
        networks.append(_sized(_FINE, effort, n, d))
    recipes: list[Recipe] = list(networks)
    if not censored:
        recipes += _ridges(x, y)
    enough = n in _ROWS_FOR_QUICK_TREES if effort == "quick" else n >= _TREES_ROWS
    if enough and not censored and d <= _TREES_FEATURES:
        recipes.append(_MANY_TREES if n >= _ROWS_FOR_MANY_TREES else BoostingRecipe())
    if not censored and np.ptp(y) > 0:
        recipes += _processes(effort, x, y)
    return recipes


def _processes(effort: Effort, x: Floats, y: Floats) -> list[Recipe]:
    """Gaussian processes; of many rows, one is corrected or not tried."""
    n, d = x.shape
    if d > _GAUSSIAN_PROCESS_FEATURES:
        return []
    recipes: list[Recipe] = []
    if n < _ROWS_FOR_KERNELS:
        recipes.append(GaussianProcessRecipe(kernels=1))
    elif n <= GaussianProcessRecipe.rows and effort != "quick":
        recipes.append(GaussianProcessRecipe())
    if n <= _MOST_CORRECTED_ROWS[effort]:
        network = _sized(_OF_ERRORS, effort, n, d)
        corrected = CorrectedRecipe(GaussianProcessRecipe(rows=_CORRECTED_ROWS), network)
        recipes.append(corrected)
        if is_skewed(y):
            recipes.append(_of_logarithm(corrected, "log corrected process"))
    return recipes


def _ridges(x: Floats, y: Floats) -> list[RidgeRecipe]:
    affordable = [recipe for recipe in _RIDGES if recipe.is_affordable(*x.shape)]
    if not is_skewed(y):
        return affordable
    return affordable + [_of_logarithm(recipe, f"log {recipe.name}") for recipe in affordable]


def _of_logarithm(recipe: _RecipeT, name: str) -> _RecipeT:
    about = f"as {recipe.name}, of the logarithm of the target"
    return replace(recipe, name=name, about=about, transform="log")


def _for_rounded(recipe: NetworkRecipe, rounding: float) -> NetworkRecipe:
    about = "as thresholds, trained to agree within half a step of the target"
    return replace(recipe, about=about, tolerance=rounding)


def _sized(recipe: NetworkRecipe, effort: Effort, n: int, d: int) -> NetworkRecipe:
    """A recipe for n rows of d features."""
    seeds = _SEEDS[effort] if n < _ONE_SEED_ROWS or effort == "best" else 1
    length = float(np.clip((n / _ORDINARY_ROWS) ** 0.4, _SHORTEST, _LONGEST))
    return replace(
        recipe,
        seeds=1 if recipe is _LINE or _is_wide(d) else seeds,
        steps=round(recipe.steps * length),
        bins=0 if _is_wide(d) else min(recipe.bins, _MOST_INPUTS // max(d, 1) - 1),
    )


def _is_wide(d: int) -> bool:
    """Whether features are too many for an encoding."""
    return _MOST_INPUTS // max(d, 1) - 1 < _FEWEST_BINS
