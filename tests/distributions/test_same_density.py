"""Distributions with the density of another: stated parts of variance, quantiles by rank."""

import numpy as np
import pytest
import scipy.stats

from accord.distributions import Decomposed, Normal, RankCalibrated, StudentT


def test_the_rest_is_aleatoric() -> None:
    dist = Decomposed(Normal([0.0, 0.0], [5.0, 13.0]), disagreement=[3.0, 5.0])
    np.testing.assert_allclose(dist.aleatoric, [4.0, 12.0])
    np.testing.assert_allclose(dist.epistemic, [3.0, 5.0])
    np.testing.assert_allclose(dist.std, [5.0, 13.0])


def test_everything_else_is_the_base_s() -> None:
    base = Normal([0.0, 1.0], 2.0)
    dist = Decomposed(base, 1.0)
    for method, arguments in (
        ("log_prob", (0.3,)),
        ("cdf", (0.3,)),
        ("log_interval_prob", (0.0, 1.0)),
        ("log_within_prob", (0.0, 1.0)),
        ("quantile", ([0.1, 0.9],)),
        ("interval", (0.5,)),
    ):
        np.testing.assert_array_equal(
            getattr(dist, method)(*arguments), getattr(base, method)(*arguments)
        )
    np.testing.assert_array_equal(dist.sample(4, random_state=2), base.sample(4, random_state=2))
    assert dist.base is base


def test_rounding_may_exceed_the_whole_but_no_more() -> None:
    dist = Decomposed(Normal(0.0, 1.0), disagreement=1 + 1e-12)
    assert dist.aleatoric == 0
    assert dist.std == 1
    with pytest.raises(
        ValueError, match=r"disagreement and distance must not exceed .* got 1\.1 with 1\.0\."
    ):
        Decomposed(Normal(0.0, 1.0), disagreement=1.1)


def test_an_infinite_variance_leaves_an_infinite_rest() -> None:
    dist = Decomposed(StudentT(2, 0.0, 1.0), disagreement=3.0)
    assert dist.aleatoric == np.inf
    assert dist.epistemic == 3


def covered(n: int, coverage: float, *, sharpness: float, draws: int = 4000) -> float:
    """How often a further row is inside, for a base whose deviation is wrong by a factor."""
    rng = np.random.default_rng(n)
    inside = np.empty(draws)
    base = Normal(np.zeros(n + 1), sharpness)
    for draw in range(draws):
        y = rng.normal(size=n + 1)
        needed = np.abs(2 * base.cdf(y) - 1)
        low, high = RankCalibrated(base[n:], needed[:n]).interval(coverage)[0]
        inside[draw] = low <= y[n] <= high
    return float(inside.mean())


@pytest.mark.parametrize("sharpness", [0.3, 1.0, 3.0])
@pytest.mark.parametrize(("n", "coverage"), [(19, 0.9), (19, 0.95), (40, 0.5), (40, 0.95)])
def test_intervals_cover_whatever_the_base(n: int, coverage: float, sharpness: float) -> None:
    """The guarantee of split conformal prediction; three standard errors of 4,000 draws."""
    share, error = covered(n, coverage, sharpness=sharpness), np.sqrt(coverage * (1 - coverage))
    assert share >= coverage - 3 * error / np.sqrt(4000)
    assert share <= coverage + 1 / (n + 1) + 3 * error / np.sqrt(4000)


def test_where_the_rank_does_not_exist_the_interval_is_the_widest_of_both() -> None:
    """Of 10 rows none says what 99 % need: the base's own word, or the worst row's."""
    base = Normal([0.0], 1.0)
    modest = RankCalibrated(base, np.linspace(0.05, 0.5, 10))
    np.testing.assert_allclose(modest.interval(0.99), base.interval(0.99), rtol=1e-12)
    bold = RankCalibrated(base, np.linspace(0.5, 0.999, 10))
    np.testing.assert_allclose(bold.interval(0.99), base.interval(0.999), rtol=1e-9)


def test_rank_is_that_of_the_definition() -> None:
    needed = np.linspace(0.05, 0.95, 19)
    dist = RankCalibrated(Normal([2.0], 3.0), needed)
    for rank in range(1, 20):
        expected = dist.base.interval(needed[rank - 1])
        np.testing.assert_allclose(dist.interval(rank / 20), expected, rtol=1e-12)


