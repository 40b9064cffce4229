"""Conformal intervals hold, and under a shift the likelihood ratio is followed."""

import numpy as np
import pytest
from scipy import stats
from sklearn.ensemble import RandomForestClassifier

from accord.calibration import Conformal, LikelihoodRatio
from accord.distributions import Laplace, Mixture, Normal

# Outputs are calibrated each by itself, so that one fit of 50 outputs is 50 repetitions.
BATCHES, OUTPUTS, FRESH = 20, 50, 20


def heteroscedastic(*shape, rng):
    """Wrong mean, wrong deviation, skewed noise: nothing that coverage may rely on is right."""
    x = rng.normal(size=shape)
    y = np.sin(3 * x) + (0.2 + np.abs(x)) * (rng.exponential(size=shape) - 1)
    return Normal(0.3 * x, 0.5 + 0.1 * x**2), y


def covered(dist, y, coverage):
    interval = dist.interval(coverage)
    return (y >= interval[..., 0]) & (y <= interval[..., 1])


def mean_and_error(shares):
    """Of independent shares: their mean, and its standard error."""
    shares = np.concatenate([np.ravel(share) for share in shares])
    return shares.mean(), shares.std() / np.sqrt(len(shares))


def simulated_coverage(n, coverage, *, symmetric):
    """Over 1,000 repetitions, each with its own calibration rows."""
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(BATCHES):
        calibration = heteroscedastic(n, OUTPUTS, rng=rng)
        dist, y = heteroscedastic(FRESH, OUTPUTS, rng=rng)
        conformal = Conformal(symmetric=symmetric).fit(*calibration)
        shares.append(covered(conformal(dist), y, coverage).mean(axis=0))
    return mean_and_error(shares)


@pytest.mark.parametrize(("n", "coverage"), [(19, 0.9), (19, 0.95), (50, 0.8), (100, 0.95)])
def test_coverage_is_that_of_the_rank(n, coverage):
    """1,000 repetitions; the exact probability is ⌈(n + 1)c⌉/(n + 1), held to 4 standard errors."""
    exact = np.ceil((n + 1) * coverage - 1e-9) / (n + 1)
    found, error = simulated_coverage(n, coverage, symmetric=True)
    assert coverage <= exact <= coverage + 1 / (n + 1)
    assert error < 0.004
    assert found == pytest.approx(exact, abs=4 * error)


@pytest.mark.parametrize(("n", "coverage"), [(39, 0.95), (60, 0.8)])
def test_two_sided_ranks_cover_as_well(n, coverage):
    """Between c and c + 2/(n + 1), since either side is rounded outwards by itself."""
    found, error = simulated_coverage(n, coverage, symmetric=False)
    assert found >= coverage - 4 * error
    assert found <= coverage + 2 / (n + 1) + 4 * error


def test_either_tail_holds_by_itself_without_symmetry():
    """P(y > upper quantile) ≤ 1 − α for skewed noise, 1,000 repetitions, 4 standard errors."""
    rng = np.random.default_rng(1)
    above, below = [], []
    for _ in range(BATCHES):
        conformal = Conformal(symmetric=False).fit(*heteroscedastic(40, OUTPUTS, rng=rng))
        dist, y = heteroscedastic(FRESH, OUTPUTS, rng=rng)
        low, high = np.moveaxis(conformal(dist).quantile([0.1, 0.9]), -1, 0)
        above.append(np.mean(y > high, axis=0))
        below.append(np.mean(y < low, axis=0))
    for tail, error in map(mean_and_error, (above, below)):
        assert 0.1 - 1 / 41 - 4 * error <= tail <= 0.1 + 4 * error


def shifted(n, outputs, shift, *, rng):
    """Features N(shift, 1); the noise grows with x, and the model does not know."""
    x = rng.normal(shift, 1, size=n)
    y = np.exp(x / 2)[:, None] * rng.normal(size=(n, outputs))
    return x, Normal(np.zeros((n, outputs)), 1.0), y


def weighted_coverage(ratio_of, *, batches, outputs):
    """Coverage asked 80 %, features shifted by 1; rows are shared by the outputs of a batch."""
    rng = np.random.default_rng(2)
    shares = []
    for _ in range(batches):
        x, dist, y = shifted(100, outputs, 0.0, rng=rng)
        x_new, dist_new, y_new = shifted(FRESH, outputs, 1.0, rng=rng)
        ratio = ratio_of(x, rng)
        weights = [{} if ratio is None else {"weight": ratio(rows)} for rows in (x, x_new)]
        conformal = Conformal().fit(dist, y, **weights[0])
        shares.append(covered(conformal(dist_new, **weights[1]), y_new, 0.8).mean())
    return mean_and_error(shares)


@pytest.mark.filterwarnings("ignore:.*conformal bounds are infinite")
def test_known_likelihood_ratio_restores_coverage():
    """p_new/p_old = exp(x − ½); 1,000 repetitions, 4 standard errors."""
    plain, _ = weighted_coverage(lambda x, rng: None, batches=100, outputs=10)
    exact = weighted_coverage(lambda x, rng: lambda v: np.exp(v - 0.5), batches=100, outputs=10)
    weighted, error = exact
    assert plain < 0.7
    assert 0.8 - 4 * error <= weighted <= 0.88


@pytest.mark.filterwarnings("ignore:.*conformal bounds are infinite")
def test_estimated_likelihood_ratio_comes_close():
    """The classifier sees 100 old and 200 new rows; its error costs a few per cent at most."""

    def estimated(x, rng):
        ratio = LikelihoodRatio().fit(x[:, None], rng.normal(1.0, 1.0, size=(200, 1)))
        return lambda rows: ratio(rows[:, None])

    found, error = weighted_coverage(estimated, batches=50, outputs=10)
    assert 0.8 - 0.04 - 4 * error <= found <= 0.9


