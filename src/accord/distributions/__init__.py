"""Distributions a user can hold: families, and what can be made of them.

Smoothed by a tolerance, mixed, clipped at bounds, seen through a transform, reshaped by a
calibration, or given as draws.
"""

from accord.distributions.batch import Values, to_floats
from accord.distributions.distribution import PARTS, Distribution
from accord.distributions.empirical import ConformalPredictive, Empirical, RankCalibrated, Ranks
from accord.distributions.families import (
    Laplace,
    LocationScale,
    Logistic,
    Normal,
    StudentT,
    Uniform,
    gaussian_match,
    of_family,
    with_moments,
)
from accord.distributions.joint import JointDistribution, MultivariateNormal
from accord.distributions.joint_mixture import AgreedShape, JointMixture, JointSmoothed, log_volume
from accord.distributions.mixture import Mixture
from accord.distributions.model import PredictiveModel
from accord.distributions.predictive import (
    concatenated,
    predictive_of,
    uncertainty_of,
    with_noise,
)
from accord.distributions.reshaped import (
    MonotoneCurve,
    Reshaped,
    curve_through_scores,
    normal_scores,
)
from accord.distributions.smoothed import Smoothed
from accord.distributions.transformed import Log, Transformed
from accord.distributions.varying_student_t import VaryingStudentT
from accord.distributions.wrapped import Clipped, Decomposed

__all__ = [
    "PARTS",
    "AgreedShape",
    "Clipped",
    "ConformalPredictive",
    "Decomposed",
    "Distribution",
    "Empirical",
    "JointDistribution",
    "JointMixture",
    "JointSmoothed",
    "Laplace",
    "LocationScale",
    "Log",
    "Logistic",
    "Mixture",
    "MonotoneCurve",
    "MultivariateNormal",
    "Normal",
    "PredictiveModel",
    "RankCalibrated",
    "Ranks",
    "Reshaped",
    "Smoothed",
    "StudentT",
    "Transformed",
    "Uniform",
    "Values",
    "VaryingStudentT",
    "concatenated",
    "curve_through_scores",
    "gaussian_match",
    "log_volume",
    "normal_scores",
    "of_family",
    "predictive_of",
    "to_floats",
    "uncertainty_of",
    "with_moments",
    "with_noise",
]
