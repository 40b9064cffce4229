"""The model in use: loaded and tried out, and exchanged as a whole when its file changes."""

import logging
import os
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord._types import Bools, Floats
from accord.export import estimator_graph, obstacles_of
from accord.portfolio import PortfolioRegressor
from accord.service.bodies import BODY, Predicted, ServiceAnswer
from accord.service.records import Records
from accord.tables import ConformedRows, conform_rows, file_sha256
from accord.tabular import TableRegressor
from accord.workflows import load_model, prediction_columns

_LOG = logging.getLogger("accord.service")
_OUTPUTS = ["y_mean", "y_std", "y_quantiles", "y_noise", "y_disagreement", "y_distance", "unusual"]
# Largest difference between a graph and its model, of the target's range.
_APART = 1e-5


@dataclass(frozen=True)
class Served:
    """A model with all that answering needs; ``examples`` are rows, ``answer`` is what they get."""

    model: TableRegressor
    graph: "EngineGraph | None"
    records: Records
    file: str
    sha256: str
    loaded: datetime
    examples: list[dict[str, Any]]
    answer: ServiceAnswer

    def columns(
        self, features: Floats, unlike: Bools, coverages: tuple[float, ...]
    ) -> dict[str, NDArray[Any]]:
        """What is said of rows, by the graph if it can say it; ``unlike`` marks unusual ones."""
        if self.graph is not None and coverages == self.graph.coverages:
            found = self.graph.columns(features)
        else:
            dist, unusual = self.model.answer(features)
            found = prediction_columns(dist, unusual, coverages)
        return {**found, "unusual": found["unusual"] | unlike}

    def about(self) -> dict[str, Any]:
        """The card, the columns and where the model comes from."""
        schema = self.records.schema
        return {
            "file": self.file,
            "sha256": self.sha256,
            "loaded": self.loaded.isoformat(timespec="seconds"),
            "target": schema.target,
            "coverage": self.model.coverage,
            "columns": [
                {
                    "name": column.name,
                    "kind": column.kind,
                    "categories": list(column.categories),
                    "low": column.low,
                    "high": column.high,
                }
                for column in schema.columns
            ],
            "ignored": schema.ignored,
            "examples": self.examples,
            "card": self.model.card_.to_dict(),
        }


def load_served(path: Path) -> Served:
    """Load a model file and predict example rows with it, so that what serves is known to work."""
    sha256 = file_sha256(path)
    model = load_model(path)
    records = Records(model.schema_, model.profile_)
    examples = records.examples()
    judged = conform_rows(records.table(examples), records.schema, source=BODY)
    answer = _answered(model, judged)
    return Served(
        model=model,
        graph=_checked_graph(model, judged, answer),
        records=records,
        file=path.name,
        sha256=sha256,
        loaded=datetime.now(UTC),
        examples=examples,
        answer=answer,
    )


def _answered(model: TableRegressor, judged: ConformedRows) -> ServiceAnswer:
    dist, unusual = model.answer(model.transform(judged.X))
    columns = prediction_columns(dist, unusual | judged.unlike, (model.coverage,))
    return ServiceAnswer(Predicted(columns), slice(None), judged.surprises())


@final
class EngineGraph:
    """The model's engine as an exported graph, run by onnxruntime.

    It answers as Python does up to rounding, a small batch two to three times as fast, and without
    holding Python's lock: requests are read and written meanwhile.
    """

    def __init__(self, model: TableRegressor) -> None:
        import onnxruntime

        levels = [(1 - model.coverage) / 2, (1 + model.coverage) / 2]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            estimator_graph(model.engine_, levels=levels, metadata={}),
            options,
            providers=["CPUExecutionProvider"],
        )
        self.coverages = (model.coverage,)

    def columns(self, features: Floats) -> dict[str, NDArray[Any]]:
        """Mean, deviation, interval, parts and flag of each row, as a prediction has them."""
        mean, std, ends, *parts, unusual = self._session.run(_OUTPUTS, {"X": features})
        named = dict(zip(("noise", "disagreement", "distance"), parts, strict=True))
        lower, upper = ends.T
        columns = {"mean": mean, "std": std, "lower": lower, "upper": upper}
        return {**columns, **named, "unusual": unusual}


def _checked_graph(
    model: TableRegressor, judged: ConformedRows, answer: ServiceAnswer
) -> EngineGraph | None:
    """The engine's graph if it has one that says of the examples what Python says."""
    if not isinstance(model.engine_, PortfolioRegressor) or obstacles_of(model.engine_):
        return None
    try:
        graph = EngineGraph(model)
    except ImportError:
        _LOG.info("onnxruntime is not installed: predictions take longer.")
        return None
    found = graph.columns(model.transform(judged.X))
    wanted = answer.columns
    apart = [np.abs(found[name] - wanted[name]) for name in wanted if name != "unusual"]
    low, high = model.card_.target_range
    if np.max(apart) <= _APART * (high - low):
        return graph
    _LOG.warning("the exported graph differs from the model, which predicts by itself.")
    return None


@final
class ModelFile:
    """A model file and the model that was last loaded from it.

    Requests keep the model that they began with; ``current`` is exchanged in one step, once a new
    file has been loaded and tried out. A file that cannot be used leaves the old model in place.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._state = _state(path)
        self.current = load_served(path)
        self.reloads = 0
        self.failure = ""
        self._one_at_a_time = threading.Lock()

    def reload(self) -> str:
        """Load the file again if it has changed; what was done, in a sentence."""
        with self._one_at_a_time:
            try:
                state = _state(self.path)
                if state == self._state:
                    return f"{self.path.name} has not changed: the model in use stays."
                fresh = load_served(self.path)
            except Exception as error:  # whatever is wrong with the file, the old model serves on
                self.failure = " ".join(str(error).split()) or type(error).__name__
                return f"{self.path.name} was not loaded, the old model stays: {self.failure}"
            self.current, self._state = fresh, state
            self.reloads, self.failure = self.reloads + 1, ""
            return f"{self.path.name} was loaded again."


def _state(path: Path) -> tuple[int, int, int]:
    """What changes when a file is written anew."""
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size, found.st_ino
