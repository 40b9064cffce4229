"""The loss of a joint rule: the same numbers as `probability_of_agreement`, and its gradients."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from accord import AllWithin, AtLeast, EachOutput, JointAgreementLoss, NormWithin, Within
from accord.agreement import ErrorInside, JointRule, probability_of_agreement
from accord.distributions import MultivariateNormal


def rows(d: int, n: int = 5) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(d)
    mean, away = (torch.randn(n, d, generator=generator, dtype=torch.float64) for _ in "ab")
    factor = torch.randn(n, d, d, generator=generator, dtype=torch.float64).tril()
    factor.diagonal(dim1=-2, dim2=-1).abs_().add_(0.3)
    return mean, mean + (factor @ away[..., None])[..., 0], factor


@pytest.mark.parametrize("d", [2, 3, 4, 6])
@pytest.mark.parametrize(
    "rule",
    [
        AllWithin(0.7),
        NormWithin(0.9),
        AllWithin(0.7) & NormWithin(0.9),
        AllWithin(0.3) | NormWithin(0.9),
        ~AllWithin(0.7),
    ],
    ids=str,
)
def test_it_is_the_probability_of_agreement_within_its_stated_error(
    rule: JointRule, d: int
) -> None:
    mean, target, factor = rows(d)
    loss = JointAgreementLoss(rule, reduction="none")
    found = loss(mean, target, factor)
    model = MultivariateNormal(mean.numpy(), factor.numpy())
    expected = probability_of_agreement(model, target, rule, random_state=0, n_samples=2**16)
    room = 3 * loss.error + 4 * expected.standard_error / expected.probability
    assert loss.error < (0.3 if d > 5 else 0.01)
    np.testing.assert_array_less(np.abs(found.numpy() + expected.log_probability), room + 1e-9)


def test_its_gradient_is_that_of_an_independent_integral() -> None:
    """Differences of scipy's bivariate normal probability."""
    mean, target, factor = rows(2, n=1)
    mean = mean.clone().requires_grad_()
    JointAgreementLoss(AllWithin([0.5, 0.9]))(mean, target, factor).backward()
    covariance, eps = (factor[0] @ factor[0].T).numpy(), np.array([0.5, 0.9])

    def reference(shift: np.ndarray) -> float:
        law = multivariate_normal(mean.detach().numpy()[0] + shift, covariance)
        y = target.numpy()[0]
        return -float(np.log(law.cdf(y + eps, lower_limit=y - eps)))

    h = 1e-4
    slopes = [(reference(h * e) - reference(-h * e)) / (2 * h) for e in np.eye(2)]
    assert mean.grad is not None
    np.testing.assert_allclose(mean.grad[0], slopes, rtol=1e-4)


def test_narrow_tolerances_give_the_likelihood() -> None:
    mean, target, factor = rows(2)
    found = JointAgreementLoss(AllWithin(1e-6), reduction="none")(mean, target, factor)
    law = torch.distributions.MultivariateNormal(mean, scale_tril=factor)
    torch.testing.assert_close(found, -law.log_prob(target) - 2 * np.log(2e-6))


def test_the_error_that_its_description_promises() -> None:
    loss = JointAgreementLoss(AllWithin(1.0))
    for correlation in (-0.95, 0.0, 0.95):
        law = torch.tensor([[1.0, 0.0], [correlation, (1 - correlation**2) ** 0.5]]).double()
        away = torch.cartesian_prod(*[torch.linspace(-2.8, 2.8, 15).double()] * 2)
        shifts = away @ law.T  # up to four standard deviations from the mean
        loss(shifts, torch.zeros_like(shifts), law.expand(len(shifts), 2, 2))
        assert loss.error < 1e-6


def test_float32_and_leading_axes() -> None:
    mean, target, factor = (x.float().expand(3, *x.shape) for x in rows(2))
    loss = JointAgreementLoss(EachOutput([AtLeast(), Within(0.5)]), reduction="none")
    found = loss(mean, target, factor)
    assert found.shape == (3, 5)
    assert found.dtype == torch.float32
    assert bool((found > 0).all())


