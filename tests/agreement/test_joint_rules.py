"""Rules over several outputs: what they say, and the probability that they hold."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from accord.agreement import (
    AllWithin,
    AtLeast,
    EachOutput,
    ErrorInside,
    Inside,
    JointRule,
    NormWithin,
    Rule,
    Within,
    probability_of_agreement,
)
from accord.distributions import JointMixture, JointSmoothed, Laplace, MultivariateNormal, Normal

RNG = np.random.default_rng(0)
MEAN = RNG.normal(size=(4, 2))
Y = MEAN + 0.5 * RNG.normal(size=(4, 2))
FACTOR = np.array([[1.0, 0.0], [0.8, 0.6]])
MODEL = MultivariateNormal(MEAN, FACTOR)


class TestWhatRulesSay:
    def test_each_row_has_one_answer(self) -> None:
        y_hat, y = [[1.4, 2.0], [1.1, 2.3]], [1.0, 2.0]
        assert AllWithin([0.5, 0.1])(y_hat, y).tolist() == [True, False]
        assert NormWithin(0.35)(y_hat, y).tolist() == [False, True]
        assert NormWithin(1.0, scale=[1.0, 0.2])(y_hat, y).tolist() == [True, False]
        assert EachOutput([AtLeast(), Inside(0, 2.1)])(y_hat, y).tolist() == [True, False]

    def test_algebra_and_words(self) -> None:
        rule = ~(AllWithin(0.5) & NormWithin(0.4, scale=[1, 2]))
        assert str(rule) == "not (all within 0.5 and norm within 0.4 in units of 1, 2)"
        assert rule([[0.3, 0.3]], [0.0, 0.0]).tolist() == [False]
        assert ~rule == AllWithin(0.5) & NormWithin(0.4, scale=[1, 2])
        assert AllWithin(0.5) != AllWithin(0.6)

    def test_a_callable_must_answer_per_row(self) -> None:
        rule = JointRule.from_callable(lambda a, b: abs(a - b) < 1, name="near")
        with pytest.raises(ValueError, match="Reduce the last axis"):
            rule([[0.0, 0.0]], [[0.0, 0.0]])

    def test_kinds_of_rules_do_not_mix(self) -> None:
        with pytest.raises(TypeError, match="EachOutput"):
            AllWithin(0.5) & Within(0.5)  # type: ignore[operator]
        with pytest.raises(TypeError, match="JointBVMRegressor"):
            Rule.of(AllWithin(0.5))
        with pytest.raises(TypeError, match="marginals"):
            probability_of_agreement(MODEL, Y, Within(0.5))


def brute_force(model: object, data: object, rule: JointRule) -> tuple[np.ndarray, np.ndarray]:
    """Plain random draws, by numpy's own generator."""
    n, rng = 200_000, np.random.default_rng(1)

    def drawn(side: object) -> np.ndarray:
        if isinstance(side, np.ndarray):
            return side
        return np.asarray(side.sample(n, random_state=rng))  # type: ignore[attr-defined]

    share = rule(drawn(model), drawn(data)).mean(0)
    return share, np.sqrt(share * (1 - share) / n)


