"""The standard families by name."""

from typing import Literal, get_args

from accord._numerics.family import StandardFamily
from accord._numerics.laplace import LaplaceFamily
from accord._numerics.logistic import LogisticFamily
from accord._numerics.normal import NormalFamily
from accord._numerics.student import StudentTFamily
from accord._numerics.uniform import UniformFamily

__all__ = [
    "LAPLACE",
    "LOGISTIC",
    "NORMAL",
    "UNIFORM",
    "FamilyName",
    "StandardFamily",
    "family_named",
    "student_t",
]

FamilyName = Literal["normal", "laplace", "logistic", "student-t"]

NORMAL = NormalFamily()
LAPLACE = LaplaceFamily()
LOGISTIC = LogisticFamily()
UNIFORM = UniformFamily()


def student_t(df: float) -> StandardFamily:
    """The Student-t family with ``df`` degrees of freedom."""
    return StudentTFamily(df)


def family_named(name: FamilyName, df: float | None = None) -> StandardFamily:
    """The standard family of that name; ``df`` belongs to "student-t" and to no other.

    >>> family_named("student-t", df=4).variance
    2.0
    """
    if name not in get_args(FamilyName):
        raise ValueError(f"family must be one of {get_args(FamilyName)}, got {name!r}.")
    if name == "student-t":
        if df is None:
            raise ValueError("family 'student-t' needs degrees of freedom, got df=None. Pass df=5.")
        return student_t(df)
    if df is not None:
        raise ValueError(
            f"df belongs to family 'student-t', got df={df} with {name!r}. Leave it out."
        )
    return {"normal": NORMAL, "laplace": LAPLACE, "logistic": LOGISTIC}[name]
