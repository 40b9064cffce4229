"""The continuous ranked probability score: three routes, several references."""

import mpmath as mp
import numpy as np
import pytest
import scoringrules as sr
from scipy import integrate, stats

from accord import (
    Empirical,
    Laplace,
    Logistic,
    Mixture,
    Normal,
    Smoothed,
    StudentT,
    Uniform,
    metrics,
)
from accord.calibration import Conformal
from accord.distributions import Decomposed, RankCalibrated
from accord.distributions.crps import mean_distance

N, M = 60, 5
RNG = np.random.default_rng(3)
MU = 3 * RNG.normal(size=N)
S = np.exp(RNG.normal(size=N))
Y = MU + S * RNG.standard_t(2, size=N)
MEMBER_MU = MU + S * RNG.normal(size=(M, N))
MEMBER_S = S * np.exp(0.4 * RNG.normal(size=(M, N)))

CLOSED_FORMS = {
    "normal": (Normal(MU, S), lambda: sr.crps_normal(Y, MU, S)),
    "laplace": (Laplace(MU, S), lambda: sr.crps_laplace(Y, MU, S)),
    "logistic": (Logistic(MU, S), lambda: sr.crps_logistic(Y, MU, S)),
    "student-t": (StudentT(4.5, MU, S), lambda: sr.crps_t(Y, 4.5, MU, S)),
    "uniform": (Uniform(MU - S, MU + S), lambda: sr.crps_uniform(Y, MU - S, MU + S)),
    "mixture": (
        Mixture(Normal(MEMBER_MU, MEMBER_S)),
        lambda: sr.crps_mixnorm(Y, MEMBER_MU.T, MEMBER_S.T),
    ),
    "decomposed": (Decomposed(Normal(MU, S), 0.5 * S), lambda: sr.crps_normal(Y, MU, S)),
}


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_as_scoringrules(name) -> None:
    dist, reference = CLOSED_FORMS[name]
    ours = metrics.crps(y_true=Y, dist=dist, average=False)
    np.testing.assert_allclose(ours, reference(), rtol=1e-10, atol=0)
    assert metrics.crps(y_true=Y, dist=dist) == pytest.approx(ours.mean())


def test_weighted_mixture_as_scoringrules() -> None:
    weights = np.array([0.5, 0.2, 0.1, 0.1, 0.1])
    ours = metrics.crps(y_true=Y, dist=Mixture(Normal(MEMBER_MU, MEMBER_S), weights), average=False)
    theirs = sr.crps_mixnorm(Y, MEMBER_MU.T, MEMBER_S.T, np.tile(weights, (N, 1)))
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_mean_and_std_are_a_normal() -> None:
    ours = metrics.crps(y_true=Y, mean=MU, std=S, average=False)
    np.testing.assert_array_equal(ours, metrics.crps(y_true=Y, dist=Normal(MU, S), average=False))


def test_samples_as_scoringrules() -> None:
    draws = RNG.normal(MU, S, size=(40, N))
    ours = metrics.crps(y_true=Y, samples=draws, average=False)
    np.testing.assert_allclose(ours, sr.crps_ensemble(Y, draws.T, estimator="nrg"), rtol=1e-10)
    np.testing.assert_array_equal(
        ours, metrics.crps(y_true=Y, dist=Empirical(draws), average=False)
    )


def test_quantiles_as_scoringrules() -> None:
    alpha = (np.arange(400) + 0.5) / 400
    table = Normal(MU, S).quantile(alpha)
    ours = metrics.crps(y_true=Y, quantiles=table, alpha=alpha, average=False)
    np.testing.assert_allclose(ours, sr.crps_quantile(Y, table, alpha), rtol=1e-10)
    np.testing.assert_allclose(ours, sr.crps_normal(Y, MU, S), rtol=2e-3)


