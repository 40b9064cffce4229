"""Stacks of any module: the same steps as a plain torch loop, called together or one by one."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from accord.training import (
    AgreementObjective,
    Heads,
    ModuleDesign,
    ModuleStack,
    Settings,
    StoppingRows,
    Task,
    module_outputs,
    train,
)

HEADS = Heads("identity", "softplus", 0.0)
SEEDS = (11, 12)
EPS = 0.3


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))


def normalised() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)
    )


def convolutional() -> nn.Module:
    return nn.Sequential(nn.Conv1d(3, 4, 2), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(4, 2))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(2, 5, batch_first=True)
        self.head = nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x)[0][:, -1])


class Transformer(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(2, 1, 4, dropout=dropout, batch_first=True)
        self.head = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(x).mean(1))


class Looking(nn.Module):
    """Does something else depending on values, which no stacked call can."""

    def __init__(self) -> None:
        super().__init__()
        self.net = perceptron()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x if float(x.sum()) > 0 else -x)


class InPlace(nn.Module):
    """Scales its input where it lies."""

    def __init__(self) -> None:
        super().__init__()
        self.net = perceptron()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x.mul_(3.0))


def data(n: int = 22) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, 3, 2, generator=generator, dtype=torch.float64)
    return x, x.sum((1, 2))[:, None] / 3


def task(n: int = 22) -> Task:
    x, y = data(n)
    return Task(x.flatten(1), {"target": y, "tolerance": torch.full_like(y, EPS)}, SEEDS)


def settings(**changes) -> Settings:
    return Settings(**{"epochs": 3, "batch_size": 8, "dtype": torch.float64, **changes})


def plain_loop(make, seed: int) -> nn.Module:
    """One member as torch's users write it: −log of the box-smoothed density, by Adam."""
    torch.manual_seed(seed)
    net = make().double()
    x, y = data()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    shuffles = torch.Generator().manual_seed(seed ^ 0x5DEECE66D)
    for _ in range(3):
        for rows in torch.randperm(len(x), generator=shuffles).split(8):
            mean, variance = net(x[rows].clone()).chunk(2, 1)
            model = torch.distributions.Normal(mean, nn.functional.softplus(variance).sqrt())
            inside = model.cdf(y[rows] + EPS) - model.cdf(y[rows] - EPS)
            loss = (math.log(2 * EPS) - inside.log()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return net


@pytest.mark.parametrize("make", [perceptron, convolutional, normalised, Recurrent, InPlace])
def test_members_take_the_steps_of_a_plain_loop(make) -> None:
    """22 rows in batches of 8: the last one has padding, which must not count anywhere."""
    design = ModuleDesign(make, (3, 2), 2)
    (trained,) = train([task()], design, AgreementObjective(HEADS), settings())
    for member, seed in enumerate(SEEDS):
        with torch.random.fork_rng():
            net = plain_loop(make, seed)
        for got, expected in zip(trained.parameters, net.parameters(), strict=True):
            np.testing.assert_allclose(got[member], expected.detach(), rtol=1e-7, atol=1e-9)
        for got, expected in zip(trained.buffers, net.buffers(), strict=True):
            np.testing.assert_allclose(got[member], expected, rtol=1e-7)


def first_batch(make, *, stacked: bool | None = None) -> tuple[ModuleStack, torch.Tensor]:
    """A stack after one forward and backward pass, and its outputs."""
    stack = ModuleDesign(make, (3, 2), 2).networks(2, settings(), 0)
    stack.initialise(SEEDS)
    stack.stacked = stacked
    x = data(8)[0].flatten(1).expand(2, 8, 6)
    raw = stack.forward(x, (), torch.ones(2, 8, 1))
    stack.backward(torch.ones_like(raw))
    return stack, raw


@pytest.mark.parametrize(
    ("make", "stacked"),
    [
        (perceptron, True),
        (convolutional, True),
        (partial(Transformer, dropout=0.1), True),
        (InPlace, True),
        (Transformer, False),  # without dropout, torch takes an attention that vmap does not know
        (Recurrent, False),
        (normalised, False),
        (Looking, False),
    ],
)
def test_members_are_called_together_where_that_works(make, stacked) -> None:
    assert first_batch(make)[0].stacked is stacked


@pytest.mark.parametrize("make", [perceptron, convolutional])
def test_both_ways_give_the_same(make) -> None:
    together, raw = first_batch(make, stacked=True)
    one_by_one, expected = first_batch(make, stacked=False)
    torch.testing.assert_close(raw, expected)
    torch.testing.assert_close(together.gradients, one_by_one.gradients)


def dropping() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(6, 2))


