"""The code and libraries that a result depends on, as one short string.

A record may be used again only if the same code would make it again. That code is every module of
accord that can be reached by imports from the one that makes records; comments, docstrings and
layout do not count.
"""

import ast
import hashlib
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

__all__ = ["fingerprint"]

_LIBRARIES = ("numpy", "scikit-learn", "scipy", "torch")


@cache
def fingerprint(root: str) -> str:
    """Digest of a module, all of accord that it imports, and the numerical libraries' versions.

    Example:
        >>> fingerprint("accord.splits") == fingerprint("accord.splits")
        True
        >>> fingerprint("accord.splits") == fingerprint("accord.datasets")
        False
    """
    digest = hashlib.sha256()
    for name, path in sorted(_reachable(root).items()):
        digest.update(f"{name}\n{_meaning(path.read_text(encoding='utf-8'))}\n".encode())
    for library in _LIBRARIES:
        digest.update(f"{library} {version(library)}\n".encode())
    return digest.hexdigest()[:16]


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
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    ours = [name.split(".") for name in names if name.startswith("accord.")]
    return [".".join(parts[:depth]) for parts in ours for depth in range(2, len(parts) + 1)]


def _meaning(source: str) -> str:
    """The source without comments, docstrings and layout."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)
