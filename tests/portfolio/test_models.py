"""What every kind of model of a portfolio promises."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from accord.portfolio.crossfit import TrainingTable, out_of_fold, try_recipe
from accord.portfolio.encoding import ScaledRows
from accord.portfolio.folds import Part, random_parts
from accord.portfolio.models import Model, model_for
from accord.portfolio.networks import hash_seed
from accord.portfolio.recipes import (
    BoostingRecipe,
    CorrectedRecipe,
    Effort,
    GaussianProcessRecipe,
    NetworkRecipe,
    Recipe,
    RidgeRecipe,
    recipes_for,
)

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(160, 2))
Z = np.sin(3 * X[:, 0]) + 0.2 * RNG.normal(size=160)
ROWS = ScaledRows(X, Z, np.ones(160), {})
PARTS = random_parts(np.arange(160), 4, seed=0)

RECIPES: dict[str, Recipe] = {
    "one component": NetworkRecipe("one", "", hidden=(16, 16), steps=200, seeds=2),
    "line": NetworkRecipe("line", "", hidden=(), steps=600, learning_rate=1e-2, seeds=1),
    "mixture": NetworkRecipe("five", "", hidden=(32,), bins=8, components=5, steps=200, seeds=1),
    "tolerant": NetworkRecipe("tolerant", "", hidden=(16,), tolerance=0.2, steps=200, seeds=1),
    "Gaussian process": GaussianProcessRecipe(),
    "corrected process": CorrectedRecipe(
        GaussianProcessRecipe(),
        NetworkRecipe("errors", "", hidden=(16,), components=2, steps=200, seeds=2, scaled=1),
    ),
    "additive": RidgeRecipe("additive", "curves", bins=8),
    "trees": BoostingRecipe(trees=40),
}
every = pytest.mark.parametrize("name", RECIPES)


def fitted(recipe: Recipe, parts: list[Part] = PARTS, rows: ScaledRows = ROWS) -> Model:
    return model_for(recipe).fit(rows, [part.train for part in parts], seed=3, listener=None)


@pytest.fixture(scope="module")
def model_named() -> Callable[[str], Model]:
    models: dict[str, Model] = {}

    def named(name: str) -> Model:
        if name not in models:
            models[name] = fitted(RECIPES[name])
        return models[name]

    return named


@every
def test_weights_and_deviations_are_proper(name: str, model_named: Callable[[str], Model]) -> None:
    part = model_named(name).components(3 * X)
    np.testing.assert_allclose(part.weight.sum(axis=2), 1.0, rtol=1e-9)
    assert (part.std > 0).all()
    assert np.isfinite(part.mean).all()


@every
def test_all_parts_are_each_part_as_members(name: str, model_named: Callable[[str], Model]) -> None:
    model = model_named(name)
    whole = model.components(X)
    each = np.concatenate([model.components(X, fold).mean for fold in range(4)])
    np.testing.assert_allclose(whole.mean, each, rtol=1e-12, atol=1e-12)


@every
def test_a_row_is_answered_alike_alone_and_among_others(
    name: str, model_named: Callable[[str], Model]
) -> None:
    model = model_named(name)
    whole = model.components(X)
    for size in (1, 7, 48, 159):
        part = model.components(X[:size])
        np.testing.assert_allclose(part.mean, whole.mean[:, :size], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(part.std, whole.std[:, :size], rtol=1e-6)
        np.testing.assert_allclose(part.weight, whole.weight[:, :size], rtol=1e-6)


@every
def test_the_seed_decides_everything(name: str, model_named: Callable[[str], Model]) -> None:
    again = fitted(RECIPES[name]).components(X)
    np.testing.assert_array_equal(again.mean, model_named(name).components(X).mean)


@every
def test_a_part_learns_from_its_own_rows_only(name: str) -> None:
    """Other targets outside a fold change nothing but the rounding of a common stack."""
    other = Z.copy()
    other[PARTS[0].test] += 1.0
    changed = fitted(RECIPES[name], rows=replace(ROWS, z=other)).components(X, 0).mean
    plain = fitted(RECIPES[name]).components(X, 0).mean
    np.testing.assert_allclose(changed, plain, atol=1e-4)


@every
def test_it_learns(name: str, model_named: Callable[[str], Model]) -> None:
    held_out = out_of_fold(model_named(name), X, PARTS, np.arange(160))
    assert np.mean((held_out.center - Z) ** 2) < 0.6 * Z.var()


@every
def test_fit_again_is_a_model_of_other_rows(name: str, model_named: Callable[[str], Model]) -> None:
    there = model_named(name).fit_again(ROWS, [np.arange(80)], seed=0, listener=None)
    part = there.components(X[80:], 0)
    assert part.mean.shape[:2] == (1, 80)
    assert np.mean((part.center - Z[80:]) ** 2) < 0.7 * Z.var()


def test_a_recipe_is_scored_by_its_calibrated_density_per_scaled_unit() -> None:
    table = TrainingTable(X, 100 + 7 * Z, np.ones(160), np.ones(160, bool))
    candidate = try_recipe(RECIPES["Gaussian process"], table, PARTS, seed=0, listener=None)
    residual = table.y - candidate.scale.center - candidate.scale.scale * candidate.held_out.center
    gaussian = 0.5 * np.log(2 * np.pi * np.e * np.mean(residual**2)) - np.log(candidate.scale.scale)
    assert -candidate.log_density.mean() == pytest.approx(gaussian, abs=0.15)


def test_networks_follow_a_line_along_a_long_tail() -> None:
    """One row in twenty has a delay of many times the usual one, and the target grows with it."""
    late = RNG.exponential(3, size=2000) * (RNG.random(2000) < 0.05)
    x = (0.2 * RNG.normal(size=2000) + late)[:, None]
    rows = ScaledRows(x, x[:, 0] + 0.1 * RNG.normal(size=2000), np.ones(2000), {})
    line = NetworkRecipe("line", "", hidden=(), steps=2_000, learning_rate=1e-2, seeds=1)
    model = fitted(line, random_parts(np.arange(2000), 4, seed=0), rows)
    far = np.array([[3.0], [6.0]])
    np.testing.assert_allclose(model.components(far).center, far[:, 0], rtol=0.25)


def test_errors_of_a_process_that_are_of_two_kinds() -> None:
    """A curve with two branches: the process runs between them, its corrected errors do not."""
    x = RNG.uniform(-1, 1, size=(600, 1))
    branch = np.where(RNG.random(600) < 0.5, 1.0, -1.0)
    z = np.sin(3 * x[:, 0]) + branch + 0.1 * RNG.normal(size=600)
    table = TrainingTable(x, z, np.ones(600), np.ones(600, bool))
    parts = random_parts(np.arange(600), 4, seed=0)
    network = NetworkRecipe("errors", "", components=2, steps=600, seeds=1, scaled=1)
    process, corrected = (
        try_recipe(recipe, table, parts, seed=0, listener=None)
        for recipe in (GaussianProcessRecipe(), CorrectedRecipe(GaussianProcessRecipe(), network))
    )
    assert corrected.log_density.mean() > process.log_density.mean() + 0.5


def test_seeds_of_networks_differ() -> None:
    seeds = {hash_seed(s, "a", f, k) for s in range(3) for f in range(5) for k in range(4)}
    assert len(seeds) == 60
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_a_wide_table_is_not_encoded_and_tries_less() -> None:
    wide = RNG.normal(size=(160, 1_000))
    recipes = recipes_for("standard", wide, Z)
    tried = ["line", "short", "mixture", "ridge", "sparse", "trees"]
    assert [r.name for r in recipes] == [*tried, "Gaussian process", "corrected process"]
    assert all(r.bins == 0 and r.seeds == 1 for r in recipes if isinstance(r, NetworkRecipe))
    wider = np.tile(wide, 3)
    tried = ["line", "short", "mixture", "ridge", "sparse"]
    assert [r.name for r in recipes_for("standard", wider, Z)] == tried
    narrow = recipes_for("standard", wide[:, :100], Z)
    assert {r.bins for r in narrow if isinstance(r, NetworkRecipe)} == {0, 16}


@pytest.mark.parametrize("censored", [False, True])
def test_which_recipes_are_tried(censored: bool) -> None:
    skewed = np.exp(2 * RNG.normal(size=160))
    names = [r.name for r in recipes_for("standard", X, skewed, censored=censored)]
    networks = {"line", "short", "smooth", "thresholds", "tolerant", "mixture"}
    lines = {"ridge", "additive", "log ridge", "log additive"}
    processes = {"Gaussian process", "corrected process", "log corrected process"}
    assert set(names) == networks | (
        {"logarithm"} if censored else {"logarithm", "trees", *processes, *lines}
    )
    # the long tail of censored targets may be what was cut off
    cut = [r.name for r in recipes_for("standard", X, Z - Z.min() + 1, censored=censored)]
    assert ("logarithm" in cut) == censored
    plain = [r.name for r in recipes_for("quick", X, Z, censored=censored)]
    assert len(plain) < len(names)
    assert not any("log" in name for name in plain)


@pytest.mark.parametrize(
    ("n", "tried"), [(4_999, False), (5_000, True), (50_000, True), (50_001, False)]
)
def test_quick_tries_trees_where_they_are_sharper_and_not_slow(n: int, tried: bool) -> None:
    x, z = np.linspace(-1, 1, n)[:, None], np.linspace(-1, 1, n)
    assert ("trees" in [r.name for r in recipes_for("quick", x, z)]) == tried
    assert "trees" in [r.name for r in recipes_for("standard", x, z)]
    assert "trees" not in [r.name for r in recipes_for("quick", x, z, censored=True)]


@pytest.mark.parametrize(
    ("effort", "n", "tried"),
    [
        ("quick", 499, {"Gaussian process", "corrected process"}),
        ("quick", 2_500, {"corrected process"}),
        ("standard", 2_500, {"Gaussian process", "corrected process"}),
        ("quick", 2_501, set()),
        ("standard", 2_501, {"corrected process"}),
        ("standard", 20_001, set()),
        ("best", 20_001, {"corrected process"}),
    ],
)
def test_which_gaussian_processes_are_tried(effort: Effort, n: int, tried: set[str]) -> None:
    x, z = np.linspace(-1, 1, n)[:, None], np.linspace(-1, 1, n)
    assert {r.name for r in recipes_for(effort, x, z) if "process" in r.name} == tried


@pytest.mark.parametrize(("n", "counted"), [(1_999, False), (2_000, True)])
def test_steps_of_boosting_are_counted_where_rows_are_enough(n: int, counted: bool) -> None:
    x, z = np.linspace(-1, 1, n)[:, None], np.linspace(-1, 1, n)
    (trees,) = [r for r in recipes_for("standard", x, z) if isinstance(r, BoostingRecipe)]
    assert (trees == BoostingRecipe()) == (not counted)
    assert trees.counted == counted
