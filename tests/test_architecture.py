"""The house rules about imports and names, one test per rule.

Imports count wherever they stand: at the top of a file, inside a function, or for type checkers.
Only between files of one package may those for type checkers point back.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

import accord

LAYERS: tuple[tuple[str, ...], ...] = (
    (
        "_types",
        "_checks",
        "_code",
        "_files",
        "_lazy",
        "_progress",
        "_processes",
        "_wording",
        "_numerics",
    ),
    ("distributions", "agreement", "losses", "metrics", "validation", "splits"),
    ("training", "export", "tables", "datasets", "plots"),
    (
        "adapters",
        "estimators",
        "calibration",
        "trust",
        "portfolio",
        "persistence",
        "tabular",
        "work",
    ),
    ("paper", "workflows"),
    ("cli", "report", "service", "__main__"),
)
LAYER = {package: number for number, packages in enumerate(LAYERS) for package in packages}
ROOT = Path(accord.__file__).parent
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


class Import(NamedTuple):
    """One name that a file of accord takes from another: ``from accord.<module> import <name>``."""

    file: str
    package: str
    """The package or single module that the file belongs to."""
    module: str
    """Where the name comes from, without the leading ``accord.``."""
    name: str
    for_types: bool = False
    """Whether only type checkers see it."""

    @property
    def source(self) -> str:
        return self.module.split(".")[0]

    def __str__(self) -> str:
        return f"{self.file}: from accord.{self.module} import {self.name}"


def imports_of(file: str, text: str) -> Iterator[Import]:
    """The imports of accord's own names in a source text."""
    package = Path(file).with_suffix("").parts[0]
    tree = ast.parse(text)
    for_types = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        hidden = id(node) in for_types
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            for alias in node.names:
                if node.module == "accord":  # from accord import metrics
                    yield Import(file, package, alias.name, "", hidden)
                elif node.module is not None and node.module.startswith("accord."):
                    module = node.module.removeprefix("accord.")
                    yield Import(file, package, module, alias.name, hidden)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("accord."):
                    yield Import(file, package, alias.name.removeprefix("accord."), "", hidden)


ALL = [
    each
    for path in FILES
    for each in imports_of(str(path.relative_to(ROOT)), path.read_text())
    if not each.source.startswith("__")  # from accord import __version__
]
ACROSS = [each for each in ALL if each.source != each.package]


def upward(imports: list[Import]) -> list[str]:
    return [str(each) for each in imports if LAYER[each.source] > LAYER[each.package]]


def into_submodules(imports: list[Import]) -> list[str]:
    return [str(each) for each in imports if "." in each.module]


def of_private_names(imports: list[Import]) -> list[str]:
    private = [each for each in imports if each.name.startswith("_")]
    return [str(each) for each in private if each.name != "__version__"]


def passed_on(imports: list[Import]) -> list[str]:
    """Names that a package exports and another one has: each should have one door."""
    doors = [each for each in imports if each.file.endswith("__init__.py")]
    # what the door itself is made of is not passed on
    return [str(each) for each in doors if each.source not in (each.package, "_lazy")]


def circle(imports: list[Import]) -> list[str]:
    """Packages that need each other."""
    return circle_of((each.package, each.source) for each in imports)


def circle_of_files(imports: list[Import]) -> list[str]:
    """Files that need each other, at once or later."""
    return circle_of(
        (each.file.removesuffix(".py").removesuffix("/__init__"), target_of(each))
        for each in imports
        if not each.for_types
    )


def target_of(each: Import) -> str:
    """The file that is imported, in the form of `Import.file` without its suffix."""
    path = each.module.replace(".", "/")
    inner = f"{path}/{each.name}"
    return inner if each.name and (ROOT / f"{inner}.py").is_file() else path


def circle_of(needs: Iterable[tuple[str, str]]) -> list[str]:
    graph: dict[str, set[str]] = {}
    for one, other in needs:
        graph.setdefault(one, set()).add(other)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as problem:
        return [str(name) for name in problem.args[1]]
    return []


def test_every_package_has_a_layer() -> None:
    packages = {path.relative_to(ROOT).with_suffix("").parts[0] for path in FILES}
    assert packages == set(LAYER)


