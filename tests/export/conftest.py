"""Running a few operations as a graph."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from export_running import answers

from accord.export import Graph, Value, content


@pytest.fixture
def values_of(tmp_path: Path) -> Callable[..., list[np.ndarray]]:
    """What a function of a graph's value gives for a matrix, by onnxruntime."""

    def run(
        function: Callable[[Value], Any], x: np.ndarray, widths: tuple[int, ...] = (1, 1, 1)
    ) -> list[np.ndarray]:
        graph = Graph()
        found = function(graph.input("x", np.float64, width=x.shape[1]))
        found = found if isinstance(found, tuple | list) else [found]
        for number, (value, width) in enumerate(zip(found, widths, strict=False)):
            graph.output(f"y{number}", value, np.float64, width=width)
        (tmp_path / "graph.onnx").write_bytes(content(graph, {}))
        return list(answers(tmp_path / "graph.onnx", {"x": x}).values())

    return run
