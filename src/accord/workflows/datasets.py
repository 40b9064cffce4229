"""Data that the library knows: as a list and as tables."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from accord._files import OptionError, atomic_output
from accord.datasets import DatasetInfo, info, load, names
from accord.tables import TableWriter, refuse_unknown_suffix

# Patients of the demonstration that a model is asked about.
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
    _write(pa.table(columns), path, force=force)
    return len(data.y)


def export_demo(
    known: str | Path, new: str | Path, *, random_state: int = 0, force: bool = False
) -> str:
    """Write the diabetes study as people would have it, and return the name of its target.

    Args:
        known: The file of the patients to learn from, which are most.
        new: The file of the others, each with a number and none with the target.
        random_state: Which patients are new.
        force: Replace files that exist.
    """
    data = load("diabetes")
    frame = data.frame
    order = np.random.default_rng(random_state).permutation(len(data.y))
    later, earlier = np.sort(order[:_NEW_ROWS]), np.sort(order[_NEW_ROWS:])
    asked = frame.iloc[later].drop(columns=data.target_name)
    asked.insert(0, "patient", [f"P{number:03d}" for number in range(1, _NEW_ROWS + 1)])
    for rows, path in ((frame.iloc[earlier], known), (asked, new)):
        _write(pa.Table.from_pandas(rows, preserve_index=False), path, force=force)
    return data.target_name


def _write(table: pa.Table, path: str | Path, *, force: bool) -> None:
    with atomic_output(path, force=force) as part, TableWriter(part) as writer:
        writer.write(table)


def _entry(name: str) -> DatasetInfo:
    try:
        return info(name)
    except ValueError as error:
        raise OptionError(str(error)) from error
