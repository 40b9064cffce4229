"""Log-probabilities of intervals that hold in the tails: the base on which everything stands."""

from accord._numerics.families import (
    LAPLACE,
    LOGISTIC,
    NORMAL,
    UNIFORM,
    FamilyName,
    StandardFamily,
    family_named,
    student_t,
)
from accord._numerics.interval import (
    AgreementSlopes,
    agreement_loss,
    agreement_slopes,
    log_agreement,
    log_between,
    log_within,
)

__all__ = [
    "LAPLACE",
    "LOGISTIC",
    "NORMAL",
    "UNIFORM",
    "AgreementSlopes",
    "FamilyName",
    "StandardFamily",
    "agreement_loss",
    "agreement_slopes",
    "family_named",
    "log_agreement",
    "log_between",
    "log_within",
    "student_t",
]
