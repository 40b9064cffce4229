"""The loss of a rule over all rows: against the probability of agreement and against draws."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from accord.agreement import (
    AtLeast,
    Exact,
    MeanAbsoluteErrorAtMost,
    MeanErrorWithin,
    Rule,
    Share,
    ShareWithin,
    Within,
    probability_of_agreement,
)
from accord.distributions import Laplace, Normal
from accord.losses import AgreementLoss, DatasetAgreementLoss

N = 12
RNG = np.random.default_rng(0)
T = torch.from_numpy(RNG.normal(size=N))
MU = T + torch.from_numpy(RNG.normal(0, 0.6, N))
VAR = torch.from_numpy(RNG.uniform(0.1, 0.9, N))
RULES = [
    ShareWithin(0.5, share=0.75),
    ShareWithin(np.linspace(0.1, 1.2, N), share=0.5),
    Share(Within(0.8) & AtLeast(), 0.25),
    Share(Rule.from_callable(lambda y_hat, y: np.abs(y_hat - y) <= 0.5), 0.75),
    MeanErrorWithin(0.1),
]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_is_minus_the_log_probability_per_row(rule) -> None:
    loss = DatasetAgreementLoss(rule)(MU, T, VAR)
    exact = probability_of_agreement(Normal(MU, VAR.sqrt()), T, rule)
    assert float(loss) == pytest.approx(-float(exact.log_probability) / N, rel=1e-9)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_is_the_share_of_draws_that_agree(rule) -> None:
    draws = RNG.normal(MU, VAR.sqrt(), (40_000, N))
    held = float(rule(draws, T).mean())
    found = float(torch.exp(-N * DatasetAgreementLoss(rule)(MU, T, VAR)))
    assert abs(found - held) < 4 * np.sqrt(held * (1 - held) / 40_000)


@pytest.mark.parametrize("rule", [RULES[0], RULES[1], RULES[2], RULES[4]], ids=str)
def test_gradients(rule) -> None:
    loss = DatasetAgreementLoss(rule)
    inputs = (MU.clone().requires_grad_(), VAR.clone().requires_grad_())
    assert gradcheck(lambda mu, var: loss(mu, T, var), inputs)


def test_of_all_rows_is_the_mean_loss_of_single_rows() -> None:
    whole = DatasetAgreementLoss(ShareWithin(0.5, share=1.0))(MU, T, VAR)
    torch.testing.assert_close(whole, AgreementLoss(Within(0.5))(MU, T, VAR), rtol=1e-9, atol=0)


def test_rows_beyond_the_share_do_not_pull() -> None:
    """One target of twelve is a gross error; eleven must agree, and it is left alone."""
    wrong = T.clone()
    wrong[3] += 100.0
    mu = MU.clone().requires_grad_()
    loss = DatasetAgreementLoss(ShareWithin(0.5, share=11 / 12))(mu, wrong, VAR)
    (grad,) = torch.autograd.grad(loss, mu)
    assert grad[3].abs() < 1e-12
    assert grad.abs().sum() > 0.01


def test_leading_axes_are_so_many_statements() -> None:
    loss = DatasetAgreementLoss(RULES[0], reduction="none")
    both = loss(torch.stack([MU, T]), torch.stack([T, T]), torch.stack([VAR, VAR]))
    torch.testing.assert_close(both, torch.stack([loss(MU, T, VAR), loss(T, T, VAR)]))


@pytest.mark.parametrize("rule", [RULES[0], RULES[4]], ids=str)
def test_noise_of_the_targets_counts(rule) -> None:
    loss = DatasetAgreementLoss(rule)(MU, T, VAR, target_std=0.4)
    exact = probability_of_agreement(Normal(MU, VAR.sqrt()), Normal(T, 0.4), rule)
    assert float(loss) == pytest.approx(-float(exact.log_probability) / N, rel=1e-9)


def test_other_families() -> None:
    loss = DatasetAgreementLoss(RULES[0], family="laplace")(MU, T, VAR)
    law = Laplace(mean=MU, scale=(VAR / 2).sqrt())
    exact = probability_of_agreement(law, T, RULES[0])
    assert float(loss) == pytest.approx(-float(exact.log_probability) / N, rel=1e-9)


def test_rules_without_a_gradient_are_refused() -> None:
    with pytest.raises(TypeError, match=r"must be Share\(rule, share\).*has no gradient"):
        DatasetAgreementLoss(MeanAbsoluteErrorAtMost(0.3))
    with pytest.raises(TypeError, match="normal family"):
        DatasetAgreementLoss(MeanErrorWithin(0.3), family="laplace")
    with pytest.raises(ValueError, match=r"must agree with a probability.*Exact"):
        DatasetAgreementLoss(Share(Exact(), 0.9))
