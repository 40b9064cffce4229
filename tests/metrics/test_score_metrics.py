"""Likelihoods, pinball loss and agreement against their references."""

import warnings

import numpy as np
import pytest
import scoringrules as sr
from sklearn.metrics import mean_pinball_loss

from accord import Laplace, Mixture, Normal, Smoothed, Within, metrics

N = 80
RNG = np.random.default_rng(5)
MU = RNG.normal(size=N)
S = np.exp(0.5 * RNG.normal(size=N))
Y = MU + S * RNG.normal(size=N)


def test_nll_as_scoringrules() -> None:
    ours = metrics.nll(y_true=Y, mean=MU, std=S, average=False)
    np.testing.assert_allclose(ours, sr.logs_normal(Y, MU, S), rtol=1e-10)
    laplace = metrics.nll(y_true=Y, dist=Laplace(MU, S), average=False)
    np.testing.assert_allclose(laplace, sr.logs_laplace(Y, MU, S), rtol=1e-10)


def test_nll_and_crps_as_uncertainty_toolbox() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its import uses what its dependencies have deprecated
        from uncertainty_toolbox import metrics_scoring_rule as reference
    for ours, theirs in (
        (metrics.gaussian_nll, reference.nll_gaussian),
        (metrics.crps, reference.crps_gaussian),
    ):
        assert ours(y_true=Y, mean=MU, std=S) == pytest.approx(theirs(MU, S, Y), abs=1e-10)


def test_mixture_nll_as_scoringrules() -> None:
    mu, s = MU + RNG.normal(size=(4, N)), S * np.ones((4, 1))
    ours = metrics.nll(y_true=Y, dist=Mixture(Normal(mu, s)), average=False)
    np.testing.assert_allclose(ours, sr.logs_mixnorm(Y, mu.T, s.T), rtol=1e-10)


def test_gaussian_nll_sees_only_two_moments() -> None:
    mixture = Mixture(Normal(np.stack([MU - S, MU + S]), np.stack([S, S])))
    ours = metrics.gaussian_nll(y_true=Y, dist=mixture, average=False)
    np.testing.assert_allclose(ours, sr.logs_normal(Y, MU, np.sqrt(2) * S), rtol=1e-10)
    assert metrics.gaussian_nll(y_true=Y, dist=mixture) == pytest.approx(ours.mean())
    assert metrics.nll(y_true=Y, dist=mixture) != pytest.approx(ours.mean())


def test_pinball_as_scikit_learn() -> None:
    alpha = [0.05, 0.5, 0.9]
    table = Normal(MU, S).quantile(alpha)
    ours = metrics.pinball(y_true=Y, quantiles=table, alpha=alpha, average=False)
    theirs = [mean_pinball_loss(Y, table[:, k], alpha=a) for k, a in enumerate(alpha)]
    np.testing.assert_allclose(ours.mean(axis=0), theirs, rtol=1e-10)
    np.testing.assert_allclose(ours, sr.quantile_score(Y[:, None], table, np.array(alpha)))
    assert metrics.pinball(y_true=Y, dist=Normal(MU, S), alpha=alpha) == pytest.approx(ours.mean())


def test_pinball_as_uncertainty_toolbox() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from uncertainty_toolbox.metrics_scoring_rule import check_score
    ours = metrics.pinball(y_true=Y, mean=MU, std=S, alpha=np.linspace(0.01, 0.99, 99))
    assert ours == pytest.approx(check_score(MU, S, Y), abs=1e-10)


def test_agreement_is_the_smoothed_density_times_the_window() -> None:
    # p(A) = 2ε q_ε(t): the identity that the library is built on.
    eps = 0.4
    ours = metrics.agreement(y_true=Y, mean=MU, std=S, rule=eps, average=False)
    smoothed = metrics.nll(y_true=Y, dist=Smoothed(Normal(MU, S), eps), average=False)
    np.testing.assert_allclose(ours, 2 * eps * np.exp(-smoothed), rtol=1e-10)
    assert metrics.agreement(y_true=Y, mean=MU, std=S, rule=Within(eps)) == ours.mean()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"mean": [0.0, 0.0], "std": [1.0, 0.0]}, ValueError, "std must be positive, got 0.0"),
        ({"mean": [0.0, 0.0], "std": [1.0, -2.0]}, ValueError, "std must be positive, got -2.0"),
        ({"mean": [0.0, 0.0], "std": [1.0]}, ValueError, "must have the same shape"),
        ({"mean": [0.0, 0.0], "std": 1.0}, ValueError, "must have the same shape"),
        ({"dist": Normal([0.0], [1.0])}, ValueError, "y_true and dist must have the same shape"),
        ({"dist": "normal"}, TypeError, "dist must be a distribution of accord, got str"),
        ({"dist": Normal(0.0, 1.0), "mean": [0.0, 1.0]}, TypeError, "got dist and mean"),
    ],
)
def test_bad_predictions(arguments, error, message) -> None:
    with pytest.raises(error, match=message):
        metrics.nll(y_true=[0.0, 1.0], **arguments)


@pytest.mark.parametrize(
    ("quantiles", "alpha", "message"),
    [
        ([[0.0, 1.0], [1.0, 0.0]], [0.1, 0.9], "quantiles must not cross, got 1 crossing rows"),
        ([[0.0, 1.0], [0.0, 1.0]], [0.0, 0.9], "alpha must lie strictly between 0 and 1, got 0.0"),
        ([[0.0, 1.0], [0.0, 1.0]], [0.1, 90], "alpha must lie strictly between 0 and 1, got 90.0"),
        ([[0.0, 1.0], [0.0, 1.0]], [0.9, 0.1], "alpha must be a list of increasing levels"),
        ([[0.0, 1.0], [0.0, 1.0]], [0.5], r"quantiles must have shape \(2, 1\)"),
        ([[0.0, np.nan], [0.0, 1.0]], [0.1, 0.9], "quantiles must be finite"),
    ],
)
def test_bad_quantiles(quantiles, alpha, message) -> None:
    with pytest.raises(ValueError, match=message):
        metrics.pinball(y_true=[0.0, 1.0], quantiles=quantiles, alpha=alpha)
