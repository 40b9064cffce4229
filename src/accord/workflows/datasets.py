"""Data that the library knows: as a list, as tables, and every step on those that are built in."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from accord._files import OptionError, atomic_output, atomic_outputs, check_outputs
from accord._progress import Progress
from accord._wording import json_text
from accord.datasets import DatasetInfo, info, load, names
from accord.tables import TableWriter, refuse_unknown_suffix

if TYPE_CHECKING:
    from accord.workflows.fit import FitResult
    from accord.workflows.predict import PredictResult

_DEMO_TARGET = "progression"
_NEW_ROWS = 20


@dataclass(frozen=True)
class DatasetsResult:
    """What is known of some datasets."""

    entries: tuple[DatasetInfo, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "datasets": [
                {
                    "name": entry.name,
                    "title": entry.title,
                    "rows": entry.n,
                    "columns": entry.d,
                    "target": entry.target[0],
                    "description": entry.description,
                    "licence": entry.licence,
                    "download": bool(entry.files),
                }
                for entry in self.entries
            ]
        }


def describe_datasets(name: str | None = None) -> DatasetsResult:
    """All datasets, or the one of that name."""
    return DatasetsResult(tuple(_entry(known) for known in (names() if name is None else [name])))


def export_dataset(name: str, path: str | Path, *, force: bool = False) -> int:
    """Write a dataset as a CSV or Parquet table and return the number of rows.

    Args:
        name: The dataset's name.
        path: The file to write, whose ending names the format.
        force: Replace a file that exists.
    """
    path = refuse_unknown_suffix(path)
    data = load(_entry(name).name)
    columns = dict(zip(data.feature_names, data.X.T, strict=True)) | {data.target_name: data.y}
    with atomic_output(path, force=force) as part, TableWriter(part) as writer:
        writer.write(pa.table(columns))
    return len(data.y)


def _entry(name: str) -> DatasetInfo:
    try:
        return info(name)
    except ValueError as error:
        raise OptionError(str(error)) from error


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration did and where its files are."""

    folder: Path
    fit: "FitResult"
    predictions: "PredictResult"
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
    write_report: "Callable[[FitResult], str]",
    random_state: int = 0,
    force: bool = False,
    progress: Progress | None = None,
) -> DemoResult:
    """Fit the diabetes study that comes with scikit-learn and predict patients kept back.

    Args:
        folder: Where tables, model, predictions and report are written.
        write_report: Turns the result of the fit into a page.
        random_state: The same number gives the same model.
        force: Replace files that exist.
        progress: Called with the share of the work that is done.
    """
    # what lists datasets does not wait for what trains
    from accord.tabular import TableRegressor
    from accord.workflows.fit import fit_table
    from accord.workflows.predict import predict_table

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    train, new, predictions = (
        folder / name for name in ("patients.csv", "new-patients.csv", "predictions.csv")
    )
    model, report, document = (
        folder / name for name in ("model.accord", "report.html", "report.json")
    )
    check_outputs((train, new, predictions, model, report, document), force=force)
    known, unknown = _tables(random_state)
    for frame, path in ((known, train), (unknown, new)):
        with atomic_output(path, force=force) as part, TableWriter(part) as writer:
            writer.write(pa.Table.from_pandas(frame, preserve_index=False))
    regressor = TableRegressor(random_state=random_state)
    result = fit_table(regressor, train, _DEMO_TARGET, progress=progress)
    page = write_report(result)
    with atomic_outputs([model, report, document], force=force) as parts:
        result.model.save(parts[0])
        parts[1].write_text(page, encoding="utf-8")
        parts[2].write_text(json_text(result.to_json()) + "\n", encoding="utf-8")
    predicted = predict_table(
        result.model, new, output=predictions, id_column="patient", force=force
    )
    steps = (
        f"accord fit {train} --target {_DEMO_TARGET}",
        f"accord predict {model} {new} --id patient -o {predictions}",
    )
    return DemoResult(folder, result, predicted, report, steps)


def _tables(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The study as people would write it down: most rows to learn from, some without an answer."""
    data = load("diabetes")
    frame = pd.DataFrame(np.asarray(data.X), columns=list(data.feature_names))
    frame[_DEMO_TARGET] = np.asarray(data.y)
    order = np.random.default_rng(seed).permutation(len(frame))
    new = frame.iloc[np.sort(order[:_NEW_ROWS])].drop(columns=_DEMO_TARGET)
    new.insert(0, "patient", [f"P{number:03d}" for number in range(1, _NEW_ROWS + 1)])
    return frame.iloc[np.sort(order[_NEW_ROWS:])], new
