"""The primitive and the losses against mpmath, over the whole range of distances and widths."""

from functools import cache

import numpy as np
import pytest
import torch
from interval_reference import (
    DIGITS,
    LAWS,
    Reference,
    collected,
    interval,
    points,
    reference_within,
)
from mpmath import mp, mpf

from accord._numerics import (
    LAPLACE,
    LOGISTIC,
    NORMAL,
    StandardFamily,
    agreement_loss,
    log_within,
    student_t,
)

FAMILIES: dict[str, StandardFamily] = {
    "normal": NORMAL,
    "laplace": LAPLACE,
    "logistic": LOGISTIC,
    **{name: student_t(float(name[10:-1])) for name in LAWS if name.startswith("student-t")},
}
N_POINTS = {
    name: 10_000 if name == "normal" else 600 if "student" in name else 3_000 for name in LAWS
}
VALUE_ERROR = {torch.float64: 1e-12, torch.float32: 2e-5}
SLOPE_ERROR = {torch.float64: 1e-8, torch.float32: 1e-4}
DTYPES = [torch.float64, torch.float32]


def as_tensor(x: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    return torch.tensor(x, dtype=dtype, requires_grad=True)


def assert_close(got: torch.Tensor, exact, scale: np.ndarray, limit: float, what: str) -> None:
    error = exact.error_of(got.detach().numpy(), scale, 4 * torch.finfo(got.dtype).tiny)
    worst = int(np.nanargmax(np.where(np.isnan(error), np.inf, error)))
    assert error[worst] <= limit, f"{what}: {error[worst]:.2e} at element {worst}"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", LAWS)
def test_log_within(name: str, dtype: torch.dtype) -> None:
    n = N_POINTS[name]
    exact = reference_within(name, n)
    z, h = (as_tensor(x, dtype) for x in points(n))
    value = log_within(FAMILIES[name], z, h)
    by_z, by_h = torch.autograd.grad(value.sum(), (z, h))
    assert_close(value, exact.value, exact.value.head, VALUE_ERROR[dtype], "value")
    assert_close(by_z, exact.dz, exact.dh.head, SLOPE_ERROR[dtype], "slope by z")
    assert_close(by_h, exact.dh, exact.dh.head, SLOPE_ERROR[dtype], "slope by h")


@pytest.mark.parametrize("name", LAWS)
def test_density_form(name: str) -> None:
    n = N_POINTS[name]
    exact = reference_within(name, n)
    z, h = (as_tensor(x, torch.float64) for x in points(n))
    value = log_within(FAMILIES[name], z, h, density=True)
    by_z, by_h = torch.autograd.grad(value.sum(), (z, h))
    size = np.maximum(np.abs(exact.density.head), 1.0)  # it passes through 0
    assert_close(value, exact.density, size, 1e-12, "value")
    assert_close(by_z, exact.dz, exact.dh.head, 1e-8, "slope by z")
    size = np.maximum(exact.dh.head, 1 / points(n)[1])
    assert_close(by_h, exact.density_dh, size, 1e-8, "slope by h")


@cache
def loss_points() -> tuple[np.ndarray, ...]:
    """Means, variances, targets and tolerances with z and h as in :func:`points`, in float32."""
    rng = np.random.default_rng(1)
    z, h = points(10_000)
    sigma = 10 ** rng.uniform(-3, 3, z.shape)
    mu = rng.normal(size=z.shape) * 10 ** rng.uniform(-3, 3, z.shape) * sigma
    columns = mu, sigma**2, mu + z * sigma, h * sigma
    return tuple(x.astype(np.float32).astype(np.float64) for x in columns)


@cache
def loss_reference() -> Reference:
    rows = []
    with mp.workdps(DIGITS):
        for mu, var, t, eps in zip(*loss_points(), strict=True):
            sigma = mp.sqrt(mpf(var))
            value, dz, dh, ds, terms, density, density_dh = interval(
                LAWS["normal"], (mpf(t) - mpf(mu)) / sigma, mpf(eps) / sigma
            )
            per_var = 1 / (2 * mpf(var))
            slopes = dz / sigma, dh / sigma, ds * per_var, terms * per_var
            rows.append((value, *slopes, density - mp.log(sigma), density_dh / sigma))
    return collected(rows)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_loss(dtype: torch.dtype) -> None:
    """Where t − μ all but equals ε, and both are 10,000 σ, the loss still has its digits."""
    exact = loss_reference()
    mu, var, t, eps = inputs = [as_tensor(x, dtype) for x in loss_points()]
    loss = agreement_loss(NORMAL, mu, var, t, eps, density=False)
    by_mu, by_var, by_t, by_eps = torch.autograd.grad(loss.sum(), inputs)
    assert_close(-loss, exact.value, exact.value.head, VALUE_ERROR[dtype], "loss")
    # f(a) itself underflows before it is scaled
    counts = exact.dh.head * np.sqrt(loss_points()[1]) > torch.finfo(dtype).tiny * 1e8
    terms, var_terms = exact.dh.head * counts, exact.terms.head * counts
    for got, want, size, what in (
        (by_mu, exact.dz, terms, "mu"),
        (-by_t, exact.dz, terms, "t"),
        (by_var, exact.ds, var_terms, "var"),
        (-by_eps, exact.dh, terms, "eps"),
    ):
        assert bool(got.isfinite().all()), f"by {what}"
        error = np.abs((got.numpy() - want.head) - want.rest)
        assert np.all(error[counts] <= SLOPE_ERROR[dtype] * size[counts]), f"by {what}"
