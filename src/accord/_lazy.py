"""Packages whose names are loaded on first use: whoever needs one pays for no other.

Such a package imports its names under ``if TYPE_CHECKING:``, one ``from module import name as
name`` each, which is how type checkers know a name that is passed on. The same lines say here where
each is found.
"""

import ast
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any


def lazy_names(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """What a package has for ``__getattr__``, ``__dir__`` and ``__all__``.

    >>> load, _, names = lazy_names("accord")
    >>> "guard" in names, "tail_split" in names
    (True, False)
    >>> load("splits").__name__, load("guard").__module__
    ('accord.splits', 'accord.tabular.guarded')
    """
    own: Any = sys.modules[package]
    home_of = dict(_names_and_homes(own.__spec__.loader.get_source(package)))

    def load(name: str) -> object:
        if name not in home_of:
            # name and obj let Python add "Did you mean: …?"
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}", name=name, obj=own
            )
        home = home_of[name]
        if home == package:  # a module
            value: object = import_module(f"{package}.{name}")
        else:
            value = getattr(import_module(home), name)
        setattr(own, name, value)
        return value

    return load, lambda: sorted(own.__all__), list(home_of)


def _names_and_homes(source: str) -> Iterator[tuple[str, str]]:
    """The names that a source text imports for type checkers, and the modules that have them."""
    for block in ast.parse(source).body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for line in block.body:
                assert isinstance(line, ast.ImportFrom)
                for alias in line.names:
                    assert alias.asname == alias.name, "or type checkers do not pass it on"
                    yield alias.name, str(line.module)
