"""Imports point down the layers, never up or in circles."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import accord

LAYERS: dict[str, int] = {
    **dict.fromkeys(("_version", "_types", "_threads", "_files", "_progress"), 0),
    **dict.fromkeys(("_wording", "_numerics", "_checks"), 0),
    **dict.fromkeys(("distributions", "agreement", "losses", "metrics", "validation", "splits"), 1),
    **dict.fromkeys(("training", "probabilistic_backprop", "tables", "datasets"), 2),
    **dict.fromkeys(
        ("estimators", "calibration", "trust", "portfolio", "persistence", "tabular"), 3
    ),
    **dict.fromkeys(("plots",), 4),
    **dict.fromkeys(("paper", "workflows"), 5),
    **dict.fromkeys(("cli", "report"), 6),
}
ROOT = Path(accord.__file__).parent
FILES = sorted(p for p in ROOT.rglob("*.py") if p != ROOT / "__init__.py")


def module_of(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imported_modules(path: Path) -> set[str]:
    """Top-level accord modules that a file imports, at its top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names = [node.module or ""]
            if node.module == "accord":
                names = [f"accord.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("accord.")}
    return {name for name in found if not name.startswith("__")}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    module = module_of(path)
    assert module in LAYERS, f"{module} has no layer: add it to the table"
    above = {name for name in imported_modules(path) if LAYERS[name] > LAYERS[module]}
    assert not above, f"{path.name} (layer {LAYERS[module]}) imports {above} from above"


def test_no_circles() -> None:
    graph: dict[str, set[str]] = {}
    for path in FILES:
        module = module_of(path)
        graph.setdefault(module, set()).update(imported_modules(path) - {module})
    TopologicalSorter(graph).prepare()  # raises CycleError on a circle
    assert graph
