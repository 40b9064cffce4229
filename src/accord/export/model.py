"""A whole model as one graph with named outputs, and as a file: checked, written whole or not."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from accord import __version__
from accord._checks import check_probability
from accord._types import Floats
from accord._wording import byte_size
from accord.export.curves import MixtureGraph
from accord.export.graph import Array, Body, Graph, Node, Value, joined, state

# The oldest set of operations that has all of them in float64; TreeEnsemble came with the second.
OPSET, ML_OPSET = 18, 5
_IR_VERSION = 10
_ML = "ai.onnx.ml"
# A file of ONNX is one message of protobuf, which ends there.
_LARGEST = 2**31 - 2**20


def central_tails(levels: Floats) -> tuple[Floats, Floats]:
    """Of each level the smaller tail, and on which side it lies: 1 below, −1 above."""
    return np.minimum(levels, 1 - levels), np.where(levels <= 0.5, 1.0, -1.0)


@dataclass(frozen=True)
class GraphAnswer:
    """What a model's graph says of rows.

    ``tails`` gives the tail probabilities of the mixture at which quantiles of some levels are
    taken, and their sides; as far as a row is ``unlike`` the training rows, they are lowered to
    ``far_tails``, as by :class:`RankCalibrated`. ``parts`` are the variances between models and
    from the distance to the training rows, within the mixture's. ``score`` is that distance, 1
    where rows begin to be unusual; ``unusual`` whether they are.

    **Shape**: unlike, parts, score and unusual (N, 1), or None for a model that does not know.
    """

    mixture: MixtureGraph
    bounds: tuple[float, float] = (-np.inf, np.inf)
    tails: Callable[[Floats], tuple[Floats, Floats]] = central_tails
    far_tails: Callable[[Floats], tuple[Floats, Floats]] = central_tails
    unlike: Value | None = None
    parts: tuple[Value, Value] | None = None
    score: Value | None = None
    unusual: Value | None = None


def estimator_graph(model: Any, *, levels: Sequence[float], metadata: Mapping[str, Any]) -> bytes:
    """An estimator of a matrix ``X`` as the content of an ONNX file."""
    import_onnx()
    graph = Graph()
    names = getattr(model, "feature_names_in_", None)
    width = model.n_features_in_
    answer = state(model, graph.input("X", np.float64, width=width))
    columns = [f"x{i}" for i in range(width)] if names is None else [str(n) for n in names]
    described = {"target": model.target_names_[0], "inputs": {"X": columns}, **metadata}
    return answer_graph(graph, answer, levels=levels, metadata=described)


def answer_graph(
    graph: Graph, answer: GraphAnswer, *, levels: Sequence[float], metadata: Mapping[str, Any]
) -> bytes:
    """State the outputs; the content of an ONNX file.

    Outputs: ``y_mean`` and ``y_std`` (N,), ``y_quantiles`` (N, levels); for a model that knows
    them, the parts of the deviation ``y_noise``, ``y_disagreement`` and ``y_distance`` (N,), and
    ``unusual_score`` and ``unusual`` (N,).
    """
    found = np.atleast_1d(np.asarray(levels, dtype=np.float64))
    if not found.size:
        raise ValueError(
            "levels must hold at least one probability, got none. Leave them out for the ends and "
            "the middle of the model's interval."
        )
    check_probability("levels", found, strict=True, remedy="Write 0.95 for 95 %.")
    quantiles = _quantiles(answer, found)
    mean, std = answer.mixture.moments()
    mean = mean.at_least(answer.bounds[0]).at_most(answer.bounds[1])
    graph.output("y_mean", mean.column(0), np.float64)
    graph.output("y_std", std.column(0), np.float64)
    graph.output("y_quantiles", quantiles, np.float64, width=len(found))
    for name, part in _parts(answer, std).items():
        graph.output(name, part.column(0), np.float64)
    if answer.score is not None:
        graph.output("unusual_score", answer.score.column(0), np.float64)
    if answer.unusual is not None:
        graph.output("unusual", answer.unusual.column(0), np.bool_)
    return content(graph, metadata={"levels": found.tolist(), **metadata})


def _parts(answer: GraphAnswer, std: Value) -> dict[str, Value]:
    """The parts of the deviation; (N, 1) each."""
    if answer.parts is None:
        return {}
    total = std.square()
    disagreement = answer.parts[0].at_most(total)
    distance = answer.parts[1].at_most(total - disagreement)
    noise = (total - disagreement - distance).at_least(0.0)
    named = {"y_noise": noise, "y_disagreement": disagreement, "y_distance": distance}
    return {name: part.sqrt() for name, part in named.items()}


def _quantiles(answer: GraphAnswer, levels: Floats) -> Value:
    """Quantiles within the bounds, by one search for all.

    A tail of probability 0 begins where the support ends.

    **Shape**: levels (L,) → (N, L).
    """
    tails, sign = answer.tails(levels)
    some = np.flatnonzero(tails > 0)
    asked, far = tails[some], answer.far_tails(levels)[0][some]
    own = None
    if answer.unlike is not None and (far < asked).any():
        own = asked[None] - answer.unlike * (asked - far).clip(min=0.0)[None]
    found = answer.mixture.quantiles(asked, sign[some], own) if len(some) else None
    zero = 0.0 * answer.mixture.moments()[0]
    ends = np.where(sign > 0, answer.mixture.lowest, np.inf)
    column = dict(zip(some.tolist(), range(len(some)), strict=True))
    columns = [
        found.take([column[place]], 1)
        if found is not None and place in column
        else zero + float(ends[place])
        for place in range(len(levels))
    ]
    low, high = answer.bounds
    return joined(columns, 1).at_least(low).at_most(high)


# --- ONNX ----------------------------------------------------------------------------------------


def import_onnx() -> ModuleType:
    """The onnx package, or what to do without it."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError(
            "export needs the package onnx, which is not installed. "
            "Run: pip install 'accord[export]'"
        ) from error
    return onnx


