"""A saved model as an ONNX file, for programs without Python."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accord import persistence
from accord._files import OptionError, atomic_output, check_inputs, check_output
from accord._wording import quoted
from accord.estimators import DistributionalRegressor
from accord.tabular import TableRegressor

Exportable = TableRegressor | DistributionalRegressor


@dataclass(frozen=True)
class ExportResult:
    """What was written, and what goes in and comes out of it."""

    path: Path
    size: int
    levels: tuple[float, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return {
            "output": str(self.path),
            "bytes": self.size,
            "levels": list(self.levels),
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "seconds": round(self.seconds, 2),
        }


def export_model(
    model: str | Path | Exportable,
    *,
    output: str | Path,
    levels: Sequence[float] = (),
    force: bool = False,
) -> ExportResult:
    """Write a fitted model as one ONNX graph.

    A part of the model that has no graph is named in an error, and nothing is written.

    Args:
        model: A fitted model, or its file.
        output: The file to write.
        levels: Those of the quantiles, by default the ends of the model's interval and the median.
        force: Replace an output that exists.
    """
    start = time.perf_counter()
    check_output(output, inputs=[model] if isinstance(model, str | Path) else [], force=force)
    fitted = _loaded(model) if isinstance(model, str | Path) else model
    given = {"levels": list(levels)} if levels else {}
    with atomic_output(output, force=force) as part:
        fitted.export(part, **given)
        return _described(part, Path(output), time.perf_counter() - start)


def _loaded(path: str | Path) -> Exportable:
    check_inputs([path])
    model = persistence.load(path, object)
    if not isinstance(model, Exportable):
        raise OptionError(
            f"model file {quoted(Path(path).name)} must hold an estimator of accord that predicts "
            f"distributions, got a {type(model).__name__}. Export a model of 'accord fit'."
        )
    return model


def _described(part: Path, output: Path, seconds: float) -> ExportResult:
    """What the written file says of itself."""
    from accord.export import read_description

    found = read_description(part)
    return ExportResult(
        output, part.stat().st_size, found.levels, found.inputs, found.outputs, seconds
    )
