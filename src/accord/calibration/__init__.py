"""Recalibration after training, on held-out rows: scaled, reshaped, relearned, or by rank."""

from accord.calibration.calibrator import Calibrator
from accord.calibration.conformal import Conformal
from accord.calibration.isotonic import IsotonicCalibration
from accord.calibration.layers import ExtraLayers
from accord.calibration.likelihood_ratio import LikelihoodRatio
from accord.calibration.recalibrated import Recalibrated
from accord.calibration.variance import VarianceScaling

__all__ = [
    "Calibrator",
    "Conformal",
    "ExtraLayers",
    "IsotonicCalibration",
    "LikelihoodRatio",
    "Recalibrated",
    "VarianceScaling",
]
