"""Student-t rows with degrees of freedom of their own, against scipy and mpmath."""

import numpy as np
import pytest
import torch
from mpmath import mp, mpf
from scipy import stats

from accord.distributions import Decomposed, Mixture, StudentT, VaryingStudentT

DF = np.array([0.8, 2.5, 7.0, 300.0])
MEAN = np.array([-2.0, 0.0, 0.3, 7.0])
SCALE = np.array([0.5, 1.0, 3.0, 0.02])
ROWS = VaryingStudentT(DF, MEAN, SCALE)
Z = np.array([-1e4, -30.0, -3.0, -0.2, 0.0, 1.0, 5.0, 200.0])[:, None]


def exact_probability(df: float, z: float, half: float) -> mpf:
    with mp.workdps(60):
        low, high = mpf(z) - mpf(half), mpf(z) + mpf(half)

        def tail(z: mpf) -> mpf:
            return mp.betainc(mpf(df) / 2, 0.5, 0, df / (df + z * z), regularized=True) / 2

        low, high = (low, high) if low + high >= 0 else (-high, -low)
        return tail(low) - tail(high) if low > 0 else 1 - tail(-low) - tail(high)


def test_density_and_cdf_against_scipy() -> None:
    peer = stats.t(DF, MEAN, SCALE)
    value = MEAN + SCALE * Z
    np.testing.assert_allclose(ROWS.log_prob(value), peer.logpdf(value), rtol=1e-11)
    np.testing.assert_allclose(ROWS.cdf(value), peer.cdf(value), rtol=1e-11, atol=1e-300)


def test_moments() -> None:
    np.testing.assert_array_equal(ROWS.mean, [np.nan, *MEAN[1:]])
    np.testing.assert_allclose(ROWS.variance, [np.inf, *(SCALE**2 * DF / (DF - 2))[1:]])


@pytest.mark.parametrize("level", [1e-100, 1e-12, 1e-6, 0.025, 0.5, 0.9, 1 - 1e-9])
def test_quantiles_invert_the_cdf(level: float) -> None:
    np.testing.assert_allclose(ROWS.cdf(ROWS.quantile(level)), level, rtol=1e-9)


@pytest.mark.parametrize("z", [-50.0, -2.0, 0.0, 0.3, 8.0, 90.0])
@pytest.mark.parametrize("half", [1e-9, 0.01, 0.4, 3.0, 60.0])
def test_probability_of_an_interval(z: float, half: float) -> None:
    within = ROWS.log_within_prob(MEAN + SCALE * z, SCALE * half)
    expected = [float(mp.log(exact_probability(df, z, half))) for df in DF]
    np.testing.assert_allclose(within, expected, rtol=1e-8, atol=1e-12)
    if half > 0.1:
        bounds = MEAN + SCALE * (z - half), MEAN + SCALE * (z + half)
        np.testing.assert_allclose(ROWS.log_interval_prob(*bounds), expected, rtol=1e-8, atol=1e-9)


def test_tail_beyond_the_smallest_number() -> None:
    """Within 0.1 % of the logarithm, where the probability itself underflows."""
    rows = VaryingStudentT([300.0, 1e5], 0.0, 1.0)
    found = rows.log_interval_prob([300.0, 45.0], np.inf)
    with mp.workdps(60):
        exact = [
            float(mp.log(mp.betainc(mpf(df) / 2, 0.5, 0, df / (df + z * z), regularized=True) / 2))
            for df, z in ((300, mpf(300)), (10**5, mpf(45)))
        ]
    np.testing.assert_allclose(found, exact, rtol=1e-3)
    assert rows.log_interval_prob(-np.inf, np.inf).tolist() == [0.0, 0.0]


def test_one_df_is_the_student_t() -> None:
    fixed, varying = StudentT(4.0, MEAN, SCALE), VaryingStudentT(4.0, MEAN, SCALE)
    value = MEAN + 0.7
    np.testing.assert_allclose(varying.log_prob(value), fixed.log_prob(value), rtol=1e-12)
    np.testing.assert_allclose(varying.interval(0.9), fixed.interval(0.9), rtol=1e-9)


def test_as_component_of_an_ensemble() -> None:
    members = VaryingStudentT(
        np.stack([DF + 2, DF + 3]), np.stack([MEAN, MEAN + 1]), SCALE[None].repeat(2, 0)
    )
    ensemble = Mixture(Decomposed(members, 0.5 * members.std))
    level = np.array([0.05, 0.5, 0.95])
    quantiles = ensemble.quantile(level)
    for k, alpha in enumerate(level):
        np.testing.assert_allclose(ensemble.cdf(quantiles[:, k]), alpha, rtol=1e-8)
    total = ensemble.aleatoric**2 + ensemble.epistemic**2
    np.testing.assert_allclose(total, ensemble.variance)


def test_draws_follow_the_rows() -> None:
    rows = ROWS[1:]
    draws = rows.sample(20_000, random_state=0)
    for column, row in zip(draws.T, range(len(rows)), strict=True):
        assert (
            stats.kstest(column, stats.t(DF[row + 1], MEAN[row + 1], SCALE[row + 1]).cdf).pvalue
            > 1e-3
        )


def test_log_density_is_differentiable() -> None:
    parameters = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (3.0, 0.2, 1.5)]
    assert torch.autograd.gradcheck(
        lambda df, mean, scale: VaryingStudentT(df, mean, scale).log_prob(1.0), parameters
    )


def test_degrees_of_freedom_are_positive() -> None:
    with pytest.raises(ValueError, match=r"df must be positive, got 0\.0 at index 1"):
        VaryingStudentT([1.0, 0.0], 0.0, 1.0)
