"""The distributions under test, in one place: a new family is tested by a row in FAMILIES."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpmath import mp, mpf
from scipy import stats

from accord.distributions import (
    Decomposed,
    Distribution,
    Empirical,
    Laplace,
    Logistic,
    Mixture,
    Normal,
    RankCalibrated,
    Smoothed,
    StudentT,
    Uniform,
    VaryingStudentT,
)

MEAN = np.array([-2.0, 0.0, 0.3, 7.0])
SCALE = np.array([0.5, 1.0, 3.0, 0.02])
LEVELS = np.array([1e-12, 1e-6, 0.025, 0.3, 0.5, 0.8, 0.975, 1 - 1e-6, 1 - 1e-12])


@dataclass(frozen=True)
class FamilyCase:
    """A location-scale family with its independent references."""

    name: str
    make: Callable[[Any, Any], Distribution]  # of location and scale
    peer: Any  # the standard family in scipy.stats
    mp_cdf: Callable[[mpf], mpf]
    mp_area: Callable[[mpf], mpf]  # an antiderivative of the cdf
    edges: tuple[float, ...] = (0.0,)  # where the density has kinks or jumps

    def __str__(self) -> str:
        return self.name


def _student_t(df: float) -> FamilyCase:
    def pdf(z: mpf) -> mpf:
        root = mp.sqrt(df) * mp.beta(mpf(df) / 2, 0.5)
        return (1 + z * z / df) ** (-(mpf(df) + 1) / 2) / root

    def cdf(z: mpf) -> mpf:
        tail = mp.betainc(mpf(df) / 2, 0.5, 0, df / (df + z * z), regularized=True) / 2
        return tail if z < 0 else 1 - tail

    def area(z: mpf) -> mpf:
        return z * cdf(z) + (df + z * z) * pdf(z) / (mpf(df) - 1)

    return FamilyCase(f"student-t({df:g})", lambda m, s: StudentT(df, m, s), stats.t(df), cdf, area)


def _mp_normal_cdf(z: mpf) -> mpf:
    return mp.erfc(-z / mp.sqrt(2)) / 2


FAMILIES = [
    FamilyCase(
        "normal",
        Normal,
        stats.norm(),
        _mp_normal_cdf,
        lambda z: z * _mp_normal_cdf(z) + mp.npdf(z),
    ),
    FamilyCase(
        "laplace",
        Laplace,
        stats.laplace(),
        lambda z: mp.exp(z) / 2 if z < 0 else 1 - mp.exp(-z) / 2,
        lambda z: mp.exp(z) / 2 if z < 0 else z + mp.exp(-z) / 2,
    ),
    FamilyCase(
        "logistic",
        Logistic,
        stats.logistic(),
        lambda z: 1 / (1 + mp.exp(-z)),
        lambda z: mp.log1p(mp.exp(-abs(z))) + max(z, 0),
    ),
    *(_student_t(df) for df in (0.8, 3.0, 40.0)),
    FamilyCase(
        "uniform",
        lambda m, s: Uniform(m - s, m + s),
        stats.uniform(-1, 2),
        lambda z: min(max((z + 1) / 2, mpf(0)), mpf(1)),
        lambda z: mpf(0) if z < -1 else z if z > 1 else (z + 1) ** 2 / 4,
        (-1.0, 1.0),
    ),
]

_RNG = np.random.default_rng(20)
_MEMBERS = MEAN + 2 * SCALE * _RNG.normal(size=(3, 4))
_SPREADS = SCALE * np.exp(0.5 * _RNG.normal(size=(3, 4)))


def _mixture_of(family: FamilyCase) -> Callable[[Any, Any], Distribution]:
    return lambda m, s: Mixture(
        family.make(m + s * _MEMBERS, s * _SPREADS), weights=[0.2, 0.5, 0.3]
    )


# name -> how to build it for rows moved by a location and stretched by a scale
COMPOUND: dict[str, Callable[[Any, Any], Distribution]] = {
    **{
        f"smoothed {family}, eps {eps}": (
            lambda m, s, family=family, eps=eps: Smoothed(
                family.make(m + s * MEAN, s * SCALE), s * eps * SCALE
            )
        )
        for family in FAMILIES
        for eps in (1e-6, 0.7, 200.0)
    },
    **{f"mixture of {family}": _mixture_of(family) for family in FAMILIES},
    "smoothed where asked": lambda m, s: Smoothed(
        Normal(m + s * MEAN, s * SCALE), s * np.array([0.0, 0.1, 0.0, 5.0])
    ),
    "mixture of smoothed normals": lambda m, s: Mixture(
        Smoothed(Normal(m + s * _MEMBERS, s * _SPREADS), s * np.array([0.0, 1e-3, 1.0, 9.0]))
    ),
    "mixture of smoothed student-t": lambda m, s: Mixture(
        Smoothed(StudentT(4, m + s * _MEMBERS, s * _SPREADS), s * np.array([0.0, 1e-3, 1.0, 9.0]))
    ),
    "mixture far apart": lambda m, s: Mixture(
        Normal(
            m + s * np.array([[0.0, -1e4, 3.0, 0.0], [1e4, 1e4, 3.0, 1.0]]),
            s * np.array([[1e-2, 1.0, 1e-4, 1.0], [1e3, 1.0, 1e4, 1e-5]]),
        ),
        weights=[0.4, 0.6],
    ),
    "mixture of mixtures": lambda m, s: Mixture(
        Mixture(
            Normal(
                m + s * np.stack([_MEMBERS, _MEMBERS[::-1] + SCALE]),
                s * np.stack([_SPREADS, _SPREADS]),
            )
        )
    ),
    "varying student-t": lambda m, s: VaryingStudentT(
        [0.9, 2.5, 10.0, 300.0], m + s * MEAN, s * SCALE
    ),
    "decomposed": lambda m, s: Decomposed(Logistic(m + s * MEAN, s * SCALE), s * SCALE),
}

CONTINUOUS: dict[str, Callable[[Any, Any], Distribution]] = {
    **{
        family.name: (lambda m, s, family=family: family.make(m + s * MEAN, s * SCALE))
        for family in FAMILIES
    },
    **COMPOUND,
}

DRAWS = _RNG.normal(size=(50, 4)) * SCALE + MEAN
# What held-out rows needed where predictions were too sure of themselves.
NEEDED = np.sqrt(np.linspace(0.02, 0.98, 37))
EVERY: dict[str, Callable[[Any, Any], Distribution]] = {
    **CONTINUOUS,
    "empirical": lambda m, s: Empirical(m + s * DRAWS),
    "smoothed empirical": lambda m, s: Smoothed(Empirical(m + s * DRAWS), s * SCALE),
    "rank calibrated": lambda m, s: RankCalibrated(
        Mixture(Normal(m + s * _MEMBERS, s * _SPREADS)), NEEDED
    ),
}

# One or two of each class, for what does not depend on formulas.
STRUCTURES = [
    "normal",
    "student-t(3)",
    "smoothed normal, eps 0.7",
    "smoothed laplace, eps 1e-06",
    "mixture of logistic",
    "mixture of smoothed normals",
    "mixture of mixtures",
    "varying student-t",
    "decomposed",
    "empirical",
    "smoothed empirical",
    "rank calibrated",
]
