"""Intervals of unusual rows: as wide as such rows have been seen to need."""

import numpy as np
import pytest

from accord.calibration import Conformal, widened, widening_for
from accord.distributions import Empirical, Normal


def errors_of_scale(scale: float, n: int, seed: int) -> np.ndarray:
    return scale * np.random.default_rng(seed).normal(size=n)


def test_the_factor_is_that_by_which_errors_are_larger_than_stated() -> None:
    y = errors_of_scale(3.0, 20_000, 0)
    assert widening_for(Normal(np.zeros(20_000), 1.0), y, coverage=0.9) == pytest.approx(
        3, rel=0.02
    )


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.95])
def test_a_further_row_of_the_kind_is_covered(coverage: float) -> None:
    """Over many draws of 40 such rows and a further one."""
    usual = Normal(np.zeros(60), 1.0)
    calibrated = Conformal().fit(usual, errors_of_scale(1.0, 60, 1))(Normal(np.zeros(40), 1.0))
    reach = float(calibrated.interval(coverage)[0, 1])
    y = errors_of_scale(2.5, 400 * 41, 2).reshape(400, 41)
    factors = np.array([widening_for(calibrated, own[:40], coverage=coverage) for own in y])
    inside = np.mean(np.abs(y[:, 40]) <= factors * reach)
    error = 4 * np.sqrt(coverage * (1 - coverage) / 400)
    assert coverage - error < inside < coverage + error + 1 / 41


def test_each_side_has_its_own_reach() -> None:
    skewed = Conformal(symmetric=False).fit(Normal(np.zeros(99), 1.0), np.linspace(-1, 3, 99))
    dist = skewed(Normal(np.zeros(2), 1.0))
    mean, (lower, upper) = dist.mean[0], dist.interval(0.9)[0]
    y = [mean + 1.2 * (lower - mean), mean + 1.1 * (upper - mean)]
    assert widening_for(dist, y, coverage=0.9) == pytest.approx(1.2)


def test_intervals_that_hold_are_not_narrowed() -> None:
    y = errors_of_scale(0.1, 50, 2)
    assert widening_for(Normal(np.zeros(50), 1.0), y, coverage=0.95) == 1.0


def test_an_interval_without_width_cannot_be_widened() -> None:
    exact = Empirical(np.zeros((5, 12)))
    assert widening_for(exact, np.arange(12.0), coverage=0.9) == 1.0


def test_only_the_rows_named_are_widened() -> None:
    dist = Normal([0.0, 5.0], [1.0, 1.0])
    wide = widened(dist, np.array([False, True]), 2.0)
    np.testing.assert_allclose(wide.mean, dist.mean)
    np.testing.assert_allclose(wide.std, [1.0, 2.0])
    assert widened(dist, np.array([True, True]), 1.0) is dist
