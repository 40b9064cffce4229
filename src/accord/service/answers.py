"""From predictions to the body of an answer."""

import io
import json
import math
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from accord.service.bodies import BodyFormat
from accord.tables import Surprises

# A header must stay short: further remarks are left out.
_HEADER_CHARACTERS = 2_000


@dataclass(frozen=True)
class ServiceAnswer:
    """What is said of the rows of a request, column by column, and what was odd about them."""

    columns: dict[str, NDArray[Any]]
    surprises: Surprises

    @staticmethod
    def joined(parts: "list[ServiceAnswer]") -> "ServiceAnswer":
        """The answers to the pieces of a request, in their order."""
        if len(parts) == 1:
            return parts[0]
        columns = {
            name: np.concatenate([part.columns[name] for part in parts])
            for name in parts[0].columns
        }
        return ServiceAnswer(columns, reduce(add, (part.surprises for part in parts)))

    @property
    def warnings(self) -> list[str]:
        return self.surprises.sentences()

    @property
    def n_unusual(self) -> int:
        return int(self.columns["unusual"].sum())


def encode(answer: ServiceAnswer, kind: BodyFormat, coverages: tuple[float, ...]) -> bytes:
    """The body of an answer."""
    if kind == "json":
        names = list(answer.columns)
        values = zip(*(_plain(column) for column in answer.columns.values()), strict=True)
        return compact_json(
            {
                "predictions": [dict(zip(names, row, strict=True)) for row in values],
                "coverage": list(coverages),
                "warnings": answer.warnings,
            }
        )
    table = pa.table(answer.columns)
    sink = io.BytesIO()
    if kind == "csv":
        pacsv.write_csv(table, sink)
    else:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue()


def warning_header(answer: ServiceAnswer) -> dict[str, str]:
    """Warnings where the body has no place for them, as a list in JSON with ASCII letters only."""
    kept: list[str] = []
    for warning in answer.warnings:
        if len(json.dumps([*kept, warning])) > _HEADER_CHARACTERS:
            break
        kept.append(warning)
    return {"Accord-Warnings": json.dumps(kept)} if answer.warnings else {}


def compact_json(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _plain(column: NDArray[Any]) -> list[Any]:
    """Values as JSON has them: what is not a finite number is null."""
    values: list[Any] = column.tolist()
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        return [value if math.isfinite(value) else None for value in values]
    return values
