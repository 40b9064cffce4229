"""Stretched distributions: moments and probabilities move as those of a + bY, in every class."""

import numpy as np
import pytest

from accord.calibration import Conformal, IsotonicCalibration
from accord.distributions import (
    Decomposed,
    Distribution,
    Empirical,
    Laplace,
    Logistic,
    Mixture,
    Normal,
    Smoothed,
    StudentT,
    Uniform,
    VaryingStudentT,
)

MEAN, STD = np.array([0.0, 3.0]), np.array([1.0, 0.5])
RNG = np.random.default_rng(0)
ROWS, TARGETS = Normal(np.zeros(50), 1.0), RNG.gumbel(size=50)
CASES: dict[str, Distribution] = {
    "normal": Normal(MEAN, STD),
    "laplace": Laplace(MEAN, STD),
    "logistic": Logistic(MEAN, STD),
    "student-t": StudentT(4.0, MEAN, STD),
    "varying student-t": VaryingStudentT([4.0, 9.0], MEAN, STD),
    "uniform": Uniform(MEAN - STD, MEAN + STD),
    "smoothed": Smoothed(Normal(MEAN, STD), [0.0, 2.0]),
    "mixture": Mixture(Smoothed(Normal([MEAN, MEAN + 1], [STD, 2 * STD]), 0.3), [0.3, 0.7]),
    "decomposed": Decomposed(Normal(MEAN, STD), STD / 2),
    "empirical": Empirical(RNG.normal(size=(30, 2))),
    "reshaped": IsotonicCalibration().fit(ROWS, TARGETS)(Normal(MEAN, STD)),
    "conformal": Conformal().fit(ROWS, TARGETS)(Normal(MEAN, STD)),
}


@pytest.mark.parametrize("name", CASES)
def test_moves_as_the_variable_does(name):
    dist = CASES[name]
    factor, shift = np.array([2.0, 0.5]), np.array([1.0, -1.0])
    moved = dist.rescaled(factor, shift=shift)
    assert type(moved) is type(dist)

    def undone(y):
        return dist.mean + (y - dist.mean - shift * dist.std) / factor

    np.testing.assert_allclose(moved.mean, dist.mean + shift * dist.std, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(moved.std, factor * dist.std, rtol=1e-9)
    np.testing.assert_allclose(moved.epistemic, factor * dist.epistemic, rtol=1e-9)
    y = moved.quantile(0.7)
    np.testing.assert_allclose(undone(y), dist.quantile(0.7), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(moved.cdf(y + 0.01), dist.cdf(undone(y + 0.01)), rtol=1e-9)
    if name != "empirical":
        expected = dist.log_prob(undone(y)) - np.log(factor)
        np.testing.assert_allclose(moved.log_prob(y), expected, rtol=1e-9, atol=1e-9)


def test_factor_must_be_positive():
    with pytest.raises(ValueError, match=r"factor must be positive, got 0\.0"):
        CASES["normal"].rescaled(0.0)