def test_ranks_narrow_only_rows_like_the_held_out_ones() -> None:
    """Of rows that are unlike them by 0, a half and 1, levels are lowered by that much less."""
    base, unlike = Normal(np.zeros(3), 2.0), [0.0, 0.5, 1.0]
    exact = RankCalibrated(base, np.linspace(0.01, 0.19, 19), unlike=unlike).interval(0.9)
    for row, level in enumerate((0.18, 0.54, 0.9)):
        np.testing.assert_allclose(exact[row], base.interval(level)[row], rtol=1e-9)
    wide = RankCalibrated(base, np.linspace(0.9, 0.99, 19), unlike=unlike)
    for row in range(3):  # what makes intervals wider is never taken back
        np.testing.assert_allclose(wide.interval(0.9)[row], base.interval(0.985)[row], rtol=1e-9)


def test_rows_unlike_the_held_out_ones_are_as_wide_as_rehearsed_rows_needed() -> None:
    base, unlike = Normal(np.zeros(3), 2.0), [0.0, 0.5, 1.0]
    needed, rehearsed = np.linspace(0.05, 0.95, 19), np.linspace(0.15, 0.97, 19)
    found = RankCalibrated(base, needed, rehearsed=rehearsed, unlike=unlike).interval(0.9)
    far = rehearsed[17]
    for row, level in enumerate((0.9, (0.9 + far) / 2, far)):
        np.testing.assert_allclose(found[row], base.interval(level)[row], rtol=1e-9)


def test_rehearsed_rows_outside_all_they_were_given_leave_intervals_finite() -> None:
    """The tail is at least a fifth of what was asked for."""
    found = RankCalibrated(Normal([0.0], 1.0), [0.5], rehearsed=[1.0] * 30, unlike=1.0)
    np.testing.assert_allclose(found.interval(0.9), found.base.interval(0.98), rtol=1e-9)


def test_quantiles_by_rank_do_not_cross() -> None:
    base = Normal(np.zeros(3), 2.0)
    crossing = np.diff(
        RankCalibrated(base, [0.01, 0.1, 0.999], unlike=[0, 0.5, 1]).quantile(
            np.linspace(0.01, 0.99)
        )
    )
    assert (crossing >= 0).all()


def test_quantiles_never_cross() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 5, 50):
        dist = RankCalibrated(Normal([0.0], 1.0), rng.random(n))
        quantiles = dist.quantile(np.linspace(0.001, 0.999, 999))[0]
        assert (np.diff(quantiles) >= 0).all()
        np.testing.assert_allclose(quantiles, -quantiles[::-1], atol=1e-9)


def test_all_but_quantiles_is_the_base() -> None:
    base = Normal([0.0, 1.0], [1.0, 2.0])
    dist = RankCalibrated(base, [0.5, 0.99])
    y = np.array([0.3, -2.0])
    for name in ("mean", "std", "noise", "disagreement", "distance"):
        np.testing.assert_array_equal(getattr(dist, name), getattr(base, name))
    np.testing.assert_array_equal(dist.log_prob(y), base.log_prob(y))
    np.testing.assert_array_equal(dist.cdf(y), base.cdf(y))


def test_targets_on_a_bound_are_covered_as_often_as_others() -> None:
    """Counts with many zeros: intervals that leave the bound out would miss all of them."""
    rng = np.random.default_rng(0)
    center = rng.normal(size=2000)
    y = np.maximum(center + rng.normal(size=2000), 0.0)
    base = Normal(center, 1.0)
    needed = np.abs(2 * base[:1000].cdf(y[:1000]) - 1)
    intervals = RankCalibrated(base[1000:], needed, lower=0.0).interval(0.9)
    inside = (intervals[:, 0] <= y[1000:]) & (y[1000:] <= intervals[:, 1])
    assert intervals.min() == 0
    assert inside.mean() == pytest.approx(0.9, abs=0.03)
    assert inside[y[1000:] == 0].mean() > 0.85


