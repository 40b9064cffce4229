"""The recipes of CONTRIBUTING, each walked through with a throw-away example."""

import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from torch.autograd import gradcheck

from accord._numerics import SmoothKernel, StandardFamily, family_names, register_family
from accord.agreement import Within, probability_of_agreement
from accord.distributions import Mixture, Smoothed, with_moments
from accord.losses import AgreementLoss, BVMLoss
from accord.metrics import METRICS, Metric, crps, summary
from accord.splits import outlier_split
from accord.workflows import Method, compare_methods

GUIDE = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()


@pytest.mark.parametrize(
    "thing",
    [
        "family",
        "metric",
        "method to compare with",
        "n outlier split",
        "loss",
        "n estimator",
        "recipe of the portfolio",
        "type that is part of a saved model",
        "dataset",
        "study",
    ],
)
def test_there_is_a_recipe(thing: str) -> None:
    article = "A" if thing.startswith("n ") else "A "
    assert f"- **{article}{thing}**" in GUIDE


def test_the_files_that_it_names_are_there() -> None:
    root = Path(__file__).parents[1]
    named = set(re.findall(r"`([\w/]+/[\w.]+\.(?:py|md))`", GUIDE))
    places = (root, root / "src", root / "src" / "accord")
    assert len(named) > 10
    assert [name for name in named if not any((place / name).exists() for place in places)] == []


# A family: one class, one call.


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

    def draws(self, like, generator):
        return self.quantile(torch.empty_like(like).uniform_(generator=generator))


@pytest.fixture
def secant(monkeypatch: pytest.MonkeyPatch) -> None:
    from accord._numerics import family

    monkeypatch.setattr(family, "_MAKERS", dict(family._MAKERS))
    new = HyperbolicSecant()
    register_family("secant", lambda _: new)


@pytest.mark.usefixtures("secant")
def test_family_is_known_by_its_name() -> None:
    assert "secant" in family_names()


@pytest.mark.usefixtures("secant")
def test_family_as_distribution() -> None:
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


@pytest.mark.usefixtures("secant")
def test_family_in_losses_and_their_gradients() -> None:
    mu = torch.tensor([0.2, 3.0, -1.0], dtype=torch.float64, requires_grad=True)
    var = torch.tensor([1.0, 0.3, 4.0], dtype=torch.float64, requires_grad=True)
    t = torch.zeros(3, dtype=torch.float64)
    for eps in (0.0, 0.01, 1.0):
        loss = BVMLoss(eps, family="secant", density=True, reduction="none")
        assert gradcheck(lambda m, v, f=loss: f(m, t, v), (mu, var), rtol=1e-4)
    agreement = AgreementLoss(Within(0.5), family="secant", reduction="none")
    bvm = BVMLoss(0.5, family="secant", reduction="none")
    np.testing.assert_allclose(agreement(mu, t, var).detach(), bvm(mu, t, var).detach(), rtol=1e-9)


@pytest.mark.usefixtures("secant")
def test_family_in_probability_of_agreement() -> None:
    dist = with_moments("secant", np.zeros(2), np.ones(2))
    found = probability_of_agreement(dist, [0.0, 1.0], Within(0.5)).probability
    peer = stats.hypsecant(scale=2 / math.pi)
    np.testing.assert_allclose(found[0], peer.cdf(0.5) - peer.cdf(-0.5), rtol=1e-9)


@pytest.mark.usefixtures("secant")
def test_family_in_regressor() -> None:
    from accord import BVMRegressor

    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (80, 1))
    y = X[:, 0] + 0.1 * rng.normal(size=80)
    options = {"tolerance": 0.1, "n_members": 2, "epochs": 5, "random_state": 0}
    model = BVMRegressor(family="secant", **options).fit(X, y)
    assert np.isfinite(model.predict_dist(X).log_prob(y)).all()


# A metric: a function, and a row of the catalogue.


def median_error(*, y_true, dist, sample_weight=None) -> float:
    assert sample_weight is None
    return float(np.median(np.abs(np.asarray(y_true) - dist.mean)))


def test_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Metric(
        "median_error",
        "median error",
        "half of the errors are smaller",
        lambda case: median_error(y_true=case.y, dist=case.dist, sample_weight=case.weight),
        unit="target",
    )
    monkeypatch.setitem(METRICS, row.name, row)
    dist = with_moments("normal", np.zeros(3), np.ones(3))
    found = summary(y_true=[1.0, -2.0, 9.0], dist=dist)
    assert found["median_error"] == 2.0
    assert list(found) == list(METRICS)


# A method to compare with: something that fits and predicts a distribution, and an entry.


class NoModel:
    """The targets' own mean and deviation, whatever the row."""

    def fit(self, X, y):
        self.mean, self.std = y.mean(), y.std()
        return self

    def predict_dist(self, X):
        n = len(X)
        return with_moments("normal", np.full(n, self.mean), np.full(n, self.std))


def test_method_to_compare_with(houses) -> None:
    method = Method("no model", "mean and deviation of all rows", lambda seed: NoModel())
    result = compare_methods(houses, target="price", n_splits=1, methods=[method])
    assert result.failures == {}
    assert [score.method for score in result.ranked("random")] == ["no model"]
    price = houses["price"].to_numpy()
    by_hand = 0.5 * np.log(2 * np.pi * np.e * price.var())
    assert result.ranked("random")[0].figures["nll"] == pytest.approx(by_hand, abs=0.5)


# An outlier split: a function that gives a pair, and a splitter that makes several.


def farthest_split(X, *, fraction=0.1):
    """Hold out the rows farthest from the middle, in standard deviations."""
    X = np.asarray(X, dtype=float)
    far = np.linalg.norm((X - X.mean(axis=0)) / X.std(axis=0), axis=1)
    order = np.argsort(far, kind="stable")
    n_train = len(X) - round(fraction * len(X))
    return np.sort(order[:n_train]), np.sort(order[n_train:])


@dataclass(frozen=True)
class FarthestSplit:
    fractions: tuple[float, ...] = (0.1, 0.2)

    def split(self, X, y=None, groups=None):
        for fraction in self.fractions:
            yield farthest_split(X, fraction=fraction)

    def get_n_splits(self, X=None, y=None, groups=None):
        return len(self.fractions)


def test_outlier_split() -> None:
    from sklearn.linear_model import BayesianRidge
    from sklearn.model_selection import cross_val_score

    from accord.metrics import scorers

    X = np.random.default_rng(0).normal(size=(100, 2))
    X[7] = 30.0
    train, test = farthest_split(X, fraction=0.05)
    assert 7 in test
    assert sorted([*train, *test]) == list(range(100))
    assert 7 in outlier_split(X, fraction=0.05, random_state=0)[1]
    scores = cross_val_score(
        BayesianRidge(), X, X[:, 0], cv=FarthestSplit(), scoring=scorers.crps_scorer
    )
    assert scores.shape == (2,)
    assert (scores > -0.01).all()  # minus the CRPS: a line is found whatever is left out
