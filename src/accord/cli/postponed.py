"""Modules that other packages import before anybody knows whether they are needed."""

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, final

# scikit-learn imports the first for one of its repairs of old versions, torch the second for
# tensors without data. A third of the time in which a prediction starts goes into the two.
SELDOM_NEEDED = ("scipy.stats", "torch._meta_registrations")


@final
class Postponed(ModuleType):
    """A module that is loaded when one of its names is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__path__":
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        real = importlib.import_module(self.__name__)
        vars(self).update(vars(real))
        return getattr(real, name)


def postpone(*names: str) -> None:
    """Load these modules only when they are used; those that are there already stay.

    For a process of our own: in somebody else's, a module is what they expect it to be.
    """
    for name in names:
        if name not in sys.modules:
            module = Postponed(name)
            module.__spec__ = ModuleSpec(name, None)
            sys.modules[name] = module
