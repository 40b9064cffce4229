"""The recipe for a new family, walked through with a throw-away one: one class, one call."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch.autograd import gradcheck

from accord._numerics import SmoothKernel, StandardFamily, family_names, register_family
from accord.agreement import Within, probability_of_agreement
from accord.distributions import Mixture, Smoothed, with_moments
from accord.losses import AgreementLoss, BVMLoss
from accord.metrics import crps


class HyperbolicSecant(StandardFamily):
    """f(z) = sech(πz/2)/2, F(z) = 2/π arctan(exp(πz/2)), variance 1."""

    name = "hyperbolic secant"
    variance = 1.0

    def __init__(self) -> None:
        self.kernel = SmoothKernel(self.log_pdf, self.cdf, self.variance)

    def log_pdf(self, z):
        x = (math.pi * z / 2).abs()
        return -x - torch.log1p(torch.exp(-2 * x))

    def cdf(self, z):
        tail = 2 / math.pi * torch.atan(torch.exp(-math.pi / 2 * z.abs()))
        return torch.where(z < 0, tail, 1 - tail)

    def quantile(self, p):
        return 2 / math.pi * torch.log(torch.tan(math.pi / 2 * p))

    def sample(self, shape, generator=None, *, dtype=torch.float64, device=None):
        return self.quantile(torch.rand(tuple(shape), generator=generator, dtype=dtype))


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    from accord._numerics import family

    monkeypatch.setattr(family, "_MAKERS", dict(family._MAKERS))
    secant = HyperbolicSecant()
    register_family("secant", lambda _: secant)


def test_it_is_known_by_its_name() -> None:
    assert "secant" in family_names()


def test_distribution() -> None:
    dist = with_moments("secant", np.array([1.0, 2.0]), np.array([0.5, 2.0]))
    peer = stats.hypsecant(loc=[1.0, 2.0], scale=np.array([0.5, 2.0]) * 2 / math.pi)
    y = np.array([1.3, -4.0])
    np.testing.assert_allclose(dist.pdf(y), peer.pdf(y), rtol=1e-10)
    np.testing.assert_allclose(dist.cdf(y), peer.cdf(y), rtol=1e-10)
    np.testing.assert_allclose(dist.std, [0.5, 2.0])
    np.testing.assert_allclose(dist.quantile(0.9), peer.ppf(0.9), rtol=1e-10)
    smoothed = Smoothed(dist, 0.7)
    np.testing.assert_allclose(smoothed.cdf(smoothed.quantile(0.2)), 0.2, rtol=1e-10)
    between = (peer.cdf(y + 0.7) - peer.cdf(y - 0.7)) / 1.4
    np.testing.assert_allclose(smoothed.pdf(y), between, rtol=1e-9)
    mixed = Mixture(with_moments("secant", np.zeros((2, 3)), np.ones((2, 3))))
    np.testing.assert_allclose(mixed.quantile(0.5), 0.0, atol=1e-12)
    draws = dist.sample(4000, random_state=0)
    assert crps(y_true=y, dist=dist) == pytest.approx(crps(y_true=y, samples=draws), rel=0.05)


def test_losses_and_their_gradients() -> None:
    mu = torch.tensor([0.2, 3.0, -1.0], dtype=torch.float64, requires_grad=True)
    var = torch.tensor([1.0, 0.3, 4.0], dtype=torch.float64, requires_grad=True)
    t = torch.zeros(3, dtype=torch.float64)
    for eps in (0.0, 0.01, 1.0):
        loss = BVMLoss(eps, family="secant", density=True, reduction="none")
        assert gradcheck(lambda m, v, f=loss: f(m, t, v), (mu, var), rtol=1e-4)
    agreement = AgreementLoss(Within(0.5), family="secant", reduction="none")
    bvm = BVMLoss(0.5, family="secant", reduction="none")
    np.testing.assert_allclose(agreement(mu, t, var).detach(), bvm(mu, t, var).detach(), rtol=1e-9)


def test_probability_of_agreement() -> None:
    dist = with_moments("secant", np.zeros(2), np.ones(2))
    found = probability_of_agreement(dist, [0.0, 1.0], Within(0.5)).probability
    peer = stats.hypsecant(scale=2 / math.pi)
    np.testing.assert_allclose(found[0], peer.cdf(0.5) - peer.cdf(-0.5), rtol=1e-9)


def test_regressor() -> None:
    from accord import BVMRegressor

    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (80, 1))
    y = X[:, 0] + 0.1 * rng.normal(size=80)
    options = {"tolerance": 0.1, "n_members": 2, "epochs": 5, "random_state": 0}
    model = BVMRegressor(family="secant", **options).fit(X, y)
    assert np.isfinite(model.predict_dist(X).log_prob(y)).all()
