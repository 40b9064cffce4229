"""Which parts of a model can be exported: each type states its own graph, in one table.

A package states the graphs of its types in its module ``graph``, which is imported when one of them
is met for the first time: nothing here knows them, and nothing is loaded that is not exported.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

State = TypeVar("State", bound=Callable[..., Any])


class NotExportableError(ValueError):
    """A model with parts that no graph is known for; the message names all of them."""

    def __init__(self, obstacles: Sequence[str]) -> None:
        listed = "; ".join(obstacles)
        super().__init__(
            f"every part of an exported model must be one that ONNX can state, got {listed}. "
            "Nothing was written. Fit the model without it, or predict with accord."
        )
        self.obstacles = tuple(obstacles)


@dataclass(frozen=True)
class _Part:
    state: Callable[..., Any]
    obstacles: Callable[[Any], list[str]]


_PARTS: dict[type[Any], _Part] = {}


def _none(part: Any) -> list[str]:
    return []


def states(
    kind: type[Any], *, obstacles: Callable[[Any], list[str]] = _none
) -> Callable[[State], State]:
    """Register the function that states the graph of a type.

    ``obstacles`` names what keeps an object of that type from being exported, in words that follow
    "got"; it is asked before anything is stated.
    """

    def register(function: State) -> State:
        _PARTS[kind] = _Part(function, obstacles)
        return function

    return register


def _part_for(kind: type[Any]) -> _Part | None:
    if kind not in _PARTS:
        package = ".".join(kind.__module__.split(".")[:2])
        if package.startswith("accord.") and find_spec(f"{package}.graph") is not None:
            import_module(f"{package}.graph")
    return _PARTS.get(kind)


def obstacles_of(part: Any) -> list[str]:
    """What keeps an object from being exported; nothing if it can be."""
    known = _part_for(type(part))
    if known is None:
        return [f"a {type(part).__name__}"]
    return known.obstacles(part)


def state(part: Any, *inputs: Any) -> Any:
    """State an object's graph."""
    if obstacles := obstacles_of(part):
        raise NotExportableError(obstacles)
    return _PARTS[type(part)].state(part, *inputs)
