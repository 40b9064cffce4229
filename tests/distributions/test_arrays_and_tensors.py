"""Numpy in, numpy out; tensors in, tensors out, with gradients."""

import numpy as np
import pytest
import torch
from distribution_cases import EVERY, FAMILIES, MEAN, SCALE, FamilyCase
from torch import Tensor

from accord.distributions import Distribution, Empirical, Mixture, Normal, Smoothed

families = pytest.mark.parametrize("family", FAMILIES, ids=str)
every = pytest.mark.parametrize("name", EVERY)
smooth = [family for family in FAMILIES if family.name != "uniform"]


def as_tensors(dist: Distribution, dtype: torch.dtype) -> Distribution:
    return dist._map(lambda tensor, _: tensor.to(dtype))._replace(_numpy=False)


@every
def test_tensors_answer_as_arrays_do(name: str) -> None:
    arrays = EVERY[name](0.0, 1.0)
    tensors = as_tensors(arrays, torch.float64)
    y = arrays.quantile(0.4)
    assert isinstance(y, np.ndarray)
    assert y.dtype == np.float64
    for method, arguments in (("cdf", (y,)), ("quantile", ([0.2, 0.7],)), ("interval", (0.5,))):
        answer = getattr(tensors, method)(*arguments)
        assert isinstance(answer, Tensor)
        assert answer.dtype == torch.float64
        expected = getattr(arrays, method)(*arguments)
        np.testing.assert_allclose(answer.numpy(), expected, rtol=1e-11, atol=1e-11)
    for moment in ("mean", "variance", "std", "aleatoric", "epistemic"):
        np.testing.assert_array_equal(getattr(tensors, moment).numpy(), getattr(arrays, moment))
    np.testing.assert_array_equal(
        tensors.sample(3, random_state=1).numpy(), arrays.sample(3, random_state=1)
    )


@every
def test_single_precision_loses_no_more_than_its_own_digits(name: str) -> None:
    single = as_tensors(EVERY[name](0.0, 1.0), torch.float32)
    double = as_tensors(single, torch.float64)
    levels = [1e-6, 0.3, 0.9]
    assert single.quantile(levels).dtype == torch.float32
    torch.testing.assert_close(
        single.quantile(levels).double(), double.quantile(levels), rtol=1e-6, atol=1e-6
    )
    y = double.quantile(0.4).float()
    torch.testing.assert_close(single.cdf(y).double(), double.cdf(y.double()), rtol=1e-6, atol=0)
    assert single.sample(2, random_state=0).dtype == torch.float32
    assert single.mean.dtype == torch.float32


def test_mixed_parameters_take_the_widest_kind() -> None:
    assert Normal(torch.zeros(2), torch.ones(2, dtype=torch.float64)).mean.dtype == torch.float64
    dist = Normal(torch.zeros(2), [1.0, 2.0])
    assert dist.mean.dtype == torch.float32
    assert isinstance(dist.log_prob(0.0), Tensor)
    assert isinstance(Normal(0, 1).log_prob(torch.tensor(0.0)), float)
    assert isinstance(Normal([0, 1], 1).log_prob(torch.zeros(2)), np.ndarray)


@pytest.mark.parametrize("family", smooth, ids=str)
@pytest.mark.parametrize("eps", [None, 0.7])
def test_gradients_of_the_density(family: FamilyCase, eps: float | None) -> None:
    def log_prob(mean: Tensor, scale: Tensor, y: Tensor, width: Tensor) -> Tensor:
        base = family.make(mean, scale)
        return (base if eps is None else Smoothed(base, width)).log_prob(y)

    mean, scale, y, width = (
        torch.tensor(x, dtype=torch.float64, requires_grad=True)
        for x in ([0.3, -1.0], [1.0, 2.0], [1.0, 3.0], [0.7, 1.5])
    )
    assert torch.autograd.gradcheck(log_prob, (mean, scale, y, width))


@pytest.mark.parametrize("family", smooth, ids=str)
@pytest.mark.parametrize("method", ["log_prob", "cdf", "quantile", "log_interval_prob"])
def test_gradients_through_a_mixture_of_smoothed(family: FamilyCase, method: str) -> None:
    def answer(mean: Tensor, scale: Tensor, width: Tensor) -> Tensor:
        mixture = Mixture(Smoothed(family.make(mean, scale), width), weights=[0.3, 0.7])
        arguments = {"quantile": (0.3,), "log_interval_prob": (0.2, 3.0)}
        result: Tensor = getattr(mixture, method)(*arguments.get(method, (0.4,)))
        return result

    mean, scale, width = (
        torch.tensor(x, dtype=torch.float64, requires_grad=True)
        for x in ([[0.3, -1.0], [2.0, 0.0]], [[1.0, 2.0], [0.5, 1.0]], [0.9, 1.6])
    )
    assert torch.autograd.gradcheck(answer, (mean, scale, width), eps=1e-5, atol=1e-5)


def test_gradients_are_finite_where_some_rows_have_no_tolerance() -> None:
    mean = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    eps = torch.tensor([0.0, 1e-300, 1.0], dtype=torch.float64, requires_grad=True)
    dist = Smoothed(Normal(mean, torch.ones(3, dtype=torch.float64)), eps)
    dist.log_prob(torch.tensor([0.5, 1e4, -3.0])).sum().backward()
    assert torch.isfinite(mean.grad).all()
    assert torch.isfinite(eps.grad).all()
    assert eps.grad[0] == 0


def test_draws_carry_gradients_to_location_and_scale() -> None:
    mean = torch.zeros(3, requires_grad=True)
    Normal(mean, torch.ones(3)).sample(10, random_state=0).sum().backward()
    assert (mean.grad == 10).all()


def test_weights_and_draws_may_be_tensors() -> None:
    weights = torch.tensor([0.2, 0.8], requires_grad=True)
    Mixture(Normal(torch.tensor([[0.0], [1.0]]), 1.0), weights).log_prob(0.3).sum().backward()
    assert torch.isfinite(weights.grad).all()
    assert isinstance(Empirical(torch.zeros(4, 2)).cdf(0.0), Tensor)


def test_weights_in_single_precision_still_sum_to_one() -> None:
    mixture = Mixture(Normal(torch.zeros(3, 2), torch.ones(3, 2)))
    assert mixture.weights.dtype == torch.float32
    np.testing.assert_allclose(mixture._exact()._log_tail(*torch.ones(2, 1, 2) * 60), 0, atol=1e-15)


def test_a_gradient_is_not_lost_in_silence() -> None:
    y = torch.tensor(MEAN, requires_grad=True)
    with pytest.raises(TypeError, match="value must not require a gradient where the Normal"):
        Normal(MEAN, SCALE).log_prob(y)
    with pytest.raises(TypeError, match="tolerance must not require a gradient"):
        Smoothed(Normal(MEAN, SCALE), y)
