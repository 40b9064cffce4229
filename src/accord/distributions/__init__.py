"""Distributions a user can hold: families, smoothed by a tolerance, mixed, or given as draws."""

from accord.distributions.decomposed import Decomposed
from accord.distributions.distribution import Distribution
from accord.distributions.empirical import Empirical
from accord.distributions.families import (
    Laplace,
    Logistic,
    Normal,
    StudentT,
    Uniform,
    gaussian_match,
)
from accord.distributions.mixture import Mixture
from accord.distributions.predictive import predictive_of
from accord.distributions.smoothed import Smoothed
from accord.distributions.varying_student_t import VaryingStudentT

__all__ = [
    "Decomposed",
    "Distribution",
    "Empirical",
    "Laplace",
    "Logistic",
    "Mixture",
    "Normal",
    "Smoothed",
    "StudentT",
    "Uniform",
    "VaryingStudentT",
    "gaussian_match",
    "predictive_of",
]
