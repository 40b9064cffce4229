"""What rows that a model did not see say about it, and the recalibration learnt from them."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from accord.calibration import Calibrator, Conformal, IsotonicCalibration, VarianceScaling
from accord.calibration.predictions import concatenated
from accord.distributions import Distribution
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


@dataclass(frozen=True)
class Evidence:
    """Held-out rows at random and the most unusual ones, judged; and the calibrator for the model.

    ``method`` is the recalibration in use, after falling back where rows are too few.
    """

    random: Assessment
    unusual: Assessment
    calibrator: Calibrator | None
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

    The random held-out rows are parted: each part is judged with a calibrator fitted on the
    others. The unusual rows are judged with one fitted on held-out rows that are not among them.
    The final model gets one fitted on all random held-out rows.
    """
    ordinary = HeldOut.join([HeldOut.of(data, model, split.test) for model, split in folds])
    method, notes = _feasible(method, len(ordinary.rows), coverage)
    part = np.random.default_rng(seed).permutation(len(ordinary.rows)) % _PARTS
    random = Assessment.join(
        [
            ordinary[part == judged].assessed(ordinary[part != judged].calibrator(method), coverage)
            for judged in np.unique(part)
        ]
    )
    model, split = apart
    others = ordinary[~np.isin(ordinary.rows, split.test)].calibrator(method)
    unusual = HeldOut.of(data, model, split.test).assessed(others, coverage)
    return Evidence(random, unusual, ordinary.calibrator(method), method, notes)


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

    @classmethod
    def of(cls, data: TrainingData, model: Trained, test: Rows) -> "HeldOut":
        rows = test[data.exact[test]]
        X = data.X.iloc[rows]
        share = model.tolerance_share(X)
        return cls(model.predict_dist(X), rows, data.rows[rows], data.y[rows], share)

    @classmethod
    def join(cls, parts: "list[HeldOut]") -> "HeldOut":
        return cls(
            concatenated([part.dist for part in parts]),
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.lines for part in parts]),
            np.concatenate([part.y for part in parts]),
            np.concatenate([part.tolerance_share for part in parts]),
        )

    def __getitem__(self, chosen: NDArray[np.bool_]) -> "HeldOut":
        places = np.flatnonzero(chosen)
        return HeldOut(
            self.dist[places],
            self.rows[places],
            self.lines[places],
            self.y[places],
            self.tolerance_share[places],
        )

    def calibrator(self, method: Recalibration) -> Calibrator | None:
        """A calibrator fitted on these rows."""
        kinds: dict[str, type[Calibrator]] = {
            "conformal": Conformal,
            "variance": VarianceScaling,
            "isotonic": IsotonicCalibration,
        }
        return None if method == "none" else kinds[method]().fit(self.dist, self.y)

    def assessed(self, calibrator: Calibrator | None, coverage: float) -> Assessment:
        """These rows, recalibrated and compared with what was observed."""
        dist = self.dist if calibrator is None else calibrator(self.dist)
        return Assessment.of(
            dist,
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
