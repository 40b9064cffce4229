"""Distributions built from tensors are calibrated as those built from arrays."""

import numpy as np
import pytest
import torch

from accord.calibration import Conformal, ExtraLayers, IsotonicCalibration, VarianceScaling
from accord.distributions import Laplace, Mixture, Normal, StudentT

RNG = np.random.default_rng(0)
MEAN, STD = RNG.normal(size=(2, 60)), np.exp(0.3 * RNG.normal(size=(2, 60)))
Y = MEAN.mean(axis=0) + 2 * RNG.normal(size=60)
METHODS = [VarianceScaling(), IsotonicCalibration(), ExtraLayers(random_state=0), Conformal()]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize(
    "build", [lambda m, s: Normal(m[0], s[0]), lambda m, s: Mixture(Laplace(m, s))]
)
def test_tensors_in_tensors_out(method, build):
    arrays = build(MEAN, STD)
    tensors = build(torch.tensor(MEAN, requires_grad=True), torch.tensor(STD))
    expected = method.fit(arrays, Y)(arrays)
    found = method.fit(tensors, Y)(tensors)
    assert isinstance(found.mean, torch.Tensor)
    np.testing.assert_allclose(found.mean.detach(), expected.mean, rtol=1e-6)
    np.testing.assert_allclose(found.interval(0.9).detach(), expected.interval(0.9), rtol=1e-6)


@pytest.mark.parametrize("method", [VarianceScaling(), ExtraLayers(), Conformal()])
def test_distributions_without_moments_are_refused(method):
    with pytest.raises(ValueError, match="of dist must be finite"):
        method.fit(StudentT(1.0, np.zeros(20), 1.0), np.arange(20.0))


def test_a_distribution_without_moments_can_be_reshaped():
    cauchy = StudentT(1.0, np.zeros(200), 1.0)
    y = 3 * np.random.default_rng(1).standard_cauchy(size=200)
    interval = IsotonicCalibration().fit(cauchy, y)(cauchy).interval(0.5)
    np.testing.assert_allclose(interval[0], [-3, 3], atol=1.0)
