"""Training on any rule: loss and gradient, the density that is predicted, what is refused."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch.autograd import gradcheck

import accord
from accord._numerics import NORMAL, family_named
from accord.agreement import (
    Asymmetric,
    AtLeast,
    AtMost,
    ErrorInside,
    Exact,
    Inside,
    Rule,
    Share,
    Within,
    WithinRelative,
    probability_of_agreement,
)
from accord.distributions import Laplace, Normal, StudentT, with_moments
from accord.estimators import BVMRegressor
from accord.estimators.rules import AllowedErrors, training_rule
from accord.training import ByAutograd, Heads, Scaling

N = 40
rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (N, 1))
Y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=N)
SETTINGS = {
    "n_members": 2,
    "epochs": 5,
    "hidden": (8,),
    "random_state": 0,
    "target_scaling": "standard",
    "mean_head": "identity",
    "variance_head": "softplus",
}
RULES: dict[str, Rule] = {
    "within": Within(0.4),
    "within, per row": Within(np.linspace(0.1, 1, N)),
    "relative": WithinRelative(0.2),
    "asymmetric": Asymmetric(below=0.1, above=1.0),
    "at least": AtLeast(),
    "at most": AtMost(),
    "inside": Inside(-0.5, 2.0),
    "exact": Exact(),
    "both": Within(1.0) & AtLeast(),
    "either": Within(0.2) | ErrorInside(0.9, 1.1),
    "negated": ~Within(0.3),
    "callable": Rule.from_callable(lambda y_hat, y: (y_hat - y) ** 2 + 0.1 * y_hat <= 0.5),
    "narrow callable": Rule.from_callable(
        lambda y_hat, y: (abs(y_hat - y) <= 0.3) | (abs(y_hat - y - 2) <= 0.1)
    ),
}
DATA = {"known": None, "laplace": Laplace(Y, 0.3), "student": StudentT(4.0, Y, 0.2)}


def quickly(**options) -> BVMRegressor:
    return BVMRegressor(**{**SETTINGS, **options})


def loss_of(rule: Rule, family: str, dist=None) -> tuple[np.ndarray, np.ndarray, ByAutograd]:
    """The objective's loss in scaled units for some outputs, and the reference in target units."""
    trained = training_rule(rule, Y[:, None], shape=(N,), family=family_named(family), dist=dist)
    scaling = Scaling.standard(Y[:, None])
    heads = Heads("identity", "softplus", 0.0)
    columns = {
        name: torch.from_numpy(np.ascontiguousarray(c))[None]
        for name, c in trained.columns(Y[:, None], scaling).items()
    }
    raw = torch.randn(1, N, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    objective = trained.objective(heads, family, None)
    loss, *_ = objective(raw, columns, torch.ones(1, N, 1).double(), torch.zeros(1, 0))
    mean, variance = (x[0, :, 0].numpy() for x in heads(raw))
    model = with_moments(
        family,
        scaling.shift + scaling.scale * mean,
        scaling.scale * np.sqrt(variance),
    )
    data = Y if dist is None else dist
    expected = -probability_of_agreement(model, data, rule).log_probability
    if rule.is_density:
        expected = expected - np.log(scaling.scale)
    elif trained.is_plain and trained.accepted is not None:
        steps = trained.accepted.intervals
        expected = expected + np.log((steps.upper - steps.lower)[0].numpy() / scaling.scale)
    elif trained.kernel is not None:
        expected = expected + np.log(2 * trained.half_length / scaling.scale)

    def by_raw(raw):
        return _Loss.apply(raw, objective, columns)

    # along random directions: all of them would take as many evaluations as there are outputs
    assert gradcheck(by_raw, (raw.requires_grad_(),), rtol=1e-4, atol=1e-6, fast_mode=True)
    return loss[0, :, 0].numpy(), expected, objective


class _Loss(torch.autograd.Function):
    """The objective with the gradient that it states, for gradcheck."""

    @staticmethod
    def forward(ctx, raw, objective, columns):
        weight = torch.ones(1, N, 1).double()
        loss, grad, _ = objective(raw.detach(), columns, weight, torch.zeros(1, 0))
        ctx.save_for_backward(grad)
        return loss.sum()

    @staticmethod
    def backward(ctx, outer):
        return outer * ctx.saved_tensors[0], None, None


@pytest.mark.parametrize("family", ["normal", "laplace"])
@pytest.mark.parametrize("name", RULES)
def test_objective_is_the_probability_of_agreement_with_its_gradient(name, family) -> None:
    loss, expected, _ = loss_of(RULES[name], family)
    np.testing.assert_allclose(loss, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("data", ["laplace", "student"])
@pytest.mark.parametrize("name", [n for n in RULES if "callable" not in n])
def test_uncertain_data_within_the_stated_error(name, data) -> None:
    rule = RULES[name]
    loss, expected, _ = loss_of(rule, "normal", DATA[data])
    trained = training_rule(rule, Y[:, None], shape=(N,), family=NORMAL, dist=DATA[data])
    assert np.abs(np.exp(-loss) - np.exp(-expected)).max() <= 3 * trained.error + 1e-9
    np.testing.assert_allclose(loss, expected, atol=0.02)


def test_normal_data_have_their_closed_form() -> None:
    loss, expected, _ = loss_of(Within(0.3), "normal", Normal(Y, 0.4))
    np.testing.assert_allclose(loss, expected, rtol=1e-9)


def test_draws_are_averaged_over() -> None:
    draws = Y[:, None] + rng.laplace(size=(N, 7))
    trained = training_rule(Within(0.3), Y[:, None], shape=(N,), family=NORMAL, dist=draws)
    steps = trained.accepted
    assert trained.error == 0
    inside = np.abs(draws - 0.1) <= 0.3  # the share of draws that agree with a prediction of 0.1
    lower, upper = steps.intervals.lower_bounds.numpy(), steps.intervals.upper_bounds.numpy()
    accepted = (np.exp(steps.log_weight.numpy()) * ((lower <= 0.1) & (upper >= 0.1))).sum(0)
    np.testing.assert_allclose(accepted, inside.mean(1), rtol=1e-12)


@pytest.mark.parametrize("rule", [Within(0.2), "within 0.2", Asymmetric(below=0.2, above=0.2)])
def test_a_tolerance_in_other_words_trains_the_same_networks(rule) -> None:
    one, other = quickly(tolerance=0.2).fit(X, Y), quickly(rule=rule).fit(X, Y)
    for a, b in zip(one.parameters_, other.parameters_, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        one.predict_dist(X).log_prob(Y), other.predict_dist(X).log_prob(Y), rtol=1e-4
    )
    assert other.tolerance_ == pytest.approx(0.2)


def test_exact_agreement_is_no_tolerance() -> None:
    one, other = quickly(tolerance=0.0).fit(X, Y), quickly(rule=Exact()).fit(X, Y)
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["within", "asymmetric", "both", "either"])
def test_predicts_the_density_that_training_maximises(name) -> None:
    """q(t) = p(A | t)/L, against the probability of agreement itself, and its integral."""
    rule = RULES[name]
    model = quickly(rule=rule, n_members=1).fit(X, Y)
    points = np.linspace(-9, 9, 20_001)[:, None]
    density = model.predict_dist(X[:1]).pdf(points)[:, 0]
    assert np.trapezoid(density, points[:, 0]) == pytest.approx(1, abs=1e-4)
    plain = model.without_tolerance().predict_dist(X[:1]).members[0]
    some = points[::500, 0]
    alone = Normal(np.full(len(some), plain.mean[0]), np.full(len(some), plain.std[0]))
    agreement = probability_of_agreement(alone, some, rule).probability
    np.testing.assert_allclose(density[::500], agreement / (2 * model.tolerance_), rtol=1e-6)


def test_errors_that_a_rule_allows_for_are_noise() -> None:
    kernel = AllowedErrors(np.array([0.0, -1.0]), np.array([0.2, 0.1]))
    mean, std = np.zeros((3, 5)), np.full((3, 5), 0.3)
    dist = accord.distributions.Mixture(kernel.smoothed(Normal, mean, std))
    share = np.array([2 / 3, 1 / 3])
    center = -1 / 3
    spread = (share * (np.array([0.2, 0.1]) ** 2 / 3 + (np.array([0, -1]) - center) ** 2)).sum()
    np.testing.assert_allclose(dist.mean, center, rtol=1e-12)
    np.testing.assert_allclose(dist.noise**2, 0.09 + spread, rtol=1e-12)
    np.testing.assert_allclose(dist.disagreement, 0, atol=1e-12)


def test_rules_per_row_are_predicted_by_their_mean() -> None:
    tolerance = np.linspace(0.1, 0.5, N)
    one = quickly(tolerance=0.0).fit(X, Y, y_tolerance=tolerance)
    other = quickly().fit(X, Y, y_rule=Within(tolerance))
    assert other.tolerance_ == pytest.approx(one.tolerance_)
    np.testing.assert_allclose(one.predict_dist(X).std, other.predict_dist(X).std, rtol=1e-4)


@pytest.mark.parametrize("name", ["relative", "at least", "inside", "negated", "callable"])
def test_a_rule_without_a_density_is_refused_unless_the_model_predicts(name) -> None:
    with pytest.raises(ValueError, match=r"imply a density.*predictive='model'"):
        quickly(rule=RULES[name]).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = quickly(rule=RULES[name], predictive="model").fit(X, Y)
    assert np.isfinite(model.predict(X)).all()


def test_learns_from_targets_with_an_error_of_their_own() -> None:
    """With all scatter explained by ρ(y), less noise is left to the networks."""
    x = np.random.default_rng(1).uniform(-2, 2, (100, 1))
    y = np.sin(2 * x[:, 0]) + np.random.default_rng(2).laplace(scale=0.3, size=100)
    settings = {**SETTINGS, "epochs": 25, "learning_rate": 3e-2}
    plain = BVMRegressor(tolerance=0.0, **settings).fit(x, y)
    aware = BVMRegressor(tolerance=0.0, **settings).fit(x, y, y_dist=Laplace(y, 0.3))
    assert np.mean(aware.predict_dist(x).noise) < 0.75 * np.mean(plain.predict_dist(x).noise)
    assert aware.rule_error_ > 0


def test_several_targets() -> None:
    two = np.column_stack([Y, 10 * Y])
    model = quickly(rule=Within(0.2) | ErrorInside(0.9, 1.1)).fit(X, two)
    assert model.predict(X).shape == (N, 2)
    single = quickly(rule=Within(0.2)).fit(X, two)
    same = quickly(tolerance=0.2).fit(X, two)
    np.testing.assert_allclose(single.predict(X), same.predict(X), rtol=1e-4, atol=1e-5)
    by_row = quickly().fit(X, two, y_rule=Within(np.full((N, 2), 0.2)))
    np.testing.assert_allclose(by_row.predict(X), same.predict(X), rtol=1e-4, atol=1e-5)


def test_fitting_again_without_a_rule_forgets_it() -> None:
    model = quickly(rule=Asymmetric(below=1.0, above=0.0)).fit(X, Y)
    again = model.set_params(rule=None, tolerance=0.2).fit(X, Y)
    np.testing.assert_array_equal(again.predict(X), quickly(tolerance=0.2).fit(X, Y).predict(X))


def test_clones_and_saves_with_a_rule_in_words(tmp_path) -> None:
    model = clone(quickly(rule="within 0.2 or error inside 0.9 1.1")).fit(X, Y)
    model.save(tmp_path / "model.skops")
    loaded = accord.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.predict_dist(X).cdf(Y), model.predict_dist(X).cdf(Y))


