"""Packages whose names are loaded on first use: whoever needs one pays for no other."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def loader(package: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """What a package has for ``__getattr__``, from its modules to the names that each holds.

    Under ``""`` stand the names of modules themselves.

    >>> load = loader("accord", {"splits": ("tail_split",)})
    >>> load("tail_split").__module__
    'accord.splits'
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def load(name: str) -> object:
        own = sys.modules[package]
        if name not in home_of:
            # name and obj let Python add "Did you mean: …?"
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}", name=name, obj=own
            )
        home = home_of[name]
        module = import_module(f"{package}.{home or name}")
        value: object = getattr(module, name) if home else module
        setattr(own, name, value)
        return value

    return load
