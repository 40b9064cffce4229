"""Reliability as the paper defines it, PIT values, ECE, MCE and ENCE."""

import warnings

import numpy as np
import pytest
from scipy import stats

from accord import Empirical, Laplace, Mixture, Normal, Smoothed, metrics

N = 300
RNG = np.random.default_rng(11)
MU = RNG.normal(size=N)
S = np.exp(0.5 * RNG.normal(size=N))
Y = MU + 1.3 * S * RNG.normal(size=N)
LEVELS = np.arange(1, 10) / 10


def paper_procedure(y, mean, std) -> np.ndarray:
    """The appendix, word for word: z % interval per point, fraction inside, z = 10 … 90."""
    found = []
    for z in range(10, 100, 10):
        reach = stats.norm.ppf(0.5 + z / 200)
        lower, upper = mean - reach * std, mean + reach * std
        found.append(np.mean((lower <= y) & (y <= upper)))
    return np.array(found)


def test_reliability_is_the_papers_procedure() -> None:
    curve = metrics.reliability_curve(y_true=Y, mean=MU, std=S)
    observed = paper_procedure(Y, MU, S)
    np.testing.assert_allclose(curve.expected, LEVELS)
    np.testing.assert_allclose(curve.observed, observed, atol=1e-12)
    gaps = np.abs(observed - LEVELS)
    assert metrics.ece(y_true=Y, mean=MU, std=S) == pytest.approx(gaps.mean(), abs=1e-12)
    assert metrics.mce(y_true=Y, mean=MU, std=S) == pytest.approx(gaps.max(), abs=1e-12)
    assert curve.n == N


def test_reliability_as_uncertainty_toolbox() -> None:
    """It also counts the levels 0 and 1, whose gaps are zero: 11 levels instead of 9."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from uncertainty_toolbox import metrics_calibration as reference
    curve = metrics.reliability_curve(y_true=Y, mean=MU, std=S)
    _, observed = reference.get_proportion_lists_vectorized(MU, S, Y, num_bins=11)
    np.testing.assert_allclose(curve.observed, observed[1:-1], atol=1e-10)
    theirs = reference.mean_absolute_calibration_error(MU, S, Y, num_bins=11)
    assert curve.ece == pytest.approx(theirs * 11 / 9, abs=1e-10)


def test_quantile_reliability_as_uncertainty_toolbox() -> None:
    """It takes residuals as predicted − observed, which mirrors the levels: p is 1 − p here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from uncertainty_toolbox import metrics_calibration as reference
    curve = metrics.reliability_curve(y_true=Y, mean=MU, std=S, kind="quantile")
    _, mirrored = reference.get_proportion_lists_vectorized(
        MU, S, Y, num_bins=11, prop_type="quantile"
    )
    np.testing.assert_allclose(curve.observed, 1 - mirrored[-2:0:-1], atol=1e-10)


@pytest.mark.parametrize(
    "dist",
    [
        Laplace(MU, S),
        Smoothed(Normal(MU, S), 0.5 * S),
        Mixture(Normal(np.stack([MU, MU + S]), np.stack([S, 2 * S]))),
        Empirical(RNG.normal(MU, S, size=(20, N))),
    ],
    ids=lambda d: type(d).__name__,
)
def test_a_distribution_uses_its_own_central_intervals(dist) -> None:
    curve = metrics.reliability_curve(y_true=Y, dist=dist)
    counted = [metrics.coverage(y_true=Y, dist=dist, coverage=z) for z in LEVELS]
    np.testing.assert_allclose(curve.observed, counted, atol=1e-12)


def test_quantile_kind_shows_a_bias_that_intervals_hide() -> None:
    y = RNG.normal(size=2000)
    biased = {"mean": np.full(2000, 0.5), "std": np.full(2000, np.sqrt(1.25))}
    by_quantile = metrics.reliability_curve(y_true=y, **biased, kind="quantile")
    assert np.all(by_quantile.observed > by_quantile.expected)


def test_pit_of_a_true_model_is_uniform() -> None:
    u = metrics.pit(y_true=Y, mean=MU, std=1.3 * S)
    assert stats.kstest(u, "uniform").pvalue > 0.01
    table = {"y_true": Y.reshape(-1, 3), "dist": Normal(MU.reshape(-1, 3), S.reshape(-1, 3))}
    expected = stats.norm.cdf((Y - MU) / S).reshape(-1, 3)
    np.testing.assert_allclose(metrics.pit(**table), expected, atol=1e-12)


def test_ence_by_hand() -> None:
    mean, std = np.zeros(4), np.array([1.0, 1.0, 2.0, 2.0])
    y = np.array([1.0, -1.0, 3.0, 3.0])
    # bins: RMV 1, RMSE 1, then RMV 2, RMSE 3
    assert metrics.ence(y_true=y, mean=mean, std=std, n_bins=2) == pytest.approx(0.25)
    bins = metrics.deviation_bins(y_true=y, mean=mean, std=std, n_bins=2)
    np.testing.assert_allclose(bins.predicted, [1.0, 2.0])
    np.testing.assert_allclose(bins.observed, [1.0, 3.0])
    np.testing.assert_array_equal(bins.count, [2, 2])


def test_ence_is_scale_free_and_vanishes_for_a_true_model() -> None:
    many = 20_000
    std = np.exp(RNG.normal(size=many))
    y = std * RNG.normal(size=many)
    honest = metrics.ence(y_true=y, mean=0 * y, std=std)
    assert honest < 0.05
    assert metrics.ence(y_true=7 * y, mean=0 * y, std=7 * std) == pytest.approx(honest)
    assert metrics.ence(y_true=y, mean=0 * y, std=std / 2) == pytest.approx(1.0, abs=0.1)


def test_several_outputs_are_pooled() -> None:
    table = metrics.ece(y_true=Y.reshape(-1, 3), mean=MU.reshape(-1, 3), std=S.reshape(-1, 3))
    assert table == metrics.ece(y_true=Y, mean=MU, std=S)


@pytest.mark.parametrize(
    ("metric", "options", "message"),
    [
        (metrics.ece, {"levels": [0.0, 0.5]}, "levels must lie strictly between 0 and 1, got 0.0"),
        (metrics.mce, {"levels": [0.5, 1.0]}, "levels must lie strictly between 0 and 1, got 1.0"),
        (metrics.ece, {"levels": [10, 20]}, "levels must lie strictly between 0 and 1, got 10.0"),
        (metrics.ece, {"levels": [0.5, 0.5]}, "levels must be a list of increasing levels"),
        (metrics.ece, {"levels": []}, "levels must not be empty"),
        (metrics.reliability_curve, {"kind": "both"}, "kind must be one of 'interval', 'quantile'"),
        (metrics.ence, {"n_bins": 0}, "n_bins must be at least 1, got 0"),
        (metrics.ence, {"n_bins": 151}, "a split into 151 bins needs at least 302 values, got 300"),
    ],
)
def test_bad_options(metric, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        metric(y_true=Y, mean=MU, std=S, **options)


def test_too_few_rows_for_a_statement() -> None:
    with pytest.raises(ValueError, match="reliability needs at least 10 values, got 9"):
        metrics.ece(y_true=Y[:9], mean=MU[:9], std=S[:9])
