"""Distributions with the density of another: stated parts of variance, quantiles by rank."""

import numpy as np
import pytest

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


@pytest.mark.parametrize("needed", [[-0.1], [1.1], [np.nan]])
def test_what_rows_needed_are_probabilities(needed: list[float]) -> None:
    with pytest.raises(ValueError, match="needed must"):
        RankCalibrated(Normal([0.0], 1.0), needed)
