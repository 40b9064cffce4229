"""What must hold of the primitive besides its digits: derivatives, transforms, limits, extremes.

And of many: the number that hold, against every outcome counted, and in the tails.
"""

import itertools
import math

import pytest
import torch
from scipy import stats
from torch import Tensor
from torch.autograd import gradcheck

from accord._numerics import (
    LAPLACE,
    LOGISTIC,
    NORMAL,
    UNIFORM,
    StandardFamily,
    agreement_loss,
    agreement_slopes,
    interval,
    log_at_least,
    log_between,
    log_within,
    student_t,
)

SMOOTH = [NORMAL, LOGISTIC, student_t(3), student_t(4.5)]
FAMILIES = [*SMOOTH, LAPLACE]
INFINITY = math.inf

families = pytest.mark.parametrize("family", FAMILIES, ids=str)
P = torch.tensor([[0.9, 0.2, 0.55, 0.01, 0.999, 0.4], [0.5, 0.5, 0.1, 0.3, 0.7, 0.2]]).double()


def spread(n: int, low: float, high: float, *, seed: int, signed: bool = False) -> Tensor:
    """Numbers spread over powers of ten."""
    generator = torch.Generator().manual_seed(seed)
    size = 10 ** (low + (high - low) * torch.rand(n, generator=generator, dtype=torch.float64))
    sign = torch.randint(0, 2, (n,), generator=generator) * 2 - 1 if signed else 1
    return (size * sign).requires_grad_()


@families
@pytest.mark.parametrize("density", [False, True])
def test_gradients_of_log_within(family: StandardFamily, density: bool) -> None:
    z, h = spread(30, -2, 2, seed=0, signed=True), spread(30, -2.5, 1.2, seed=1)
    assert gradcheck(lambda z, h: log_within(family, z, h, density=density), (z, h), rtol=1e-4)


@families
def test_gradients_of_log_between(family: StandardFamily) -> None:
    a, width = spread(30, -2, 1.5, seed=2, signed=True), spread(30, -2, 1.5, seed=3)
    assert gradcheck(lambda a, w: log_between(family, a, a + w), (a, width), rtol=1e-4)
    assert gradcheck(family.log_cdf, (a,), rtol=1e-4)
    assert gradcheck(family.log_sf, (a,), rtol=1e-4)


@families
@pytest.mark.parametrize("density", [False, True])
def test_gradients_of_the_loss(family: StandardFamily, density: bool) -> None:
    mu, t = spread(25, -2, 1, seed=4, signed=True), spread(25, -2, 1, seed=5, signed=True)
    var, eps = spread(25, -1, 1, seed=6), spread(25, -2, 1, seed=7)

    def loss(mu: Tensor, var: Tensor, t: Tensor, eps: Tensor) -> Tensor:
        return agreement_loss(family, mu, var, t, eps, density=density)

    assert gradcheck(loss, (mu, var, t, eps), rtol=1e-4)


@families
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_slopes_are_the_gradients(family: StandardFamily, dtype: torch.dtype) -> None:
    mu, t = (spread(500, -2, 1, seed=s, signed=True).detach().to(dtype) for s in (4, 5))
    var, eps = (spread(500, -2, 2, seed=s).detach().to(dtype) for s in (6, 7))
    inputs = [x.requires_grad_() for x in (mu, var, eps)]
    loss = agreement_loss(family, mu, var, t, eps, density=True)
    grads = torch.autograd.grad(loss.sum(), inputs)
    slopes = agreement_slopes(family, mu, var, t, eps, density=True, by_eps=True)
    assert torch.equal(slopes.loss, loss)
    for got, want in zip((slopes.mu, slopes.var, slopes.eps), grads, strict=True):
        assert torch.equal(got, want)
    assert agreement_slopes(family, mu, var, t, eps, density=True).eps is None


