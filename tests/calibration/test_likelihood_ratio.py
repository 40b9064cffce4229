"""The estimated likelihood ratio follows the true one and stays finite."""

import numpy as np
import pytest
from scipy import stats
from sklearn.ensemble import RandomForestClassifier

from accord.calibration import LikelihoodRatio


@pytest.mark.parametrize(("mean", "std"), [(1.0, 1.0), (0.0, 0.6), (0.5, 0.8)])
def test_gaussian_shifts_are_recovered(mean, std):
    """4,000 rows each: within 20 % over the middle of the new rows."""
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=(4000, 2)), rng.normal(size=(4000, 2))
    new[:, 0] = mean + std * new[:, 0]
    ratio = LikelihoodRatio().fit(old, new)
    x = np.linspace(mean - std, mean + std, 11)
    exact = stats.norm.pdf(x, mean, std) / stats.norm.pdf(x)
    found = ratio(np.column_stack([x, np.zeros(11)]))
    np.testing.assert_allclose(found, exact, rtol=0.2)


def test_same_rows_weigh_one():
    X = np.random.default_rng(1).normal(size=(10_000, 3))
    np.testing.assert_allclose(LikelihoodRatio().fit(X[:6000], X[6000:])(X), 1, atol=0.5)


def test_units_do_not_matter():
    rng = np.random.default_rng(2)
    old, new = rng.normal(size=(300, 2)), rng.normal(0.5, 1, size=(200, 2))
    plain = LikelihoodRatio().fit(old, new)(old)
    scaled = LikelihoodRatio().fit(1e4 * old + 5e5, 1e4 * new + 5e5)(1e4 * old + 5e5)
    np.testing.assert_allclose(scaled, plain, rtol=1e-3)


def test_any_classifier_and_certain_ones_stay_finite():
    rng = np.random.default_rng(3)
    old, new = rng.normal(size=(100, 1)), rng.normal(50, 1, size=(100, 1))
    ratio = LikelihoodRatio(classifier=RandomForestClassifier(20, random_state=0)).fit(old, new)
    weight = ratio([[0.0], [50.0]])
    assert 0 < weight[0] < weight[1] < np.inf


def test_features_must_match():
    with pytest.raises(ValueError, match="same number of features, got 2 and 3"):
        LikelihoodRatio().fit(np.zeros((5, 2)), np.zeros((5, 3)))
