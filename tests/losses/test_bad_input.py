"""What the losses refuse, and what they say."""

import math

import pytest
import torch

from accord.agreement import Inside, MeanAbsoluteErrorAtMost
from accord.losses import (
    AgreementLoss,
    BVMLoss,
    GaussianNLLLoss,
)

ONES = torch.ones(3)
LOSSES = [
    BVMLoss(0.1),
    GaussianNLLLoss(),
    GaussianNLLLoss(beta=0.5),
    AgreementLoss(Inside(0, 1)),
]
losses = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)


@every_loss
def test_shapes_that_would_broadcast(loss) -> None:
    with pytest.raises(ValueError, match=r"must have the same shape, got input \(3,\)"):
        loss(ONES, torch.ones(3, 1), ONES)


@every_loss
def test_integers(loss) -> None:
    with pytest.raises(TypeError, match=r"target must be a floating-point tensor, got torch.int64"):
        loss(ONES, torch.ones(3, dtype=torch.long), ONES)
    with pytest.raises(TypeError, match="input must be a floating-point tensor"):
        loss(torch.ones(3, dtype=torch.int), ONES, ONES)


@every_loss
def test_empty_input(loss) -> None:
    with pytest.raises(ValueError, match="input must not be empty"):
        loss(torch.empty(0), torch.empty(0), torch.empty(0))


@losses
@pytest.mark.parametrize("bad", [-1.0, math.nan])
def test_variances(loss, bad: float) -> None:
    with pytest.raises(
        ValueError, match=r"var must be non-negative, got -?(1.0|nan) at index 1. Send"
    ):
        loss(ONES, ONES, torch.tensor([1.0, bad, 1.0]))
    with pytest.raises(ValueError, match="var must be non-negative"):
        loss(ONES, ONES, bad)
    with pytest.raises(ValueError, match="var must be finite, got inf"):
        loss(ONES, ONES, math.inf)


@losses
def test_variances_of_another_shape(loss) -> None:
    for shape in ((2,), (3, 1), (1, 3)):
        with pytest.raises(ValueError, match=r"var must be a number or have the shape \(3,\)"):
            loss(ONES, ONES, torch.ones(shape))
    with pytest.raises(TypeError, match="var must be a floating-point tensor"):
        loss(ONES, ONES, torch.ones(3, dtype=torch.long))


def test_tolerances() -> None:
    message = r"tolerance must be non-negative, got -0.1. Use 0 for exact agreement \(NLL\)."
    with pytest.raises(ValueError, match=message):
        BVMLoss(-0.1)
    with pytest.raises(ValueError, match="tolerance must be non-negative, got nan"):
        BVMLoss(math.nan)
    with pytest.raises(ValueError, match="tolerance must be finite, got inf"):
        BVMLoss(math.inf)
    with pytest.raises(ValueError, match="tolerance must be finite, got inf at index 1"):
        BVMLoss(torch.tensor([1.0, math.inf]))
    with pytest.raises(ValueError, match=r"tolerance must be non-negative, got -1.0 at index 2"):
        BVMLoss(0.1)(ONES, ONES, ONES, tolerance=torch.tensor([1.0, 0.0, -1.0]))
    with pytest.raises(ValueError, match=r"tolerance must be a number or have the shape \(3,\)"):
        BVMLoss(torch.ones(3, 1))(ONES, ONES, ONES)
    with pytest.raises(TypeError, match="tolerance must be a floating-point tensor"):
        BVMLoss(torch.ones(3, dtype=torch.long))


def test_learnt_tolerances() -> None:
    with pytest.raises(ValueError, match="learn_tolerance must come with density=True"):
        BVMLoss(0.1, learn_tolerance=True)
    with pytest.raises(ValueError, match=r"tolerance must be positive, got 0.0. Start learning"):
        BVMLoss(0.0, learn_tolerance=True, density=True)


def test_measurement_errors() -> None:
    with pytest.raises(ValueError, match=r"target_std must be non-negative, got -1.0 at index 0"):
        BVMLoss(0.1)(ONES, ONES, ONES, target_std=torch.tensor([-1.0, 0.0, 0.0]))
    with pytest.raises(ValueError, match="target_std must be None unless the family is 'normal'"):
        BVMLoss(0.1, family="laplace")(ONES, ONES, ONES, target_std=1.0)
    with pytest.raises(ValueError, match="target_std must come with the normal family and a rule"):
        AgreementLoss(Inside(0, 1))(ONES, ONES, ONES, target_std=1.0)


def test_choices() -> None:
    with pytest.raises(
        ValueError, match="reduction must be one of 'none', 'mean', 'sum', got 'avg'"
    ):
        BVMLoss(0.1, reduction="avg")
    with pytest.raises(ValueError, match="family must be one of"):
        BVMLoss(0.1, family="cauchy")
    with pytest.raises(ValueError, match="df must be above 2 for the variance to exist, got 2"):
        BVMLoss(0.1, family="student-t", df=2)
    with pytest.raises(ValueError, match="beta must lie between 0 and 1, got 2"):
        GaussianNLLLoss(beta=2)
    with pytest.raises(ValueError, match="eps must be non-negative"):
        GaussianNLLLoss(eps=-1)
    with pytest.raises(TypeError, match="a rule for single rows"):
        AgreementLoss(MeanAbsoluteErrorAtMost(0.1))
