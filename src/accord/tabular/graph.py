"""A whole table model as one ONNX file: columns in, distributions and flags out."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord._files import write_whole
from accord.export import (
    Graph,
    GraphAnswer,
    NotExportableError,
    answer_graph,
    import_onnx,
    obstacles_of,
    state,
)
from accord.tables import TableInputs, described_inputs, state_unlike

if TYPE_CHECKING:
    from accord.tabular.regressor import TableRegressor


def export_table(
    model: "TableRegressor", path: str | Path, *, levels: Sequence[float] | None
) -> None:
    """Write a fitted table model; see :meth:`TableRegressor.export`."""
    import_onnx()
    if obstacles := obstacles_of(model.engine_):
        raise NotExportableError(obstacles)
    schema, graph = model.schema_, Graph()
    inputs = TableInputs.of(graph, schema)
    answer: GraphAnswer = state(model.engine_, state(model.encoder_, inputs))
    unlike = state_unlike(inputs, schema)
    if unlike is not None and answer.unusual is not None:
        answer = replace(answer, unusual=answer.unusual | unlike)
    found = central_levels(model.coverage) if levels is None else levels
    write_whole(path, answer_graph(graph, answer, levels=found, metadata=_metadata(model)))


def central_levels(coverage: float) -> list[float]:
    """The ends of the central interval, and the median between them."""
    return [round((1 - coverage) / 2, 12), 0.5, round((1 + coverage) / 2, 12)]


def _metadata(model: "TableRegressor") -> dict[str, Any]:
    card = model.card_
    return {
        "target": model.schema_.target,
        "inputs": described_inputs(model.schema_),
        "coverage": model.coverage,
        "n_training_rows": card.n_rows,
    }
