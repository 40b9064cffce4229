"""Components and their calibration, against the distributions that they stand for."""

import math

import numpy as np
import pytest

from accord.distributions import Mixture, Normal, StudentT
from accord.portfolio.components import (
    DEGREES,
    Calibration,
    Components,
    Stray,
    calibrated,
    log_curve,
    mean_score,
)

RNG = np.random.default_rng(0)


def some_components(members: int = 3, rows: int = 20, k: int = 2) -> Components:
    weight = RNG.dirichlet(np.ones(k), size=(members, rows))
    shape = (members, rows, k)
    return Components(weight, RNG.normal(size=shape), RNG.uniform(0.2, 2, shape))


def as_mixture(part: Components, calibration: Calibration, local: np.ndarray) -> Mixture:
    """The calibrated density of the module's formula, curve by curve."""
    variance = calibration.factor**2 * (part.std**2 + calibration.floor**2)
    scale = np.sqrt(variance + calibration.tolerance_variance + local[:, None] ** 2)
    curves = [np.moveaxis(v, 2, 1).reshape(-1, v.shape[1]) for v in (part.mean, scale)]
    weight = np.moveaxis(part.weight, 2, 1).reshape(-1, part.mean.shape[1]) / part.n_members
    if math.isinf(calibration.df):
        return Mixture(Normal(*curves), weight)
    return Mixture(StudentT(calibration.df, *curves), weight)


