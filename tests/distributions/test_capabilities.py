"""What a distribution says of itself, so that nobody has to ask for its class."""

import mpmath as mp
import numpy as np
import pytest

from accord import Empirical, Laplace, Mixture, Normal, Smoothed, StudentT
from accord._numerics import LAPLACE, NORMAL, student_t
from accord.distributions import Decomposed, Log, RankCalibrated, Transformed

MEAN, STD = np.array([0.0, 3.0]), np.array([1.0, 0.5])


def test_a_normal_under_other_knowledge_is_still_normal() -> None:
    wrapped = RankCalibrated(Decomposed(Normal(MEAN, STD), 0.1), needed=[0.5])
    found = wrapped.as_normal()
    assert found is not None
    np.testing.assert_array_equal([found.mean, found.std], [MEAN, STD])


@pytest.mark.parametrize(
    "dist",
    [
        Laplace(MEAN, STD),
        StudentT(5.0, MEAN, STD),
        Smoothed(Normal(MEAN, STD), 0.0),
        Mixture(Normal(MEAN[:, None], STD[:, None])),
        Transformed(Normal(MEAN, STD), Log()),
        Empirical(MEAN[:, None]),
    ],
)
def test_nothing_else_is_normal(dist) -> None:
    assert dist.as_normal() is None


def test_only_draws_have_no_density() -> None:
    draws = Empirical(MEAN[:, None])
    assert not draws.has_density
    assert Smoothed(draws, 1.0).has_density
    assert Normal(MEAN, STD).has_density


def _moment(df: float, z: float, power: int) -> float:
    """∫u^k f(u) du over u ≤ z by quadrature with 30 digits; the normal family is df = ∞."""
    with mp.workdps(30):
        if np.isinf(df):

            def density(u: mp.mpf) -> mp.mpf:
                return mp.npdf(u)
        else:
            height = mp.gamma((df + 1) / 2) / mp.gamma(mp.mpf(df) / 2) / mp.sqrt(df * mp.pi)

            def density(u: mp.mpf) -> mp.mpf:
                return height * (1 + u * u / df) ** (-(mp.mpf(df) + 1) / 2)

        panels = [-mp.inf, *(x for x in (-40, -10, -3, 0, 3, 10) if x < z), z]
        return float(mp.quad(lambda u: u**power * density(u), panels))


@pytest.mark.parametrize("df", [np.inf, 3.5, 7.0])
@pytest.mark.parametrize("z", [-12.0, -2.0, 0.0, 1.3, np.inf])
def test_moments_below_a_bound(df, z) -> None:
    family = NORMAL if np.isinf(df) else student_t(df)
    found = family.lower_moments(np.array([z]))
    for power, moment in enumerate(found):
        assert moment[0] == pytest.approx(_moment(df, z, power), rel=1e-7, abs=1e-12)


def test_no_moments_below_a_bound_without_a_closed_form_or_a_variance() -> None:
    assert LAPLACE.lower_moments(np.zeros(1)) is None
    assert student_t(2.0).lower_moments(np.zeros(1)) is None