def _box_gaussian_reference(d: float, s: float, a: float, b: float) -> float:
    """E|d + sZ + U_a + U_b| from the antiderivatives with 50 digits, where nothing cancels."""
    with mp.workdps(50):
        d, s, a, b = map(mp.mpf, (d, s, max(a, b), min(a, b)))

        def f(x: mp.mpf, order: int) -> mp.mpf:
            z = x / s
            p, phi = mp.erf(z / mp.sqrt(2)), mp.npdf(z)
            return (
                s * (z * p + 2 * phi),
                s**2 * ((z**2 + 1) / 2 * p + z * phi),
                s**3 * ((z**3 + 3 * z) / 6 * p + (z**2 + 2) / 3 * phi),
            )[order]

        if a == 0:
            return float(f(d, 0))
        if b == 0:
            return float((f(d + a, 1) - f(d - a, 1)) / (2 * a))
        corners = f(d + a + b, 2) - f(d + a - b, 2) - f(d - a + b, 2) + f(d - a - b, 2)
        return float(corners / (4 * a * b))


@pytest.mark.parametrize("a", [0.0, 1e-9, 0.1, 0.2499, 0.2501, 1.0, 30.0, 1e4])
@pytest.mark.parametrize("b", [0.0, 1e-6, 0.24, 0.26, 5.0])
def test_mean_distance_has_no_cancellation(a, b) -> None:
    for d in (0.0, 1e-3, 0.7, a, a + b + 8.9, a + b + 9.1, 50.0):
        ours = mean_distance(np.array([3.0 * d]), np.array([3.0]), np.array(3 * a), np.array(3 * b))
        reference = _box_gaussian_reference(3.0 * d, 3.0, 3 * a, 3 * b)
        assert ours[0] == pytest.approx(reference, rel=2e-11 if a == 1e4 else 2e-12)


def test_mean_distance_averages_over_its_box() -> None:
    # Independent of the formulas that the 50-digit reference shares with the code.
    d, s, a = -0.6, 1.2, 0.8
    boxed = integrate.quad(
        lambda u: stats.foldnorm.mean(abs(d + u) / s, scale=s) / (2 * a), -a, a, points=[-d]
    )[0]
    ours = mean_distance(np.array([d]), np.array([s]), np.array(a), np.array(0.0))
    assert ours[0] == pytest.approx(boxed, abs=1e-10)


@pytest.mark.parametrize("eps", [1e-8, 0.1, 1.0, 20.0])
def test_smoothed_mixture_is_exact(eps) -> None:
    rows = slice(0, 6)
    dist = Mixture(Smoothed(Normal(MEMBER_MU[:, rows], MEMBER_S[:, rows]), eps * S[rows]))
    ours = metrics.crps(y_true=Y[rows], dist=dist, average=False)
    integrated = dist._integrated_crps(Y[rows])
    np.testing.assert_allclose(ours, integrated, atol=1e-8 * dist.std.max(), rtol=1e-9)


def test_smoothing_by_nothing_changes_nothing() -> None:
    plain = metrics.crps(y_true=Y, dist=Mixture(Normal(MEMBER_MU, MEMBER_S)), average=False)
    zero = Mixture(Smoothed(Normal(MEMBER_MU, MEMBER_S), 0.0))
    np.testing.assert_allclose(metrics.crps(y_true=Y, dist=zero, average=False), plain, rtol=1e-14)


@pytest.mark.parametrize(
    "name", ["normal", "laplace", "logistic", "student-t", "uniform", "mixture"]
)
def test_quadrature_meets_its_stated_error(name) -> None:
    dist, reference = CLOSED_FORMS[name]
    error = np.abs(dist._integrated_crps(Y) - reference()) / dist.std
    assert error.max() < 1e-8


