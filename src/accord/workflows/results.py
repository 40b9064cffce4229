"""What the workflows answer with: plain, typed, ready for a terminal, JSON or a report."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.workflows.assessment import Assessment
from accord.workflows.drift import Drift
from accord.workflows.effects import FeatureEffect
from accord.workflows.model import ModelCard, TableModel
from accord.workflows.unusual import UnusualRow
from accord.workflows.verdict import Verdict

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ToleranceChoice:
    """Tolerances tried, as shares of the target's range, and how each did on inner held-out rows.

    **Shape**: arrays (G,).
    """

    values: Floats
    in_distribution: Floats
    out_of_distribution: Floats
    chosen: float


@dataclass(frozen=True)
class FitResult:
    """A fitted model and the evidence about it."""

    model: TableModel
    verdict: Verdict
    random: Assessment
    unusual: Assessment
    effects: tuple[FeatureEffect, ...]
    unusual_rows: tuple[UnusualRow, ...]
    tolerance: ToleranceChoice | None
    history: Floats
    notes: tuple[str, ...]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "verdict": self.verdict.level,
            "summary": self.verdict.summary,
            "held_out": self.random.figures(),
            "unusual": self.unusual.figures(),
            "effects": [vars(effect) for effect in self.effects],
            "notes": list(self.notes),
            "card": self.model.card.to_dict(),
            "seconds": round(self.seconds, 2),
        }


@dataclass(frozen=True)
class PredictResult:
    """Where predictions were written, how many, and what was odd about the input."""

    path: Path | None
    n_rows: int
    n_unusual: int
    columns: tuple[str, ...]
    warnings: tuple[str, ...]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return {
            "output": None if self.path is None else str(self.path),
            "rows": self.n_rows,
            "unusual": self.n_unusual,
            "columns": list(self.columns),
            "warnings": list(self.warnings),
            "seconds": round(self.seconds, 2),
        }


@dataclass(frozen=True)
class EvaluateResult:
    """How a model does on new labelled rows, and how these differ from the training rows."""

    card: ModelCard
    source: str
    verdict: Verdict
    found: Assessment
    drift: Drift
    unusual_rows: tuple[UnusualRow, ...]
    unusual: NDArray[np.bool_]
    warnings: tuple[str, ...]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict.level,
            "summary": self.verdict.summary,
            "figures": self.found.figures(),
            "trained_on": self.card.held_out,
            "drift": {
                "statement": self.drift.sentences(),
                "columns": self.drift.drifted,
                "unusual": self.drift.unusual,
                "unusual_expected": self.drift.unusual_expected,
            },
            "warnings": list(self.warnings),
            "seconds": round(self.seconds, 2),
        }
