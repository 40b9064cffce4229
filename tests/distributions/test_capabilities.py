"""What a distribution says of itself, so that nobody has to ask for its class."""

import numpy as np
import pytest

from accord import Empirical, Laplace, Mixture, Normal, Smoothed, StudentT
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
