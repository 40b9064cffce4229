"""Rules over the whole data set: known answers, and exact forms against joint draws."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from scipy import stats

from accord.agreement import (
    AreaAtMost,
    AtLeast,
    DatasetRule,
    MeanAbsoluteErrorAtMost,
    MeanErrorWithin,
    Share,
    ShareWithin,
    SquaredErrorAtMost,
    Within,
    probability_of_agreement,
)
from accord.distributions import Empirical, Laplace, Normal, Uniform

RNG = np.random.default_rng(0)
MU = RNG.normal(size=20)
SIGMA = RNG.uniform(0.3, 1.0, size=20)
T = MU + 0.5 * RNG.normal(size=20)


def joint(model, data, rule, **options):
    return probability_of_agreement(model, data, rule, random_state=0, **options)


def test_exact_values_give_a_yes_or_no() -> None:
    y = np.array([1.0, 2.0, 3.0, 4.0])
    y_hat = np.array([1.1, 1.9, 3.4, 4.0])
    for rule, expected in [
        (MeanAbsoluteErrorAtMost(0.151), 1),
        (MeanAbsoluteErrorAtMost(0.149), 0),
        (MeanErrorWithin(0.101), 1),
        (MeanErrorWithin(0.099), 0),
        (SquaredErrorAtMost(0.181), 1),
        (SquaredErrorAtMost(0.179), 0),
        (ShareWithin(0.2, share=0.75), 1),
        (ShareWithin(0.2, share=0.76), 0),
        (ShareWithin(0.2, share=0.75) & MeanErrorWithin(0.101), 1),
        (ShareWithin(0.2, share=0.76) & MeanErrorWithin(0.101), 0),
        (ShareWithin(0.2, share=0.76) | MeanErrorWithin(0.101), 1),
        (~MeanErrorWithin(0.101), 0),
        (~~MeanErrorWithin(0.101), 1),
    ]:
        result = probability_of_agreement(y_hat, y, rule)
        assert result.probability.shape == ()
        assert float(result.probability) == expected, rule
        assert result.route == "closed form"


def test_area_ignores_the_order_of_the_rows() -> None:
    y = np.array([1.0, 2.0, 3.0])
    assert AreaAtMost.statistic(y[::-1], y) == 0
    assert AreaAtMost.statistic(y + 0.3, y) == pytest.approx(0.3)
    assert AreaAtMost.statistic(MU, T) == pytest.approx(stats.wasserstein_distance(MU, T))


@pytest.mark.parametrize(
    "rule",
    [ShareWithin(0.6, share=0.5), Share(Within(0.7) & AtLeast(), 0.3), MeanErrorWithin(0.1)],
    ids=str,
)
@pytest.mark.parametrize("data", [T, Normal(T, 0.3), Uniform(T - 0.5, T + 0.5)])
def test_exact_forms_agree_with_joint_draws(rule: DatasetRule, data) -> None:
    exact = joint(Normal(MU, SIGMA), data, rule)
    drawn = joint(Normal(MU, SIGMA), data, rule, method="monte carlo", n_samples=20_000)
    has_form = isinstance(rule, Share) or not isinstance(data, Uniform)
    assert exact.route == ("closed form" if has_form else "monte carlo")
    assert drawn.route == "monte carlo"
    assert abs(exact.probability - drawn.probability) <= 4 * drawn.standard_error + 1e-12


def test_share_by_quadrature() -> None:
    result = joint(Laplace(MU, SIGMA), Laplace(T, 0.2), ShareWithin(0.6, share=0.5))
    drawn = joint(
        Laplace(MU, SIGMA), Laplace(T, 0.2), ShareWithin(0.6, share=0.5), method="monte carlo"
    )
    assert result.route == "quadrature"
    assert abs(result.probability - drawn.probability) <= 4 * drawn.standard_error


def test_all_rows_is_the_product() -> None:
    single = probability_of_agreement(Normal(MU, SIGMA), T, Within(1.5))
    every = joint(Normal(MU, SIGMA), T, ShareWithin(1.5, share=1.0))
    assert float(every.log_probability) == pytest.approx(single.joint_log_probability, rel=1e-10)


def test_squared_error_of_equal_rows_is_noncentral_chi_squared() -> None:
    """Σ(ŷ − y)² / τ² of normal rows with equal τ is χ²(N, Σ(μ − t)²/τ²)."""
    tau = np.hypot(0.4, 0.3)
    shift = ((MU - T) ** 2).sum() / tau**2
    for limit in (6.0, 10.0):
        expected = stats.ncx2.cdf(limit / tau**2, 20, shift)
        found = joint(Normal(MU, 0.4), Normal(T, 0.3), SquaredErrorAtMost(limit), n_samples=40_000)
        assert abs(found.probability - expected) <= 4 * found.standard_error


def test_draws_keep_the_dependence_between_rows() -> None:
    """Rows that are wrong together: the joint probability is that of one row, not its power."""
    error = np.random.default_rng(1).normal(size=(20_000, 1))
    together = joint(T + error, T, ShareWithin(1.0, share=1.0))
    independent = joint(Normal(T, 1.0), T, ShareWithin(1.0, share=1.0))
    one_row = stats.norm.cdf(1) - stats.norm.cdf(-1)
    assert abs(together.probability - one_row) <= 4 * together.standard_error
    assert float(independent.probability) == pytest.approx(one_row**20, rel=1e-9)


def test_draws_on_both_sides() -> None:
    rng = np.random.default_rng(2)
    model, data = rng.normal(MU, SIGMA, (4000, 20)), Empirical(rng.normal(T, 0.3, (2000, 20)))
    rule = MeanErrorWithin(0.101) & ShareWithin(1.0, share=0.6)
    found = joint(model, data, rule)
    law = joint(Normal(MU, SIGMA), Normal(T, 0.3), rule, n_samples=40_000)
    stated = np.hypot(found.standard_error, law.standard_error)
    assert abs(found.probability - law.probability) <= 4 * stated
    for sides in [(model, Normal(T, 0.3)), (Normal(MU, SIGMA), data)]:
        mixed = joint(*sides, rule)
        stated = np.hypot(mixed.standard_error, law.standard_error)
        assert abs(mixed.probability - law.probability) <= 4 * stated


def test_a_share_that_is_next_to_impossible_has_its_digits() -> None:
    """All of 400 rows, each 5 deviations away: far below what a float can hold."""
    law, data = Normal(np.zeros(400), 1.0), np.full(400, 5.0)
    found = joint(law, data, ShareWithin(0.1, share=1.0))
    one_row = probability_of_agreement(law, data, Within(0.1)).log_probability[0]
    assert float(found.log_probability) == pytest.approx(400 * float(one_row), rel=1e-12)


def test_callable_over_all_rows() -> None:
    worst = DatasetRule.from_callable(
        lambda y_hat, y: np.abs(y_hat - y).max(-1) <= 2, name="worst error at most 2"
    )
    found = joint(Normal(MU, SIGMA), T, worst, n_samples=20_000)
    exact = joint(Normal(MU, SIGMA), T, ShareWithin(2.0, share=1.0))
    assert abs(found.probability - exact.probability) <= 4 * found.standard_error
    assert str(worst & MeanErrorWithin(1)) == "worst error at most 2 and mean error within 1"


def test_same_seed_same_numbers() -> None:
    rule = MeanAbsoluteErrorAtMost(0.5)
    a, b = (joint(Normal(MU, SIGMA), T, rule, n_samples=500) for _ in range(2))
    assert a.probability == b.probability


def test_result_prints_itself() -> None:
    text = repr(joint(MU, T, MeanErrorWithin(9)))
    assert text == "Agreement(mean error within 9: probability 1; closed form)"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: MeanErrorWithin(-1), ValueError, "limit must be non-negative, got -1"),
        (lambda: MeanErrorWithin(np.inf), ValueError, "limit must be finite"),
        (lambda: ShareWithin(1, share=95), ValueError, "share must lie between 0 and 1, got 95"),
        (lambda: Within(1) & MeanErrorWithin(1), TypeError, "Share\\(Within"),
        (lambda: MeanErrorWithin(1) & Within(1), TypeError, "Share"),
        (
            lambda: probability_of_agreement(
                np.zeros((3, 2)), np.zeros((3, 2)), MeanErrorWithin(1)
            ),
            ValueError,
            "must have data of shape",
        ),
        (
            lambda: DatasetRule.from_callable(lambda a, b: a < b)([1.0], [2.0]),
            ValueError,
            "must answer with booleans of shape",
        ),
        (
            lambda: joint(Laplace(MU, 1.0), T, MeanErrorWithin(1), method="closed form"),
            ValueError,
            "Use method='auto'",
        ),
    ],
)
def test_bad_input(make, error, message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_a_new_rule_over_all_rows_brings_its_own_closed_form() -> None:
    @dataclass(frozen=True)
    class FirstRowAbove(DatasetRule):
        limit: float

        def _holds(self, y_hat, y):
            return y_hat[..., 0] >= self.limit

        def __str__(self) -> str:
            return "first row above"

    class WithClosedForm(FirstRowAbove):
        def _log_exact(self, pair, options):
            log_p = pair.model.law[:1].log_interval_prob(torch.tensor([self.limit]), np.inf)
            return np.asarray(log_p[0]), np.zeros(()), "closed form"

    law, y = Normal([0.0, 1.0], 1.0), [0.0, 0.0]
    sampled = probability_of_agreement(law, y, FirstRowAbove(0.0), random_state=0)
    assert sampled.route == "monte carlo"
    found = probability_of_agreement(law, y, WithClosedForm(0.0))
    assert found.route == "closed form"
    assert float(found.probability) == pytest.approx(0.5, rel=1e-12)
