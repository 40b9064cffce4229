"""The datasets that the library knows, as a list and as tables."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from accord._files import OptionError, atomic_output
from accord.datasets import DatasetInfo, info, load, names
from accord.tables import TableWriter, refuse_unknown_suffix


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
