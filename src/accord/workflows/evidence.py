"""What rows that a model did not see say about it, and the recalibration learnt from them."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from accord.calibration import (
    Calibrator,
    Conformal,
    IsotonicCalibration,
    VarianceScaling,
    widened,
    widening_for,
)
from accord.distributions import Distribution, concatenated
from accord.tables import TrainingData
from accord.workflows.assessment import Assessment
from accord.workflows.training import Rows, Split, Trained

Floats = NDArray[np.float64]
Recalibration = Literal["conformal", "variance", "isotonic", "none"]

_PARTS = 10
# Isotonic regression bends to noise below this. Conformal intervals need 1/(1 − coverage) rows to
# be finite, and more than twice as many not to hang on the largest error alone.
_ISOTONIC_ROWS = 200
_CONFORMAL_ROWS = 2.5
# From fewer unusual rows no factor is learnt.
_WIDENING_ROWS = 10


@dataclass(frozen=True)
class Evidence:
    """Held-out rows at random and the most unusual ones, judged; and what the model learns of it.

    ``method`` is the recalibration in use, after falling back where rows are too few; ``widening``
    is the factor on intervals of unusual rows.
    """

    random: Assessment
    unusual: Assessment
    calibrator: Calibrator | None
    widening: float
    method: Recalibration
    notes: tuple[str, ...]


def gather_evidence(
    data: TrainingData,
    *,
    folds: list[tuple[Trained, Split]],
    apart: tuple[Trained, Split],
    method: Recalibration,
    coverage: float,
    seed: int,
) -> Evidence:
    """Predict held-out rows, recalibrate on other held-out rows, and compare with the truth.

    Recalibration learns from random held-out rows, and the widening of unusual rows from those that
    were held out as the most unusual. What is judged is never learnt from: both kinds are parted,
    and each part is judged with what the other rows say. The final model learns from all.
    """
    ordinary = HeldOut.join([HeldOut.of(data, *fold) for fold in folds])
    strange = HeldOut.of(data, *apart)
    method, notes = _feasible(method, len(ordinary.rows), coverage)
    random = []
    for own in ordinary.parts(seed):
        part, calibrator = ordinary[own], ordinary[~own].calibrator(method)
        widening = strange.widening(calibrator, coverage, judged=part.rows)
        random.append(part.assessed(calibrator, widening, coverage))
    calibrator = ordinary[~np.isin(ordinary.rows, strange.rows)].calibrator(method)
    unusual = []
    for own in strange.parts(seed):
        part = strange[own]
        widening = strange.widening(calibrator, coverage, judged=part.rows)
        unusual.append(part.assessed(calibrator, widening, coverage))
    widening = strange.widening(calibrator, coverage)
    if widening > 1:
        notes += (_widening_note(widening, int(strange.unusual.sum())),)
    return Evidence(
        Assessment.join(random),
        Assessment.join(unusual),
        ordinary.calibrator(method),
        widening,
        method,
        notes,
    )


@dataclass(frozen=True)
class HeldOut:
    """Predictions for rows with a measured target that the predicting model had not seen.

    **Shape**: (n,) throughout; ``rows`` count from 0 in the training data, ``lines`` in the file.
    """

    dist: Distribution
    rows: Rows
    lines: NDArray[np.int64]
    y: Floats
    tolerance_share: Floats
    unusual: NDArray[np.bool_]

    @classmethod
    def of(cls, data: TrainingData, model: Trained, split: Split) -> "HeldOut":
        rows = split.test[data.exact[split.test]]
        X = data.X.iloc[rows]
        return cls(
            model.predict_dist(X),
            rows,
            data.rows[rows],
            data.y[rows],
            model.tolerance_share(X),
            model.is_unusual(X),
        )

    @classmethod
    def join(cls, parts: "list[HeldOut]") -> "HeldOut":
        return cls(
            concatenated([part.dist for part in parts]),
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.lines for part in parts]),
            np.concatenate([part.y for part in parts]),
            np.concatenate([part.tolerance_share for part in parts]),
            np.concatenate([part.unusual for part in parts]),
        )

    def __getitem__(self, chosen: NDArray[np.bool_]) -> "HeldOut":
        places = np.flatnonzero(chosen)
        return HeldOut(
            self.dist[places],
            self.rows[places],
            self.lines[places],
            self.y[places],
            self.tolerance_share[places],
            self.unusual[places],
        )

    def parts(self, seed: int) -> list[NDArray[np.bool_]]:
        """Which rows are in each of some random parts."""
        part = np.random.default_rng(seed).permutation(len(self.rows)) % _PARTS
        return [part == own for own in np.unique(part)]

    def calibrator(self, method: Recalibration) -> Calibrator | None:
        """A calibrator fitted on these rows."""
        kinds: dict[str, type[Calibrator]] = {
            "conformal": Conformal,
            "variance": VarianceScaling,
            "isotonic": IsotonicCalibration,
        }
        return None if method == "none" else kinds[method]().fit(self.dist, self.y)

    def widening(
        self, calibrator: Calibrator | None, coverage: float, *, judged: Rows | tuple[()] = ()
    ) -> float:
        """How much wider intervals of unusual rows must be than the calibrator has them.

        ``judged`` are rows that must not be learnt from.
        """
        learnt_from = self.unusual & ~np.isin(self.rows, judged)
        if calibrator is None or learnt_from.sum() < _WIDENING_ROWS:
            return 1.0
        far = self[learnt_from]
        return widening_for(calibrator(far.dist), far.y, coverage=coverage)

    def assessed(
        self, calibrator: Calibrator | None, widening: float, coverage: float
    ) -> Assessment:
        """These rows, recalibrated and compared with what was observed."""
        dist = self.dist if calibrator is None else calibrator(self.dist)
        return Assessment.of(
            widened(dist, self.unusual, widening),
            self.y,
            rows=self.lines,
            coverage=coverage,
            tolerance_share=self.tolerance_share,
        )


def _feasible(
    method: Recalibration, n: int, coverage: float
) -> tuple[Recalibration, tuple[str, ...]]:
    """The method asked for, or variance scaling where it needs more rows than there are."""
    needed = {
        "conformal": _CONFORMAL_ROWS / (1 - coverage),
        "isotonic": _ISOTONIC_ROWS,
    }.get(method, 0.0)
    if n >= needed:
        return method, ()
    return "variance", (
        f"{method.capitalize()} recalibration needs {needed:.0f} held-out rows and {n} are there: "
        "one factor on the deviations is used instead.",
    )


def _widening_note(factor: float, n: int) -> str:
    return (
        f"Intervals of unusual rows are {factor:.1f} times as wide as recalibration alone makes "
        f"them: {n} such rows needed that from a model that had seen none of their kind."
    )
