"""Models as ONNX graphs: what any program can run without Python.

A graph is written down by computing with its values (``graph``); bell curves, mixtures and
networks are stated here, and the parts of a model beside their classes, in ``graph.py`` of their
package (``parts`` has the table of them). ``model`` puts them together.
"""

from accord.export.curves import NORMAL, BoundedCurve, Curve, StudentCurve, between, curve_of
from accord.export.file import Description, import_onnx, read_description, write
from accord.export.graph import Array, Graph, Value, joined
from accord.export.mixture import CurveGroup, MixtureGraph
from accord.export.model import GraphAnswer, central_tails, export_estimator, write_answer
from accord.export.networks import affine, by_row, heads, network_outputs, sigmoid
from accord.export.parts import NotExportableError, obstacles_of, state, states

__all__ = [
    "NORMAL",
    "Array",
    "BoundedCurve",
    "Curve",
    "CurveGroup",
    "Description",
    "Graph",
    "GraphAnswer",
    "MixtureGraph",
    "NotExportableError",
    "StudentCurve",
    "Value",
    "affine",
    "between",
    "by_row",
    "central_tails",
    "curve_of",
    "export_estimator",
    "heads",
    "import_onnx",
    "joined",
    "network_outputs",
    "obstacles_of",
    "read_description",
    "sigmoid",
    "state",
    "states",
    "write",
    "write_answer",
]
