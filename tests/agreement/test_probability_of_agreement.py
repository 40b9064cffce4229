"""The probability of agreement: routes agree within their stated errors, and with known answers."""

import contextlib
import itertools

import numpy as np
import pytest
import torch
from mpmath import mp
from scipy import stats

from accord.agreement import (
    Asymmetric,
    AtLeast,
    AtMost,
    ErrorInside,
    Exact,
    Inside,
    Rule,
    Within,
    WithinRelative,
    parse_rule,
    probability_of_agreement,
)
from accord.agreement.routes import NoRoute
from accord.distributions import (
    Decomposed,
    Empirical,
    Laplace,
    Logistic,
    Mixture,
    Normal,
    Smoothed,
    StudentT,
    Uniform,
)

# One table of cases: a new rule, family or kind of data is tested by adding a row.
MU = np.array([-0.9, 0.2, 1.4])
SIGMA = np.array([0.3, 1.0, 0.7])
T = np.array([-0.7, 1.1, 1.2])

MODELS = {
    "normal": Normal(MU, SIGMA),
    "laplace": Laplace(MU, SIGMA),
    "logistic": Logistic(MU, SIGMA),
    "student-t": StudentT(3, MU, SIGMA),
    "uniform": Uniform(MU - SIGMA, MU + 2 * SIGMA),
    "smoothed": Smoothed(Normal(MU, SIGMA), [0.0, 0.5, 2.0]),
    "mixture": Mixture(Normal([MU, MU + 1], [SIGMA, 2 * SIGMA]), weights=[0.3, 0.7]),
    "laplace mixture": Mixture(Laplace([MU, MU + 1], [SIGMA, 2 * SIGMA])),
    "decomposed": Decomposed(Normal(MU, SIGMA), disagreement=0.1),
    "values": MU,
}
DATA = {
    "exact": T,
    "normal": Normal(T, [0.5, 0.1, 0.2]),
    "uniform": Uniform(T - 0.3, T + 0.6),
    "laplace": Laplace(T, 0.4),
    "student-t": StudentT(4, T, 0.3),
    "smoothed": Smoothed(Normal(T, 0.3), 0.4),
}
RULES = {
    "exact": Exact(),
    "exact in a range": Exact() & Inside(-0.8, 1.3),
    "within": Within(0.5),
    "within per row": Within([0.1, 0.5, 1.0]),
    "relative": WithinRelative(0.3),
    "asymmetric": Asymmetric(below=0.1, above=0.6),
    "biased": ErrorInside(-0.5, -0.1),
    "at least": AtLeast(),
    "at most": AtMost(),
    "inside": Inside(-0.5, 1.0),
    "both": Within(0.8) & AtMost(),
    "either": (Within(0.8) & Inside(-0.5, 1.0)) | ~AtLeast(),
    "not": ~Within(0.5),
}
METHODS = ("closed form", "quadrature", "monte carlo")


def by_every_route(model, data, rule: Rule, n_samples: int = 2**10) -> dict:
    """The route taken by itself, and all those that come after it."""
    options = {"random_state": 0, "n_samples": n_samples}
    first = probability_of_agreement(model, data, rule, **options)
    found = {first.route: first}
    for method in METHODS[METHODS.index(first.route) + 1 :]:
        with contextlib.suppress(NoRoute):
            found[method] = probability_of_agreement(model, data, rule, method=method, **options)
    return found


def assert_routes_agree(found: dict) -> None:
    for first, second in itertools.combinations(found.values(), 2):
        stated = np.hypot(first.standard_error, second.standard_error)
        gap = np.abs(first.probability - second.probability)
        assert (gap <= 5 * stated + 1e-11).all(), (first.route, second.route, gap / stated)


FEW = ("exact", "within", "relative", "either")  # rules for the less usual models and data
UNUSUAL = {"laplace mixture", "decomposed"}, {"student-t", "smoothed"}
CASES = [
    (model, data, rule)
    for model, data, rule in itertools.product(MODELS, DATA, RULES)
    if (rule in FEW or not (model in UNUSUAL[0] or data in UNUSUAL[1]))
    and not ((model, data) == ("values", "exact") and RULES[rule].is_density)
]


@pytest.mark.parametrize(("model", "data", "rule"), CASES)
def test_routes_agree_within_their_stated_errors(model: str, data: str, rule: str) -> None:
    found = by_every_route(MODELS[model], DATA[data], RULES[rule])
    assert_routes_agree(found)
    quadrature = found.get("quadrature")
    # seen from the data, a rule on more than the difference is searched for, and so less exact
    searched = model == "values" and RULES[rule].depends_on != "difference"
    limit = 1e-3 if searched else 1e-8
    assert quadrature is None or quadrature.standard_error.max() < limit


