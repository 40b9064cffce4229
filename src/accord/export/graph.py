"""A graph of operations that is written down by computing with its values.

``x * 2 + 1`` adds two nodes to the graph of ``x``. Numbers and arrays become constants. Everything
is float64, as predictions in Python are: differences between members would amplify the rounding
of float32. Nothing here needs ONNX; :mod:`accord.export.model` writes the nodes in its form.

Each type of a model states its own graph. A package does so in its module ``graph``, which is
imported when one of its types is met for the first time: nothing here knows them, and nothing is
loaded that is not exported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

State = TypeVar("State", bound=Callable[..., Any])
Array: TypeAlias = NDArray[Any]
Operand: TypeAlias = "Value | float | int | bool | Array"


@dataclass(frozen=True)
class Node:
    """One operation; an attribute that is an array is a tensor, a list holds numbers."""

    operation: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    domain: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Body:
    """The nodes of a loop's body, and the names of what goes in and comes out."""

    nodes: list[Node]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class Graph:
    """Nodes and constants, in the order in which they were added.

    Example:
        >>> graph = Graph()
        >>> x = graph.input("x", np.float64, width=2)
        >>> y = (2 * x + 1).sum(1)
        >>> [node.operation for node in graph.nodes]
        ['Mul', 'Add', 'ReduceSum']
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.constants: dict[str, Array] = {}
        self.inputs: dict[str, tuple[type[Any], int]] = {}
        self.outputs: dict[str, tuple[type[Any], int | None]] = {}
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._count = 0

    def input(self, name: str, kind: type[Any], *, width: int) -> Value:
        """A matrix that is given, with any number of rows."""
        self.inputs[name] = (kind, width)
        return Value(self, name)

    def output(self, name: str, value: Value, kind: type[Any], *, width: int | None = None) -> None:
        """Name a result: a matrix of this width, or one value per row."""
        self.nodes.append(Node("Identity", (value.name,), (name,)))
        self.outputs[name] = (kind, width)

    def constant(self, value: Operand) -> Value:
        """A number or an array as a value; the same one is stored once."""
        if isinstance(value, Value):
            return value
        array = np.ascontiguousarray(value)
        if array.dtype == np.bool_ or array.dtype.kind in "iu":
            array = array.astype(np.int64) if array.dtype != np.bool_ else array
        elif array.dtype != np.float32:
            array = array.astype(np.float64)
        array = array.reshape(np.shape(value))
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = self._new("c")
            self.constants[self._known[key]] = array
        return Value(self, self._known[key])

    def real(self, value: Operand) -> Value:
        """A number as a float64 constant, whatever its type."""
        return value if isinstance(value, Value) else self.constant(np.asarray(value, np.float64))

    def add(self, operation: str, *inputs: Value, domain: str = "", **attributes: Any) -> Value:
        """The one result of an operation."""
        name = self._new("v")
        names = tuple(value.name for value in inputs)
        self.nodes.append(Node(operation, names, (name,), domain, attributes))
        return Value(self, name)

    def top(self, values: Value, k: int) -> Value:
        """Places of the k smallest values of each row.

        **Shape**: (N, R) → (N, k), in no particular order.
        """
        found, places = self._new("v"), self._new("v")
        size = self.constant(np.array([k]))
        attributes = {"axis": -1, "largest": 0, "sorted": 0}
        inputs = (values.name, size.name)
        self.nodes.append(Node("TopK", inputs, (found, places), "", attributes))
        return Value(self, places)

    def loop(
        self, most: int, start: Sequence[Value], step: Callable[..., tuple[Value, list[Value]]]
    ) -> list[Value]:
        """Repeat ``step`` until it says so, at most ``most`` times.

        ``step`` takes the number of the round and the state, and gives whether to go on and the
        next state. It may use any value from outside.
        """
        outer, self.nodes = self.nodes, []
        names = [self._new("s") for _ in range(2 + len(start))]
        round_number, *state = (Value(self, name) for name in (names[0], *names[2:]))
        goes_on, following = step(round_number, *state)
        # an output of a body must be made inside it
        made = [self.add("Identity", value) for value in (goes_on, *following)]
        body = Body(self.nodes, tuple(names), tuple(value.name for value in made))
        self.nodes = outer
        inputs = [self.constant(np.array(most)), self.constant(np.array(True)), *start]
        ends = tuple(self._new("v") for _ in start)
        self.nodes.append(Node("Loop", tuple(v.name for v in inputs), ends, "", {"body": body}))
        return [Value(self, name) for name in ends]

    def _new(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"


def _unary(operation: str) -> Callable[[Value], Value]:
    return lambda value: value.graph.add(operation, value)


def _binary(operation: str, *, swapped: bool = False) -> Callable[[Value, Operand], Value]:
    """Of a value and another one or a number; ``swapped`` puts the other first."""

    def add(value: Value, other: Operand) -> Value:
        pair = value, value.graph.real(other)
        return value.graph.add(operation, *(pair[::-1] if swapped else pair))

    return add


@dataclass(frozen=True, eq=False)
class Value:
    """The result of an operation, an input or a constant; arithmetic adds nodes."""

    graph: Graph
    name: str

    # numpy must leave array * value to this class
    __array_ufunc__ = None

    __add__ = __radd__ = _binary("Add")
    __sub__, __rsub__ = _binary("Sub"), _binary("Sub", swapped=True)
    __mul__ = __rmul__ = _binary("Mul")
    __truediv__, __rtruediv__ = _binary("Div"), _binary("Div", swapped=True)
    __matmul__ = _binary("MatMul")
    __lt__, __le__ = _binary("Less"), _binary("LessOrEqual")
    __gt__, __ge__ = _binary("Greater"), _binary("GreaterOrEqual")
    __and__ = _binary("And")
    __neg__, __invert__ = _unary("Neg"), _unary("Not")
    exp, log, sqrt, abs = _unary("Exp"), _unary("Log"), _unary("Sqrt"), _unary("Abs")
    floor, sigmoid, is_nan = _unary("Floor"), _unary("Sigmoid"), _unary("IsNaN")
    at_least, at_most = _binary("Max"), _binary("Min")

    def __or__(self, other: Value) -> Value:
        return self.graph.add("Or", self, other)

    def square(self) -> Value:
        return self * self

    def where(self, yes: Operand, no: Operand) -> Value:
        """``yes`` where this is true, else ``no``."""
        return self.graph.add("Where", self, self.graph.real(yes), self.graph.real(no))

    def cast(self, kind: type[Any]) -> Value:
        return self.graph.add("Cast", self, to=np.dtype(kind))

    def sum(self, axis: int, *, keep: bool = False) -> Value:
        axes = self.graph.constant(np.array([axis]))
        return self.graph.add("ReduceSum", self, axes, keepdims=int(keep))

    def mean(self, axis: int) -> Value:
        """The average over an axis, which stays, of length 1."""
        return self.graph.add("ReduceMean", self, self.graph.constant(np.array([axis])), keepdims=1)

    def total(self) -> Value:
        """The sum of all elements."""
        return self.graph.add("ReduceSum", self, keepdims=0)

    def any(self, axis: int) -> Value:
        """Whether one of some booleans is true."""
        return self.cast(np.int64).sum(axis).cast(np.bool_)

    def take(self, places: Sequence[int] | Array | Value, axis: int) -> Value:
        """The elements at these places of an axis."""
        chosen = places if isinstance(places, Value) else np.asarray(places, np.int64)
        return self.graph.add("Gather", self, self.graph.constant(chosen), axis=axis)

    def column(self, place: int) -> Value:
        """One column of a matrix, (N,)."""
        return self.take(np.array(place), 1)

    def wider(self, *axes: int) -> Value:
        """With new axes of length 1."""
        return self.graph.add("Unsqueeze", self, self.graph.constant(np.array(axes)))

    def moved(self, *order: int) -> Value:
        """With the axes in another order."""
        return self.graph.add("Transpose", self, perm=list(order))

    def shaped(self, *shape: int) -> Value:
        """With another shape, in which 0 stands for a length that stays."""
        return self.graph.add("Reshape", self, self.graph.constant(np.array(shape)))


def joined(values: Sequence[Value], axis: int) -> Value:
    """Values one after the other along an axis."""
    if len(values) == 1:
        return values[0]
    return values[0].graph.add("Concat", *values, axis=axis)


def polynomial(coefficients: Sequence[float], t: Value) -> Value:
    """Σ c_k t^k, the highest coefficient first, by Horner's rule."""
    value: Operand = coefficients[0]
    for coefficient in coefficients[1:]:
        value = value * t + coefficient
    return t.graph.real(value)


# --- which types can be exported -----------------------------------------------------------------


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
class _Stated:
    state: Callable[..., Any]
    obstacles: Callable[[Any], list[str]]


_STATED: dict[type[Any], _Stated] = {}


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
        _STATED[kind] = _Stated(function, obstacles)
        return function

    return register


def _stated_for(kind: type[Any]) -> _Stated | None:
    if kind not in _STATED:
        package = ".".join(kind.__module__.split(".")[:2])
        if package.startswith("accord.") and find_spec(f"{package}.graph") is not None:
            import_module(f"{package}.graph")
    return _STATED.get(kind)


def obstacles_of(part: Any) -> list[str]:
    """What keeps an object from being exported; nothing if it can be."""
    known = _stated_for(type(part))
    if known is None:
        return [f"a {type(part).__name__}"]
    return known.obstacles(part)


def state(part: Any, *inputs: Any) -> Any:
    """State an object's graph."""
    if obstacles := obstacles_of(part):
        raise NotExportableError(obstacles)
    return _STATED[type(part)].state(part, *inputs)
