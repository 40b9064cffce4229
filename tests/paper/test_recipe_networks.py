"""The presets' networks against the paper's recipe written out in plain torch, step by step.

Nothing of accord's training is used on the other side: ``torch.nn`` layers, ``torch.optim``, and
the loss −log [Φ((t + ε − μ)/σ) − Φ((t − ε − μ)/σ)] by the error function, one network at a time.
Only the initial weights and the order of the rows are taken over, since they are random.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from accord import BVMRegressor

EPS = 0.01
RECIPES = {
    "table1": ((50,), torch.optim.AdamW, {"lr": 3e-4, "weight_decay": 0.01}, 32),
    "table3": ((50,), torch.optim.Adam, {"lr": 3e-3}, 16),
    "stocks": ((50,) * 4, torch.optim.Adam, {"lr": 1e-3}, 32),
}
N_ROWS, N_FEATURES, STEPS = 160, 4, 50


def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(3.0, 2.0, size=(N_ROWS, N_FEATURES))
    return x, 10 * np.sin(x[:, 0]) + x[:, 1] + rng.normal(size=N_ROWS)


def agreement_loss(raw: Tensor, target: Tensor) -> Tensor:
    """In density form, so that it is comparable with NLL: + log 2ε."""
    mean, variance = torch.sigmoid(raw[:, 0]), torch.sigmoid(raw[:, 1])
    root = torch.sqrt(2 * variance)
    upper = torch.special.erf((target + EPS - mean) / root)
    lower = torch.special.erf((target - EPS - mean) / root)
    return (-torch.log((upper - lower) / 2) + np.log(2 * EPS)).mean()


def network(hidden: tuple[int, ...], seed: int) -> nn.Sequential:
    """PyTorch's default initialisation, U(−1/√in, 1/√in), weights before biases, layer by layer."""
    sizes, generator = (N_FEATURES, *hidden, 2), torch.Generator().manual_seed(seed)
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(sizes):
        layer = nn.Linear(n_in, n_out, dtype=torch.float64)
        bound = n_in**-0.5
        draws = [torch.empty(shape, dtype=torch.float64) for shape in ((n_in, n_out), (1, n_out))]
        for draw in draws:
            draw.uniform_(-bound, bound, generator=generator)
        layer.weight.data, layer.bias.data = draws[0].T.clone(), draws[1][0].clone()
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def batches(seed: int, size: int) -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(seed ^ 0x5DEECE66D)
    while True:
        yield from torch.randperm(N_ROWS, generator=generator).split(size)


@pytest.mark.parametrize("name", RECIPES)
def test_fifty_steps_of_plain_torch_give_the_same_networks(name: str) -> None:
    hidden, optimizer, options, size = RECIPES[name]
    x, y = rows()
    per_epoch = N_ROWS // size
    epochs = STEPS // per_epoch
    model = BVMRegressor.preset(name, epochs=epochs, dtype="float64", random_state=3).fit(x, y)
    seeds = np.random.RandomState(3).randint(2**31 - 1, size=5)
    inputs = torch.tensor((x - x.mean(axis=0)) / x.std(axis=0))
    targets = torch.tensor((y - y.min()) / np.ptp(y))
    assert epochs * per_epoch == STEPS
    for member, seed in enumerate(int(seed) for seed in seeds):
        plain, order = network(hidden, seed), batches(seed, size)
        steps, losses = optimizer(plain.parameters(), **options), []
        for _ in range(STEPS):
            batch = next(order)
            loss = agreement_loss(plain(inputs[batch]), targets[batch])
            steps.zero_grad()
            loss.backward()
            steps.step()
            losses.append(loss.item())
        mean_losses = np.array(losses).reshape(epochs, per_epoch).mean(axis=1)
        np.testing.assert_allclose(model.history_[:, member], mean_losses, atol=1e-5)
        layers = [layer for layer in plain if isinstance(layer, nn.Linear)]
        n_layers = len(layers)
        for place, layer in enumerate(layers):
            weights, biases = model.parameters_[place], model.parameters_[n_layers + place]
            np.testing.assert_allclose(weights[member], layer.weight.detach().numpy().T, atol=1e-5)
            np.testing.assert_allclose(biases[member, 0], layer.bias.detach().numpy(), atol=1e-5)