@dataclass(frozen=True)
class Description:
    """What an exported file says of itself."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    levels: tuple[float, ...]


def read_description(path: str | Path) -> Description:
    """Inputs, outputs and levels of an exported file."""
    model = import_onnx().load(str(path))
    properties = {entry.key: entry.value for entry in model.metadata_props}
    return Description(
        tuple(value.name for value in model.graph.input),
        tuple(value.name for value in model.graph.output),
        tuple(json.loads(properties["levels"])),
    )


def content(graph: Graph, metadata: Mapping[str, Any]) -> bytes:
    """The graph as the content of a checked ONNX file; metadata are JSON unless they are text."""
    onnx = import_onnx()
    n_bytes = sum(array.nbytes for array in graph.constants.values())
    if n_bytes > _LARGEST:
        raise ValueError(
            f"an ONNX file holds at most 2 GB, got a model of {byte_size(n_bytes)}. "
            "Fit it on fewer rows, or with less effort."
        )
    helper = onnx.helper
    made = helper.make_graph(
        [_node(onnx, node) for node in graph.nodes],
        "accord",
        [_matrix(onnx, name, kind, width) for name, (kind, width) in graph.inputs.items()],
        [_matrix(onnx, name, kind, width) for name, (kind, width) in graph.outputs.items()],
        [onnx.numpy_helper.from_array(array, name) for name, array in graph.constants.items()],
    )
    model = helper.make_model(
        made,
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(_ML, ML_OPSET)],
        producer_name="accord",
        producer_version=__version__,
        ir_version=_IR_VERSION,
    )
    known = {"accord_version": __version__, "opset": {"ai.onnx": OPSET, _ML: ML_OPSET}}
    texts = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in {**known, **metadata}.items()
    }
    helper.set_model_props(model, texts)
    onnx.checker.check_model(model, full_check=True)
    found: bytes = model.SerializeToString()
    return found


def _matrix(onnx: ModuleType, name: str, kind: type[Any], width: int | None) -> Any:
    shape: list[str | int] = ["rows"] if width is None else ["rows", width]
    return onnx.helper.make_tensor_value_info(name, _type(onnx, kind), shape)


def _type(onnx: ModuleType, kind: type[Any]) -> int:
    return int(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind)))


def _node(onnx: ModuleType, node: Node) -> Any:
    attributes = {name: _attribute(onnx, value) for name, value in node.attributes.items()}
    return onnx.helper.make_node(
        node.operation, node.inputs, node.outputs, domain=node.domain, **attributes
    )


def _attribute(onnx: ModuleType, value: Any) -> Any:
    if isinstance(value, Body):
        return _body(onnx, value)
    if isinstance(value, np.dtype):
        return _type(onnx, value.type)
    if isinstance(value, np.ndarray):
        array: Array = value
        return onnx.numpy_helper.from_array(array)
    return value


def _body(onnx: ModuleType, body: Body) -> Any:
    """A loop's body; the types of its values follow from those that go in."""
    helper, none = onnx.helper, onnx.TensorProto
    number = helper.make_tensor_value_info(body.inputs[0], none.INT64, [])
    goes_on = helper.make_tensor_value_info(body.inputs[1], none.BOOL, [])
    state = [helper.make_empty_tensor_value_info(name) for name in body.inputs[2:]]
    outputs = [helper.make_empty_tensor_value_info(name) for name in body.outputs]
    nodes = [_node(onnx, node) for node in body.nodes]
    return helper.make_graph(nodes, "search", [number, goes_on, *state], outputs)
