"""The loss of the ε-BVM: what it is, its limits, and what it is trained with."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch import Tensor, nn
from torch.autograd import gradcheck

from accord.agreement import Within
from accord.losses import AgreementLoss, BVMLoss, GaussianNLLLoss, bvm_loss

LAWS = {
    "normal": lambda mu, var: stats.norm(mu, math.sqrt(var)),
    "laplace": lambda mu, var: stats.laplace(mu, math.sqrt(var / 2)),
    "logistic": lambda mu, var: stats.logistic(mu, math.sqrt(3 * var) / math.pi),
    "student-t": lambda mu, var: stats.t(5, mu, math.sqrt(var * 3 / 5)),
}
OPTIONS = {name: {"family": name, "df": 5.0 if name == "student-t" else None} for name in LAWS}
families = pytest.mark.parametrize("name", LAWS)


def batch(n: int = 40, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    """input, target, var."""
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(3, n, generator=generator, dtype=dtype)
    return draws[0], draws[1], 0.1 + draws[2].square()


@families
def test_is_the_probability_of_the_interval(name: str) -> None:
    mu, t, var = batch(8)
    loss = BVMLoss(0.7, **OPTIONS[name], reduction="none")(mu, t, var)
    for i in range(8):
        law = LAWS[name](mu[i].item(), var[i].item())
        low, peak, high = t[i].item() - 0.7, mu[i].item(), t[i].item() + 0.7
        p, _ = integrate.quad(law.pdf, low, high, epsabs=1e-13, points=[min(max(low, peak), high)])
        assert loss[i].item() == pytest.approx(-math.log(p), rel=1e-9)


@families
def test_density_form_adds_the_width(name: str) -> None:
    mu, t, var = batch()
    eps = torch.linspace(0.01, 3, 40, dtype=torch.float64)
    plain = BVMLoss(eps, **OPTIONS[name], reduction="none")(mu, t, var)
    density = BVMLoss(eps, **OPTIONS[name], density=True, reduction="none")(mu, t, var)
    torch.testing.assert_close(density, plain + torch.log(2 * eps), rtol=1e-14, atol=1e-14)


@families
@pytest.mark.parametrize("density", [False, True])
def test_no_tolerance_is_the_likelihood(name: str, density: bool) -> None:
    mu, t, var = batch()
    loss = BVMLoss(0.0, **OPTIONS[name], density=density, reduction="none")(mu, t, var)
    expected = [-LAWS[name](m, v).logpdf(x) for m, v, x in zip(mu, var, t, strict=True)]
    torch.testing.assert_close(loss, torch.tensor(expected), rtol=1e-13, atol=1e-13)


def test_rows_without_tolerance_among_others_are_the_likelihood() -> None:
    for dtype in (torch.float32, torch.float64):
        mu, t, var = batch(6, dtype)
        eps = torch.tensor([0.0, 0.5, 0.0, 2.0, 0.0, 30.0], dtype=dtype)
        nll = GaussianNLLLoss(reduction="none")(mu, t, var)
        for density in (False, True):
            loss = BVMLoss(eps, density=density, reduction="none")(mu, t, var)
            torch.testing.assert_close(loss[eps == 0], nll[eps == 0])
            assert not bool((loss[eps > 0] == nll[eps > 0]).any())


def test_likelihood_is_its_limit() -> None:
    mu, t, var = batch()
    torch.testing.assert_close(BVMLoss(0.0)(mu, t, var), nn.GaussianNLLLoss(full=True)(mu, t, var))


def test_the_papers_expansion_to_its_order() -> None:
    """NLL − ε²/6 [(t − μ)²/σ⁴ − 1/σ²] leaves an error of fourth order."""
    mu, t, var = batch()
    nll = GaussianNLLLoss(reduction="none")(mu, t, var)
    curvature = (t - mu).square() / var.square() - 1 / var

    def error(eps: float) -> Tensor:
        loss = BVMLoss(eps, density=True, reduction="none")(mu, t, var)
        return (loss - (nll - eps**2 / 6 * curvature)).abs().max()

    assert error(1e-2) < 2e-4
    assert (error(1e-2) / error(5e-3)).item() == pytest.approx(16, rel=0.05)


@pytest.mark.parametrize("eps", [1e-2, 1e-5, 1e-9, 1e-20, 1e-300])
def test_is_continuous_at_no_tolerance(eps: float) -> None:
    mu, t, var = (x.requires_grad_() for x in batch())
    near, limit = (BVMLoss(e, density=True)(mu, t, var) for e in (eps, 0.0))
    torch.testing.assert_close(near, limit, rtol=0, atol=max(20 * eps**2, 1e-14))
    slopes = [torch.autograd.grad(loss, (mu, var), retain_graph=True) for loss in (near, limit)]
    for got, want in zip(*slopes, strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=max(100 * eps**2, 1e-13))


@pytest.mark.parametrize("scale", [1e-3, 7.0])
def test_unit_of_the_target_does_not_matter(scale: float) -> None:
    mu, t, var = batch()
    loss = BVMLoss(0.5, reduction="none")(mu, t, var)
    scaled = BVMLoss(0.5 * scale, reduction="none", eps=0)(scale * mu, scale * t, scale**2 * var)
    torch.testing.assert_close(scaled, loss, rtol=1e-11, atol=0)
    shifted = BVMLoss(0.5, reduction="none")(mu + 3, t + 3, var)
    torch.testing.assert_close(shifted, loss, rtol=1e-11, atol=0)


def test_measurement_error_broadens_the_model() -> None:
    """∫ P(|ŷ − y| ≤ ε) N(y; t, s²) dy by Gauss and Hermite."""
    mu, t, var = batch(10)
    var = 1 + var
    std = torch.linspace(0, 1.5, 10, dtype=torch.float64)
    nodes, weights = (torch.tensor(x) for x in np.polynomial.hermite.hermgauss(60))
    targets = t + math.sqrt(2) * std * nodes[:, None]
    p = torch.exp(-bvm_loss(mu, var, targets, 0.4))
    expected = -torch.log((weights[:, None] * p).sum(0) / math.sqrt(math.pi))
    loss = BVMLoss(0.4, reduction="none")(mu, t, var, target_std=std)
    torch.testing.assert_close(loss, expected, rtol=1e-7, atol=0)


def test_tolerance_of_a_call_comes_first() -> None:
    mu, t, var = batch()
    rows = torch.rand(40, dtype=torch.float64)
    loss = BVMLoss(5.0, reduction="none")
    torch.testing.assert_close(
        loss(mu, t, var, tolerance=rows), BVMLoss(rows, reduction="none")(mu, t, var)
    )
    torch.testing.assert_close(
        loss(mu, t, var, tolerance=0.1), BVMLoss(0.1, reduction="none")(mu, t, var)
    )


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_reductions_are_torchs(reduction: str) -> None:
    mu, t, var = batch()
    torchs = nn.GaussianNLLLoss(full=True, reduction=reduction)(mu, t, var)
    torch.testing.assert_close(BVMLoss(0.0, reduction=reduction)(mu, t, var), torchs)


@families
@pytest.mark.parametrize("density", [False, True])
def test_gradients(name: str, density: bool) -> None:
    mu, t, var = (x.requires_grad_() for x in batch(12))
    eps = torch.linspace(0.01, 2, 12, dtype=torch.float64, requires_grad=True)
    std = torch.linspace(0.1, 1, 12, dtype=torch.float64, requires_grad=True)
    loss = BVMLoss(1.0, **OPTIONS[name], density=density)
    noise = {"target_std": std} if name == "normal" else {}
    assert gradcheck(
        lambda mu, t, var, eps, std: loss(mu, t, var, tolerance=eps, **noise) + 0 * std.sum(),
        (mu, t, var, eps, std),
        rtol=1e-4,
    )


def test_single_precision_is_close_to_double() -> None:
    mu, t, var = batch(2000)
    for eps in (0.0, 1e-3, 0.1, 1.0, 4.0, 100.0):
        for density in (False, True):
            loss = BVMLoss(eps, density=density, reduction="none")
            single = loss(mu.float(), t.float(), var.float())
            assert single.dtype == torch.float32
            expected = loss(mu.float().double(), t.float().double(), var.float().double())
            torch.testing.assert_close(single.double(), expected, rtol=2e-5, atol=1e-6)


def test_mixed_precision_is_promoted_as_torch_does() -> None:
    mu, t, var = batch(5)
    loss = BVMLoss(0.3)(mu.float(), t, var)
    assert loss.dtype == torch.float64


@families
def test_members_under_vmap(name: str) -> None:
    mu, t, var = batch(12)
    loss = BVMLoss(0.3, **OPTIONS[name])
    members = [x.view(3, 4) for x in (mu, t, var)]
    got = torch.func.vmap(loss)(*members)
    expected = torch.stack([loss(*(x[i] for x in members)) for i in range(3)])
    torch.testing.assert_close(got, expected)
    grads = torch.func.vmap(torch.func.grad(loss, argnums=(0, 2)))(*members)
    leaves = [x.clone().requires_grad_() for x in members]
    total = sum(loss(*(x[i] for x in leaves)) for i in range(3))
    wanted = torch.autograd.grad(total, (leaves[0], leaves[2]))
    for grad, want in zip(grads, wanted, strict=True):
        torch.testing.assert_close(grad, want)


def test_small_variances_count_as_the_floor_but_can_grow() -> None:
    mu, t = torch.zeros(2), torch.ones(2)
    var = torch.tensor([0.0, 1e-4], requires_grad=True)
    loss = BVMLoss(0.1, eps=1e-4, reduction="none")(mu, t, var)
    torch.testing.assert_close(loss[0], loss[1])
    (grad,) = torch.autograd.grad(loss.sum(), var)
    torch.testing.assert_close(grad[0], grad[1])
    assert grad[0] < 0  # the loss asks for more variance


def test_one_variance_for_all() -> None:
    mu, t, _ = batch()
    expected = BVMLoss(0.2)(mu, t, torch.full_like(mu, 2.0))
    torch.testing.assert_close(BVMLoss(0.2)(mu, t, 2.0), expected)
    rows = BVMLoss(0.2)(mu.view(8, 5), t.view(8, 5), torch.full((1, 5), 2.0, dtype=mu.dtype))
    torch.testing.assert_close(rows, expected)


def test_learnt_tolerance_finds_the_box_in_the_data() -> None:
    """Targets uniform around a known mean: the best smoothed density is the box itself."""
    t = torch.empty(4000, dtype=torch.float64).uniform_(
        -1, 1, generator=torch.Generator().manual_seed(1)
    )
    loss = BVMLoss(0.7, density=True, learn_tolerance=True).double()
    log_var = torch.tensor(-2.0, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([log_var, *loss.parameters()], lr=0.05)
    for _ in range(300):
        optimizer.zero_grad()
        loss(torch.zeros_like(t), t, log_var.exp()).backward()
        optimizer.step()
    assert float(loss.tolerance.detach()) == pytest.approx(1.0, abs=0.03)
    assert log_var.exp().item() < 0.01


def test_tolerance_lives_in_the_module() -> None:
    rows = BVMLoss(torch.tensor([0.1, 0.2]))
    assert rows.double().tolerance.dtype == torch.float64
    assert list(rows.state_dict()) == ["fixed_tolerance"]
    assert list(BVMLoss(0.1).state_dict()) == []
    learnt = BVMLoss(0.5, density=True, learn_tolerance=True)
    assert list(learnt.state_dict()) == ["log_tolerance"]
    assert float(learnt.tolerance.detach()) == pytest.approx(0.5)
    assert (
        repr(BVMLoss(0.5))
        == "BVMLoss(tolerance=0.5, family=normal, density=False, reduction='mean')"
    )


def test_trains_a_network_in_a_plain_loop() -> None:
    """In place of GaussianNLLLoss, with nothing else changed."""
    torch.manual_seed(0)
    x = torch.linspace(-2, 2, 256).unsqueeze(1)
    y = torch.sin(2 * x) + 0.2 * torch.randn_like(x)
    net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 2))
    loss_function = BVMLoss(tolerance=0.1, density=True)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(400):
        mean, raw = net(x).split(1, dim=1)
        loss = loss_function(mean, y, nn.functional.softplus(raw))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    mean, raw = net(x).split(1, dim=1)
    assert (mean - torch.sin(2 * x)).abs().mean() < 0.08
    total_std = (nn.functional.softplus(raw) + 0.1**2 / 3).sqrt().mean()
    assert float(total_std.detach()) == pytest.approx(0.2, abs=0.03)


def test_is_the_agreement_loss_of_its_rule() -> None:
    mu, t, var = batch()
    torch.testing.assert_close(AgreementLoss(Within(0.3))(mu, t, var), BVMLoss(0.3)(mu, t, var))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("tolerance", [0.0, 0.1, 30.0])
@pytest.mark.parametrize("density", [False, True])
def test_what_is_not_a_number_stays_by_itself(
    dtype: torch.dtype, tolerance: float, density: bool
) -> None:
    mu, t, var = batch(6, dtype)
    loss = BVMLoss(tolerance, density=density, reduction="none")
    expected = loss(mu, t, var)
    spoilt = mu.clone()
    spoilt[2] = math.nan
    got = loss(spoilt, t, var)
    assert got.isnan().tolist() == [False, False, True, False, False, False]
    torch.testing.assert_close(got[~got.isnan()], expected[~got.isnan()], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("tolerance", [0.01, 0.26, 3.0])
def test_float32_slopes_stay_finite_from_bound_to_bound(tolerance: float) -> None:
    """Across the place where probabilities leave the range of float32, also for small scales."""
    t = torch.zeros(20_001)
    mu = torch.linspace(-1.2 * tolerance, 1.2 * tolerance, 20_001).requires_grad_()
    for var in (1e-12, 1.8e-6, 1e-3):
        single = torch.full_like(t, var).requires_grad_()
        BVMLoss(tolerance, reduction="sum")(mu, t, single).backward()
        double_mu = mu.detach().double().requires_grad_()
        double = single.detach().double().requires_grad_()
        BVMLoss(tolerance, reduction="sum")(double_mu, t.double(), double).backward()
        for got, want in ((mu.grad, double_mu.grad), (single.grad, double.grad)):
            torch.testing.assert_close(got.double(), want, rtol=2e-3, atol=1e-3 * want.abs().max())
        mu.grad = None


def test_mean_of_many_rows_does_not_overflow_in_float16() -> None:
    mu = torch.full((30_000,), 3.0, dtype=torch.float16)
    loss = BVMLoss(0.5)(mu, torch.zeros_like(mu), torch.ones_like(mu))
    assert loss.dtype == torch.float16
    expected = BVMLoss(0.5)(mu.double(), torch.zeros(30_000).double(), torch.ones(30_000).double())
    assert loss.item() == pytest.approx(expected.item(), rel=2e-3)


@pytest.mark.parametrize("density", [True, False])
def test_stated_error_of_the_derivative_by_the_mean_in_float32(density: bool) -> None:
    generator = torch.Generator().manual_seed(0)

    def spread(low: float, high: float) -> torch.Tensor:
        return 10 ** (low + (high - low) * torch.rand(100_000, generator=generator))

    sigma, tolerance, mu = spread(-3, 3), spread(-6, 3), spread(-6, 4)
    slopes = []
    for dtype in (torch.float32, torch.float64):
        mean = mu.to(dtype, copy=True).requires_grad_()
        loss = BVMLoss(tolerance, density=density, eps=0.0, reduction="sum")
        loss(mean, torch.zeros_like(mean), sigma.square().to(dtype)).backward()
        slopes.append(mean.grad.double() * sigma)
    single, double = slopes
    assert ((single - double).abs() <= 2e-6 + 1e-4 * double.abs()).all()
