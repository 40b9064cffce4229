"""The loss of any rule, against the probability of agreement and against quadrature."""

import math

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

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
    probability_of_agreement,
)
from accord.distributions import Empirical, Laplace, Mixture, Normal, StudentT, Uniform
from accord.losses import AgreementLoss, GaussianNLLLoss

ROWS = torch.linspace(0.1, 1, 9, dtype=torch.float64)
RULES: dict[str, Rule] = {
    "within": Within(0.4),
    "within, per row": Within(ROWS),
    "relative": WithinRelative(0.2),
    "asymmetric": Asymmetric(below=0.1, above=1.0),
    "at least": AtLeast(),
    "at most": AtMost(),
    "inside": Inside(-0.5, 2.0),
    "exact": Exact(),
    "both": Within(1.0) & AtLeast(),
    "either": Within(0.2) | Inside(1.0, 1.5),
    "negated": ~Within(0.3),
    "callable": Rule.from_callable(lambda y_hat, y: (y_hat - y) ** 2 + 0.1 * y_hat <= 0.5),
}
rules = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


def batch() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(3, 9, generator=generator, dtype=torch.float64)
    return draws[0], draws[1], 0.2 + draws[2].square()


@rules
def test_is_minus_the_log_probability_of_agreement(rule: Rule) -> None:
    mu, t, var = batch()
    loss = AgreementLoss(rule, reduction="none")(mu, t, var)
    agreement = probability_of_agreement(Normal(mu, var.sqrt()), t, rule)
    torch.testing.assert_close(loss, -torch.tensor(agreement.log_probability), rtol=1e-9, atol=1e-9)


@rules
def test_gradients(rule: Rule) -> None:
    mu, t, var = batch()
    loss = AgreementLoss(rule)
    assert gradcheck(
        lambda mu, var: loss(mu, t, var), (mu.requires_grad_(), var.requires_grad_()), rtol=1e-4
    )


def test_other_families() -> None:
    mu, t, var = batch()
    rule = Within(0.2) | AtLeast()
    law = Laplace(mu, (var / 2).sqrt())
    loss = AgreementLoss(rule, family="laplace", reduction="none")(mu, t, var)
    expected = -torch.tensor(probability_of_agreement(law, t, rule).log_probability)
    torch.testing.assert_close(loss, expected, rtol=1e-9, atol=1e-9)
    for family in ("laplace", "logistic", "student-t"):
        df = 4.0 if family == "student-t" else None
        closed = AgreementLoss(Within(0.5), family=family, df=df)(mu, t, var)
        near = AgreementLoss(lambda a, b: abs(a - b) <= 0.5, family=family, df=df)(mu, t, var)
        torch.testing.assert_close(near, closed, rtol=1e-8, atol=0)


def test_callable_in_single_precision_and_several_outputs() -> None:
    mu, t, var = (x.float().view(3, 3) for x in batch())
    near = AgreementLoss(lambda y_hat, y: abs(y_hat - y) <= 0.5, reduction="none")(mu, t, var)
    assert near.shape == (3, 3)
    torch.testing.assert_close(near, AgreementLoss(Within(0.5), reduction="none")(mu, t, var))


def test_exact_agreement_is_the_likelihood() -> None:
    mu, t, var = batch()
    torch.testing.assert_close(AgreementLoss(Exact())(mu, t, var), GaussianNLLLoss()(mu, t, var))
    only_positive = AgreementLoss(Exact() & Inside(0, math.inf), reduction="none")(mu, t, var)
    assert torch.equal(only_positive.isinf(), t < 0)


def test_measurement_error() -> None:
    mu, t, var = batch()
    rule = Asymmetric(below=0.3, above=0.1)
    loss = AgreementLoss(rule)(mu, t, var, target_std=0.5)
    torch.testing.assert_close(loss, AgreementLoss(rule)(mu, t, var + 0.25))


def test_what_cannot_agree_costs_everything_and_pulls_nowhere() -> None:
    mu, t, var = batch()
    mu.requires_grad_()
    never = Inside(0.0, 1.0) & Inside(2.0, 3.0)
    loss = AgreementLoss(never, reduction="none")(mu, t, var)
    assert bool((loss == math.inf).all())
    (grad,) = torch.autograd.grad(loss.sum(), mu)
    assert torch.equal(grad, torch.zeros_like(mu))


def test_under_vmap() -> None:
    mu, t, var = (x.view(3, 3) for x in batch())
    loss = AgreementLoss(Within(0.4) | AtLeast())
    got = torch.func.vmap(loss)(mu, t, var)
    expected = torch.stack([loss(mu[i], t[i], var[i]) for i in range(3)])
    torch.testing.assert_close(got, expected)


