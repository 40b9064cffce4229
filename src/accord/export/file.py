"""From a graph to an ONNX file: checked, and written whole or not at all."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from accord._files import write_whole
from accord._version import __version__
from accord.export.graph import Array, Body, Graph, Node

# The oldest set of operations that has all of them in float64; TreeEnsemble came with the second.
OPSET, ML_OPSET = 18, 5
_IR_VERSION = 10
_ML = "ai.onnx.ml"
# A file of ONNX is one message of protobuf, which ends there.
_LARGEST = 2**31 - 2**20


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


def write(graph: Graph, path: str | Path, *, metadata: Mapping[str, Any]) -> None:
    """Write a graph with its metadata, each entry as JSON unless it is text."""
    write_whole(path, to_onnx(graph, metadata).SerializeToString())


def to_onnx(graph: Graph, metadata: Mapping[str, Any]) -> Any:
    """The graph as a checked ``onnx.ModelProto``."""
    onnx = import_onnx()
    size = sum(array.nbytes for array in graph.constants.values())
    if size > _LARGEST:
        raise ValueError(
            f"an ONNX file holds at most 2 GB, got a model of {size / 2**30:.1f} GB. "
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
    return model


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
