"""Models as ONNX graphs: what any program can run without Python.

A graph is written down by computing with its values (``graph``); bell curves, mixtures and
networks are stated here, and the parts of a model beside their classes or in ``graph.py`` of their
package (``graph`` has the table of them). ``model`` puts them together.
"""

from accord.export.curves import (
    NORMAL,
    Curve,
    CurveGroup,
    MixtureGraph,
    StudentCurve,
    affine,
    by_row,
    curve_of,
    heads,
    network_outputs,
)
from accord.export.graph import (
    Array,
    Graph,
    NotExportableError,
    Value,
    joined,
    obstacles_of,
    state,
    states,
)
from accord.export.model import (
    Description,
    GraphAnswer,
    answer_graph,
    central_tails,
    content,
    estimator_graph,
    import_onnx,
    read_description,
)

__all__ = [
    "NORMAL",
    "Array",
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
    "answer_graph",
    "by_row",
    "central_tails",
    "content",
    "curve_of",
    "estimator_graph",
    "heads",
    "import_onnx",
    "joined",
    "network_outputs",
    "obstacles_of",
    "read_description",
    "state",
    "states",
]
