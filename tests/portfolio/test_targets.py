"""Scales of targets, rounding, and skewness."""

import numpy as np
import pytest

from accord.portfolio.targets import (
    TargetScale,
    TargetTransform,
    extreme,
    is_skewed,
    resolution,
    trained_on,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("transform", ["identity", "log"])
def test_the_slope_is_the_derivative(transform: TargetTransform) -> None:
    y = np.exp(RNG.normal(size=200))
    scale = TargetScale.of(y, transform)
    step = 1e-6 * y
    slope = (scale.scaled(y + step) - scale.scaled(y - step)) / (2 * step)
    np.testing.assert_allclose(scale.log_slope(y), np.log(slope), atol=1e-6)


@pytest.mark.parametrize("transform", ["identity", "log"])
def test_the_bulk_has_spread_one(transform: TargetTransform) -> None:
    y = np.exp(1 + RNG.normal(size=2000)) if transform == "log" else 5 + 3 * RNG.normal(size=2000)
    z = TargetScale.of(y, transform).scaled(y)
    assert abs(z.mean()) < 0.05
    assert z.std() == pytest.approx(1.0, abs=0.05)


def test_a_typing_error_sets_no_scale() -> None:
    y = RNG.normal(size=300)
    scale = TargetScale.of(np.r_[y, 1e9])
    assert scale.scale == pytest.approx(1.0, rel=0.15)
    z = scale.scaled(np.r_[y, 1e9])
    assert extreme(z).sum() == 1
    assert trained_on(z).max() == pytest.approx(15.0)


def test_a_logarithm_of_nothing_is_minus_infinity() -> None:
    scale = TargetScale.of(np.exp(RNG.normal(size=50)), "log")
    assert np.isneginf(scale.scaled(np.array([0.0, -1.0]))).all()


def test_targets_all_alike_have_a_scale() -> None:
    scale = TargetScale.of(np.full(20, 3.0))
    assert scale.scale == 1.0
    np.testing.assert_array_equal(scale.scaled(np.array([3.0, 4.0])), [0.0, 1.0])


@pytest.mark.parametrize("step", [0.5, 1.0, 10.0, 0.1])
def test_rounded_targets_show_their_step(step: float) -> None:
    y = step * np.round(RNG.normal(0, 5, size=400))
    assert resolution(y) == pytest.approx(step)
    assert resolution(RNG.normal(size=400)) == 0.0


def test_few_repeated_values_off_a_grid_are_not_rounded() -> None:
    assert resolution(np.tile([0.0, 1.0, np.pi], 50)) == 0.0


def test_skewed() -> None:
    assert is_skewed(np.exp(RNG.normal(size=500)))
    assert not is_skewed(np.exp(RNG.normal(size=500)) - 1)  # a logarithm needs positive values
    assert not is_skewed(10 + RNG.normal(size=500))
    assert not is_skewed(np.ones(20))
