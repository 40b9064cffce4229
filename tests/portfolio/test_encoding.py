"""Features as the networks see them: bounded, in order, and without what says nothing."""

import numpy as np
import pytest

from accord.portfolio.components import Calibration, Components
from accord.portfolio.encoding import (
    FeatureEncoding,
    TargetScale,
    TargetTransform,
    extreme,
    is_skewed,
    resolution,
    trained_on,
)

RNG = np.random.default_rng(0)
COLUMNS = {
    "normal": RNG.normal(size=300),
    "lognormal": np.exp(3 * RNG.normal(size=300)),
    "two values": (RNG.random(300) < 0.1).astype(float),
    "mostly zero": np.where(RNG.random(300) < 0.95, 0.0, RNG.normal(size=300)),
    "with a typing error": np.r_[RNG.normal(size=299), 1e12],
    "huge": 1e200 * RNG.normal(size=300),
    "tiny": 1e-200 * RNG.normal(size=300),
}


@pytest.mark.parametrize("bins", [0, 16])
@pytest.mark.parametrize("name", COLUMNS)
def test_bounded_and_monotone(name: str, bins: int) -> None:
    values = COLUMNS[name][:, None]
    encoding = FeatureEncoding(bins=bins).fit(values)
    absurd = np.array([-1e308, -1e100, -1e9, 0.0, 1e9, 1e100, 1e308])
    asked = np.sort(np.concatenate([absurd, values[:, 0]]))[:, None]
    encoded = encoding(asked)
    assert np.isfinite(encoded).all()
    assert (np.diff(encoded, axis=0) >= 0).all()
    assert np.abs(encoded[:, 0]).max() <= 4.0
    if bins:
        assert np.abs(encoded[:, 1:]).max(initial=0.0) <= 1.0


def test_absurd_values_are_at_the_bound() -> None:
    encoding = FeatureEncoding().fit(COLUMNS["normal"][:, None])
    np.testing.assert_allclose(encoding(np.array([[-1e308], [1e308]])), [[-4.0], [4.0]])


def test_the_bulk_is_standardised_whatever_one_row_says() -> None:
    plain = FeatureEncoding().fit(COLUMNS["normal"][:, None])
    spoilt = FeatureEncoding().fit(COLUMNS["with a typing error"][:, None])
    for encoding in (plain, spoilt):
        encoded = encoding(RNG.normal(size=(2000, 1)))
        assert abs(encoded.mean()) < 0.2
        assert encoded.std() == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("name", COLUMNS)
def test_no_column_above_has_a_tail_to_tell_apart(name: str) -> None:
    """Not errors, nor rare values of two, nor what is only skewed."""
    values = COLUMNS[name][:, None]
    encoding = FeatureEncoding().fit(values, tails=True)
    assert len(encoding.kept_) == 1


def test_rows_in_a_long_tail_are_told_apart() -> None:
    """Delays: most within minutes, one in twenty of hours."""
    hours = RNG.exponential(60, size=4000) * (RNG.random(4000) < 0.05)
    delay = np.column_stack([RNG.normal(0, 5, size=4000) + hours, RNG.normal(size=4000)])
    plain = FeatureEncoding(bins=4).fit(delay)
    tails = FeatureEncoding(bins=4).fit(delay, tails=True)
    asked = np.array([[0.0, 0.0], [100.0, 0.0], [200.0, 0.0], [1e12, 0.0]])
    assert tails.kept_.tolist() == [0, 1, 0]
    np.testing.assert_array_equal(np.delete(tails(asked), 2, axis=1), plain(asked))
    start, once, twice, absurd = tails(asked)[:, 2]
    assert twice - once > 0.7 * (once - start) > 10 * np.diff(plain(asked)[1:3, 0])
    assert absurd <= plain.bound


def test_constant_columns_are_dropped() -> None:
    x = np.column_stack([np.full(50, 0.1), RNG.normal(size=50), np.full(50, 1e9)])
    encoding = FeatureEncoding(bins=4).fit(x)
    assert encoding.kept_.tolist() == [1]
    other = x.copy()
    other[:, [0, 2]] = 7.0
    np.testing.assert_array_equal(encoding(x), encoding(other))


def test_nothing_but_constants_leaves_a_column_of_zeros() -> None:
    encoding = FeatureEncoding(bins=4).fit(np.ones((20, 3)))
    np.testing.assert_array_equal(encoding(np.full((5, 3), 7.0)), np.zeros((5, 1)))


def test_piecewise_linear_entries_sum_to_the_rank() -> None:
    """Between the edges exactly one entry is under way: those below are 1, those above −1."""
    x = RNG.normal(size=(200, 1))
    encoding = FeatureEncoding(bins=8).fit(x)
    entries = (encoding(x)[:, 1:] + 1) / 2
    assert entries.shape[1] == 8
    assert (np.diff(entries, axis=1) <= 0).all()
    assert (((entries > 0) & (entries < 1)).sum(axis=1) <= 1).all()
    edges = np.quantile(x[:, 0], np.linspace(0, 1, 9))
    np.testing.assert_allclose(edges[0] + entries @ np.diff(edges), x[:, 0], rtol=1e-9)


def test_units_do_not_matter() -> None:
    x = RNG.normal(size=(100, 2))
    for bins in (0, 8):
        plain = FeatureEncoding(bins=bins).fit(x)(x)
        other = FeatureEncoding(bins=bins).fit(1e6 * x - 3e5)(1e6 * x - 3e5)
        np.testing.assert_allclose(other, plain, rtol=1e-8, atol=1e-8)


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


def test_a_logarithm_gives_values_at_or_below_0_no_density() -> None:
    scale = TargetScale.of(np.exp(np.linspace(0, 3, 50)), "log")
    y = np.array([-999.0, 0.0, 5.0])
    part = Components.single(np.zeros(3), np.ones(3))
    density = Calibration().log_density(part, scale.scaled(y)) + scale.log_slope(y)
    np.testing.assert_array_equal(np.isneginf(density), [True, True, False])
