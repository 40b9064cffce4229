"""The package as it is installed: a wheel that holds all it needs, and works by itself."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("hatchling", reason="hatchling is not installed")

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: Any) -> Path:
    folder: Path = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    wanted = {
        path.relative_to(SOURCE).as_posix()
        for path in (SOURCE / "accord").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == wanted
    # templates, pages, embedded data and the mark of typed packages are no Python files
    assert {"accord/py.typed", "accord/report/templates/fit.html"} <= packed
    assert {"accord/service/pages/try.html", "accord/service/pages/docs.html"} <= packed


def test_the_wheel_names_the_command_and_the_extras(wheel: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    with zipfile.ZipFile(wheel) as archive:
        texts = {
            Path(name).name: archive.read(name).decode()
            for name in archive.namelist()
            if ".dist-info/" in name
        }
    assert "accord = accord.cli:main" in texts["entry_points.txt"]
    assert "BSD 3-Clause" in texts["LICENSE"]
    for extra in project["optional-dependencies"]:
        assert f"Provides-Extra: {extra}" in texts["METADATA"]


def test_the_wheel_works_without_the_repository(wheel: Path, tmp_path: Path) -> None:
    """Unpacked somewhere else, the package and its command find all that they read."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import accord, accord.report\n"
        "from importlib.resources import files\n"
        "print(accord.__file__)\n"
        "print(len(accord.datasets.load('diabetes').frame))\n"
        "print((files('accord.report') / 'templates' / 'fit.html').is_file())\n"
        "from accord.cli import application\n"
        "application(['--version'], prog_name='accord')\n"
    )
    found = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path,
        env={"PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert found[0] == str(tmp_path / "accord" / "__init__.py")
    assert found[1:3] == ["442", "True"]
    assert found[3].startswith("accord 0.")