@pytest.mark.parametrize("df", DEGREES)
@pytest.mark.parametrize("k", [1, 2])
def test_log_density_is_that_of_the_mixture(df: float, k: int) -> None:
    part, z = some_components(k=k), 3 * RNG.normal(size=20)
    calibration, local = Calibration(1.7, 0.3, 0.02, df), RNG.uniform(0, 1, 20)
    mixture = as_mixture(part, calibration, local)
    np.testing.assert_allclose(
        calibration.log_density(part, z, local), mixture.log_prob(z), rtol=1e-11
    )
    np.testing.assert_allclose(part.center, mixture.mean, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("df", DEGREES)
def test_of_a_censored_target_the_probability_between_its_ends_counts(df: float) -> None:
    part, z = some_components(), RNG.normal(size=20)
    upper = z + np.where(np.arange(20) % 4 == 0, 0.0, RNG.uniform(0.1, 3, 20))
    upper[1::4], z[2::4] = np.inf, -np.inf
    calibration, local = Calibration(1.7, 0.3, 0.02, df), RNG.uniform(0, 1, 20)
    mixture = as_mixture(part, calibration, local)
    with np.errstate(divide="ignore"):
        between = np.log(mixture.cdf(upper) - mixture.cdf(z))
    expected = np.where(upper > z, between, mixture.log_prob(np.where(upper > z, 0.0, z)))
    found = calibration.log_density(part, z, local, upper=upper)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("df", [math.inf, 3.0])
def test_a_censored_target_far_out_has_digits_left(df: float) -> None:
    """Ends beyond which 1 − cdf has none."""
    one = Components.single(np.zeros(1), np.ones(1))
    dist = Normal(np.zeros(1), 1.0) if math.isinf(df) else StudentT(df, np.zeros(1), 1.0)
    end = np.array([20.0 if math.isinf(df) else 1e6])
    found = Calibration(df=df).log_density(one, end, upper=np.array([np.inf]))
    np.testing.assert_allclose(found, np.log(dist.cdf(-end)), rtol=1e-9)


@pytest.mark.parametrize("df", DEGREES)
def test_curves_and_their_variance(df: float) -> None:
    r = np.array([-30.0, -1.0, 0.0, 5.0])
    zero = np.zeros_like(r)
    dist = Normal(zero, 1.0) if math.isinf(df) else StudentT(df, zero, 1.0)
    np.testing.assert_allclose(log_curve(r, df), dist.log_prob(r), rtol=1e-12)
    assert Calibration(df=df).variance_of_curve == pytest.approx(dist.variance[0])


def drawn(part: Components, factor: float, df: float) -> np.ndarray:
    """Targets that one member's curves describe after this calibration."""
    rng = np.random.default_rng(1)
    n = part.mean.shape[1]
    noise = rng.normal(size=n) if math.isinf(df) else rng.standard_t(df, size=n)
    return np.asarray(part.mean[0, :, 0] + factor * part.std[0, :, 0] * noise)


@pytest.mark.parametrize(("factor", "df"), [(1.0, math.inf), (2.5, math.inf), (0.6, 4.0), (3, 3.0)])
def test_calibration_finds_the_factor_and_the_tails(factor: float, df: float) -> None:
    """4,000 rows tell a scale to about 2 %, and the listed degrees of freedom apart."""
    rng = np.random.default_rng(2)
    part = Components.single(rng.normal(size=4000), np.exp(rng.normal(size=4000)))
    z = drawn(part, factor, df)
    found = calibrated(part, z, np.ones(4000), tolerance_variance=0.0)
    assert found.df == df
    assert found.factor == pytest.approx(factor, rel=0.05)
    assert found.floor == 0.0


def test_calibration_knows_a_floor() -> None:
    """Deviations that claim too much, some near 0, are lifted by what all rows miss."""
    rng = np.random.default_rng(3)
    claimed = rng.uniform(0.01, 1, 4000)
    part = Components.single(np.zeros(4000), claimed)
    z = np.sqrt(claimed**2 + 0.3**2) * rng.normal(size=4000)
    found = calibrated(part, z, np.ones(4000), tolerance_variance=0.0)
    assert found.floor > 0.05
    scale = found.scale(part.std)[0, :, 0]
    truth = np.sqrt(claimed**2 + 0.3**2)
    assert np.abs(scale / truth - 1).max() < 0.15


def test_calibration_heeds_the_weights() -> None:
    rng = np.random.default_rng(4)
    part = Components.single(np.zeros(2000), np.ones(2000))
    z = np.where(np.arange(2000) < 1000, 1.0, 4.0) * rng.normal(size=2000)
    weight = (np.arange(2000) < 1000).astype(float)
    found = calibrated(part, z, weight, tolerance_variance=0.0, degrees=[math.inf])
    assert found.scale(np.ones(1))[0] == pytest.approx(1.0, rel=0.1)


def test_one_absurd_row_does_not_decide() -> None:
    rng = np.random.default_rng(5)
    part = Components.single(np.zeros(500), np.ones(500))
    z = rng.normal(size=500)
    plain = calibrated(part, z, np.ones(500), tolerance_variance=0.0)
    z[0] = 1e9
    found = calibrated(part, z, np.ones(500), tolerance_variance=0.0)
    assert found.scale(np.ones(1))[0] == pytest.approx(plain.scale(np.ones(1))[0], rel=0.2)


def test_a_score_is_bounded_row_by_row() -> None:
    density = np.array([-1.0, -1e6, -np.inf])
    assert mean_score(density, np.ones(3)) == pytest.approx((-1 - 25 - 25) / 3)
    assert mean_score(density, np.array([1.0, 0.0, 0.0])) == -1.0


def test_stray_targets_widen_and_move_no_mean() -> None:
    part, stray = some_components(), Stray.of(np.array([4.0, -6.0, 6.0, 1e9]), 80)
    assert stray.share == 0.05
    assert 6 < stray.std < 20  # one of 1e9 does not decide
    more = part.with_stray(stray)
    np.testing.assert_allclose(more.weight.sum(axis=2), 1)
    np.testing.assert_allclose(more.center, part.center)
    variance = [
        (p.weight * (p.std**2 + p.mean**2)).sum(axis=2) - (p.weight * p.mean).sum(axis=2) ** 2
        for p in (part, more)
    ]
    np.testing.assert_allclose(variance[1], 0.95 * variance[0] + 0.05 * stray.std**2)


def test_parts_are_assembled_where_their_rows_belong() -> None:
    whole = some_components(rows=10)
    rows = [np.array([0, 3, 9]), np.array([1, 2, 4, 5, 6, 7, 8])]
    again = Components.assembled([whole[own] for own in rows], rows)
    np.testing.assert_array_equal(again.mean, whole.mean)
    np.testing.assert_array_equal(again.weight, whole.weight)
    np.testing.assert_array_equal(again.std, whole.std)


def test_members_are_stacked() -> None:
    a, b = some_components(members=1), some_components(members=3)
    both = Components.stacked([a, b])
    assert both.n_members == 4
    np.testing.assert_allclose(both.center, (a.center + 3 * b.center) / 4, rtol=1e-12)