SAYS_THE_SAME = JointRule.from_callable(lambda a, b: (abs(a - b) <= [0.5, 0.9]).all(-1))


@pytest.mark.parametrize(
    ("rule", "callable_rule"),
    [
        (AllWithin([0.5, 0.9]), SAYS_THE_SAME),
        (~AllWithin([0.5, 0.9]), ~SAYS_THE_SAME),
        (NormWithin(0.05), JointRule.from_callable(lambda a, b: np.hypot(*(a - b).T).T <= 0.05)),
        (
            EachOutput([AtLeast(), Within(0.5) | ErrorInside(2, 3)]),
            EachOutput([lambda a, b: a >= b, lambda a, b: abs(abs(a - b - 1.25) - 1.25) <= 0.5]),
        ),
    ],
    ids=["box", "outside", "narrow", "by output"],
)
def test_a_callable_has_the_loss_and_the_gradient_of_the_rule_that_it_is(
    rule: JointRule, callable_rule: JointRule
) -> None:
    losses, slopes = [], []
    for each in (rule, callable_rule):
        mean, target, factor = rows(2)
        mean, factor = mean.requires_grad_(), factor.requires_grad_()
        loss = JointAgreementLoss(each, reduction="none")
        losses.append(loss(mean, target, factor))
        losses[-1].sum().backward()
        assert mean.grad is not None
        assert factor.grad is not None
        slopes.append(torch.cat([mean.grad.flatten(), factor.grad.tril().flatten()]))
    assert 0 < loss.error < 0.2, "that of the callable, stated"
    torch.testing.assert_close(losses[1], losses[0], atol=2 * loss.error, rtol=0)
    torch.testing.assert_close(slopes[1], slopes[0], atol=0.1 + 5 * loss.error, rtol=0.05)


def test_gradients_of_unions_and_opposites_are_those_of_brute_force() -> None:
    """E[∇ log N(ŷ) | A] over draws, the derivative of the logarithm of a probability."""
    mean, target, factor = rows(2)
    draws = MultivariateNormal(mean.numpy(), factor.numpy()).sample(200_000, random_state=0)
    inverse = np.linalg.inv((factor @ factor.mT).numpy())
    score = np.einsum("nij,knj->kni", inverse, draws - mean.numpy())
    for rule in (AllWithin(0.5) | NormWithin(0.9), ~NormWithin(0.9)):
        position = mean.clone().requires_grad_()
        JointAgreementLoss(rule, reduction="sum")(position, target, factor).backward()
        agreed = rule(draws, target.numpy())[..., None]
        expected = -(agreed * score).sum(0) / agreed.sum(0)
        error = (agreed * score).std(0) / agreed.mean(0) / 200_000**0.5
        assert position.grad is not None
        np.testing.assert_array_less(np.abs(position.grad.numpy() - expected), 5 * error)


def test_rules_without_room_or_with_too_many_parts_are_refused() -> None:
    nowhere = JointRule.from_callable(lambda a, b: (abs(a - b - 0.5) <= 1e-6).all(-1))
    with pytest.raises(ValueError, match="got none for row 0"):
        JointAgreementLoss(nowhere)(*rows(2))
    with pytest.raises(ValueError, match="a width of 0"):
        JointAgreementLoss(AllWithin([0.5, 0.0]))(*rows(2))
    windows = EachOutput([Within(0.1) | ErrorInside(1, 2) | ErrorInside(3, 4)] * 6)
    with pytest.raises(ValueError, match="at most 500 regions"):
        JointAgreementLoss(windows | AllWithin(1.0))(*rows(6))


def test_rules_of_one_output_and_bad_shapes_are_refused() -> None:
    with pytest.raises(TypeError, match=r"over several outputs.*EachOutput"):
        JointAgreementLoss(Within(0.5))  # type: ignore[arg-type]
    mean, target, factor = rows(2)
    with pytest.raises(ValueError, match="cholesky must have the shape"):
        JointAgreementLoss(AllWithin(0.5))(mean, target, factor[0])
