"""Every step on embedded data: a table, a model, a report, predictions."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from accord._files import atomic_output, atomic_outputs, check_outputs
from accord._progress import Progress
from accord._wording import json_text
from accord.datasets import load
from accord.tables import TableWriter
from accord.workflows.fit import FitResult, fit_table
from accord.workflows.predict import PredictResult, predict_table

_TARGET = "progression"
_NEW_ROWS = 20


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration did and where its files are."""

    folder: Path
    fit: FitResult
    predictions: PredictResult
    report: Path
    steps: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            "report": str(self.report),
            "fit": self.fit.to_json(),
            "predictions": self.predictions.to_json(),
        }


def run_demo(
    folder: str | Path = "accord-demo",
    *,
    write_report: Callable[[FitResult], str],
    seed: int = 0,
    force: bool = False,
    progress: Progress | None = None,
) -> DemoResult:
    """Fit the diabetes study that comes with scikit-learn and predict patients kept back.

    Args:
        folder: Where tables, model, predictions and report are written.
        write_report: Turns the result of the fit into a page.
        seed: The same number gives the same model.
        force: Replace files that exist.
        progress: Called with the share of the work that is done.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    train, new, predictions = (
        folder / name for name in ("patients.csv", "new-patients.csv", "predictions.csv")
    )
    model, report, document = (
        folder / name for name in ("model.accord", "report.html", "report.json")
    )
    check_outputs((train, new, predictions, model, report, document), force=force)
    known, unknown = _tables(seed)
    for frame, path in ((known, train), (unknown, new)):
        with atomic_output(path, force=force) as part, TableWriter(part) as writer:
            writer.write(pa.Table.from_pandas(frame, preserve_index=False))
    result = fit_table(train, target=_TARGET, seed=seed, progress=progress)
    page = write_report(result)
    with atomic_outputs([model, report, document], force=force) as parts:
        result.model.save(parts[0])
        parts[1].write_text(page, encoding="utf-8")
        parts[2].write_text(json_text(result.to_json()) + "\n", encoding="utf-8")
    predicted = predict_table(
        result.model, new, output=predictions, id_column="patient", force=force
    )
    steps = (
        f"accord fit {train} --target {_TARGET}",
        f"accord predict {model} {new} --id patient -o {predictions}",
    )
    return DemoResult(folder, result, predicted, report, steps)


def _tables(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The study as people would write it down: most rows to learn from, some without an answer."""
    data = load("diabetes")
    frame = pd.DataFrame(np.asarray(data.X), columns=list(data.feature_names))
    frame[_TARGET] = np.asarray(data.y)
    order = np.random.default_rng(seed).permutation(len(frame))
    new = frame.iloc[np.sort(order[:_NEW_ROWS])].drop(columns=_TARGET)
    new.insert(0, "patient", [f"P{number:03d}" for number in range(1, _NEW_ROWS + 1)])
    return frame.iloc[np.sort(order[_NEW_ROWS:])], new
