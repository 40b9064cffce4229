"""Recalibration after training, on held-out rows: scaled, reshaped, relearned, or by rank."""

from accord.calibration.calibrators import (
    Calibrator,
    ExtraLayers,
    IsotonicCalibration,
    VarianceScaling,
)
from accord.calibration.conformal import Conformal, LikelihoodRatio
from accord.calibration.recalibrated import Recalibrated

__all__ = [
    "Calibrator",
    "Conformal",
    "ExtraLayers",
    "IsotonicCalibration",
    "LikelihoodRatio",
    "Recalibrated",
    "VarianceScaling",
]
