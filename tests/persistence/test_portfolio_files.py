"""Models of every recipe of a portfolio come back from a file as they were."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import accord
from accord.persistence import encoding as registry
from accord.portfolio import PortfolioRegressor
from accord.portfolio.recipes import (
    BoostingRecipe,
    CorrectedRecipe,
    GaussianProcessRecipe,
    NetworkRecipe,
    Recipe,
    RidgeRecipe,
    recipes_for,
)

X = np.random.default_rng(0).uniform(-1, 1, size=(120, 2))
Y = np.exp(2 * X[:, 0] + 0.3 * np.random.default_rng(1).normal(size=120))

RECIPES: dict[str, Recipe] = {
    "network": NetworkRecipe("network", "", hidden=(8,), steps=50, seeds=1),
    "mixture": NetworkRecipe("m", "", hidden=(8,), bins=4, components=3, steps=50, seeds=2),
    "logarithm": NetworkRecipe("log", "", hidden=(8,), transform="log", steps=50, seeds=1),
    "Gaussian process": GaussianProcessRecipe(),
    "corrected process": CorrectedRecipe(
        GaussianProcessRecipe(), NetworkRecipe("errors", "", hidden=(8,), steps=50, scaled=1)
    ),
    "ridge": RidgeRecipe("ridge", "a line"),
    "trees": BoostingRecipe(trees=20),
}


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_round_trips(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accord.portfolio.crossfit.recipes_for", lambda *_, **__: [RECIPES[name]])
    model = PortfolioRegressor(effort="quick", bounds=(0, None), random_state=0).fit(X, Y)
    model.save(tmp_path / "m.accord")
    loaded = accord.load(tmp_path / "m.accord")
    for rows in (X[:20], 5 * X[:20]):
        before, after = model.predict_dist(rows), loaded.predict_dist(rows)
        for figure in ("mean", "std", "noise", "disagreement", "distance"):
            np.testing.assert_array_equal(getattr(after, figure), getattr(before, figure))
        np.testing.assert_array_equal(after.interval(0.9), before.interval(0.9))
    assert {type(member.model.recipe) for member in loaded.members_} == {type(RECIPES[name])}
    assert loaded.leaderboard_ == model.leaderboard_


def test_the_kinds_above_are_all_that_there_are() -> None:
    kinds = {type(recipe) for recipe in RECIPES.values()}
    assert {type(r) for r in recipes_for("best", X, Y, censored=False)} <= kinds


@pytest.mark.parametrize(
    "name", [name for name, place in registry.TYPES.items() if "portfolio" in place]
)
def test_stable_names_lead_to_their_class_and_back(name: str) -> None:
    found = registry.class_of(name)
    assert registry.name_of(found) == name
    assert dataclasses.is_dataclass(found) or callable(found)
