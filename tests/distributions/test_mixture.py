"""Mixtures: one component, permuted members, weights, and components that share nothing."""

import numpy as np
import pytest
from distribution_cases import FAMILIES, MEAN, SCALE, FamilyCase
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from accord.distributions import Decomposed, Mixture, Normal, Smoothed, Uniform

families = pytest.mark.parametrize("family", FAMILIES, ids=str)
ANSWERS = ("log_prob", "pdf", "cdf")
finite = st.floats(-100, 100)


@families
def test_one_component_is_the_component(family: FamilyCase) -> None:
    alone = family.make(MEAN, SCALE)
    mixture = Mixture(family.make(MEAN[None], SCALE[None]))
    y = alone.quantile(0.7)
    for method in ANSWERS:
        np.testing.assert_array_equal(getattr(mixture, method)(y), getattr(alone, method)(y))
    np.testing.assert_array_equal(mixture.mean, alone.mean)
    np.testing.assert_array_equal(mixture.variance, alone.variance)
    levels = [1e-9, 0.3, 0.9]
    np.testing.assert_allclose(mixture.quantile(levels), alone.quantile(levels), rtol=1e-14)
    np.testing.assert_allclose(
        mixture.log_interval_prob(y, np.inf), alone.log_interval_prob(y, np.inf), rtol=1e-14
    )


