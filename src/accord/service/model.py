"""The model in use, exchanged as a whole when its file changes, and its answers to questions.

Rows of several requests are predicted as one batch, since a batch costs far more than one of its
rows.
"""

import logging
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord._types import Bools, Floats
from accord.distributions import PARTS
from accord.explanation import Attribution, Receipts
from accord.export import estimator_graph, obstacles_of
from accord.portfolio import PortfolioRegressor
from accord.service.bodies import BODY, BodyRows, Predicted, Records, ServiceAnswer
from accord.tables import ConformedRows, Surprises, TableError, conform_rows, file_sha256
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


@dataclass(frozen=True)
class _Understood:
    """A question's place in the batch, in rows, and where its judged rows are."""

    place: int
    judged: ConformedRows
    rows: slice


def predict_together(questions: Sequence[Question]) -> list[ServiceAnswer | Exception]:
    """An answer to each question, or what is wrong with it; none suffers from another's fault."""
    found: dict[int, ServiceAnswer | Exception] = {}
    for served in {id(q.served): q.served for q in questions}.values():
        own = {n: q for n, q in enumerate(questions) if q.served is served}
        understood: list[_Understood] = []
        for n, result in _understood(served, own).items():
            if isinstance(result, Exception):
                found[n] = result
            else:
                understood.append(result)
        if understood:
            found |= _answers(served, own, understood)
    return [found[n] for n in range(len(questions))]


def _understood(
    served: Served, questions: dict[int, Question]
) -> dict[int, _Understood | Exception]:
    """Records are judged in one table, since a table costs more than its rows; others alone."""
    together = {
        n: q for n, q in questions.items() if isinstance(q.rows.content, list) and not q.strict
    }
    found = _judged_together(served, together) if together else {}
    for n, question in questions.items():
        if n not in found:
            try:
                found[n] = _Understood(n, judged_alone(question), slice(0, len(question)))
            except TableError as error:
                found[n] = error
    return found


def judged_alone(question: Question) -> ConformedRows:
    """The rows of one question in its model's form."""
    content, served = question.rows.content, question.served
    return conform_rows(
        served.records.table(content) if isinstance(content, list) else content,
        served.records.schema,
        source=BODY,
        first_row=question.first_row,
        strict=question.strict,
    )


def _judged_together(
    served: Served, questions: dict[int, Question]
) -> dict[int, _Understood | Exception]:
    """Where a cell cannot be read, halves are tried: few tables, however many requests."""
    numbers = list(questions)
    if len(numbers) == 1:
        (n,) = numbers
        try:
            return {n: _Understood(n, judged_alone(questions[n]), slice(0, len(questions[n])))}
        except TableError as error:
            return {n: error}
    rows = [row for q in questions.values() for row in q.rows.content]
    try:
        judged = conform_rows(served.records.table(rows), served.records.schema, source=BODY)
    except TableError:
        half = len(numbers) // 2
        parts = (numbers[:half], numbers[half:])
        return {
            n: result
            for part in parts
            for n, result in _judged_together(served, {n: questions[n] for n in part}).items()
        }
    ends = np.cumsum([len(q) for q in questions.values()]).tolist()
    starts = [0, *ends[:-1]]
    return {
        n: _Understood(n, judged, slice(start, end))
        for n, start, end in zip(numbers, starts, ends, strict=True)
    }


def _answers(
    served: Served, questions: dict[int, Question], understood: Sequence[_Understood]
) -> dict[int, ServiceAnswer | Exception]:
    """Predictions of all rows at once; if that fails, of halves, to find the rows at fault."""
    try:
        return dict(_predicted(served, questions, understood))
    except Exception as error:
        if len(understood) == 1:
            return {understood[0].place: error}
        half = len(understood) // 2
        return _answers(served, questions, understood[:half]) | _answers(
            served, questions, understood[half:]
        )


def _predicted(
    served: Served, questions: dict[int, Question], understood: Sequence[_Understood]
) -> list[tuple[int, ServiceAnswer]]:
    judged = {id(item.judged): item.judged for item in understood}
    features = {place: served.model.transform(found.X) for place, found in judged.items()}
    # most rows have nothing odd about them, and counting that by request is expensive
    odd = {place for place, found in judged.items() if found.surprises() != _NOTHING_ODD}
    x = np.concatenate([features[id(item.judged)][item.rows] for item in understood])
    unlike = np.concatenate([item.judged.unlike[item.rows] for item in understood])
    found = []
    for coverages, members in _by_coverage(questions, understood).items():
        own = np.concatenate([np.arange(rows.start, rows.stop) for _, rows in members])
        columns = served.columns(x[own], unlike[own], coverages)
        predicted, end = Predicted(columns), 0
        for item, rows in members:
            start, end = end, end + rows.stop - rows.start
            surprises = Surprises(rows=end - start)
            if id(item.judged) in odd:
                first_row = questions[item.place].first_row
                surprises = item.judged.surprises(item.rows, first_row=first_row)
            found.append((item.place, ServiceAnswer(predicted, slice(start, end), surprises)))
    return found


def _by_coverage(
    questions: dict[int, Question], understood: Sequence[_Understood]
) -> dict[tuple[float, ...], list[tuple[_Understood, slice]]]:
    """Questions with the same coverages, each with its rows in the batch."""
    found: dict[tuple[float, ...], list[tuple[_Understood, slice]]] = {}
    start = 0
    for item in understood:
        rows = slice(start, start := start + item.rows.stop - item.rows.start)
        found.setdefault(questions[item.place].coverages, []).append((item, rows))
    return found


# --- why intervals are as wide as they are, as JSON ----------------------------------------------


def explain(question: Question, *, permutations: int) -> dict[str, Any]:
    """The receipts of a question's rows; its first coverage is that of the intervals."""
    judged = judged_alone(question)
    warnings = judged.surprises().check(source=BODY).sentences()
    receipts = question.served.model.explain_conformed(
        judged.X, coverage=question.coverages[0], permutations=permutations
    )
    return {
        "receipts": [_receipt(receipts, row) for row in range(len(receipts))],
        "coverage": receipts.coverage,
        "warnings": warnings,
    }


def _receipt(receipts: Receipts, row: int) -> dict[str, Any]:
    """One row's receipt; shares are of the variance."""
    variance = float(receipts.parts.std[row]) ** 2 or 1.0
    document: dict[str, Any] = {
        "mean": receipts.mean[row],
        "std": receipts.parts.std[row],
        "lower": receipts.interval[row, 0],
        "upper": receipts.interval[row, 1],
        "shares": {name: share[row] for name, share in receipts.shares.items()},
        "distance_by_column": _by_column(receipts, receipts.distance_by_column[row] / variance),
        "nearest": receipts.neighbors[row].tolist(),
        "unlike": receipts.unlike[row],
        "narrow": receipts.narrow[row],
        "text": receipts.text(row),
    }
    for part in ("noise", "disagreement"):
        found: Attribution | None = getattr(receipts, f"by_{part}")
        if found is not None:
            document[f"{part}_by_column"] = _by_column(receipts, found.values[row] / variance)
            document[f"{part}_error"] = _by_column(receipts, found.error[row] / variance)
    return document


def _by_column(receipts: Receipts, shares: Floats) -> dict[str, float]:
    return dict(zip(receipts.names, shares.tolist(), strict=True))
