"""Validation: each classical metric, built from a rule, against its usual formula."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

from accord.agreement import (
    AreaAtMost,
    AtLeast,
    Exact,
    MeanErrorWithin,
    ShareWithin,
    SquaredErrorAtMost,
    Within,
)
from accord.distributions import Empirical, Laplace, Mixture, Normal, Smoothed, StudentT, Uniform
from accord.validation import (
    agreement_curve,
    area_metric,
    bayes_factor,
    bvm_ratio,
    density_distance,
    frequentist_interval,
    hypothesis_test,
    joint_log_agreement,
    mean_of,
    probability_of_agreement,
    reliability,
    squared_error,
)

RNG = np.random.default_rng(11)
Y = RNG.normal(size=12)
MU = Y + 0.3 * RNG.normal(size=12)
OBSERVED = np.array([10.3, 9.1, 11.2, 10.8, 9.9, 10.4])


# Squared error


def test_squared_error_threshold() -> None:
    usual = ((MU - Y) ** 2).sum()
    assert float(squared_error(MU, Y, limit=usual * 1.001).probability) == 1
    assert float(squared_error(MU, Y, limit=usual * 0.999).probability) == 0
    assert float(SquaredErrorAtMost.statistic(MU, Y)) == pytest.approx(usual)


def test_squared_error_with_uncertainty_is_noncentral_chi_squared() -> None:
    tau = 0.5
    found = squared_error(Normal(MU, tau), Y, limit=4.0, random_state=0, n_samples=40_000)
    expected = stats.ncx2.cdf(4.0 / tau**2, 12, ((MU - Y) ** 2).sum() / tau**2)
    assert abs(found.probability - expected) <= 4 * found.standard_error


# Probability of agreement and reliability


def test_probability_of_agreement_of_two_instruments() -> None:
    """Stevens & Anderson-Cook: θ = Φ((δ − Δ)/τ) − Φ((−δ − Δ)/τ), τ² = σ₁² + σ₂²."""
    found = probability_of_agreement(Normal(MU, 0.4), Normal(Y, 0.3), Within(0.6))
    gap, tau = MU - Y, 0.5
    expected = stats.norm.cdf((0.6 - gap) / tau) - stats.norm.cdf((-0.6 - gap) / tau)
    np.testing.assert_allclose(found.probability, expected, rtol=1e-12)


def test_reliability_metric() -> None:
    n, mean, s = len(OBSERVED), OBSERVED.mean(), OBSERVED.std(ddof=1)
    d, error = 10.0 - mean, s / np.sqrt(n)
    expected = stats.norm.cdf((0.5 - d) / error) - stats.norm.cdf((-0.5 - d) / error)
    found = reliability(10.0, OBSERVED, tolerance=0.5)
    assert float(found.probability) == pytest.approx(expected, rel=1e-12)


def test_reliability_of_several_quantities_and_an_uncertain_model() -> None:
    table = np.stack([OBSERVED, OBSERVED + 3], axis=1)
    found = reliability(Normal([10.0, 13.0], 0.2), table, tolerance=0.5)
    single = reliability(Normal(10.0, 0.2), OBSERVED, tolerance=0.5)
    np.testing.assert_allclose(found.probability, float(single.probability), rtol=1e-12)
    assert found.probability.max() < 1


def test_mean_of_measurements() -> None:
    law = mean_of(OBSERVED)
    assert law.mean == pytest.approx(OBSERVED.mean())
    np.testing.assert_allclose(
        law.interval(0.9),
        stats.t.interval(0.9, 5, OBSERVED.mean(), OBSERVED.std(ddof=1) / np.sqrt(6)),
    )


# Frequentist interval on the mean


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.99])
def test_frequentist_interval(coverage: float) -> None:
    model = np.array([10.0, 14.0])
    table = np.stack([OBSERVED, 1.5 * OBSERVED], axis=1)
    found = frequentist_interval(model, table, coverage=coverage)
    half = stats.t.ppf((1 + coverage) / 2, 5) * table.std(0, ddof=1) / np.sqrt(6)
    np.testing.assert_allclose(found.error, model - table.mean(0))
    np.testing.assert_allclose(found.lower, model - table.mean(0) - half, rtol=1e-10)
    np.testing.assert_allclose(found.upper, model - table.mean(0) + half, rtol=1e-10)
    np.testing.assert_allclose(found.agreement.probability, coverage, rtol=1e-10)


# Hypothesis test


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_t_test(alternative: str) -> None:
    """With the law of the mean under the model, the p-value is that of the one-sample t test."""
    usual = stats.ttest_1samp(OBSERVED, 9.8, alternative=alternative)
    null = StudentT(5, 9.8, OBSERVED.std(ddof=1) / np.sqrt(6))
    found = hypothesis_test(null, OBSERVED.mean(), alternative=alternative, level=0.1)
    assert float(found.p_value) == pytest.approx(usual.pvalue, rel=1e-10)
    assert bool(found.agreement.probability) == (usual.pvalue >= 0.1)


def test_z_test_row_by_row() -> None:
    z = (Y - MU) / 0.3
    found = hypothesis_test(Normal(MU, 0.3), Y)
    np.testing.assert_allclose(found.p_value, 2 * stats.norm.sf(np.abs(z)), rtol=1e-10)
    np.testing.assert_array_equal(found.agreement.probability, found.p_value >= 0.05)


def test_uncertain_statistic_is_accepted_with_a_probability() -> None:
    found = hypothesis_test(Normal(0.0, 1.0), Normal(1.0, 0.5))
    expected = stats.norm.cdf((1.959964 - 1) / 0.5) - stats.norm.cdf((-1.959964 - 1) / 0.5)
    assert float(found.agreement.probability) == pytest.approx(expected, abs=1e-6)
    assert found.p_value is None


def test_level_is_the_share_of_true_models_rejected() -> None:
    draws = np.random.default_rng(0).normal(size=20_000)
    found = hypothesis_test(Normal(np.zeros(20_000), 1.0), draws, level=0.1)
    assert found.agreement.mean == pytest.approx(0.9, abs=0.01)


def test_draws_are_taken_for_a_model() -> None:
    draws = np.random.default_rng(0).normal(size=(4000, 12))
    found = hypothesis_test(Empirical(MU + 0.3 * draws), Y)
    usual = hypothesis_test(Normal(MU, 0.3), Y)
    np.testing.assert_allclose(found.p_value, usual.p_value, atol=0.04)
    sampled = reliability(10.0 + 0.2 * draws[:, 0], OBSERVED, tolerance=0.5)
    law = reliability(Normal(10.0, 0.2), OBSERVED, tolerance=0.5)
    assert abs(sampled.probability - law.probability) <= 4 * sampled.standard_error


# Area metric


def test_area_of_values_is_the_wasserstein_distance() -> None:
    expected = stats.wasserstein_distance(MU, Y)
    found = area_metric(MU, Y, limit=expected * 1.001)
    assert found.area == pytest.approx(expected)
    assert float(found.agreement.probability) == 1
    assert float(area_metric(MU, Y, limit=expected * 0.999).agreement.probability) == 0


def test_area_is_the_smallest_limit_that_agrees() -> None:
    area = area_metric(MU, Y).area
    agrees = probability_of_agreement(MU, Y, AreaAtMost(area * (1 + 1e-9)))
    fails = probability_of_agreement(MU, Y, AreaAtMost(area * (1 - 1e-9)))
    assert (float(agrees.probability), float(fails.probability)) == (1, 0)


@pytest.mark.parametrize(
    ("law", "reference"),
    [
        (Normal(MU, 0.3), stats.norm(MU, 0.3)),
        (Laplace(MU, 0.2), stats.laplace(MU, 0.2)),
        (Uniform(MU - 0.3, MU + 0.6), stats.uniform(MU - 0.3, 0.9)),
    ],
)
def test_area_between_predictive_and_data(law, reference) -> None:
    ends = np.r_[Y.min() - 12, np.sort(Y), Y.max() + 12]
    expected = 0.0
    for a, b in itertools.pairwise(ends):
        x = np.linspace(a, b, 4001)
        gap = np.abs(reference.cdf(x[:, None]).mean(1) - np.mean((a + b) / 2 > Y))
        expected += integrate.trapezoid(gap, x)
    found = area_metric(law, Y)
    assert found.area == pytest.approx(expected, abs=1e-5)
    assert found.error < 1e-8


@pytest.mark.parametrize("law", [Normal, Laplace, lambda m, s: StudentT(3, m, s)])
def test_area_between_shifted_laws_is_the_shift(law) -> None:
    found = area_metric(law(Y, 1.0), law(Y + 0.7, 1.0))
    assert found.area == pytest.approx(0.7, abs=1e-9)


def test_area_of_draws_and_of_many_rows() -> None:
    rng = np.random.default_rng(5)
    many = rng.normal(size=3000)
    law = Normal(0.1 + np.zeros(3000), 1.0)
    found = area_metric(law, many)  # discretised: too many rows to integrate
    drawn = area_metric(law.sample(50, random_state=0), many)
    assert found.area == pytest.approx(drawn.area, abs=0.01)
    assert 0 < found.error < 0.01


def test_area_without_a_mean_is_infinite() -> None:
    assert area_metric(StudentT(1, Y, 1.0), Y).area == np.inf


# Density comparison


def test_density_distances_of_normals() -> None:
    a, b, s, r = 0.2, 1.1, 0.7, 1.3
    model, data = Normal([a], s), Normal([b], r)
    kl = np.log(s / r) + (r**2 + (a - b) ** 2) / (2 * s**2) - 0.5
    overlap = np.sqrt(2 * s * r / (s**2 + r**2)) * np.exp(-((a - b) ** 2) / 4 / (s**2 + r**2))
    variation = integrate.quad(
        lambda x: abs(stats.norm.pdf(x, a, s) - stats.norm.pdf(x, b, r)) / 2, -12, 12, limit=400
    )[0]
    for name, expected in [
        ("kullback-leibler", kl),
        ("hellinger", np.sqrt(1 - overlap)),
        ("total variation", variation),
    ]:
        found = density_distance(model, data, distance=name)
        assert float(found.distance[0]) == pytest.approx(expected, abs=1e-8)
        assert found.error.max() < 1e-8


def test_equal_densities_agree_at_any_limit() -> None:
    for name in ("kullback-leibler", "hellinger", "total variation"):
        found = density_distance(Laplace(Y, 0.3), Laplace(Y, 0.3), distance=name, limit=1e-6)
        assert found.distance.max() < 1e-6
        assert found.agreement.probability.all()


def test_density_distance_of_disjoint_boxes_is_one() -> None:
    found = density_distance(Uniform([0.0], [1.0]), Uniform([2.0], [3.0]), limit=0.9)
    assert float(found.distance[0]) == pytest.approx(1)
    assert not found.agreement.probability.any()
    leibler = density_distance(
        Uniform([0.0], [1.0]), Uniform([0.5], [1.5]), distance="kullback-leibler"
    )
    assert leibler.distance[0] == np.inf


# Bayesian model testing


def sequential_predictive(y, *, prior_mean: float, prior_std: float, noise: float) -> Normal:
    """Each row predicted after those before it, y ~ N(θ, noise²), θ ~ N(prior): conjugate."""
    mean, precision, means, stds = prior_mean, prior_std**-2, [], []
    for value in y:
        means.append(mean)
        stds.append(np.sqrt(1 / precision + noise**2))
        precision, mean = (
            precision + noise**-2,
            (precision * mean + value / noise**2) / (precision + noise**-2),
        )
    return Normal(means, stds)


def log_evidence(y, *, prior_mean: float, prior_std: float, noise: float) -> float:
    cov = noise**2 * np.eye(len(y)) + prior_std**2
    return float(stats.multivariate_normal.logpdf(y, np.full(len(y), prior_mean), cov))


def test_ratio_under_exact_agreement_is_the_bayes_factor() -> None:
    one = {"prior_mean": 0.0, "prior_std": 1.0, "noise": 0.8}
    two = {"prior_mean": 2.0, "prior_std": 0.5, "noise": 1.2}
    found = bayes_factor(sequential_predictive(Y, **one), sequential_predictive(Y, **two), Y)
    expected = log_evidence(Y, **one) - log_evidence(Y, **two)
    assert found.log_ratio == pytest.approx(expected, rel=1e-11)
    assert found.favours == ("first" if expected > 0 else "second")
    assert found.standard_error == 0


def test_mixture_over_parameters_has_the_same_evidence() -> None:
    """The prior as weighted parameter values (Gauss–Hermite), shared by all rows."""
    case = {"prior_mean": 0.3, "prior_std": 0.5, "noise": 0.9}
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    theta = 0.3 + 0.5 * nodes
    members = Normal(np.repeat(theta[:, None], 12, axis=1), 0.9)
    log_p, _ = joint_log_agreement(
        Mixture(members, weights=weights), Y, Exact(), shared_members=True
    )
    assert log_p == pytest.approx(log_evidence(Y, **case), rel=1e-9)


def test_bayes_factor_with_measurement_errors() -> None:
    """Data known to ±s: the evidence is that of the model with the noise added."""
    found = bayes_factor(Normal(MU, 0.4), Normal(MU, 1.0), Normal(Y, 0.3))
    expected = (
        stats.norm.logpdf(Y, MU, 0.5).sum() - stats.norm.logpdf(Y, MU, np.hypot(1, 0.3)).sum()
    )
    assert found.log_ratio == pytest.approx(expected, rel=1e-11)


# The BVM ratio


def test_ratio_of_probabilities_and_prior_odds() -> None:
    first, second, rule = Normal(MU, 0.5), Normal(Y + 1, 0.5), Within(0.7)
    found = bvm_ratio(first, second, Y, rule, prior_odds=3.0)
    expected = (
        probability_of_agreement(first, Y, rule).joint_log_probability
        - probability_of_agreement(second, Y, rule).joint_log_probability
    )
    assert found.log_ratio == pytest.approx(expected + np.log(3))
    assert found.ratio == pytest.approx(np.exp(found.log_ratio))
    back = bvm_ratio(second, first, Y, rule, prior_odds=1 / 3)
    assert back.log_ratio == pytest.approx(-found.log_ratio)


def test_ratio_under_a_compound_rule() -> None:
    """Mean error at most a, and a share of the rows within b: the steadier model wins."""
    rule = MeanErrorWithin(0.2) & ShareWithin(0.6, share=0.9)
    steady, shaky = Normal(Y, 0.25), Normal(Y, 0.6)
    found = bvm_ratio(steady, shaky, Y, rule, random_state=0)
    assert found.favours == "first"
    assert 0 < found.standard_error < 1
    same = bvm_ratio(steady, Normal(Y, 0.25), Y, rule, random_state=1)
    assert same.favours == "neither"


def test_ratio_with_draws_and_values() -> None:
    draws = np.random.default_rng(0).normal(MU, 0.3, size=(500, 12))
    found = bvm_ratio(draws, MU + 5, Y, ShareWithin(0.8, share=0.8))
    assert found.ratio == np.inf
    assert found.favours == "first"
    law = bvm_ratio(Normal(MU, 0.3), draws, Y, Within(2.0))
    assert abs(law.log_ratio) < 4 * law.standard_error + 1e-3


def test_agreement_curve_rises_to_one() -> None:
    curve = agreement_curve(Normal(MU, 0.3), Y, [0.0, 0.2, 0.5, 1.0, 10.0])
    assert curve[0] == 0
    assert curve[-1] == pytest.approx(1)
    assert (np.diff(curve) > 0).all()


# Bad input


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: mean_of([1.0]), ValueError, "at least 2 rows to show their scatter, got 1"),
        (lambda: mean_of([2.0, 2.0]), ValueError, "must differ to show"),
        (lambda: mean_of([1.0, np.nan]), ValueError, "observations must be finite, got nan"),
        (lambda: mean_of([]), ValueError, "observations must not be empty"),
        (lambda: reliability(10.0, OBSERVED, tolerance=-1), ValueError, "must be non-negative"),
        (
            lambda: frequentist_interval([1.0, 2.0], OBSERVED),
            ValueError,
            "one value per quantity measured",
        ),
        (lambda: frequentist_interval(1.0, OBSERVED, coverage=95), ValueError, "Write 0.95"),
        (lambda: hypothesis_test(MU, Y), TypeError, "model must be a distribution"),
        (lambda: hypothesis_test(Normal(MU, 1.0), Y[:3]), ValueError, "the same shape"),
        (lambda: hypothesis_test(Normal(MU, 1.0), Y, level=5), ValueError, "Write 0.05"),
        (lambda: area_metric(MU, Y[:3]), ValueError, "the same shape"),
        (lambda: area_metric(MU, Y, limit=-1), ValueError, "limit must be non-negative"),
        (lambda: density_distance(MU, Normal(Y, 1.0)), TypeError, "model must be a distribution"),
        (
            lambda: density_distance(Empirical(np.zeros((3, 12))), Normal(Y, 1.0)),
            TypeError,
            "draws have no density",
        ),
        (lambda: bvm_ratio(MU + 9, MU - 9, Y, Within(1)), ValueError, "probability 0 for both"),
        (lambda: bvm_ratio(MU, MU, Y, Within(9), prior_odds=0), ValueError, "must be positive"),
        (
            lambda: bvm_ratio(MU, MU, Y, AtLeast(), shared_members=True),
            TypeError,
            "shared_members needs a Mixture",
        ),
        (lambda: squared_error(MU, np.append(Y[:-1], np.nan), limit=1), ValueError, "finite"),
        (lambda: agreement_curve(MU, Y, []), ValueError, "tolerances must not be empty"),
    ],
)
def test_bad_input(make, error, message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_smoothed_draws_have_a_density() -> None:
    draws = np.random.default_rng(0).normal(size=(400, 1))
    smooth = Smoothed(Empirical(draws), 0.5)
    found = density_distance(smooth, Normal([0.0], 1.0))
    assert found.distance[0] < 0.2
