"""Closed-form gradients against autograd through the public losses."""

import pytest
import torch

from accord.losses import BetaNLLLoss, BVMLoss, GaussianNLLLoss
from accord.training import (
    AgreementObjective,
    ByAutograd,
    CensoredLoss,
    GaussianLikelihood,
    Heads,
)
from accord.training.objectives import VARIANCE_FLOOR

HEADS = [
    Heads(m, v, floor)
    for m in ("identity", "sigmoid")
    for v in ("sigmoid", "softplus", "exp")
    for floor in (VARIANCE_FLOOR, 0.0, 0.5)
]


def make_batch(n_targets=1):
    generator = torch.Generator().manual_seed(0)
    raw = torch.randn(3, 7, 2 * n_targets, generator=generator, dtype=torch.float64)
    target = torch.rand(3, 7, n_targets, generator=generator, dtype=torch.float64)
    weight = torch.rand(3, 7, 1, generator=generator, dtype=torch.float64)
    return raw, target, weight


def by_autograd(loss, raw, weight):
    raw = raw.clone().requires_grad_()
    value = loss(raw)
    (grad,) = torch.autograd.grad((value * weight).sum(), raw)
    return value.detach(), grad


@pytest.mark.parametrize("heads", HEADS, ids=str)
def test_heads_chain_rule(heads):
    raw, target, weight = make_batch(2)

    def loss(raw):
        mean, variance = heads(raw)
        return GaussianNLLLoss(reduction="none")(mean, target, variance)

    value, grad = by_autograd(loss, raw, weight)
    got, got_grad, extra = GaussianLikelihood(heads)(raw, {"target": target}, weight, raw[0, 0])
    torch.testing.assert_close(got, value)
    torch.testing.assert_close(got_grad, grad)
    assert extra is None


def test_beta_nll():
    raw, target, weight = make_batch()
    heads = Heads("identity", "softplus")

    def loss(raw):
        mean, variance = heads(raw)
        return BetaNLLLoss(beta=0.5, reduction="none")(mean, target, variance)

    _, grad = by_autograd(loss, raw, weight)
    objective = GaussianLikelihood(heads, beta=0.5)
    _, got, _ = objective(raw, {"target": target}, weight, raw[0, 0])
    torch.testing.assert_close(got, grad)


@pytest.mark.parametrize("family", ["normal", "laplace", "logistic", "student-t"])
def test_agreement_is_the_bvm_loss(family):
    raw, target, weight = make_batch(2)
    df = 5.0 if family == "student-t" else None
    heads = Heads("sigmoid", "sigmoid")
    tolerance = torch.linspace(0, 0.5, target.numel(), dtype=torch.float64).view(target.shape)
    criterion = BVMLoss(0.1, family=family, df=df, density=True, reduction="none")

    def loss(raw):
        mean, variance = heads(raw)
        return criterion(mean, target, variance, tolerance=tolerance)

    value, grad = by_autograd(loss, raw, weight)
    columns = {"target": target, "tolerance": tolerance}
    got, got_grad, _ = AgreementObjective(heads, family, df)(raw, columns, weight, raw[0, 0])
    torch.testing.assert_close(got, value)
    torch.testing.assert_close(got_grad, grad)


def test_measurement_noise_adds_to_the_variance():
    raw, target, weight = make_batch()
    heads = Heads()
    noise = torch.full_like(target, 0.04)
    columns = {"target": target, "tolerance": torch.zeros_like(target), "noise": noise}
    got, _, _ = AgreementObjective(heads)(raw, columns, weight, raw[0, 0])
    mean, variance = heads(raw)
    expected = GaussianNLLLoss(reduction="none")(mean, target, variance + 0.04)
    torch.testing.assert_close(got, expected)


def test_gradient_by_a_learnt_tolerance():
    raw, target, weight = make_batch()
    objective = AgreementObjective(Heads(), learn_tolerance=True)
    extra = torch.tensor([[-1.0], [-2.0], [-3.0]], dtype=torch.float64)
    _, _, got = objective(raw, {"target": target}, weight, extra)
    step = 1e-6
    for member in range(3):
        values = []
        for sign in (1, -1):
            moved = extra.clone()
            moved[member] += sign * step
            loss, _, _ = objective(raw, {"target": target}, weight, moved)
            values.append((loss * weight).sum())
        assert got[member].item() == pytest.approx(
            float(values[0] - values[1]) / (2 * step), rel=1e-6
        )


def test_censored_rows_count_the_probability_beyond_their_bound():
    raw, target, weight = make_batch()
    heads = Heads("identity", "exp")
    lower, upper = target.clone(), target.clone()
    upper[:, 3:] = torch.inf
    lower[:, 5:] = -torch.inf
    upper[:, 5:] = 0.3
    columns = {
        "target": target,
        "tolerance": torch.zeros_like(target),
        "lower": lower,
        "upper": upper,
    }
    loss, grad, _ = ByAutograd(CensoredLoss(heads))(raw, columns, weight, raw[0, 0])
    mean, variance = heads(raw)
    normal = torch.distributions.Normal(mean, (variance).sqrt())
    expected = torch.cat(
        (
            -normal.log_prob(target)[:, :3],
            -torch.log(1 - normal.cdf(target))[:, 3:5],
            -torch.log(normal.cdf(torch.full_like(target, 0.3)))[:, 5:],
        ),
        1,
    )
    torch.testing.assert_close(loss, expected)
    assert torch.isfinite(grad).all()


def test_the_variance_has_a_floor():
    raw = torch.tensor([[[0.0, -1000.0]]])
    assert Heads("identity", "exp")(raw)[1].item() == pytest.approx(VARIANCE_FLOOR)


@pytest.mark.parametrize("floor", [0.0, 1e-12, 1e-3])
def test_the_floor_is_the_least_variance(floor):
    raw = torch.tensor([[0.0, -80.0]], dtype=torch.float64)
    assert Heads("identity", "exp", floor)(raw)[1].item() == pytest.approx(floor, abs=1e-30)
