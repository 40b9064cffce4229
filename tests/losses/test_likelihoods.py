"""The losses to compare with, against torch and SciPy."""

import pytest
import torch
from scipy import stats
from torch import nn
from torch.autograd import gradcheck

from accord.losses import BVMLoss, GaussianNLLLoss


def batch(n: int = 20):
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(3, n, generator=generator, dtype=torch.float64)
    return [x.requires_grad_() for x in (draws[0], draws[1], 0.1 + draws[2].square())]


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_gaussian_is_torchs_with_its_constant(reduction: str) -> None:
    mu, t, var = batch()
    torchs = nn.GaussianNLLLoss(full=True, reduction=reduction)(mu, t, var)
    torch.testing.assert_close(GaussianNLLLoss(reduction=reduction)(mu, t, var), torchs)
    noisy = GaussianNLLLoss(reduction=reduction)(mu, t, var, target_std=0.5)
    wider = nn.GaussianNLLLoss(full=True, reduction=reduction)(mu, t, var + 0.25)
    torch.testing.assert_close(noisy, wider)


def test_laplace_at_tolerance_0_has_the_given_variance() -> None:
    mu, t, var = batch()
    loss = BVMLoss(0.0, family="laplace", reduction="none")(mu, t, var)
    law = stats.laplace(mu.detach(), (var.detach() / 2).sqrt())
    torch.testing.assert_close(loss.detach(), -torch.tensor(law.logpdf(t.detach())))
    torch.testing.assert_close(torch.tensor(law.var()), var.detach())


def test_beta_goes_from_likelihood_to_squared_error() -> None:
    mu, t, var = batch()
    (by_mu,) = torch.autograd.grad(GaussianNLLLoss(beta=1.0)(mu, t, var), mu)
    (of_squares,) = torch.autograd.grad(0.5 * nn.MSELoss()(mu, t), mu)
    torch.testing.assert_close(by_mu, of_squares)
    noisy = GaussianNLLLoss(beta=0.5)(mu, t, var, target_std=0.5)
    torch.testing.assert_close(noisy, GaussianNLLLoss(beta=0.5)(mu, t, var + 0.25))


def test_gradients_and_vmap() -> None:
    loss = GaussianNLLLoss()
    mu, t, var = batch(6)
    assert gradcheck(loss, (mu, t, var))
    members = [x.detach().view(2, 3) for x in (mu, t, var)]
    expected = torch.stack([loss(*(x[i] for x in members)) for i in range(2)])
    torch.testing.assert_close(torch.func.vmap(loss)(*members), expected)