RULES = {
    "all within": AllWithin([0.7, 0.4]),
    "norm": NormWithin(0.8, scale=[1.0, 0.5]),
    "both": AllWithin([0.7, 0.4]) & NormWithin(0.6),
    "either": AllWithin([0.1, 2.0]) | NormWithin(0.6),
    "neither": ~(AllWithin([0.7, 0.4]) | NormWithin(0.8, scale=[1.0, 0.5])),
    "one of two": (AllWithin(0.7) | NormWithin(0.8)) & ~(AllWithin(0.7) & NormWithin(0.8)),
    "several intervals": ~EachOutput([Within(0.5) | ErrorInside(1, 2), ~Within(0.3)]),
    "one-sided": EachOutput([AtLeast(), Within(0.5)]),
    "callable": JointRule.from_callable(lambda a, b: (a - b).sum(-1) > 0.5, name="sum"),
}
DATA = {
    "known": Y,
    "correlated": MultivariateNormal(Y, 0.5 * np.array([[0.6, 0.0], [-0.7, 0.4]])),
    "independent": Normal(Y, 0.4),
    "other": Laplace(Y, 0.3),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("data", DATA)
def test_every_route_against_brute_force(rule: str, data: str) -> None:
    found = probability_of_agreement(MODEL, DATA[data], RULES[rule], random_state=0)
    expected, error = brute_force(MODEL, DATA[data], RULES[rule])
    np.testing.assert_array_less(
        np.abs(found.probability - expected), 4.5 * np.hypot(error, found.standard_error) + 1e-4
    )
    exact = rule != "callable" and data != "other"
    assert found.route == ("quadrature" if exact else "monte carlo")


def test_disagreement_has_its_digits_where_it_is_next_to_impossible() -> None:
    """1 − P would be 0 there: independent outputs, of which one is twenty deviations off."""
    model = MultivariateNormal(np.zeros((1, 2)), np.eye(2))
    found = probability_of_agreement(model, np.zeros((1, 2)), ~AllWithin(20.0)).log_probability
    assert found[0] == pytest.approx(np.log(4) + norm.logsf(20), rel=1e-9)
    ring = probability_of_agreement(model, np.zeros((1, 2)), ~NormWithin(5.0)).log_probability
    assert ring[0] == pytest.approx(-12.5, rel=1e-9), "exp(−r²/2) for a circle"


def test_a_rule_and_its_opposite_share_all_there_is() -> None:
    for rule in (RULES["either"], RULES["one of two"], RULES["several intervals"]):
        yes, no = (probability_of_agreement(MODEL, Y, r).probability for r in (rule, ~rule))
        np.testing.assert_allclose(yes + no, 1.0, atol=1e-5)


def test_too_many_regions_are_drawn_instead() -> None:
    windows = EachOutput([Within(0.1) | ErrorInside(1, 2) | ErrorInside(3, 4)] * 6)
    model = MultivariateNormal(np.zeros((1, 6)), np.eye(6))
    found = probability_of_agreement(model, np.zeros((1, 6)), windows | ~windows, random_state=0)
    assert found.route == "monte carlo"
    assert found.probability[0] == 1.0


def test_a_mixture_is_the_mean_of_its_members() -> None:
    members = MultivariateNormal(
        np.stack([MEAN, MEAN + 1]),
        np.stack([FACTOR, 0.5 * np.eye(2)])[:, None] * np.ones((1, 4, 1, 1)),
    )
    mixed = probability_of_agreement(JointMixture(members, [1.0, 3.0]), Y, AllWithin(0.5))
    parts = [probability_of_agreement(members[m], Y, AllWithin(0.5)).probability for m in (0, 1)]
    np.testing.assert_allclose(mixed.probability, 0.25 * parts[0] + 0.75 * parts[1])
    smoothed = JointSmoothed(MODEL, 0.3)
    expected, error = brute_force(smoothed, Y, AllWithin(0.5))
    found = probability_of_agreement(smoothed, Y, AllWithin(0.5), random_state=0)
    np.testing.assert_array_less(
        np.abs(found.probability - expected), 5 * np.hypot(error, found.standard_error)
    )


def test_independent_outputs_multiply_and_correlated_ones_do_not() -> None:
    eps = np.array([0.7, 0.4])
    by_output = norm.cdf(Y + eps - MEAN) - norm.cdf(Y - eps - MEAN)
    product = probability_of_agreement(Normal(MEAN, 1.0), Y, AllWithin(eps))
    np.testing.assert_allclose(product.probability, by_output.prod(1))
    assert product.route == "closed form"
    joint = probability_of_agreement(MODEL, Y, AllWithin(eps)).probability
    expected = [
        multivariate_normal(m, FACTOR @ FACTOR.T).cdf(y + eps, lower_limit=y - eps)
        for m, y in zip(MEAN, Y, strict=True)
    ]
    np.testing.assert_allclose(joint, expected, atol=1e-7)
    assert np.abs(joint - product.probability).max() > 0.03


def test_draws_keep_the_outputs_together() -> None:
    draws = MODEL.sample(20_000, random_state=3)
    found = probability_of_agreement(draws, Y, AllWithin([0.7, 0.4]))
    exact = probability_of_agreement(MODEL, Y, AllWithin([0.7, 0.4])).probability
    np.testing.assert_array_less(np.abs(found.probability - exact), 4 * found.standard_error)
    assert probability_of_agreement(MEAN, Y, NormWithin(10.0)).probability.tolist() == [1.0] * 4


def test_shapes_and_methods_are_checked() -> None:
    with pytest.raises(ValueError, match=r"data of shape \(N, D\)"):
        probability_of_agreement(MODEL, Y[:3], AllWithin(0.5))
    with pytest.raises(ValueError, match="one per output"):
        probability_of_agreement(MODEL, Y, AllWithin([0.5, 0.5, 0.5]))
    with pytest.raises(ValueError, match="Use method='auto'"):
        probability_of_agreement(MODEL, Y, RULES["callable"], method="quadrature")
