"""Variance scaling: the closed form is the likelihood's optimum, and other families find theirs."""

import numpy as np
import pytest
from scipy import optimize

from accord.calibration import VarianceScaling
from accord.calibration.calibrator import _most_likely_factors
from accord.distributions import Decomposed, Empirical, Laplace, Mixture, Normal, Smoothed, Uniform


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=400), rng.uniform(0.5, 2, size=400)
    return mean, std, mean + 3 * std * rng.normal(size=400)


def test_closed_form_is_the_optimum_of_the_likelihood(rows):
    mean, std, y = rows
    closed = VarianceScaling().fit(Normal(mean, std), y).factor_

    def loss(log_factor):
        return -Normal(mean, np.exp(log_factor) * std).log_prob(y).mean()

    found = optimize.minimize_scalar(loss, bounds=(-3, 3), method="bounded")
    assert closed[0] == pytest.approx(np.exp(found.x), rel=1e-4)
    assert closed[0] == pytest.approx(np.sqrt(np.mean(((y - mean) / std) ** 2)), rel=1e-12)
    np.testing.assert_allclose(_most_likely_factors(Normal(mean, std), y, mean), closed, rtol=1e-6)


def test_laplace_has_its_own_closed_form(rows):
    """The most likely scale of a Laplace sample is its mean absolute deviation."""
    mean, std, y = rows
    factor = VarianceScaling().fit(Laplace(mean, std), y).factor_[0]
    assert factor == pytest.approx(np.mean(np.abs(y - mean) / std), rel=1e-6)


def test_bounded_support_is_stretched_until_every_row_is_inside():
    y = np.array([-3.0, 1.0, 0.5, 2.0])
    scaling = VarianceScaling().fit(Uniform(-np.ones(4), np.ones(4)), y)
    assert scaling.factor_[0] == pytest.approx(3.0, rel=0.2)
    assert np.all(np.isfinite(scaling(Uniform(-np.ones(4), np.ones(4))).log_prob(y)))


def test_mixtures_stay_mixtures_and_improve(rows):
    mean, std, y = rows
    members = Smoothed(Normal([mean - 0.1, mean + 0.1], [std, std]), 0.2)
    dist = Mixture(members)
    scaled = VarianceScaling().fit(dist, y)(dist)
    assert isinstance(scaled, Mixture)
    assert scaled.log_prob(y).mean() > dist.log_prob(y).mean() + 1
    np.testing.assert_allclose(scaled.mean, dist.mean)
    np.testing.assert_allclose(scaled.epistemic / dist.epistemic, scaled.std / dist.std)


def test_stated_epistemic_part_changes_nothing_of_the_factor(rows):
    mean, std, y = rows
    plain = VarianceScaling().fit(Normal(mean, std), y).factor_
    stated = VarianceScaling().fit(Decomposed(Normal(mean, std), std / 2), y).factor_
    np.testing.assert_array_equal(stated, plain)


def test_outputs_are_scaled_each_by_itself(rows):
    mean, std, y = rows
    twice = np.stack([mean, mean], axis=1), np.stack([std, 3 * std], axis=1)
    scaling = VarianceScaling().fit(Normal(*twice), np.stack([y, y], axis=1))
    assert scaling.factor_.shape == (2,)
    assert scaling.factor_[0] == pytest.approx(3 * scaling.factor_[1])
    scaled = scaling(Normal(*twice))
    np.testing.assert_allclose(scaled.std[:, 0], scaled.std[:, 1])


def test_exact_predictions_keep_a_density():
    scaling = VarianceScaling().fit(Normal(np.zeros(5), 1.0), np.zeros(5))
    assert np.isfinite(scaling(Normal([0.0], 1.0)).log_prob([0.0])).all()


@pytest.mark.parametrize(
    ("dist", "y", "error", "message"),
    [
        (Normal(np.zeros(3), 1.0), [0.0, 1.0], ValueError, "same shape"),
        (Normal(np.zeros(3), 1.0), [[0.0], [1.0], [2.0]], ValueError, "same shape"),
        (Normal(np.zeros(3), 1.0), [0.0, np.nan, 1.0], ValueError, "y must be finite"),
        (Normal(np.zeros(1), 1.0), [0.0], ValueError, "at least 2 held-out rows, got 1"),
        (Normal(0.0, 1.0), 0.0, ValueError, r"shape \(N,\) or \(N, K\)"),
        (np.zeros(3), [0.0, 1.0, 2.0], TypeError, "dist must be a Distribution, got ndarray"),
        (Empirical(np.zeros((5, 3))), [0.0, 1.0, 2.0], TypeError, "no density"),
    ],
)
def test_bad_input(dist, y, error, message):
    with pytest.raises(error, match=message):
        VarianceScaling().fit(dist, y)


def test_other_number_of_outputs_is_refused(rows):
    mean, std, y = rows
    scaling = VarianceScaling().fit(Normal(mean, std), y)
    with pytest.raises(ValueError, match="1 outputs, as in fit, got 2"):
        scaling(Normal(np.zeros((3, 2)), np.ones((3, 2))))