@settings(max_examples=30, deadline=None)
@given(
    means=arrays(float, (4, 3), elements=finite),
    log_scales=arrays(float, (4, 3), elements=st.floats(-3, 3)),
    order=st.permutations(range(4)),
)
def test_the_order_of_members_does_not_matter(
    means: np.ndarray, log_scales: np.ndarray, order: list[int]
) -> None:
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    scales = np.exp(log_scales)
    first = Mixture(Smoothed(Normal(means, scales), 0.5), weights)
    second = Mixture(Smoothed(Normal(means[order], scales[order]), 0.5), weights[order])
    np.testing.assert_allclose(first.mean, second.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(first.epistemic, second.epistemic, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(first.log_prob(1.0), second.log_prob(1.0), rtol=1e-12)
    q = first.quantile([0.05, 0.6])
    np.testing.assert_allclose(second.cdf(q.T), [[0.05] * 3, [0.6] * 3], rtol=1e-9)


@settings(max_examples=30, deadline=None)
@given(
    means=arrays(float, (5, 2), elements=st.floats(-1e9, 1e9)),
    spread=st.floats(1e-6, 1e6),
)
def test_the_variance_is_the_paper_s_and_never_negative(means: np.ndarray, spread: float) -> None:
    mixture = Mixture(Normal(means, spread))
    assert (mixture.variance >= spread**2 * (1 - 1e-12)).all()
    np.testing.assert_allclose(mixture.aleatoric, spread)
    rounding = 1e-15 * np.abs(means).max()
    np.testing.assert_allclose(mixture.epistemic, means.std(axis=0), rtol=1e-9, atol=rounding)
    np.testing.assert_allclose(mixture.aleatoric**2 + mixture.epistemic**2, mixture.variance)


def test_members_that_agree_far_from_zero_have_no_epistemic_part() -> None:
    """Σ w μ² − μ*² would be rounding noise of either sign here."""
    mixture = Mixture(Normal(np.full((7, 1), 1e9 + 0.1), 1e-3))
    assert mixture.epistemic == 0


def test_weights_count() -> None:
    members = Normal([[0.0], [10.0], [5.0]], [[1.0], [2.0], [3.0]])
    weighted = Mixture(members, weights=[1.0, 3.0, 0.0])
    np.testing.assert_allclose(weighted.weights, [0.25, 0.75, 0.0])
    np.testing.assert_allclose(weighted.mean, 7.5)
    repeated = Mixture(Normal([[0.0], [10.0], [10.0], [10.0]], [[1.0], [2.0], [2.0], [2.0]]))
    np.testing.assert_allclose(weighted.variance, repeated.variance)
    np.testing.assert_allclose(weighted.log_prob(3.0), repeated.log_prob(3.0))
    levels = [0.0, 1e-9, 0.1, 0.25, 0.5, 1.0]
    np.testing.assert_allclose(weighted.quantile(levels), repeated.quantile(levels), rtol=1e-11)


def test_components_far_apart_split_the_levels_among_themselves() -> None:
    near, far = Normal(0.0, 1e-3), Normal(1e6, 1.0)
    mixture = Mixture(Normal([0.0, 1e6], [1e-3, 1.0]), weights=[0.25, 0.75])
    levels = np.array([1e-12, 0.01, 0.2])
    np.testing.assert_allclose(mixture.quantile(levels), near.quantile(levels / 0.25), rtol=1e-10)
    levels = np.array([0.3, 0.7, 1 - 1e-9])
    expected = far.quantile(1 - (1 - levels) / 0.75)
    np.testing.assert_allclose(mixture.quantile(levels), expected, rtol=1e-12)
    assert 0.01 < mixture.quantile(0.25) < 1e6 - 7  # anywhere on the plateau


def test_scales_of_very_different_size() -> None:
    mixture = Mixture(Normal([0.0, 0.0], [1e-8, 1e8]))
    np.testing.assert_allclose(mixture.quantile(0.1), Normal(0.0, 1e8).quantile(0.2), rtol=1e-9)
    np.testing.assert_allclose(mixture.quantile(0.3), Normal(0.0, 1e-8).quantile(0.1), rtol=1e-9)
    np.testing.assert_allclose(mixture.quantile([1e-12]), Normal(0.0, 1e8).quantile([2e-12]))
    assert abs(mixture.cdf(mixture.quantile(0.7)) - 0.7) < 1e-11


def test_boxes_with_a_gap_have_quantiles_in_the_boxes() -> None:
    mixture = Mixture(Uniform([0.0, 10.0], [1.0, 12.0]))
    np.testing.assert_allclose(
        mixture.quantile([0.0, 0.1, 0.4, 0.75, 1.0]), [0.0, 0.2, 0.8, 11.0, 12.0], rtol=1e-11
    )
    assert 1.0 - 1e-9 <= mixture.quantile(0.5) <= 10.0 + 1e-9


def test_a_probability_near_one_keeps_its_digits() -> None:
    mixture = Mixture(Normal([0.0, 1.0], [1.0, 1.0]))
    beyond = [Normal(m, 1.0).log_interval_prob(12.0, np.inf) for m in (0.0, 1.0)]
    expected = -np.exp(beyond).mean()
    np.testing.assert_allclose(mixture.log_interval_prob(-60.0, 12.0), expected, rtol=1e-12)
    np.testing.assert_allclose(mixture.log_within_prob(-24.0, 36.0), expected, rtol=1e-12)


def test_far_tails_do_not_underflow() -> None:
    mixture = Mixture(Normal([[0.0], [3.0]], 1.0))
    assert np.isfinite(mixture.log_prob(1e4)).all()
    np.testing.assert_allclose(
        mixture.log_interval_prob(500.0, np.inf),
        Normal([3.0], 1.0).log_interval_prob(500.0, np.inf) - np.log(2),
        rtol=1e-12,
    )


def test_the_parts_of_members_are_carried_over() -> None:
    members = Decomposed(Normal([[0.0], [2.0]], 5.0), disagreement=3.0)
    mixture = Mixture(members)
    np.testing.assert_allclose(mixture.aleatoric, 4.0)
    np.testing.assert_allclose(mixture.epistemic, np.sqrt(9 + 1))


def test_draws_of_a_mixture_come_from_all_members() -> None:
    mixture = Mixture(Normal([[0.0, 5.0], [100.0, 5.0]], 1.0), weights=[0.3, 0.7])
    draws = mixture.sample(4000, random_state=1)
    np.testing.assert_allclose((draws > 50).mean(axis=0), [0.7, 0.0], atol=0.03)


def test_two_outputs_mix_output_by_output() -> None:
    mixture = Mixture(Normal(np.arange(12.0).reshape(2, 3, 2), 1.0))
    assert mixture.shape == (3, 2)
    assert mixture.quantile([0.1, 0.2, 0.3, 0.4]).shape == (3, 2, 4)
    assert mixture.interval(0.9).shape == (3, 2, 2)
    assert mixture.sample(7, random_state=0).shape == (7, 3, 2)
    np.testing.assert_allclose(mixture[:, 1].mean, mixture.mean[:, 1])