def test_bounds_cut_the_density_and_not_the_ranks() -> None:
    base = Normal([0.5, 3.0], 1.0)
    dist = RankCalibrated(base, [0.6, 0.9], lower=0.0, upper=4.0)
    cut = base.log_prob([0.2, 3.5]) - base.log_interval_prob(0.0, 4.0)
    np.testing.assert_allclose(dist.log_prob([0.2, 3.5]), cut, rtol=1e-12)
    assert (dist.log_prob([[-0.1, 4.1], [5.0, -2.0]]) == -np.inf).all()
    np.testing.assert_allclose(dist.mean, base.mean, rtol=1e-12)
    np.testing.assert_allclose(dist.std, base.std, rtol=1e-12)
    assert RankCalibrated(Normal([-2.0], 1.0), [0.6], lower=0.0).mean == 0
    expected = np.clip(base.interval(0.9), 0.0, 4.0)
    np.testing.assert_allclose(dist.interval(0.6), expected, rtol=1e-12)
    np.testing.assert_allclose(dist[1:].interval(0.6), expected[1:], rtol=1e-12)


def test_what_was_thought_impossible_costs_no_infinite_loss() -> None:
    """What happens once in more rows than n is not excluded: beyond a bound, or far from sharp."""
    needed = np.linspace(0.01, 0.99, 19)
    dist = RankCalibrated(Normal([0.5, 900.0], [1e-6, 3.0]), needed, lower=0.0, spread=2.0)
    values = np.array([[-0.1, -0.1], [30.0, 30.0], [-50.0, -1e9]])
    wide = scipy.stats.t(3, loc=[0.5, 900.0], scale=20.0)
    np.testing.assert_allclose(dist.log_prob(values), np.log(0.1 / 20) + wide.logpdf(values))
    plain = RankCalibrated(Normal([0.5, 900.0], [1e-6, 3.0]), needed, lower=0.0)
    assert (plain.log_prob(values)[[0, 2]] == -np.inf).all()
    near = np.array([0.5, 900.0])
    np.testing.assert_allclose(dist.log_prob(near), plain.log_prob(near), atol=0.01)
    for figure in ("mean", "std"):
        np.testing.assert_array_equal(getattr(dist, figure), getattr(plain, figure))


def test_probabilities_know_of_what_lies_on_a_bound() -> None:
    """Half of the first row's probability is on 0, where its intervals end, and so say all."""
    base = Normal([0.0, 3.0], 1.0)
    dist = RankCalibrated(base, np.linspace(0.01, 0.99, 99), lower=0.0, upper=4.0)
    assert dist.interval(0.9)[0, 0] == 0
    for value in (0.0, 0.7, 3.9):
        np.testing.assert_allclose(dist.cdf(value), base.cdf(value), rtol=1e-12)
    np.testing.assert_array_equal([dist.cdf(-1e-9), dist.cdf(4.0)], [[0, 0], [1, 1]])
    inside = base.cdf(1.0)
    np.testing.assert_allclose(np.exp(dist.log_interval_prob(0.0, 1.0)), inside, rtol=1e-12)
    np.testing.assert_allclose(np.exp(dist.log_interval_prob(-9.0, 1.0)), inside, rtol=1e-12)
    np.testing.assert_allclose(np.exp(dist.log_within_prob(0.5, 0.5)), inside, rtol=1e-12)
    np.testing.assert_allclose(np.exp(dist.log_interval_prob(4.0, 5.0)), 1 - base.cdf(4.0))
    assert (dist.log_interval_prob(-2.0, -1.0) == -np.inf).all()
    draws = dist.sample(4000, random_state=0)
    assert draws.min() == 0
    np.testing.assert_allclose((draws == 0).mean(axis=0), base.cdf(0.0), atol=0.03)
    # CRPS by its definition, with draws in place of the integral
    expected = np.abs(draws - 1.0).mean(0) - np.abs(draws - draws[::-1]).mean(0) / 2
    np.testing.assert_allclose(dist.crps(1.0), expected, atol=0.04)


@pytest.mark.parametrize("needed", [[-0.1], [1.1], [np.nan]])
def test_what_rows_needed_are_probabilities(needed: list[float]) -> None:
    with pytest.raises(ValueError, match="needed must"):
        RankCalibrated(Normal([0.0], 1.0), needed)
