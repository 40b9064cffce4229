"""Modules that are imported when something of them is asked for, and not before.

scikit-learn imports some at its start that a prediction never uses: a sixth of the time that a
command takes to predict one row. They are found as always, and run when they are first used.
(The standard library's LazyLoader runs them at once where a module is imported twice.)
"""

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import Any, final

# What of scipy only fits and reports use.
UNUSED = ("scipy.stats", "scipy.optimize", "scipy.spatial.transform")
_RUNNING = RLock()


@final
class _Deferred(ModuleType):
    """A module that has its name and place, and runs when more is asked of it."""

    def __getattr__(self, name: str) -> Any:
        with _RUNNING:  # another thread waits until all is there
            waiting: Loader | None = self.__dict__.pop("_waiting", None)
            if waiting is not None:
                waiting.exec_module(self)
                self.__class__ = ModuleType  # type: ignore[assignment]
        return ModuleType.__getattribute__(self, name)


@final
class _Later(Loader):
    """Makes a module that a loader will run."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Deferred(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["_waiting"] = self._loader


@final
class _Finder(MetaPathFinder):
    """Finds some modules, to be run later."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = frozenset(names)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name in self._names else None
        if spec is not None and spec.loader is not None:
            spec.loader = _Later(spec.loader)
        return spec


def defer(*names: str) -> None:
    """Let these modules run when they are first used, unless they are imported already.

    >>> defer("xml.dom.minidom")
    >>> import xml.dom.minidom
    >>> "xml.dom.xmlbuilder" in sys.modules  # which minidom imports
    False
    >>> xml.dom.minidom.parseString("<a>1</a>").documentElement.tagName
    'a'
    """
    sys.meta_path.insert(0, _Finder(names))
