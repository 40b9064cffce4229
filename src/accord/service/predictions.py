"""Rows of several requests predicted as one batch: a batch costs far more than one of its rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accord._types import Floats
from accord.explanation import Attribution, Receipts
from accord.service.bodies import BODY, BodyRows, Predicted, ServiceAnswer
from accord.service.model import Served
from accord.tables import ConformedRows, Surprises, TableError, conform_rows

_NOTHING_ODD = Surprises()


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
    # most rows have nothing odd about them, and counting that by request is dear
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
            surprises = item.judged.surprises(item.rows) if id(item.judged) in odd else _NOTHING_ODD
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
    receipts = question.served.model.explain_conformed(
        judged.X, coverage=question.coverages[0], permutations=permutations
    )
    return {
        "receipts": [_receipt(receipts, row) for row in range(len(receipts))],
        "coverage": receipts.coverage,
        "warnings": judged.surprises().sentences(),
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