def test_equal_weights_change_nothing():
    rng = np.random.default_rng(3)
    dist, y = heteroscedastic(60, rng=rng)
    plain = Conformal().fit(dist, y)(dist).interval(0.9)
    weighted = Conformal().fit(dist, y, weight=np.full(60, 2.5))(dist, weight=np.full(60, 2.5))
    np.testing.assert_allclose(weighted.interval(0.9), plain)


def test_a_row_unlike_the_calibration_rows_gets_infinite_bounds():
    dist, y = Normal(np.zeros(100), 1.0), np.random.default_rng(4).normal(size=100)
    conformal = Conformal().fit(dist, y, weight=np.ones(100))
    with pytest.warns(UserWarning, match="50% of the conformal bounds are infinite"):
        interval = conformal(Normal([0.0, 0.0], 1.0), weight=[1.0, 1e3]).interval(0.9)
    assert np.all(np.isfinite(interval[0]))
    np.testing.assert_array_equal(interval[1], [-np.inf, np.inf])


@pytest.mark.parametrize(("symmetric", "enough"), [(True, 19), (False, 39)])
def test_too_few_rows_give_infinite_bounds_and_a_warning(symmetric, enough):
    rng = np.random.default_rng(5)
    new = Normal([0.0], 1.0)
    short = Conformal(symmetric=symmetric).fit(*heteroscedastic(enough - 1, rng=rng))
    with pytest.warns(UserWarning, match="too few for this coverage"):
        assert np.all(np.isinf(short(new).interval(0.95)))
    long = Conformal(symmetric=symmetric).fit(*heteroscedastic(enough, rng=rng))
    assert np.all(np.isfinite(long(new).interval(0.95)))


def test_known_answer():
    """Scores 1 … 9: the 80 % bound is the 8th of them, the 90 % bound the 9th."""
    conformal = Conformal().fit(Normal(np.zeros(9), 2.0), 2 * np.arange(1.0, 10.0))
    new = conformal(Normal([10.0], 3.0))
    np.testing.assert_allclose(new.interval(0.8), [[10 - 24, 10 + 24]])
    np.testing.assert_allclose(new.interval(0.9), [[10 - 27, 10 + 27]])
    np.testing.assert_allclose(new.quantile([0.1, 0.5, 0.9]), [[10 - 24, 10, 10 + 24]])


def test_only_mean_and_deviation_of_the_prediction_count():
    rng = np.random.default_rng(6)
    dist, y = heteroscedastic(50, rng=rng)
    laplace = Laplace(dist.mean, dist.std / np.sqrt(2))
    one = Conformal().fit(dist, y)(dist).interval(0.9)
    two = Conformal().fit(laplace, y)(laplace).interval(0.9)
    np.testing.assert_allclose(one, two)


@pytest.mark.parametrize("symmetric", [True, False])
def test_density_and_cdf_go_with_the_quantiles(symmetric):
    """1,000 scores: cdf(quantile(α)) is α to within .03, and densities integrate to 1."""
    rng = np.random.default_rng(7)
    dist, y = heteroscedastic(1000, rng=rng)
    calibrated = Conformal(symmetric=symmetric).fit(dist, y)(dist[:3])
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    at_quantiles = calibrated.cdf(calibrated.quantile(levels).T)
    np.testing.assert_allclose(at_quantiles, np.tile(levels[:, None], (1, 3)), atol=0.03)
    grid = np.linspace(-60, 60, 60_001)[:, None] * dist[:3].std + dist[:3].mean
    np.testing.assert_allclose(np.trapezoid(calibrated.pdf(grid), grid, axis=0), 1, atol=1e-3)
    assert np.all(np.isfinite(calibrated.log_prob(np.array([-500.0, 0.0, 500.0]))))


def test_symmetric_density_keeps_the_mean_and_the_epistemic_share():
    rng = np.random.default_rng(8)
    members = Normal(rng.normal(size=(4, 100)), np.ones((4, 100)))
    dist = Mixture(members)
    calibrated = Conformal().fit(dist, rng.normal(size=100))(dist)
    np.testing.assert_allclose(calibrated.mean, dist.mean, atol=1e-6)
    np.testing.assert_allclose(calibrated.epistemic / calibrated.std, dist.epistemic / dist.std)


def test_outputs_are_ranked_each_by_itself():
    rng = np.random.default_rng(9)
    y = rng.normal(size=(200, 2)) * [1.0, 10.0]
    dist = Normal(np.zeros((200, 2)), np.ones((200, 2)))
    interval = Conformal().fit(dist, y)(dist[:5]).interval(0.9)
    assert interval.shape == (5, 2, 2)
    assert np.all(interval[:, 1, 1] > 5 * interval[:, 0, 1])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, 2.0], "one entry per row"),
        (np.r_[np.ones(29), 0.0], "weight must be positive"),
        (np.r_[np.ones(29), np.nan], "weight must be positive, got nan"),
        (np.r_[np.ones(29), np.inf], "weight must be finite"),
    ],
)
def test_bad_weights(weight, message):
    with pytest.raises(ValueError, match=message):
        Conformal().fit(Normal(np.zeros(30), 1.0), np.arange(30.0), weight=weight)


def test_weights_on_both_sides_or_neither():
    dist, y = Normal(np.zeros(30), 1.0), np.arange(30.0)
    with pytest.raises(ValueError, match="exactly if it was given in fit, got none here"):
        Conformal().fit(dist, y, weight=np.ones(30))(dist)
    with pytest.raises(ValueError, match="exactly if it was given in fit, got one here"):
        Conformal().fit(dist, y)(dist, weight=np.ones(30))


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
