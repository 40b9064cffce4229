"""The standard families against SciPy and against themselves."""

import math

import mpmath
import numpy as np
import pytest
import torch
from scipy import stats

from accord._numerics import (
    LAPLACE,
    LOGISTIC,
    NORMAL,
    UNIFORM,
    StandardFamily,
    family_named,
    student_t,
)

CASES = [
    (NORMAL, stats.norm()),
    (LAPLACE, stats.laplace()),
    (LOGISTIC, stats.logistic()),
    (UNIFORM, stats.uniform(-1, 2)),
    (student_t(1), stats.t(1)),
    (student_t(2), stats.t(2)),
    (student_t(3), stats.t(3)),
    (student_t(4), stats.t(4)),
    (student_t(4.5), stats.t(4.5)),
    (student_t(12), stats.t(12)),
    (student_t(200), stats.t(200)),
]
cases = pytest.mark.parametrize(("family", "law"), CASES, ids=[str(family) for family, _ in CASES])
PLACES = np.linspace(-8, 8, 161)


@cases
def test_against_scipy(family: StandardFamily, law) -> None:
    z = torch.tensor(PLACES)
    np.testing.assert_allclose(family.cdf(z), law.cdf(PLACES), rtol=1e-12, atol=1e-15)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(family.log_pdf(z), law.logpdf(PLACES), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(family.pdf(z), law.pdf(PLACES), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(family.log_cdf(z), law.logcdf(PLACES), rtol=1e-11, atol=1e-15)
        np.testing.assert_allclose(family.log_sf(z), law.logsf(PLACES), rtol=1e-11, atol=1e-15)


@cases
def test_variance(family: StandardFamily, law) -> None:
    if str(family) == "student-t(1)":
        assert family.variance == math.inf
    else:
        assert family.variance == pytest.approx(law.var())


@pytest.mark.parametrize("df", [1, 2, 3, 4, 5, 6, 8, 10, 12])
def test_the_tail_of_student_keeps_its_digits(df: int) -> None:
    """Half the regularised incomplete beta function I_u(n/2, 1/2), from next to 0 to far out."""
    places = [0.0, 1e-12, 1e-8, 1e-3, 0.5, 1.0, 2.0, 5.0, 40.0, 1e3, 1e9]
    with mpmath.workdps(40):
        n = mpmath.mpf(df)
        parts = [n / (n + mpmath.mpf(x) ** 2) for x in places]
        tails = [float(mpmath.betainc(n / 2, 0.5, 0, u, regularized=True) / 2) for u in parts]
    family = student_t(df)
    z = torch.tensor(places, dtype=torch.float64)
    np.testing.assert_allclose(family.cdf(-z), tails, rtol=1e-12)
    far = torch.tensor([-torch.inf, -1e200, torch.inf], dtype=torch.float64)
    assert family.cdf(far).tolist() == [0.0, 0.0, 1.0]
    assert family.pdf(far).tolist() == [0.0, 0.0, 0.0]


@cases
def test_quantile_inverts_the_cdf_into_the_far_tails(family: StandardFamily, law) -> None:
    p = torch.tensor([1e-300, 1e-100, 1e-20, 1e-6, 0.1, 0.3, 0.499999, 0.5], dtype=torch.float64)
    z = family.quantile(p)
    reached = family.log_cdf(z)
    # near the end of the uniform family, −1 + 2p has few digits of p
    resolved = p > (0.01 if family is UNIFORM else 0.0)
    torch.testing.assert_close(reached[resolved], p.log()[resolved], rtol=2e-14, atol=2e-14)
    upper = torch.tensor([0.5000001, 0.9, 1 - 1e-12], dtype=torch.float64)
    reached = family.log_sf(family.quantile(upper))
    torch.testing.assert_close(reached, (1 - upper).log(), rtol=1e-3 * 1e-9, atol=1e-12)
    ends = family.quantile(torch.tensor([0.0, 1.0], dtype=torch.float64)).tolist()
    assert ends == list(law.ppf([0, 1]))


@cases
def test_samples_follow_the_cdf(family: StandardFamily, law) -> None:
    generator = torch.Generator().manual_seed(0)
    like = torch.empty((4000, 2), dtype=torch.float64)
    draws = family.draws(like, generator)
    assert draws.shape == (4000, 2)
    assert stats.kstest(draws.reshape(-1).numpy(), law.cdf).pvalue > 1e-3
    assert torch.equal(draws, family.draws(like, torch.Generator().manual_seed(0)))
    assert family.draws(torch.empty(2), None).dtype == torch.float32


def test_many_degrees_of_freedom_are_normal() -> None:
    z = torch.linspace(-6, 6, 25, dtype=torch.float64)
    torch.testing.assert_close(student_t(1e9).log_cdf(z), NORMAL.log_cdf(z), rtol=1e-6, atol=1e-12)


def test_student_t_keeps_tails_below_the_smallest_number() -> None:
    """log T(x) ~ log c − df log x: differences of two far points give the power."""
    family = student_t(200)
    far = torch.tensor([1e6, 1e9], dtype=torch.float64)
    drop = family.log_sf(far).diff().item()
    assert drop == pytest.approx(-200 * math.log(1e3), rel=1e-9)


def test_families_by_name() -> None:
    assert family_named("normal") is NORMAL
    assert family_named("laplace") is LAPLACE
    assert family_named("logistic") is LOGISTIC
    assert family_named("student-t", df=4).variance == 2.0
    assert repr(family_named("student-t", 4)) == "student-t(4)"


@pytest.mark.parametrize(
    ("name", "df", "message"),
    [
        ("gauss", None, "family must be one of .*, got 'gauss'"),
        ("student-t", None, "needs degrees of freedom, got df=None"),
        ("student-t", -1.0, "df must be positive and finite, got -1"),
        ("student-t", math.inf, "Use the normal family"),
        ("normal", 3.0, "df belongs to family 'student-t', got df=3"),
    ],
)
def test_bad_families(name, df, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        family_named(name, df)
