"""Log-probabilities of intervals that hold in the tails: the base on which everything stands."""

from accord._numerics.family import (
    StandardFamily,
    family_named,
    family_names,
    family_with_variance,
    log_cdf,
    log_mean_between,
    log_mean_cdf,
    register_family,
)
from accord._numerics.interval import (
    agreement_loss,
    agreement_slopes,
    log_at_least,
    log_between,
    log_within,
)
from accord._numerics.joint import (
    SHIFTS,
    Region,
    TooManyRegionsError,
    check_few_regions,
    cut_all,
    log_normal_density,
    log_normal_in,
    log_normal_in_any,
    normal_probability,
    shifted_sobol,
    standard_errors,
    training_points,
)
from accord._numerics.kernel import Kernel, SmoothKernel, log_sum
from accord._numerics.laplace import LAPLACE
from accord._numerics.logistic import LOGISTIC
from accord._numerics.normal import NORMAL, gaussian_nll, gaussian_nll_slopes
from accord._numerics.student import student_t, through_numpy
from accord._numerics.uniform import UNIFORM

FamilyName = str
"""The name of a family in the register: "normal", "laplace", "logistic", "student-t" …"""

__all__ = [
    "LAPLACE",
    "LOGISTIC",
    "NORMAL",
    "SHIFTS",
    "UNIFORM",
    "FamilyName",
    "Kernel",
    "Region",
    "SmoothKernel",
    "StandardFamily",
    "TooManyRegionsError",
    "agreement_loss",
    "agreement_slopes",
    "check_few_regions",
    "cut_all",
    "family_named",
    "family_names",
    "family_with_variance",
    "gaussian_nll",
    "gaussian_nll_slopes",
    "log_at_least",
    "log_between",
    "log_cdf",
    "log_mean_between",
    "log_mean_cdf",
    "log_normal_density",
    "log_normal_in",
    "log_normal_in_any",
    "log_sum",
    "log_within",
    "normal_probability",
    "register_family",
    "shifted_sobol",
    "standard_errors",
    "student_t",
    "through_numpy",
    "training_points",
]