@pytest.mark.parametrize("family", [Laplace, Logistic])
def test_other_smoothed_mixtures_against_draws(family) -> None:
    dist = Mixture(Smoothed(family(MEMBER_MU, MEMBER_S), S))
    draws = dist.sample(4000, random_state=0)
    ours = metrics.crps(y_true=Y, dist=dist, average=False)
    sampled = metrics.crps(y_true=Y, samples=draws, average=False)
    np.testing.assert_allclose(ours, sampled, atol=0.15 * dist.std.max() / 10, rtol=0.1)
    assert ours.mean() == pytest.approx(sampled.mean(), rel=0.01)


def test_infinite_conformal_quantiles_do_not_spoil_the_score() -> None:
    few = 8
    conformal = Conformal().fit(Normal(MU[:few], S[:few]), Y[:few])
    dist = conformal(Normal(MU, S))
    sampled = metrics.crps(y_true=Y, samples=dist.sample(4000, random_state=0))
    assert metrics.crps(y_true=Y, dist=dist) == pytest.approx(sampled, rel=0.01)


def test_shift_scale_and_permutation_of_members() -> None:
    dist = Mixture(Smoothed(Normal(MEMBER_MU, MEMBER_S), 0.7 * S))
    moved = Mixture(Smoothed(Normal(5 + 2 * MEMBER_MU[::-1], 2 * MEMBER_S[::-1]), 1.4 * S))
    once = metrics.crps(y_true=Y, dist=dist, average=False)
    again = metrics.crps(y_true=5 + 2 * Y, dist=moved, average=False)
    np.testing.assert_allclose(again, 2 * once, rtol=1e-10)


@pytest.mark.parametrize(
    "dist",
    [
        Normal(MU, S),
        Laplace(MU, S),
        Mixture(Normal(MEMBER_MU, MEMBER_S)),
        Mixture(Smoothed(Logistic(MEMBER_MU, MEMBER_S), 0.3)),
        Empirical(MEMBER_MU),
    ],
    ids=["gaussian", "family", "mixture", "integrated", "draws"],
)
def test_several_values_per_row_at_once(dist) -> None:
    both = dist.crps(np.stack([Y, MU]))
    np.testing.assert_allclose(both, [dist.crps(Y), dist.crps(MU)], rtol=1e-12, atol=1e-14)


def test_quantiles_by_rank_leave_the_score_to_the_base() -> None:
    base = Mixture(Normal(MEMBER_MU, MEMBER_S))
    ranked = RankCalibrated(base, RNG.uniform(size=30))
    np.testing.assert_array_equal(ranked.crps(Y), base.crps(Y))


def test_the_truth_scores_best() -> None:
    y = RNG.normal(size=4000)
    scores = [
        metrics.crps(y_true=y, mean=np.full(4000, shift), std=np.full(4000, scale))
        for shift, scale in ((0.0, 1.0), (0.3, 1.0), (0.0, 0.6), (0.0, 1.7))
    ]
    assert np.argmin(scores) == 0


def test_several_outputs() -> None:
    mean, std, y = MU.reshape(-1, 3), S.reshape(-1, 3), Y.reshape(-1, 3)
    table = metrics.crps(y_true=y, mean=mean, std=std, average=False)
    flat = metrics.crps(y_true=Y, mean=MU, std=S, average=False)
    np.testing.assert_array_equal(table.ravel(), flat)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"samples": np.zeros((2, 5))}, ValueError, r"samples must have shape \(S, 2\)"),
        ({"samples": [[0.0, np.nan]]}, ValueError, "samples must be finite"),
        ({"samples": [[0.0, 1.0]], "mean": [0.0, 0.0]}, TypeError, "got several"),
        ({"quantiles": [[0.0], [1.0]]}, TypeError, "alpha must name"),
        ({"mean": [0.0, 0.0]}, TypeError, "dist= alone, or mean= with std=, got mean"),
        ({}, TypeError, "got none of them"),
    ],
)
def test_bad_input(arguments, error, message) -> None:
    with pytest.raises(error, match=message):
        metrics.crps(y_true=[0.0, 1.0], **arguments)
