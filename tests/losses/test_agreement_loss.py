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
    Exact,
    Inside,
    Rule,
    Within,
    WithinRelative,
    probability_of_agreement,
)
from accord.distributions import Laplace, Normal
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