def banana(y_hat, y):
    return np.abs(y_hat - y) < 0.5 + 0.1 * y**2


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
@pytest.mark.parametrize("model", ["normal", "student-t", "mixture", "values"])
def test_routes_agree_under_a_callable(model, data) -> None:
    found = by_every_route(MODELS[model], data, Rule.from_callable(banana))
    assert_routes_agree(found)
    if not (model == "values" and isinstance(data, np.ndarray)):
        assert set(found) == {"quadrature", "monte carlo"}
        assert found["quadrature"].standard_error.max() < 5e-3


@pytest.mark.parametrize("name", [n for n in RULES if "exact" not in n and "per row" not in n])
def test_callable_equals_the_rule_it_repeats(name: str) -> None:
    """The same rule, hidden in a callable: traced intervals must find the same probability."""
    rule = RULES[name]
    hidden = Rule.from_callable(lambda y_hat, y: rule(y_hat, y))
    for model in ("normal", "laplace", "student-t", "mixture"):
        expected = probability_of_agreement(MODELS[model], T, rule).probability
        traced = probability_of_agreement(MODELS[model], T, hidden)
        assert traced.route == "quadrature"
        np.testing.assert_allclose(traced.probability, expected, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in RULES if "exact" not in name])
@pytest.mark.parametrize("data", ["exact", "normal", "uniform", "samples"])
def test_samples_agree_with_the_law_they_are_from(name: str, data: str) -> None:
    """A model given as draws (and data given as draws) estimates the law's own probability."""
    rng = np.random.default_rng(7)
    draws = rng.normal(MU, SIGMA, size=(3000, 3))
    if data == "samples":
        given, law = Empirical(rng.normal(T, 0.2, size=(1500, 3))), Normal(T, 0.2)
    else:
        given = law = DATA[data]
    expected = probability_of_agreement(MODELS["normal"], law, RULES[name])
    for model in (draws, Empirical(draws), MODELS["normal"]):
        result = probability_of_agreement(model, given, RULES[name], random_state=0)
        if model is MODELS["normal"] and data != "samples":
            continue
        gap = np.abs(result.probability - expected.probability)
        assert (gap <= 4 * result.standard_error + 1e-9).all()
        assert result.route == "monte carlo" or RULES[name].depends_on == "prediction"


def test_sampled_density_estimates_the_bayes_integral() -> None:
    draws = np.random.default_rng(3).normal(MU, SIGMA, size=(4000, 3))
    data = Normal(T, 0.4)
    expected = Normal(MU, np.hypot(SIGMA, 0.4)).pdf(T)
    result = probability_of_agreement(draws, data, Exact())
    assert result.is_density
    assert (np.abs(result.probability - expected) <= 4 * result.standard_error).all()


# Known answers


def test_within_is_the_papers_equation() -> None:
    result = probability_of_agreement(Normal(MU, SIGMA), T, Within(0.01))
    expected = stats.norm.cdf((T + 0.01 - MU) / SIGMA) - stats.norm.cdf((T - 0.01 - MU) / SIGMA)
    np.testing.assert_allclose(result.probability, expected, rtol=1e-12)
    assert result.route == "closed form"
    assert not result.standard_error.any()


def test_exact_is_the_likelihood_and_the_limit_of_within() -> None:
    exact = probability_of_agreement(Normal(MU, SIGMA), T, Exact())
    np.testing.assert_allclose(exact.log_probability, stats.norm.logpdf(T, MU, SIGMA), rtol=1e-13)
    assert exact.is_density
    narrow = probability_of_agreement(Normal(MU, SIGMA), T, Within(1e-12))
    np.testing.assert_allclose(
        narrow.log_probability - np.log(2e-12), exact.log_probability, rtol=1e-12
    )


def test_far_tail_keeps_its_digits() -> None:
    """30 combined deviations away the closed form is exact to rounding (mpmath, 40 digits)."""
    with mp.workdps(40):
        scale = mp.sqrt(2)
        a, b = (30 - mp.mpf(1) / 10) / scale, (30 + mp.mpf(1) / 10) / scale
        expected = mp.log((mp.erfc(a / mp.sqrt(2)) - mp.erfc(b / mp.sqrt(2))) / 2)
    result = probability_of_agreement(Normal([30.0], 1.0), Normal([0.0], 1.0), Within(0.1))
    assert result.log_probability[0] == pytest.approx(float(expected), rel=1e-12)


def test_uncertain_data_is_the_model_broadened() -> None:
    """Normal data with deviation s is exact data and a model with variance σ² + s²."""
    s = np.array([0.5, 0.1, 0.2])
    for rule in (Within(0.4), ~AtLeast(), Exact()):
        noisy = probability_of_agreement(Normal(MU, SIGMA), Normal(T, s), rule)
        broad = probability_of_agreement(Normal(MU, np.hypot(SIGMA, s)), T, rule)
        np.testing.assert_allclose(noisy.log_probability, broad.log_probability, rtol=1e-13)