def test_a_share_of_rows_leaves_gross_errors_alone(tmp_path) -> None:
    """One target in twenty is wrong by 4; nine in ten must be within 0.3."""
    noise = np.random.default_rng(0)
    x = noise.uniform(-2, 2, (400, 1))
    truth = np.sin(2 * x[:, 0])
    y = truth + 0.1 * noise.normal(size=400) + 4.0 * (np.arange(400) % 20 == 0)
    settings = SETTINGS | {"epochs": 60, "hidden": (50, 50), "learning_rate": 5e-3}
    share = BVMRegressor(
        rule="90% within 0.3", predictive="model", **(settings | {"batch_size": 100})
    ).fit(x, y)
    each = BVMRegressor(rule="within 0.3", **settings).fit(x, y)
    wrong = [np.sqrt(np.mean((model.predict(x) - truth) ** 2)) for model in (share, each)]
    assert wrong[0] < 0.12 < wrong[1]
    share.save(tmp_path / "model.skops")
    loaded = accord.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.predict(x), share.predict(x))


REFUSED = {
    "numbers per row": ({"rule": Within(np.full(N, 0.2))}, {}, "y_rule"),
    "rule and tolerance": ({"rule": Within(0.2), "tolerance": 0.1}, {}, "without tolerance"),
    "rule and bounds": ({"rule": Within(0.2)}, {"y_lower": Y}, "y_lower"),
    "never": (
        {"rule": Inside(0, 1) & Inside(2, 3), "predictive": "model"},
        {},
        "none for target 0",
    ),
    "and its opposite": ({"rule": Within(0.5) & ~Within(0.5)}, {}, "imply a density|none for"),
    "local with y_dist": ({}, {"y_dist": Laplace(Y, 0.3)}, "stated tolerance"),
    "wrong shape": ({"rule": Within(0.2)}, {"y_dist": Laplace(Y[:5], 0.3)}, "shape"),
    "both noises": ({"rule": Within(0.2)}, {"y_dist": Laplace(Y, 0.3), "y_std": 0.1}, "both"),
    "draws and exact": ({"tolerance": 0.0}, {"y_dist": Y[:, None] + np.zeros((1, 3))}, "draws"),
    "callable and y_dist": (
        {"rule": lambda a, b: abs(a - b) < 1, "predictive": "model"},
        {"y_dist": Laplace(Y, 0.3)},
        "must have intervals",
    ),
    "comb": ({"rule": lambda a, b: np.sin(900 * a) > 0, "predictive": "model"}, {}, "few enough"),
    "share without a density": ({"rule": "95% within 0.5"}, {}, "imply a density.*Share"),
    "share of exact rows": (
        {"rule": Share(Exact(), 0.9), "predictive": "model"},
        {},
        "agree with a probability",
    ),
    "share of weighted rows": (
        {"rule": "95% within 0.5", "predictive": "model"},
        {"sample_weight": np.linspace(1, 2, N)},
        "same for all rows",
    ),
    "over all rows": ({"rule": "mean error within 0.1"}, {}, "a share of rows alone"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_says_what_it_cannot_do(name) -> None:
    settings, options, words = REFUSED[name]
    with pytest.raises((ValueError, TypeError), match=words):
        quickly(**settings).fit(X, Y, **options)
