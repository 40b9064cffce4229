"""Why intervals are as wide as they are, as JSON."""

from typing import Any

from accord._types import Floats
from accord.explanation import Attribution, Receipts
from accord.service.predictions import Question, judged_alone


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
