"""What holds for every distribution, whatever its formulas."""

import numpy as np
import pytest
import torch
from distribution_cases import CONTINUOUS, EVERY, LEVELS, STRUCTURES
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from accord.distributions import Distribution

every = pytest.mark.parametrize("name", EVERY)
continuous = pytest.mark.parametrize("name", CONTINUOUS)
structures = pytest.mark.parametrize("name", STRUCTURES)
NODES, WEIGHTS = np.polynomial.legendre.leggauss(20)
# A plateau without density cannot be split by quantiles; heavy tails hide their moments from nodes.
SPLIT = [name for name in CONTINUOUS if "far apart" not in name]
LIGHT = [name for name in SPLIT if "student-t" not in name]


def integral(dist: Distribution, ends: np.ndarray, power: int = 0) -> np.ndarray:
    """∫ (y − mean)^power pdf dy per row, by Gauss–Legendre over panels with ends (K, *shape)."""
    middle, radius = (ends[1:] + ends[:-1]) / 2, (ends[1:] - ends[:-1]) / 2
    y = middle + radius * NODES.reshape(-1, 1, 1)
    moment = (y - dist.mean) ** power if power else 1.0
    return np.einsum("q,qkn->n", WEIGHTS, moment * dist.pdf(y) * radius)


def kinked(name: str) -> float:
    """The accuracy of the nodes: less where a density has kinks, or jumps, between them."""
    return {"laplace": 1e-5, "uniform": 3e-2}.get(name.split(",")[0].split()[-1], 1e-9)


def panels(dist: Distribution, low: float, high: float) -> np.ndarray:
    odds = np.linspace(np.log(low / (1 - low)), np.log(high / (1 - high)), 300)
    return np.moveaxis(dist.quantile(1 / (1 + np.exp(-odds))), -1, 0)


@pytest.mark.parametrize("name", SPLIT)
def test_the_density_integrates_to_the_cdf(name: str) -> None:
    dist = CONTINUOUS[name](0.0, 1.0)
    ends = panels(dist, 0.03, 0.9)
    np.testing.assert_allclose(
        integral(dist, ends), dist.cdf(ends[-1]) - dist.cdf(ends[0]), rtol=kinked(name)
    )


@pytest.mark.parametrize("name", LIGHT)
def test_the_moments_are_those_of_the_density(name: str) -> None:
    dist = CONTINUOUS[name](0.0, 1.0)
    ends = panels(dist, 1e-13, 1 - 1e-13)
    np.testing.assert_allclose(integral(dist, ends), 1.0, rtol=kinked(name))
    np.testing.assert_allclose(integral(dist, ends, 1) / dist.std, 0.0, atol=kinked(name))
    np.testing.assert_allclose(integral(dist, ends, 2), dist.variance, rtol=kinked(name))


@every
def test_the_variance_is_the_sum_of_its_parts(name: str) -> None:
    dist = EVERY[name](0.0, 1.0)
    known = np.isfinite(dist.variance)
    np.testing.assert_allclose((dist.aleatoric**2 + dist.epistemic**2)[known], dist.variance[known])
    np.testing.assert_allclose(dist.std**2, dist.variance)
    assert np.isinf(dist.aleatoric[~known]).all()
    assert (dist.epistemic[known] >= 0).all()
    for part, values in dist.deviations().items():
        np.testing.assert_array_equal(values, getattr(dist, part))


@continuous
def test_quantiles_invert_the_cdf_on_both_sides(name: str) -> None:
    dist = CONTINUOUS[name](0.0, 1.0)
    q = np.moveaxis(dist.quantile(LEVELS), -1, 0)
    below, above = dist.cdf(q), np.exp(dist.log_interval_prob(q, np.inf))
    p = LEVELS[:, None]
    smaller, exact = np.where(p < 0.5, below, above), np.minimum(p, 1 - p)
    # A point can be no closer to the quantile than the rounding of (y − mean)/scale allows.
    size = np.abs(q) + np.abs(dist.quantile(0.5)) + np.abs(q - dist.quantile(0.5))
    attainable = 1e-10 * exact + 4 * np.spacing(size) * dist.pdf(q)
    assert (np.abs(smaller - exact) <= attainable).all()
    assert (np.diff(q, axis=0) > 0).all()


