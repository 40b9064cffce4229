"""The loss of a joint rule: the same numbers as `probability_of_agreement`, and its gradients."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from accord import AllWithin, AtLeast, EachOutput, JointAgreementLoss, NormWithin, Within
from accord.agreement import JointRule, probability_of_agreement
from accord.distributions import MultivariateNormal


def rows(d: int, n: int = 5) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(d)
    mean, away = (torch.randn(n, d, generator=generator, dtype=torch.float64) for _ in "ab")
    factor = torch.randn(n, d, d, generator=generator, dtype=torch.float64).tril()
    factor.diagonal(dim1=-2, dim2=-1).abs_().add_(0.3)
    return mean, mean + (factor @ away[..., None])[..., 0], factor


@pytest.mark.parametrize("d", [2, 3, 4, 6])
@pytest.mark.parametrize(
    "rule", [AllWithin(0.7), NormWithin(0.9), AllWithin(0.7) & NormWithin(0.9)], ids=str
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


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (AllWithin(0.5) | NormWithin(1.0), "box cut by ellipsoids"),
        (JointRule.from_callable(lambda a, b: (a > b).all(-1)), "probability_of_agreement"),
        (AllWithin([0.5, 0.0]), "a width of 0"),
        (EachOutput([Within(0.5) | AtLeast(), ~Within(0.5)]), "box cut by ellipsoids"),
    ],
)
def test_rules_without_such_a_region_are_refused(rule: JointRule, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        JointAgreementLoss(rule)(*rows(2))


def test_rules_of_one_output_and_bad_shapes_are_refused() -> None:
    with pytest.raises(TypeError, match="AgreementLoss for one output"):
        JointAgreementLoss(Within(0.5))  # type: ignore[arg-type]
    mean, target, factor = rows(2)
    with pytest.raises(ValueError, match="cholesky must have the shape"):
        JointAgreementLoss(AllWithin(0.5))(mean, target, factor[0])