@families
def test_three_parametrisations_are_one(family: StandardFamily) -> None:
    mu, t = spread(200, -2, 1, seed=8, signed=True), spread(200, -2, 1, seed=9, signed=True)
    var, eps = spread(200, -1, 1, seed=10), spread(200, -1, 1, seed=11)
    sigma = (var / family.variance).sqrt()
    loss = agreement_loss(family, mu, var, t, eps, density=False)
    within = log_within(family, (t - mu) / sigma, eps / sigma)
    between = log_between(family, (t - eps - mu) / sigma, (t + eps - mu) / sigma)
    torch.testing.assert_close(-loss, within, rtol=1e-11, atol=0)
    torch.testing.assert_close(within, between, rtol=1e-10, atol=0)
    log_p = -agreement_loss(family, mu, var, t, eps, density=False)
    torch.testing.assert_close(log_p, -loss, rtol=0, atol=0)


@families
def test_symmetry(family: StandardFamily) -> None:
    z, h = spread(300, -8, 4, seed=12), spread(300, -10, 6, seed=13)
    there, back = z.detach().requires_grad_(), (-z).detach().requires_grad_()
    values = [log_within(family, x, h) for x in (there, back)]
    torch.testing.assert_close(*values, rtol=1e-14, atol=0)
    slopes = [
        torch.autograd.grad(v.sum(), x)[0] for v, x in zip(values, (there, back), strict=True)
    ]
    torch.testing.assert_close(slopes[0], -slopes[1], rtol=1e-12, atol=1e-300)


@families
def test_no_width_is_the_density(family: StandardFamily) -> None:
    z = spread(200, -8, 2, seed=14, signed=True).detach()
    torch.testing.assert_close(
        log_within(family, z, torch.zeros_like(z), density=True), family.log_pdf(z)
    )
    nothing = log_within(family, z, torch.zeros_like(z))
    assert bool((nothing == -INFINITY).all())
    mu = torch.zeros_like(z)
    exact = agreement_loss(family, mu, mu + family.variance, z, mu, density=False)
    torch.testing.assert_close(-exact, family.log_pdf(z), rtol=1e-13, atol=1e-15)


@families
def test_density_form_is_continuous_at_no_width(family: StandardFamily) -> None:
    z = torch.tensor([0.3, -1.0, 4.0], dtype=torch.float64)
    limit = family.log_pdf(z)
    for h in (1e-3, 1e-6, 1e-12, 1e-30, 1e-300, 5e-324):
        value = log_within(family, z, torch.full_like(z, h), density=True)
        torch.testing.assert_close(value, limit, rtol=0, atol=max(10 * h * h, 4e-15))


@families
def test_infinite_bounds(family: StandardFamily) -> None:
    ends = torch.tensor(
        [[-INFINITY, INFINITY], [0.0, INFINITY], [-INFINITY, 0.0], [-INFINITY, 3.0], [5.0, 5.0]],
        dtype=torch.float64,
        requires_grad=True,
    )
    value = log_between(family, ends[:, 0], ends[:, 1])
    expected = [0.0, -math.log(2), -math.log(2), family.log_cdf(torch.tensor(3.0).double()).item()]
    torch.testing.assert_close(value[:4].tolist(), expected, rtol=1e-14, atol=0)
    assert value[4] == -INFINITY
    (grad,) = torch.autograd.grad(value[:4].sum(), ends)
    assert bool(grad[:4].isfinite().all())
    assert torch.equal(grad[:3][ends[:3].isinf()], torch.zeros(4, dtype=torch.float64))


def test_complements_add_to_one() -> None:
    x = torch.linspace(-30, 30, 241, dtype=torch.float64)
    for family in FAMILIES:
        total = torch.logaddexp(family.log_cdf(x), family.log_sf(x))
        torch.testing.assert_close(total, torch.zeros_like(x), rtol=0, atol=1e-15)