def test_shows_its_rule() -> None:
    assert repr(AgreementLoss(AtLeast())) == (
        "AgreementLoss(AtLeast(), family=normal, reduction='mean')"
    )


@pytest.mark.parametrize("mean", [-3.0, 0.4, 1.2, 2.05, 4.5, 6.0])
@pytest.mark.parametrize("std", [0.05, 0.17, 1.0, 20.0])
def test_a_callable_has_all_its_stretches(mean: float, std: float) -> None:
    """|e| ≤ .3 or |e − 2| ≤ .1, also where the prediction is far from both or much wider."""
    mu, t = torch.tensor([mean], dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    near = AgreementLoss(lambda y_hat, y: (abs(y_hat - y) <= 0.3) | (abs(y_hat - y - 2) <= 0.1))
    exact = AgreementLoss(Within(0.3) | ErrorInside(1.9, 2.1))
    got, expected = near(mu, t, std**2), exact(mu, t, std**2)
    torch.testing.assert_close(got, expected, rtol=1e-6, atol=1e-9)
    stated = probability_of_agreement(Normal([mean], std), [0.0], near.rule)
    assert near.error == pytest.approx(float(stated.standard_error[0]))
    assert exact.error == 0


def test_a_callable_that_hides_from_the_search_is_refused() -> None:
    mu, t = torch.zeros(1, dtype=torch.float64), torch.full((1,), 0.3, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"few enough.*ErrorInside"):
        AgreementLoss(lambda y_hat, y: torch.sin(torch.as_tensor(4e5 * y_hat)).numpy() > y)(
            mu, t, 1.0
        )


DATA = {
    "laplace": Laplace(batch()[1].numpy(), 0.5),
    "student": StudentT(3.0, batch()[1].numpy(), 0.3),
    "uniform": Uniform(batch()[1].numpy() - 0.4, batch()[1].numpy() + 0.6),
    "mixture": Mixture(Normal(torch.stack([batch()[1], batch()[1] + 2]).numpy(), 0.3)),
}
without_callable = pytest.mark.parametrize("name", [n for n in RULES if n != "callable"])


@without_callable
@pytest.mark.parametrize("data", DATA)
def test_uncertain_targets(data: str, name: str) -> None:
    mu, _, var = batch()
    law, rule = DATA[data], RULES[name]
    loss_function = AgreementLoss(rule, reduction="none")
    loss = loss_function(mu, law, var)
    reference = probability_of_agreement(Normal(mu.numpy(), var.sqrt().numpy()), law, rule)
    gap = torch.exp(-loss) - torch.from_numpy(reference.probability)
    assert (
        float(gap.abs().max()) <= loss_function.error + 1e-6
    )  # what lies beyond the last quantiles
    torch.testing.assert_close(
        loss, -torch.from_numpy(reference.log_probability), rtol=5e-3, atol=0.03
    )


@pytest.mark.parametrize("name", ["within", "at least", "relative", "exact"])
def test_gradients_with_an_uncertain_target(name: str) -> None:
    mu, _, var = (x[:2].clone() for x in batch())
    loss, law = AgreementLoss(RULES[name]), DATA["laplace"][:2]
    assert gradcheck(
        lambda m, v: loss(m, law, v), (mu.requires_grad_(), var.requires_grad_()), rtol=1e-4
    )


def test_an_uncertain_target_against_brute_force() -> None:
    mu, t, var = batch()
    generator = torch.Generator().manual_seed(3)
    y_hat = mu + var.sqrt() * torch.randn(400_000, 9, generator=generator, dtype=torch.float64)
    y = Laplace(t, torch.full_like(t, 0.5)).sample(400_000, random_state=4)
    share = ((y_hat - y).abs() <= 0.4).double().mean(0)
    loss = AgreementLoss(Within(0.4), reduction="none")(mu, Laplace(t.numpy(), 0.5), var)
    torch.testing.assert_close(torch.exp(-loss), share, rtol=0, atol=4 * 0.5 / 400_000**0.5)


def test_normal_targets_and_draws_are_exact() -> None:
    mu, t, var = batch()
    with_std = AgreementLoss(Within(0.4))(mu, t, var, target_std=0.5)
    torch.testing.assert_close(AgreementLoss(Within(0.4))(mu, Normal(t, 0.5), var), with_std)
    draws = t + torch.randn(6, 9, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    each = [torch.exp(-AgreementLoss(Within(0.4), reduction="none")(mu, y, var)) for y in draws]
    loss_function = AgreementLoss(Within(0.4), reduction="none")
    got = torch.exp(-loss_function(mu, Empirical(draws), var))
    torch.testing.assert_close(got, torch.stack(each).mean(0))
    assert loss_function.error == 0
    with pytest.raises(ValueError, match="draws"):
        AgreementLoss(Exact())(mu, Empirical(draws), var)
