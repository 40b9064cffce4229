"""The model in use, exchanged as a whole when its file changes, and its answers to questions.

Rows of several requests are predicted as one batch, since a batch costs far more than one of its
rows.
"""

import logging
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord._types import Bools, Floats
from accord.distributions import PARTS
from accord.export import estimator_graph, obstacles_of
from accord.portfolio import PortfolioRegressor
from accord.service.bodies import BODY, BodyRows, Predicted, Records, ServiceAnswer
from accord.tables import ConformedRows, Surprises, conform_rows, file_sha256
from accord.tabular import TableRegressor
from accord.workflows import load_model, prediction_columns

_LOG = logging.getLogger("accord.service")
_OUTPUTS = ["y_mean", "y_std", "y_quantiles", *(f"y_{part}" for part in PARTS), "unusual"]
# Largest difference between a graph and its model, of the target's range.
_APART = 1e-5
_NOTHING_ODD = Surprises()


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
        named = dict(zip(PARTS, parts, strict=True))
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


# --- questions, answered together ----------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """Rows to predict, and how; ``first_row`` is their place in the request, from 1."""

    served: Served
    rows: BodyRows
    coverages: tuple[float, ...]
    strict: bool = False
    first_row: int = 1

    def __len__(self) -> int:
        return len(self.rows)


def predict_together(questions: Sequence[Question]) -> list[ServiceAnswer | Exception]:
    """An answer to each question, or what is wrong with it; none suffers from another's fault.

    Where they cannot be answered together, halves are tried: few batches, however many requests.
    """
    alike: dict[tuple[int, tuple[float, ...]], dict[int, Question]] = {}
    for place, question in enumerate(questions):
        alike.setdefault((id(question.served), question.coverages), {})[place] = question
    found: dict[int, ServiceAnswer | Exception] = {}
    try:
        for own in alike.values():
            found |= _answers(own)
    except Exception as error:
        if len(questions) == 1:
            return [error]
        half = len(questions) // 2
        return predict_together(questions[:half]) + predict_together(questions[half:])
    return [found[place] for place in range(len(questions))]


def _answers(questions: dict[int, Question]) -> dict[int, ServiceAnswer]:
    """What one model says of all rows at once, for the same coverages."""
    (served, coverages), *_ = [(q.served, q.coverages) for q in questions.values()]
    judged = list(_judged(served, questions))
    x = np.concatenate([served.model.transform(rows.X) for rows, _ in judged])
    unlike = np.concatenate([rows.unlike for rows, _ in judged])
    predicted, found, end = Predicted(served.columns(x, unlike, coverages)), {}, 0
    for rows, own in judged:
        # most rows have nothing odd about them, and counting that by request is expensive
        first, odd = end, rows.surprises() != _NOTHING_ODD
        for place, question in own.items():
            start, end = end, end + len(question)
            surprises = Surprises(rows=len(question))
            if odd:
                part = slice(start - first, end - first)
                surprises = rows.surprises(part, first_row=question.first_row)
            found[place] = ServiceAnswer(predicted, slice(start, end), surprises)
    return found


def _judged(
    served: Served, questions: dict[int, Question]
) -> Iterator[tuple[ConformedRows, dict[int, Question]]]:
    """Records are judged in one table, since a table costs more than its rows; others alone."""
    together = {
        place: question
        for place, question in questions.items()
        if isinstance(question.rows, list) and not question.strict
    }
    if len(together) > 1:
        rows = [row for question in together.values() for row in question.rows]
        table = served.records.table(rows)
        yield conform_rows(table, served.records.schema, source=BODY), together
        questions = {place: q for place, q in questions.items() if place not in together}
    for place, question in questions.items():
        yield judged_alone(question), {place: question}


def judged_alone(question: Question) -> ConformedRows:
    """The rows of one question in its model's form."""
    rows, served = question.rows, question.served
    return conform_rows(
        served.records.table(rows) if isinstance(rows, list) else rows,
        served.records.schema,
        source=BODY,
        first_row=question.first_row,
        strict=question.strict,
    )


# --- why intervals are as wide as they are, as JSON ----------------------------------------------


def explain(question: Question, *, permutations: int) -> dict[str, Any]:
    """The receipts of a question's rows; its first coverage is that of the intervals."""
    judged = judged_alone(question)
    warnings = judged.surprises().check(source=BODY).sentences()
    receipts = question.served.model.explain_conformed(
        judged.X, coverage=question.coverages[0], permutations=permutations
    )
    return {
        "receipts": [receipts.to_json(row) for row in range(len(receipts))],
        "coverage": receipts.coverage,
        "warnings": warnings,
    }
