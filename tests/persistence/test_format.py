"""Files of another build of accord are told from damaged ones, by a format number that is kept."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import accord
from accord.persistence import FORMAT, ModelFileError, encoding
from accord.portfolio import crossfit
from accord.portfolio.recipes import (
    BoostingRecipe,
    CorrectedRecipe,
    GaussianProcessRecipe,
    NetworkRecipe,
    Recipe,
    RidgeRecipe,
)

LAYOUT = Path(__file__).with_name("layout.json")
REMEDY = "Fit the model again with this accord, or load it with the one that wrote it."


RECIPES: list[Recipe] = [
    NetworkRecipe("m", "", hidden=(4,), bins=4, components=2, steps=20, seeds=1),
    GaussianProcessRecipe(),
    CorrectedRecipe(GaussianProcessRecipe(), NetworkRecipe("e", "", hidden=(4,), steps=20)),
    RidgeRecipe("ridge", "a line"),
    BoostingRecipe(trees=10),
]


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A table model for every kind of model that a portfolio is made of."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 60)
    frame = pd.DataFrame(
        {
            "x": np.where(x > 0.9, np.nan, x),
            "kind": rng.choice(["a", "b"], 60),
            "day": pd.date_range("2024-01-01", periods=60),
            "y": x + rng.normal(0, 0.1, 60),
        }
    )
    folder, files = tmp_path_factory.mktemp("models"), []
    for recipe in RECIPES:
        files.append(folder / f"{recipe.name}.accord")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(crossfit, "recipes_for", lambda *_, made=recipe, **__: [made])
            accord.TableRegressor(effort="quick", random_state=0).fit(frame, "y").save(files[-1])
    return files


def manifest_of(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        found: dict[str, Any] = json.loads(archive.read("manifest.json"))
    return found


def altered(path: Path, folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """A copy with a description that ``change`` has worked on."""
    target = folder / path.name
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "manifest.json":
                manifest = json.loads(content)
                change(manifest)
                content = json.dumps(manifest).encode()
            new.writestr(name, content)
    return target


def parts_of(value: Any, found: dict[str, set[str]]) -> None:
    """Collects the names of the parts of every object of this package that a file holds."""
    if isinstance(value, list):
        for item in value:
            parts_of(item, found)
    elif isinstance(value, dict):
        if value.get("is") == "object" and encoding.TYPES[value["type"]].startswith("accord"):
            found.setdefault(value["type"], set()).update(value["state"])
        for key, item in value.items():
            if key in ("_schema", "_card", "cells"):
                found.setdefault(key, set()).update(item)
            parts_of(item, found)


def test_a_change_of_what_files_hold_is_a_new_format(paths: list[Path]) -> None:
    found: dict[str, set[str]] = {}
    for path in paths:
        parts_of(manifest_of(path)["model"], found)
    kept = json.loads(LAYOUT.read_text())
    here = {name: sorted(parts) for name, parts in sorted(found.items())}
    assert (kept["format"], kept["types"]) == (FORMAT, here), (
        "Saved models have other parts than before: raise FORMAT in persistence/archive.py, and "
        f"write to {LAYOUT.name}:\n{json.dumps({'format': FORMAT + 1, 'types': here}, indent=1)}"
    )


@pytest.mark.parametrize("number", [FORMAT - 1, FORMAT + 1])
def test_another_format_says_who_wrote_it_and_what_to_do(
    paths: list[Path], tmp_path: Path, number: int
) -> None:
    other = altered(paths[0], tmp_path, lambda m: m.update(format=number, accord="9.0\x1b[2J"))
    with pytest.raises(ModelFileError) as caught:
        accord.load(other)
    assert str(caught.value).isprintable()
    assert "written by another build of accord (9.0" in str(caught.value)
    assert f"has format {number}" in str(caught.value)
    assert f"reads format {FORMAT}. {REMEDY}" in str(caught.value)


@pytest.mark.parametrize(
    ("owner", "part"),
    [("TableRegressor", "passes"), ("Member", "calibration"), ("Calibration", "df")],
)
def test_a_part_that_is_not_there_is_found_on_loading(
    paths: list[Path], tmp_path: Path, owner: str, part: str
) -> None:
    def without(value: Any) -> None:
        if isinstance(value, dict) and value.get("type") == owner:
            del value["state"][part]
        for item in value.values() if isinstance(value, dict) else value:
            if isinstance(item, dict | list):
                without(item)

    older = altered(paths[0], tmp_path, without)
    with pytest.raises(ModelFileError, match=f"lacks the part '{part}' of {owner}. {REMEDY}"):
        accord.load(older)