@every
def test_the_interval_is_central(name: str) -> None:
    dist = EVERY[name](0.0, 1.0)
    interval = dist.interval(0.8)
    assert interval.shape == (4, 2)
    np.testing.assert_allclose(interval, dist.quantile([0.1, 0.9]), rtol=1e-9)


@every
def test_probabilities_of_intervals_are_differences_of_the_cdf(name: str) -> None:
    dist = EVERY[name](0.0, 1.0)
    low, high = np.moveaxis(dist.quantile([0.11, 0.83]), -1, 0)
    atom = dist.cdf(low) - dist.cdf(np.nextafter(low, -np.inf))
    expected = np.log(dist.cdf(high) - dist.cdf(low) + (atom if name == "empirical" else 0.0))
    np.testing.assert_allclose(dist.log_interval_prob(low, high), expected, rtol=1e-11, atol=1e-9)
    center, half = (low + high) / 2, (high - low) / 2 * (1 + 1e-15)
    np.testing.assert_allclose(dist.log_within_prob(center, half), expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(dist.log_interval_prob(-np.inf, high), np.log(dist.cdf(high)))
    assert (dist.log_interval_prob(-np.inf, np.inf) == 0).all()
    assert (dist.cdf(-np.inf) == 0).all()
    np.testing.assert_allclose(dist.cdf(np.inf), 1.0, rtol=1e-15)


@continuous
def test_a_narrow_window_has_the_probability_of_its_density(name: str) -> None:
    dist = CONTINUOUS[name](0.0, 1.0)
    for point in np.moveaxis(dist.quantile([0.01, 0.4, 0.95]), -1, 0):
        half = 1e-9 * (dist.quantile(0.6) - dist.quantile(0.4))
        expected = dist.log_prob(point) + np.log(2 * half)
        np.testing.assert_allclose(dist.log_within_prob(point, half), expected, rtol=1e-7)


@every
def test_draws_follow_the_cdf(name: str) -> None:
    dist = EVERY[name](0.0, 1.0)
    draws = dist.sample(3000, random_state=5)
    assert draws.shape == (3000, 4)
    if name == "empirical":
        assert np.isin(draws, dist.draws).all()
        return
    for row in dist.cdf(draws).T:
        assert stats.kstest(row, "uniform").pvalue > 1e-4


@every
def test_a_seed_repeats_the_draws(name: str) -> None:
    dist = EVERY[name](0.0, 1.0)
    first = dist.sample(5, random_state=3)
    np.testing.assert_array_equal(first, dist.sample(5, random_state=3))
    np.testing.assert_array_equal(first, dist.sample(5, random_state=np.random.default_rng(3)))
    assert (first != dist.sample(5, random_state=4)).any()
    generator, legacy = np.random.default_rng(3), np.random.RandomState(3)
    assert (dist.sample(5, random_state=generator) != dist.sample(5, random_state=generator)).any()
    assert (dist.sample(5, random_state=legacy) != dist.sample(5, random_state=legacy)).any()


@every
@settings(max_examples=3, deadline=None)
@given(shift=st.floats(-50, 50), stretch=st.floats(0.01, 100))
def test_shift_and_scale(name: str, shift: float, stretch: float) -> None:
    plain, moved = EVERY[name](0.0, 1.0), EVERY[name](shift, stretch)
    y = np.moveaxis(plain.quantile([0.23, 0.71]), -1, 0)
    there, size = shift + stretch * y, 1e-13 * (abs(shift) + stretch * np.abs(y))
    np.testing.assert_allclose(moved.mean, shift + stretch * plain.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(moved.std, stretch * plain.std, rtol=1e-9)
    q = np.moveaxis(moved.quantile([0.23, 0.71]), -1, 0)
    np.testing.assert_allclose(q, there, rtol=1e-9, atol=1e-12 + size.max())
    if name in CONTINUOUS:
        slack = 1e-6 if "eps 1e-06" in name or "far apart" in name else 1e-9
        np.testing.assert_allclose(moved.cdf(there), plain.cdf(y), rtol=slack, atol=slack)
    if name in CONTINUOUS and "uniform" not in name:
        np.testing.assert_allclose(
            moved.log_prob(there), plain.log_prob(y) - np.log(stretch), rtol=1e-6, atol=1e-6
        )


@structures
@pytest.mark.parametrize(
    "rows", [slice(1, 3), np.array([True, False, False, True]), torch.tensor([3, 0, 3])]
)
def test_rows_answer_as_they_do_together(name: str, rows: object) -> None:
    dist = EVERY[name](0.0, 1.0)
    index = rows.numpy() if isinstance(rows, torch.Tensor) else rows
    part = dist[rows]
    y = dist.quantile(0.3)
    np.testing.assert_allclose(part.mean, dist.mean[index], rtol=1e-14)
    np.testing.assert_allclose(part.variance, dist.variance[index], rtol=1e-13)
    np.testing.assert_allclose(part.cdf(y[index]), dist.cdf(y)[index], rtol=1e-13)
    np.testing.assert_allclose(part.quantile(0.3), y[index], rtol=1e-11)


@structures
def test_chunks_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dist = EVERY[name](0.0, 1.0)
    y = np.moveaxis(dist.quantile([0.2, 0.6, 0.9]), -1, 0)
    expected = dist.cdf(y), dist.quantile([0.2, 0.5]), dist.log_interval_prob(y - 1, y)
    monkeypatch.setattr("accord.distributions.batch._CHUNK", 1)
    np.testing.assert_allclose(dist.cdf(y), expected[0], rtol=1e-14)
    np.testing.assert_allclose(dist.quantile([0.2, 0.5]), expected[1], rtol=1e-11)
    np.testing.assert_allclose(dist.log_interval_prob(y - 1, y), expected[2], rtol=1e-12)


@structures
def test_a_grid_of_outputs_answers_as_its_columns(name: str) -> None:
    dist = EVERY[name](0.0, 1.0)
    grid = dist._map(
        lambda tensor, lead: tensor.reshape(*tensor.shape[:lead], 2, 2, *tensor.shape[lead + 1 :])
    )
    assert grid.shape == (2, 2)
    y = dist.quantile(0.3)
    np.testing.assert_allclose(grid.cdf(y.reshape(2, 2)).ravel(), dist.cdf(y), rtol=1e-14)
    np.testing.assert_allclose(grid.quantile([0.3, 0.4]).reshape(4, 2), dist.quantile([0.3, 0.4]))
    np.testing.assert_allclose(grid[:, 0].mean, dist.mean[[0, 2]])


@structures
def test_it_prints_itself_in_a_few_words(name: str) -> None:
    dist = EVERY[name](0.0, 1.0)
    assert repr(dist).startswith(type(dist).__name__ + "(")
    many = dist[np.zeros(10_000, dtype=int)]
    assert len(repr(many)) < 400


@every
def test_quantiles_never_cross_and_come_in_the_order_asked_for(name: str) -> None:
    dist = EVERY[name](0.0, 1.0)
    close = 0.3 + np.arange(40) * 1e-17 + np.arange(40) // 8 * 1e-16  # nothing but rounding apart
    assert np.all(np.diff(dist.quantile(np.sort(close)), axis=-1) >= 0)
    shuffled = dist.quantile([0.9, 0.1, 0.5])
    np.testing.assert_array_equal(shuffled, dist.quantile([0.1, 0.5, 0.9])[..., [2, 0, 1]])