def test_smoothed_model_is_uniform_data() -> None:
    """Rounding to ±h on either side is the same."""
    rounded = probability_of_agreement(Normal(MU, SIGMA), Uniform(T - 0.3, T + 0.3), Within(0.2))
    smoothed = probability_of_agreement(Smoothed(Normal(MU, SIGMA), 0.3), T, Within(0.2))
    np.testing.assert_allclose(rounded.log_probability, smoothed.log_probability, rtol=1e-12)


def test_agreement_is_symmetric_in_model_and_data() -> None:
    a, b = Laplace(MU, SIGMA), StudentT(4, T, 0.3)
    there = probability_of_agreement(a, b, Within(0.5))
    back = probability_of_agreement(b, a, Within(0.5))
    np.testing.assert_allclose(there.probability, back.probability, atol=1e-11)


def test_shift_and_scale_change_nothing() -> None:
    before = probability_of_agreement(Laplace(MU, SIGMA), Normal(T, 0.3), Within(0.5))
    after = probability_of_agreement(
        Laplace(1e3 + 7 * MU, 7 * SIGMA), Normal(1e3 + 7 * T, 2.1), Within(3.5)
    )
    np.testing.assert_allclose(before.probability, after.probability, atol=1e-10)


def test_a_rule_and_its_opposite_make_one() -> None:
    for name, rule in RULES.items():
        if "exact" in name:
            continue
        for data in (T, DATA["normal"], DATA["laplace"]):
            yes = probability_of_agreement(MODELS["normal"], data, rule).probability
            no = probability_of_agreement(MODELS["normal"], data, ~rule).probability
            np.testing.assert_allclose(yes + no, 1, atol=1e-10)


@pytest.mark.parametrize(
    ("model_scale", "data_scale", "gap", "eps"),
    [
        (1e-6, 1.0, 0.3, 0.1),
        (1.0, 1e-6, 0.3, 0.1),
        (1e-3, 1.0, 0.0, 1e-5),
        (0.1, 1.0, 5.0, 0.5),
        (1.0, 1.0, 30.0, 0.1),
        (1.0, 1.0, 0.0, 1e-8),
        (1.0, 1.0, 0.0, 1e4),
    ],
)
def test_quadrature_finds_narrow_and_distant_features(
    model_scale: float, data_scale: float, gap: float, eps: float
) -> None:
    sides = Normal([gap], model_scale), Normal([0.0], data_scale)
    exact = probability_of_agreement(*sides, Within(eps))
    found = probability_of_agreement(*sides, Within(eps), method="quadrature")
    np.testing.assert_allclose(found.log_probability, exact.log_probability, atol=1e-11)


def test_narrow_callable_is_found() -> None:
    rule = Rule.from_callable(lambda y_hat, y: np.abs(y_hat - y) <= 1e-7)
    found = probability_of_agreement(Normal(MU, SIGMA), T, rule)
    expected = probability_of_agreement(Normal(MU, SIGMA), T, Within(1e-7))
    np.testing.assert_allclose(found.probability, expected.probability, rtol=1e-6)


def test_stated_standard_error_is_honest() -> None:
    """Over independent seeds, the error divided by the stated one has about unit variance."""
    expected = probability_of_agreement(MODELS["normal"], DATA["laplace"], Within(0.5)).probability
    scores = []
    for seed in range(40):
        result = probability_of_agreement(
            MODELS["normal"],
            DATA["laplace"],
            Within(0.5),
            method="monte carlo",
            random_state=seed,
            n_samples=512,
        )
        scores.append((result.probability - expected) / result.standard_error)
    assert 0.7 < np.std(scores) < 1.4


def test_same_seed_same_numbers() -> None:
    def run(seed):
        return probability_of_agreement(
            MODELS["mixture"],
            DATA["student-t"],
            banana,
            method="monte carlo",
            random_state=seed,
            n_samples=64,
        ).probability

    np.testing.assert_array_equal(run(5), run(5))
    assert (run(5) != run(6)).any()


def test_draws_in_blocks_are_the_draws_at_once(monkeypatch) -> None:
    draws = np.random.default_rng(0).normal(MU, SIGMA, size=(100, 3))
    sides = draws, Normal(T, 0.2), Within([0.1, 0.5, 0.9])
    together = probability_of_agreement(*sides)
    monkeypatch.setattr("accord.agreement.routes._BLOCK", 150)  # one row at a time
    apart = probability_of_agreement(*sides)
    np.testing.assert_allclose(apart.probability, together.probability, rtol=1e-14)


