"""Which code made a result: a digest of all that decides it, to use the result again or not.

The versions of the numerical libraries always count. The code of the whole package counts to the
letter, which is quick to find. The code of one module, for results that took hours, is every module
of accord that can be reached from it by imports, without comments, docstrings and layout.
"""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

LIBRARIES = ("numpy", "scikit-learn", "scipy", "torch")
"""The libraries that accord computes with."""


@cache
def code_digest(root: str | None = None) -> str:
    """A name for the code of the whole package, or for what a module's results depend on.

    >>> code_digest("accord.splits") == code_digest("accord.splits")
    True
    >>> code_digest("accord.splits") == code_digest("accord.datasets")
    False
    """
    modules = _package() if root is None else _reachable(root)
    total = hashlib.sha256()
    for name, path in sorted(modules.items()):
        text = path.read_text(encoding="utf-8")
        total.update(f"{name}\n{text if root is None else _meaning(text)}\n".encode())
    for library in LIBRARIES:
        total.update(f"{library} {version(library)}\n".encode())
    return total.hexdigest()[:16]


def _package() -> dict[str, Path]:
    folder = Path(__file__).parent
    return {str(path.relative_to(folder)): path for path in folder.rglob("*.py")}


def _reachable(root: str) -> dict[str, Path]:
    found: dict[str, Path] = {}
    waiting = [root]
    while waiting:
        name = waiting.pop()
        if name in found or (path := _source(name)) is None:
            continue
        found[name] = path
        waiting += _imported(ast.parse(path.read_text(encoding="utf-8")))
    return found


def _source(name: str) -> Path | None:
    """The module's file; None for what is no module (a class, say). accord itself is lazy."""
    if name == "accord":
        return None
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:
        return None
    return Path(spec.origin) if spec is not None and spec.origin else None


def _imported(tree: ast.Module) -> list[str]:
    """Modules of accord that a file imports, with the packages they lie in."""
    names: list[str] = []
    for node in _executed(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    ours = [name.split(".") for name in names if name.startswith("accord.")]
    return [".".join(parts[:depth]) for parts in ours for depth in range(2, len(parts) + 1)]


def _executed(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a tree but for what only type checkers see."""
    yield tree
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield from _executed(node)


def _meaning(source: str) -> str:
    """The source without comments, docstrings and layout."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)