@families
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("density", [False, True])
def test_extremes_are_never_nan(family: StandardFamily, dtype: torch.dtype, density: bool) -> None:
    """All of the largest, smallest and ordinary numbers together: nothing is undefined."""
    info = torch.finfo(dtype)
    numbers = [0.0, info.tiny, 1e-30, 1e-6, 1.0, 40.0, 1e4, 1e19, 1e30, info.max / 2]
    sizes = torch.tensor(numbers, dtype=dtype)
    places, spreads, widths = torch.cat([-sizes.flip(0), sizes]), sizes[1:], sizes
    mu, var, t, eps = (
        x.reshape(-1).requires_grad_()
        for x in torch.meshgrid(places, spreads, places, widths, indexing="ij")
    )
    loss = agreement_loss(family, mu, var, t, eps, density=density)
    grads = torch.autograd.grad(loss.sum(), (mu, var, t, eps))
    assert not bool(loss.isnan().any())
    for grad, name in zip(grads, ("mu", "var", "t", "eps"), strict=True):
        assert not bool(grad.isnan().any()), name
    ordinary = ((t - mu).abs() <= 1e3 * var.sqrt()) & (eps > 0) & (var > 1e-8) & (var < 1e8)
    assert bool(loss[ordinary].isfinite().all())


def test_uniform_family() -> None:
    a = torch.tensor([-2.0, -0.5, 0.5, 1.5, -3.0], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([2.0, 0.5, 4.0, 2.0, -0.5], dtype=torch.float64, requires_grad=True)
    value = log_between(UNIFORM, a, b)
    expected = torch.tensor([1.0, 0.5, 0.25, 0.0, 0.25], dtype=torch.float64)
    torch.testing.assert_close(value.exp(), expected)
    by_a, by_b = torch.autograd.grad(value[[0, 1, 2, 4]].sum(), (a, b))
    assert by_a.tolist() == [0.0, -1.0, -2.0, 0.0, 0.0]
    assert by_b.tolist() == [0.0, 1.0, 0.0, 0.0, 2.0]
    z, h = torch.tensor([0.2, 0.9, 3.0]), torch.tensor([0.1, 0.3, 0.5])
    density = log_within(UNIFORM, z, h, density=True).exp()
    torch.testing.assert_close(density, torch.tensor([0.5, 0.5 * 0.4 / 0.6, 0.0]))


@families
def test_vmap_adds_an_axis(family: StandardFamily) -> None:
    z, h = spread(24, -1, 1, seed=15, signed=True).view(4, 6), spread(24, -1, 1, seed=16).view(4, 6)
    expected = log_within(family, z, h)
    assert torch.equal(torch.func.vmap(lambda z, h: log_within(family, z, h))(z, h), expected)
    columns = torch.func.vmap(lambda z, h: log_within(family, z, h), in_dims=(1, 1), out_dims=1)
    assert torch.equal(columns(z, h), expected)
    one_width = torch.func.vmap(lambda z: log_within(family, z, h[0]))(z)
    assert torch.equal(one_width, log_within(family, z, h[0].expand_as(z)))
    scalars = torch.func.vmap(torch.func.vmap(lambda z, h: log_within(family, z, h)))(z, h)
    assert torch.equal(scalars, expected)


@families
def test_gradients_under_vmap(family: StandardFamily) -> None:
    inputs = [spread(12, -1, 1, seed=s).view(3, 4).detach() for s in (17, 18, 19, 20)]

    def loss(*rows: Tensor) -> Tensor:
        return agreement_loss(family, *rows, density=True).sum()

    leaves = [x.clone().requires_grad_() for x in inputs]
    expected = torch.autograd.grad(loss(*leaves), leaves)
    every = (0, 1, 2, 3)
    inside = torch.func.vmap(torch.func.grad(loss, argnums=every))(*inputs)
    outside = torch.func.grad(lambda *x: torch.func.vmap(loss)(*x).sum(), argnums=every)(*inputs)
    for got, other, want in zip(inside, outside, expected, strict=True):
        assert torch.equal(got, want)
        assert torch.equal(other, want)


def test_parameters_of_the_outer_graph_get_gradients_under_vmap() -> None:
    z, log_h = torch.randn(5, 3, dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    log_h.requires_grad_()
    value = torch.func.vmap(lambda z: log_within(NORMAL, z, log_h.exp()).sum())(z).sum()
    (got,) = torch.autograd.grad(value, log_h)
    (want,) = torch.autograd.grad(log_within(NORMAL, z, log_h.exp()).sum(), log_h)
    torch.testing.assert_close(got, want)


def test_second_derivatives_are_refused() -> None:
    z = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
    h = torch.ones_like(z)
    (slope,) = torch.autograd.grad(log_within(NORMAL, z, h).sum(), z, create_graph=True)
    with pytest.raises(NotImplementedError, match="can be differentiated once"):
        slope.sum().backward()


def test_first_derivatives_survive_create_graph() -> None:
    """A gradient of the output's weight is fine: it does not pass through the slopes."""
    z, weight = torch.tensor([0.5], requires_grad=True), torch.ones(1, requires_grad=True)
    (slope,) = torch.autograd.grad(
        (weight * log_within(NORMAL, z, torch.ones(1))).sum(), z, create_graph=True
    )
    (by_weight,) = torch.autograd.grad(slope.sum(), weight)
    torch.testing.assert_close(by_weight, slope.detach())


@families
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_blocks_do_not_show(
    family: StandardFamily, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    mu, t = (spread(1000, -2, 2, seed=s, signed=True).detach().to(dtype) for s in (21, 22))
    var, eps = (spread(1000, -2, 2, seed=s).detach().to(dtype) for s in (23, 24))
    tolerance = torch.tensor(0.3, dtype=dtype)
    whole = agreement_slopes(family, mu, var, t, eps, density=True)
    constant = agreement_slopes(family, mu, var, t, tolerance, density=False)
    monkeypatch.setattr(interval, "BLOCK", 64)
    parts = agreement_slopes(family, mu, var, t, eps, density=True)
    rows = agreement_slopes(family, mu, var, t, tolerance.expand_as(t).clone(), density=False)
    # in float32 another quadrature may serve another block; slopes are by σ as unit of length
    rtol, atol = (1e-12, 1e-15) if dtype == torch.float64 else (6e-5, 1e-5)
    units = torch.ones_like(var), var.sqrt(), var
    for some, others in ((parts, whole), (rows, constant)):
        for got, want, unit in zip(some[:3], others[:3], units, strict=True):
            torch.testing.assert_close(got * unit, want * unit, rtol=rtol, atol=atol)


def test_half_precision_and_odd_layouts() -> None:
    z = torch.linspace(-3, 3, 12).view(3, 4)
    expected = log_within(NORMAL, z, torch.ones(()))
    assert torch.equal(log_within(NORMAL, z.t(), torch.ones(())).t(), expected)
    half = log_within(NORMAL, z.bfloat16(), torch.ones((), dtype=torch.bfloat16))
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), expected, rtol=2e-2, atol=2e-2)
    assert log_within(NORMAL, torch.empty(0), torch.empty(0)).shape == (0,)


def test_without_float64_the_loss_still_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices such as Apple's have no float64; the kernels then run in float32."""
    z, h = (spread(2000, low, high, seed=25).detach().float() for low, high in ((-4, 1.3), (-3, 1)))
    expected = log_within(NORMAL, z.double(), h.double())
    monkeypatch.setattr("accord._numerics.interval._working", lambda _: torch.float32)
    value = log_within(NORMAL, z, h).double()
    assert not bool(value.isnan().any())
    certain = expected > -1e-30
    torch.testing.assert_close(value[~certain], expected[~certain], rtol=1e-4, atol=1e-30)
    mu, var = torch.zeros_like(z), torch.ones_like(z)
    loss = agreement_loss(NORMAL, mu, var, z, h, density=False).double()
    torch.testing.assert_close(-loss[~certain], expected[~certain], rtol=1e-4, atol=1e-30)


@pytest.mark.parametrize("shape", [(2, 100, 1), (3, 6000, 2)])
@pytest.mark.parametrize("widths", [(-3, -2), (-3, 1), (0, 1)], ids=["thin", "mixed", "thick"])
def test_slopes_do_not_depend_on_the_shape(shape: tuple[int, ...], widths: tuple[int, int]) -> None:
    """Few or many elements, of any shape, far ones among them."""
    n = math.prod(shape)
    mu, t = (spread(n, -2, 1, seed=s, signed=True).detach().float() for s in (31, 32))
    var, eps = spread(n, -2, 0, seed=33).detach().float(), spread(n, *widths, seed=34).detach()
    rows = [mu, var, t, eps.float()]
    flat = agreement_slopes(NORMAL, *rows, density=True, by_eps=True)
    shaped = agreement_slopes(NORMAL, *(x.view(shape) for x in rows), density=True, by_eps=True)
    exact = agreement_slopes(NORMAL, *(x.double() for x in rows), density=True, by_eps=True)
    units = torch.ones(n), var.sqrt(), var, eps.float()
    for got, same, want, unit in zip(shaped, flat, exact, units, strict=True):
        assert got.shape == shape
        torch.testing.assert_close(got.reshape(-1), same)
        torch.testing.assert_close(same.double() * unit, want * unit, rtol=2e-4, atol=2e-5)


def counted(p: list[float], failures: int) -> float:
    """The probabilities of all 2ᴺ outcomes with few enough failures, added up."""
    outcomes = itertools.product((True, False), repeat=len(p))
    return sum(
        math.prod(q if held else 1 - q for q, held in zip(p, outcome, strict=True))
        for outcome in outcomes
        if outcome.count(False) <= failures
    )


@pytest.mark.parametrize("failures", range(7))
def test_is_the_sum_over_all_outcomes(failures: int) -> None:
    found = log_at_least(P.log(), failures).exp()
    expected = [counted(row, failures) for row in P.tolist()]
    torch.testing.assert_close(
        found, torch.tensor(expected, dtype=torch.float64), rtol=1e-11, atol=0
    )


def test_is_binomial_for_equal_chances() -> None:
    for least in range(1, 8):
        found = log_at_least(torch.full((7,), math.log(0.3), dtype=torch.float64), 7 - least).exp()
        assert float(found) == pytest.approx(stats.binom.sf(least - 1, 7, 0.3), rel=1e-12)


def test_keeps_its_digits_where_the_probability_has_none() -> None:
    """1,000 rows of e⁻⁵⁰ each, of which one may fail: (1 + 1000 (e⁵⁰ − 1)) e⁻⁵⁰⁰⁰⁰."""
    found = log_at_least(torch.full((1000,), -50.0).double(), 1)
    assert float(found) == pytest.approx(-50_000 + math.log(1000) + 50, rel=1e-14)


def test_each_row_may_have_its_own_number_of_failures() -> None:
    found = log_at_least(P.log(), torch.tensor([1, 4]))
    expected = [counted(row, k) for row, k in zip(P.tolist(), (1, 4), strict=True)]
    torch.testing.assert_close(
        found.exp(), torch.tensor(expected, dtype=torch.float64), rtol=1e-11, atol=0
    )


def test_gradients() -> None:
    log_p = P.log().requires_grad_()
    assert gradcheck(lambda x: log_at_least(x, 2), (log_p,))


def test_the_impossible_has_no_gradient_and_no_nan() -> None:
    log_p = torch.tensor([-torch.inf, -torch.inf, -0.1]).double().requires_grad_()
    found = log_at_least(log_p, 1)
    (grad,) = torch.autograd.grad(found, log_p)
    assert found.item() == -torch.inf
    assert not grad.any()


def test_a_row_that_is_certain_changes_nothing() -> None:
    log_p = torch.cat([P[0].log(), torch.zeros(1).double()]).requires_grad_()
    found = log_at_least(log_p, 2)
    (grad,) = torch.autograd.grad(found, log_p)
    torch.testing.assert_close(found, log_at_least(P[0].log(), 2), rtol=1e-11, atol=1e-11)
    assert grad.isfinite().all()
