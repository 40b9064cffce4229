"""The presets' networks against the paper's recipe written out in plain torch, step by step.

Nothing of accord's training is used on the other side: ``torch.nn`` layers, ``torch.optim``, and
the loss −log [Φ((t + ε − μ)/σ) − Φ((t − ε − μ)/σ)] by the error function, one network at a time.
Only the initial weights and the order of the rows are taken over, since they are random.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from accord import BVMRegressor
from accord.estimators import PRESETS


@dataclass(frozen=True)
class Recipe:
    """One of the paper's, in the words of torch; ``eps`` in units of the scaled target."""

    optimizer: type[torch.optim.Optimizer]
    options: dict[str, Any]
    batch_size: int
    hidden: tuple[int, ...] = (50,)
    eps: float = 0.01
    scaled: bool = True
    mean: nn.Module = field(default_factory=nn.Sigmoid)
    variance: nn.Module = field(default_factory=nn.Sigmoid)


ADAM, ADAMW = torch.optim.Adam, torch.optim.AdamW
RECIPES = {
    "table1": Recipe(ADAMW, {"lr": 3e-4, "weight_decay": 0.01}, 32),
    "table1-protein": Recipe(ADAMW, {"lr": 3e-4, "weight_decay": 0.01}, 32, (100,)),
    "table1-tuned": Recipe(ADAMW, {"lr": 3e-3, "weight_decay": 0.01}, 32),
    "table3": Recipe(ADAM, {"lr": 3e-3}, 16),
    "stocks": Recipe(ADAM, {"lr": 1e-3}, 32, (50,) * 4),
    "stocks-identity": Recipe(ADAM, {"lr": 1e-3}, 32, (50,) * 4, mean=nn.Identity()),
    "toy": Recipe(
        ADAM,
        {"lr": 0.1},
        4,
        (100,),
        eps=1.0,
        scaled=False,
        mean=nn.Identity(),
        variance=nn.Softplus(),
    ),
}
N_FEATURES, STEPS = 4, 50


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(3.0, 2.0, size=(n, N_FEATURES))
    return x, 10 * np.sin(x[:, 0]) + x[:, 1] + rng.normal(size=n)


def agreement_loss(raw: Tensor, target: Tensor, recipe: Recipe) -> Tensor:
    """In density form, so that it is comparable with NLL: + log 2ε."""
    eps, error = recipe.eps, (target - recipe.mean(raw[:, 0])).abs()
    # on one side of the mean, where the difference of two small tails keeps its digits
    root = torch.sqrt(2 * recipe.variance(raw[:, 1]))
    tails = torch.special.erfc((error - eps) / root) - torch.special.erfc((error + eps) / root)
    return (-torch.log(tails / 2) + np.log(2 * eps)).mean()


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


def batches(seed: int, n: int, size: int) -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(seed ^ 0x5DEECE66D)
    while True:
        yield from torch.randperm(n, generator=generator).split(size)


def test_every_preset_has_its_recipe_here() -> None:
    assert set(RECIPES) == set(PRESETS)


@pytest.mark.parametrize("name", RECIPES)
def test_fifty_steps_of_plain_torch_give_the_same_networks(name: str) -> None:
    recipe = RECIPES[name]
    per_epoch, epochs = 5, STEPS // 5
    n = per_epoch * recipe.batch_size
    x, y = rows(n)
    model = BVMRegressor.preset(name, epochs=epochs, dtype="float64", random_state=3).fit(x, y)
    seeds = np.random.RandomState(3).randint(2**31 - 1, size=5)
    inputs = torch.tensor((x - x.mean(axis=0)) / x.std(axis=0))
    targets = torch.tensor((y - y.min()) / np.ptp(y) if recipe.scaled else y)
    for member, seed in enumerate(int(seed) for seed in seeds):
        plain, order = network(recipe.hidden, seed), batches(seed, n, recipe.batch_size)
        steps, losses = recipe.optimizer(plain.parameters(), **recipe.options), []
        for _ in range(STEPS):
            batch = next(order)
            loss = agreement_loss(plain(inputs[batch]), targets[batch], recipe)
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