def test_smoothed_draws_are_a_distribution() -> None:
    """Skewed draws, smoothed: the quadrature must find both ends of them."""
    draws = np.random.default_rng(0).exponential(size=(300, 2))
    model = Smoothed(Empirical(draws), 0.2)
    found = by_every_route(model, Laplace([1.0, 4.0], 0.3), Within(0.5))
    assert "quadrature" in found
    assert_routes_agree(found)


# Shapes and kinds


def test_several_outputs_and_their_tolerances() -> None:
    mean = np.arange(6.0).reshape(3, 2)
    model, data = Normal(mean, 1.0), mean + 0.3
    tolerance = np.array([0.1, 0.9])
    together = probability_of_agreement(model, data, Within(tolerance))
    assert together.probability.shape == (3, 2)
    for k in range(2):
        alone = probability_of_agreement(Normal(mean[:, k], 1.0), data[:, k], Within(tolerance[k]))
        np.testing.assert_array_equal(together.probability[:, k], alone.probability)
    draws = model.sample(50, random_state=0)
    assert probability_of_agreement(draws, data, AtLeast()).probability.shape == (3, 2)


def test_one_number_on_each_side() -> None:
    result = probability_of_agreement(Normal(0.0, 1.0), 0.0, Within(1.0))
    assert result.probability.shape == ()
    assert float(result.probability) == pytest.approx(0.682689492137, abs=1e-12)


def test_float32_tensors_are_taken() -> None:
    model = Normal(torch.tensor(MU, dtype=torch.float32, requires_grad=True), torch.tensor(1.0))
    result = probability_of_agreement(model, torch.tensor(T), Within(0.5))
    expected = probability_of_agreement(Normal(MU, 1.0), T, Within(0.5))
    assert result.probability.dtype == np.float64
    np.testing.assert_allclose(result.probability, expected.probability, atol=1e-6)


def test_result_prints_itself() -> None:
    result = probability_of_agreement(Normal(MU, SIGMA), T, Within(0.5))
    assert repr(result) == (
        f"Agreement(within 0.5: mean probability {result.mean:.4g} over 3 rows; closed form)"
    )
    assert result.joint_log_probability == pytest.approx(result.log_probability.sum())


# Bad input


@pytest.mark.parametrize(
    ("model", "data", "rule", "message"),
    [
        (Normal(MU, SIGMA), T[:2], Within(1), "model and data must have the same shape"),
        (Normal(MU, SIGMA), T[:, None], Within(1), "model and data must have the same shape"),
        (np.zeros((5, 2)), T, Within(1), r"draws of shape \('S', 3\)"),
        (MU, [0.0, np.nan, 1.0], Within(1), "data must be finite, got nan at index 1"),
        ([0.0, np.inf, 1.0], T, Within(1), "model must be finite, got inf at index 1"),
        (np.zeros((4, 0)), np.zeros(0), Within(1), "data must not be empty"),
        (MU, T, Exact(), "must have a density on one side"),
        (np.zeros((5, 3)), T, Exact() & AtLeast(), "must have a density on one side"),
        (Normal(MU, SIGMA), T, Within([1.0, 2.0]), "per-row numbers"),
    ],
)
def test_bad_input(model, data, rule, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        probability_of_agreement(model, data, rule)


def test_integer_tensors_are_refused() -> None:
    with pytest.raises(TypeError, match="data must be a floating-point tensor"):
        probability_of_agreement(MU, torch.tensor([1, 2, 3]), Within(1))


def test_bad_options() -> None:
    with pytest.raises(ValueError, match="method must be one of"):
        probability_of_agreement(MU, T, Within(1), method="exact")
    with pytest.raises(ValueError, match="n_samples must be at least 1"):
        probability_of_agreement(MU, T, Within(1), n_samples=0)
    with pytest.raises(ValueError, match=r"got 'closed form' for .* Use method='auto'"):
        probability_of_agreement(Laplace(MU, 1.0), Laplace(T, 1.0), AtMost(), method="closed form")
    with pytest.raises(TypeError, match="must be an agreement rule or a callable"):
        probability_of_agreement(MU, T, 3.0)


@pytest.mark.parametrize("words", ["within 0.5", "within 0.5 and at least", "60% within 0.5"])
def test_a_rule_in_words_is_the_rule(words: str) -> None:
    model = Normal([1.0, 2.0, 3.0], 0.5)
    by_words = probability_of_agreement(model, [1.1, 2.0, 4.5], words)
    by_rule = probability_of_agreement(model, [1.1, 2.0, 4.5], parse_rule(words))
    np.testing.assert_array_equal(by_words.probability, by_rule.probability)
    assert str(by_words.rule) == str(by_rule.rule)
