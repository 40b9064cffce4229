"""Consistency bands hold a calibrated model as often as they say."""

import numpy as np
import pytest
from scipy import stats

from accord import metrics

LEVELS = np.arange(1, 10) / 10
TIMES = 600


def simulated_curves(n: int, seed: int) -> np.ndarray:
    u = np.random.default_rng(seed).random((TIMES, n))
    return (np.abs(2 * u - 1)[..., None] <= LEVELS).mean(axis=1)


@pytest.mark.parametrize("n", [30, 500])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_simultaneous_band_holds_whole_curves(n, confidence) -> None:
    band = metrics.reliability_band(levels=LEVELS, n=n, confidence=confidence)
    curves = simulated_curves(n, seed=n)
    inside = ((band[:, 0] <= curves) & (curves <= band[:, 1])).all(axis=1).mean()
    # Counts are whole numbers: a band may hold more than it promises, never clearly less.
    noise = 3 * np.sqrt(confidence * (1 - confidence) / TIMES)
    assert confidence - noise <= inside <= confidence + noise + 0.05


@pytest.mark.parametrize("n", [30, 500])
def test_pointwise_band_holds_each_level(n) -> None:
    band = metrics.reliability_band(levels=LEVELS, n=n, simultaneous=False)
    curves = simulated_curves(n, seed=n + 1)
    inside = ((band[:, 0] <= curves) & (curves <= band[:, 1])).mean(axis=0)
    assert inside.min() > 0.95 - 3 * np.sqrt(0.95 * 0.05 / TIMES)
    whole = ((band[:, 0] <= curves) & (curves <= band[:, 1])).all(axis=1).mean()
    assert whole < 0.93  # which is why the simultaneous band is the default


def test_band_contains_the_diagonal_and_narrows() -> None:
    few, many = (metrics.reliability_band(levels=LEVELS, n=n) for n in (50, 5000))
    for band in (few, many):
        assert np.all((band[:, 0] <= LEVELS) & (band[:, 1] >= LEVELS))
    ratio = np.diff(few, axis=1) / np.diff(many, axis=1)
    np.testing.assert_allclose(ratio, 10.0, rtol=0.25)  # √(5000/50)


def test_pointwise_band_is_binomial() -> None:
    band = metrics.reliability_band(levels=[0.3], n=70, confidence=0.9, simultaneous=False)
    np.testing.assert_array_equal(band[0] * 70, stats.binom.ppf([0.05, 0.95], 70, 0.3))


def test_the_band_is_always_the_same() -> None:
    curve = metrics.reliability_curve(y_true=np.zeros(40), mean=np.zeros(40), std=np.ones(40))
    once, again = (metrics.reliability_band(levels=curve.expected, n=40) for _ in "ab")
    np.testing.assert_array_equal(once, again)
    np.testing.assert_array_equal(curve.band(), once)


@pytest.mark.parametrize("n_bins", [5, 20])
def test_histogram_band_holds_all_bins(n_bins) -> None:
    n = 400
    low, high = metrics.histogram_band(n_bins=n_bins, n=n)
    rng = np.random.default_rng(1)
    shares = rng.multinomial(n, np.full(n_bins, 1 / n_bins), size=TIMES) / n
    inside = ((low <= shares) & (shares <= high)).all(axis=1).mean()
    assert 0.92 <= inside <= 1.0
    assert low < 1 / n_bins < high


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": [1.5], "n": 10}, "levels must lie strictly"),
        ({"levels": [0.5], "n": 0}, "n must be at least 1"),
        ({"levels": [0.5], "n": 10, "confidence": 95}, "confidence must lie strictly"),
    ],
)
def test_bad_input(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        metrics.reliability_band(**options)
