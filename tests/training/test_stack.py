"""Stacked networks are networks: values and gradients as torch computes them one by one."""

import pytest
import torch

from accord.training import ACTIVATIONS, Architecture, StackedMLP
from accord.training.stack import forward_blocks, forward_rows

MODULES = {
    "relu": torch.nn.ReLU,
    "gelu": torch.nn.GELU,
    "silu": torch.nn.SiLU,
    "tanh": torch.nn.Tanh,
}


def make_stack(architecture: Architecture, n_members: int = 3) -> StackedMLP:
    stack = StackedMLP(architecture, n_members, dtype=torch.float64)
    stack.initialise(range(n_members))
    return stack


def as_module(stack: StackedMLP, member: int) -> torch.nn.Sequential:
    """The same member as torch's own layers."""
    layers: list[torch.nn.Module] = []
    for weight, bias in zip(stack.weights, stack.biases, strict=True):
        linear = torch.nn.Linear(weight.shape[1], weight.shape[2], dtype=torch.float64)
        linear.weight.data = weight[member].T.clone()
        linear.bias.data = bias[member, 0].clone()
        layers += [linear, MODULES[stack.architecture.activation]()]
    return torch.nn.Sequential(*layers[:-1])


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("hidden", [(), (7,), (6, 5, 4)])
def test_values_and_gradients_are_torchs(activation, hidden):
    stack = make_stack(Architecture(4, hidden, 2, activation=activation))
    x = torch.randn(3, 11, 4, dtype=torch.float64)
    out = stack.forward(x.clone())
    grad_x = stack.backward(torch.cos(out), input_gradient=True)
    for member in range(3):
        module = as_module(stack, member)
        inputs = x[member].clone().requires_grad_()
        expected = module(inputs)
        expected.sin().sum().backward()
        torch.testing.assert_close(out[member], expected)
        torch.testing.assert_close(grad_x[member], inputs.grad)
        linears = [layer for layer in module if isinstance(layer, torch.nn.Linear)]
        for layer, linear in enumerate(linears):
            torch.testing.assert_close(stack.weight_grads[layer][member].T, linear.weight.grad)
            torch.testing.assert_close(stack.bias_grads[layer][member, 0], linear.bias.grad)


def test_dropout_masks_enter_values_and_gradients():
    stack = make_stack(Architecture(4, (6,), 1, dropout=0.5, input_dropout=True))
    x = torch.randn(3, 5, 4, dtype=torch.float64)
    masks = [torch.randint(0, 2, (3, 5, n)).double() * 2 for n in (4, 6)]
    out = stack.forward(x, masks)
    stack.backward(torch.ones_like(out))
    weights = [w.clone().requires_grad_() for w in stack.weights]
    h = torch.relu(torch.baddbmm(stack.biases[0], x * masks[0], weights[0]))
    expected = torch.baddbmm(stack.biases[1], h * masks[1], weights[1])
    torch.testing.assert_close(out, expected)
    for got, want in zip(
        stack.weight_grads, torch.autograd.grad(expected.sum(), weights), strict=True
    ):
        torch.testing.assert_close(got, want)


def test_rows_shared_by_all_members():
    stack = make_stack(Architecture(4, (6, 5), 2))
    x = torch.randn(9, 4, dtype=torch.float64)
    shared = forward_rows(stack.weights, stack.biases, x, "relu")
    torch.testing.assert_close(shared, stack.forward(x.expand(3, 9, 4).clone()))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("hidden", [(), (6, 5)])
@pytest.mark.parametrize("n_rows", [0, 1, 32, 71])
def test_rows_in_blocks(activation, hidden, n_rows):
    stack = make_stack(Architecture(4, hidden, 2, activation))
    x = torch.randn(n_rows, 4, dtype=torch.float64)
    arguments = stack.weights, stack.biases, x, activation
    torch.testing.assert_close(forward_blocks(*arguments), forward_rows(*arguments))


def test_a_member_depends_on_its_seed_alone():
    architecture = Architecture(4, (6,), 2)
    alone, among = StackedMLP(architecture, 1), StackedMLP(architecture, 3)
    alone.initialise([7])
    among.initialise([1, 7, 5])
    for one, many in zip(alone.blocks, among.blocks, strict=True):
        assert torch.equal(one[0], many[1])
        assert not torch.equal(many[0], many[1])


def test_initial_weights_have_torchs_default_distribution():
    stack = make_stack(Architecture(100, (200,), 1), n_members=4)
    bound = 1 / 100**0.5
    weights = stack.weights[0]
    assert weights.abs().max() <= bound
    # uniform on (−b, b): standard deviation b/√3, here over 80,000 draws
    assert weights.std().item() == pytest.approx(bound / 3**0.5, rel=0.01)
