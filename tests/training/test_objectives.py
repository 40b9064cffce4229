"""Closed-form gradients against autograd through the public losses."""

import numpy as np
import pytest
import torch

from accord.agreement import ShareWithin
from accord.distributions import Mixture, Normal, Smoothed
from accord.losses import BVMLoss, DatasetAgreementLoss, GaussianNLLLoss
from accord.training import (
    AgreementObjective,
    ByAutograd,
    CensoredLoss,
    CensoredMixture,
    GaussianLikelihood,
    Heads,
    MixtureObjective,
    RuleLoss,
    ShareObjective,
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
        return GaussianNLLLoss(beta=0.5, reduction="none")(mean, target, variance)

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


def mixture_batch(k, *, tolerant):
    """Raw outputs of K components, and columns; every third tolerance is 0."""
    generator = torch.Generator().manual_seed(k)
    n_outputs = MixtureObjective(k).n_outputs
    raw = 2 * torch.randn(3, 8, n_outputs, generator=generator, dtype=torch.float64)
    target = 2 * torch.randn(3, 8, 1, generator=generator, dtype=torch.float64)
    weight = torch.rand(3, 8, 1, generator=generator, dtype=torch.float64)
    columns = {"target": target}
    if tolerant:
        columns["tolerance"] = (torch.arange(24.0).double() % 3).reshape(3, 8, 1) / 4
    return raw, columns, weight


def mixture_of(objective, raw, *, eps=0.0):
    """The same components, smoothed by a tolerance, as a distribution, (M, B)."""
    parts = (part.movedim(-1, 0).numpy() for part in objective.components(raw))
    log_weights, mean, variance = parts
    return Mixture(Smoothed(Normal(mean, np.sqrt(variance)), eps), np.exp(log_weights))


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("tolerant", [False, True])
def test_mixture_gradients_are_those_of_autograd(k, tolerant):
    raw, columns, weight = mixture_batch(k, tolerant=tolerant)
    objective = MixtureObjective(k)
    criterion = BVMLoss(0.1, density=True, reduction="none")
    eps = columns.get("tolerance", torch.zeros_like(columns["target"]))

    def loss(raw):
        log_weights, mean, variance = objective.components(raw)
        target, tolerance = columns["target"].expand_as(mean), eps.expand_as(mean)
        each = criterion(mean, target, variance, tolerance=tolerance)
        return -torch.logsumexp(log_weights - each, -1, keepdim=True)

    value, grad = by_autograd(loss, raw, weight)
    got, got_grad, extra = objective(raw, columns, weight, raw[0, 0])
    torch.testing.assert_close(got, value)
    torch.testing.assert_close(got_grad, grad)
    assert extra is None


def test_one_component_is_the_agreement_objective():
    raw, columns, weight = mixture_batch(1, tolerant=True)
    objective = MixtureObjective(1)
    single = AgreementObjective(objective.heads)
    for got, expected in zip(
        objective(raw, columns, weight, raw[0, 0])[:2],
        single(raw, columns, weight, raw[0, 0])[:2],
        strict=True,
    ):
        torch.testing.assert_close(got, expected, rtol=0, atol=0)


def test_the_loss_of_a_mixture_is_minus_its_log_density():
    raw, columns, weight = mixture_batch(3, tolerant=False)
    objective = MixtureObjective(3)
    loss, _, _ = objective(raw, columns, weight, raw[0, 0])
    expected = -mixture_of(objective, raw).log_prob(columns["target"][..., 0].numpy())
    np.testing.assert_allclose(loss[..., 0].numpy(), expected, rtol=1e-12)


def test_the_components_of_a_new_mixture_stand_apart():
    _, mean, _ = MixtureObjective(3).components(torch.zeros(1, 1, 9))
    assert mean.flatten().tolist() == [-1.0, 0.0, 1.0]


def test_censored_mixtures_count_the_probability_between_their_bounds():
    raw, columns, weight = mixture_batch(3, tolerant=True)
    objective, target = MixtureObjective(3), columns["target"]
    lower, upper = target.clone(), target.clone()
    upper[:, 3:5] = torch.inf
    lower[:, 5:7] = -torch.inf
    upper[:, 7:] += 0.7
    columns |= {"lower": lower, "upper": upper}
    loss, grad, _ = ByAutograd(CensoredMixture(objective))(raw, columns, weight, raw[0, 0])
    mixture, eps = mixture_of(objective, raw), columns["tolerance"][..., 0].numpy()
    known = (lower == upper)[..., 0].numpy()
    density = mixture_of(objective, raw, eps=eps).log_prob(target[..., 0].numpy())
    ends = lower[..., 0].numpy(), np.where(known, np.inf, upper[..., 0].numpy())
    expected = np.where(known, density, mixture.log_interval_prob(*ends))
    np.testing.assert_allclose(-loss[..., 0].numpy(), expected, rtol=1e-9)
    assert torch.isfinite(grad).all()
    assert (grad != 0).any(-1).all()


def test_a_share_of_the_rows_that_are_no_padding():
    """Member by member the loss of the present rows alone, and its gradient."""
    raw, target, _ = make_batch()
    heads = Heads("identity", "softplus")
    present = torch.ones(3, 7, 1, dtype=torch.float64)
    present[1, 5:], present[2, 4:] = 0.0, 0.0
    columns = {"target": target, "log_weight": torch.zeros_like(target)}
    columns |= {"lower": torch.full_like(target, -0.5), "upper": torch.full_like(target, 0.5)}
    objective = ShareObjective(RuleLoss(heads, 1, "finite"), 0.75)
    weight = present / present.sum(1, keepdim=True)
    loss, grad, _ = objective(raw, columns, weight, raw[0, 0])
    for member, n in enumerate((7, 5, 4)):
        own = raw[member, :n].clone().requires_grad_()
        mean, variance = heads(own)
        rule = DatasetAgreementLoss(ShareWithin(0.5, share=0.75))
        expected = rule(mean[:, 0], target[member, :n, 0], variance[:, 0])
        torch.testing.assert_close((loss * weight)[member].sum(), expected.detach())
        torch.testing.assert_close(grad[member, :n], torch.autograd.grad(expected, own)[0])
        assert not grad[member, n:].any()
