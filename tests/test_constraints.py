"""What set-up installs is what was tested: every package of the runtime has its version."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]


def direct() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [Requirement(line) for line in project["dependencies"]]


def runtime() -> set[str]:
    """The packages that are installed because the project needs them, directly or not."""
    found: set[str] = set()
    waiting = [(requirement, {""}) for requirement in direct()]
    while waiting:
        requirement, extras = waiting.pop()
        wanted = requirement.marker is None or any(
            requirement.marker.evaluate({"extra": extra}) for extra in extras
        )
        name = canonicalize_name(requirement.name)
        if not wanted or name in found:
            continue
        try:
            needs = requires(name) or []
        except PackageNotFoundError:  # for other systems, or optional after all
            continue
        found.add(name)
        waiting += [(Requirement(need), {"", *requirement.extras}) for need in needs]
    return found


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    found = [re.fullmatch(r"([\w.-]+)==([\w.+!-]+)", line) for line in lines if line[:1] != "#"]
    assert all(found), "constraints.txt holds pins and remarks only"
    return {canonicalize_name(pin[1]): pin[2] for pin in found if pin}


def test_the_whole_runtime_is_pinned() -> None:
    assert runtime() - pins().keys() == set()
    assert {"numpy", "torch", "scikit-learn", "sympy"} <= runtime()


@pytest.mark.parametrize("name", sorted(pins()))
def test_what_is_pinned_is_what_is_tested(name: str) -> None:
    try:
        installed = version(name)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed here")
    # Builds for other hardware differ in the local part of the version only (2.13.0+cpu).
    assert Version(installed).public == Version(pins()[name]).public


def test_ranges_allow_the_pins() -> None:
    for requirement in direct():
        assert requirement.specifier.contains(pins()[canonicalize_name(requirement.name)])