@pytest.mark.parametrize("stacked", [True, False])
def test_dropout_differs_between_members_and_steps_but_not_between_runs(stacked: bool) -> None:
    x = torch.ones(2, 8, 6, dtype=torch.float64)
    weight = torch.ones(2, 8, 1)

    def runs() -> list[torch.Tensor]:
        stack = ModuleDesign(dropping, (3, 2), 2).networks(2, settings(), 0)
        stack.initialise((5, 5))
        stack.stacked = stacked
        stack._seeds = (5, 6)  # the same weights, other masks
        return [stack.forward(x, (), weight) for _ in range(2)]

    first, again = runs(), runs()
    assert torch.equal(first[0], again[0])
    assert torch.equal(first[1], again[1])
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first[0][0], first[0][1])
    assert len(first[0][0].unique(dim=0)) > 1  # rows have masks of their own


def test_prediction_is_that_of_each_module_alone() -> None:
    x, _ = data(5)
    nets = [InPlace().double() for _ in range(3)]
    values = torch.func.stack_module_state(nets)[0]
    raw = module_outputs(InPlace(), values, x.flatten(1), ModuleDesign(InPlace, (3, 2), 2))
    for own, net in zip(raw, nets, strict=True):
        torch.testing.assert_close(own, net(x.clone()).detach())


class Frozen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Linear(6, 8).requires_grad_(False)
        self.head = nn.Linear(8, 2)
        self.register_buffer("mask", torch.tensor([0.0, -math.inf]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x.flatten(1))) + torch.exp(self.mask)[1]


def test_what_is_frozen_stays_and_may_be_infinite() -> None:
    (trained,) = train(
        [task()],
        ModuleDesign(Frozen, (3, 2), 2),
        AgreementObjective(HEADS),
        settings(weight_decay=0.1, optimizer="adamw"),
    )
    assert len(trained.parameters) == 2  # the head's weight and bias
    for member, seed in enumerate(SEEDS):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            fresh = Frozen()
        np.testing.assert_array_equal(trained.buffers[0][member], fresh.features.weight)
        assert not np.allclose(trained.parameters[0][member], fresh.head.weight.detach())


def test_the_best_state_comes_back_with_its_buffers() -> None:
    """The loss of what is kept, computed anew on the held-out rows, is that of the best epoch."""
    rows = task()
    held = StoppingRows(rows.x[:6], {name: c[:6] for name, c in rows.columns.items()})
    objective = AgreementObjective(HEADS)
    design = ModuleDesign(normalised, (3, 2), 2)
    stopped = Task(rows.x, rows.columns, SEEDS, held_out=held)
    (trained,) = train(
        [stopped], design, objective, settings(epochs=30, patience=3, learning_rate=0.3)
    )
    assert (trained.n_epochs < len(trained.history)).any()
    module = normalised().double()
    names = [*dict(module.named_parameters()), *dict(module.named_buffers())]
    arrays = [torch.as_tensor(a) for a in (*trained.parameters, *trained.buffers)]
    raw = module_outputs(module, dict(zip(names, arrays, strict=True)), held.x, design)
    columns = {name: c.expand(2, *c.shape) for name, c in held.columns.items()}
    loss, _, _ = objective(raw, columns, torch.ones(2, 6, 1), torch.empty(2, 0))
    best = trained.held_out_history[trained.n_epochs - 1, [0, 1]]
    np.testing.assert_allclose(loss.mean((1, 2)), best, rtol=1e-9)