def test_the_readme_shows_these_layers() -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text()
    rows = re.findall(r"^\| (\d) [^|]*\|([^|]*)\|", text, flags=re.M)
    shown = {int(number): set(re.findall(r"`(\w+)`", names)) for number, names in rows}
    for number, packages in enumerate(LAYERS):
        if number == 0:  # only some are named
            assert shown[number] <= set(packages)
        else:
            assert shown[number] == set(packages) - {"__main__"}


def test_imports_point_down() -> None:
    assert upward(ACROSS) == []


def test_no_circles_between_packages() -> None:
    assert circle(ACROSS) == []


def test_no_circles_between_files() -> None:
    assert circle_of_files(ALL) == []


def test_a_package_exports_what_it_defines() -> None:
    # what a model is judged by belongs to both rooms for their users
    shared = [name for name in passed_on(ACROSS) if not name.startswith("validation/")]
    assert shared == []


def test_files_of_a_package_leave_the_list_of_names_to_it() -> None:
    listing = [
        str(path.relative_to(ROOT))
        for path in FILES
        if path.parent != ROOT and path.name != "__init__.py"
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    assert listing == ["metrics/scorers.py"]  # which users import as a module


def test_a_class_name_stands_for_one_class() -> None:
    found = Counter(
        node.name
        for path in FILES
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, times in found.items() if times > 1] == []


def test_no_import_into_another_packages_submodules() -> None:
    assert into_submodules(ACROSS) == []


def test_no_private_name_is_imported_across_packages() -> None:
    assert of_private_names(ACROSS) == []


def test_array_types_are_defined_once() -> None:
    definitions = [
        str(path.relative_to(ROOT))
        for path in FILES
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.value) == "NDArray[np.float64]"
    ]
    assert definitions == ["_types.py"]


def test_scripts_import_what_exists() -> None:
    """Benchmarks, and the examples that only the site runs."""
    root = Path(__file__).parents[1]
    scripts = [*root.glob("benchmarks/*.py"), *root.glob("docs/examples/**/*.py")]
    found = [
        each
        for path in scripts
        for each in imports_of(str(path.relative_to(root)), path.read_text())
        if each.name or not hasattr(accord, each.module)  # from accord import BVMRegressor
    ]
    assert scripts
    assert found
    assert [str(each) for each in found if not exists(each)] == []


def exists(each: Import) -> bool:
    full = f"accord.{each.module}"
    return find_spec(full) is not None and (
        not each.name
        or hasattr(import_module(full), each.name)
        or find_spec(f"{full}.{each.name}") is not None
    )


@pytest.mark.parametrize(
    ("file", "line", "rule"),
    [
        ("losses/bvm.py", "from accord.estimators import BVMRegressor", upward),
        ("losses/bvm.py", "from accord import estimators", upward),
        ("plots/style.py", "def f():\n    from accord.metrics.crps import crps", into_submodules),
        ("plots/style.py", "import accord.metrics.crps", into_submodules),
        ("plots/style.py", "from accord.metrics import _inputs", of_private_names),
        ("plots/__init__.py", "from accord.metrics import crps", passed_on),
    ],
)
def test_the_rules_can_fail(file, line, rule) -> None:
    assert len(rule(list(imports_of(file, line)))) == 1


def test_a_circle_is_found_also_when_lazy() -> None:
    one = list(imports_of("trust/a.py", "def f():\n    from accord.calibration import Conformal"))
    other = list(imports_of("calibration/b.py", "from accord.trust import Proximity"))
    assert set(circle(one + other)) == {"trust", "calibration"}


def test_a_circle_within_a_package_is_found_but_for_types() -> None:
    one = list(imports_of("trust/a.py", "def f():\n    from accord.trust.b import Proximity"))
    other = list(imports_of("trust/b.py", "from accord.trust.a import TrustScore"))
    typed = "if TYPE_CHECKING:\n    from accord.trust.a import TrustScore"
    assert set(circle_of_files(one + other)) == {"trust/a", "trust/b"}
    assert circle_of_files(one + list(imports_of("trust/b.py", typed))) == []
