"""Stacked multi-layer perceptrons: M independent networks as one, the member axis first.

Every parameter carries a leading axis M, so that one batched matrix product serves all members.
Parameters and gradients live in flat buffers, which the optimiser updates in one call. The
backward pass is written out by hand: with networks this small, autograd's bookkeeping costs more
than the arithmetic (``benchmarks/training.py`` shows by how much). The last layer, whose outputs
are few, is laid out in memory with the outputs before the rows: products with long rows and few
columns take a quarter of the time the other way round.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from accord._processes import threads_for
from accord._types import Floats
from accord.training.tasks import Networks, Settings

Activation = Literal["relu", "gelu", "silu", "tanh"]
ACTIVATIONS: tuple[Activation, ...] = ("relu", "gelu", "silu", "tanh")
# Rows of a product in prediction with single precision. One row takes the time of so many.
BLOCK_ROWS = 32
# Rows predicted at a time, over all members: hidden activations then stay in the processor's cache.
_CHUNK_VALUES = 2**17
# The same for one member, in single precision.
_BLOCK_VALUES = 2**17


@dataclass(frozen=True)
class Architecture:
    """Sizes and activation shared by all members of a stack.

    ``dropout`` is the share of hidden units dropped; with ``input_dropout`` the inputs are dropped
    too, so that every weight layer has dropout before it.
    """

    n_inputs: int
    hidden: tuple[int, ...]
    n_outputs: int
    activation: Activation = "relu"
    dropout: float = 0.0
    input_dropout: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.n_inputs, *self.hidden, self.n_outputs)

    @property
    def n_parameters(self) -> int:
        """Number of weights and biases of one member."""
        return sum((n_in + 1) * n_out for n_in, n_out in pairwise(self.sizes))

    @property
    def dropped_sizes(self) -> tuple[int, ...]:
        """Width of each layer's input that dropout applies to; 0 where it does not."""
        if not self.dropout:
            return (0,) * len(self.sizes[:-1])
        return (self.n_inputs if self.input_dropout else 0, *self.hidden)

    @property
    def n_activations(self) -> int:
        """Numbers per row that a forward pass keeps."""
        return sum(self.sizes)

    @property
    def largest_product(self) -> int:
        """Multiplications per row in the largest product."""
        return max(n_in * n_out for n_in, n_out in pairwise(self.sizes))

    def networks(self, n_members: int, settings: Settings, n_extra: int) -> "StackedMLP":
        """A stack of such networks, not yet initialised."""
        return StackedMLP(
            self, n_members, dtype=settings.dtype, device=settings.device, n_extra=n_extra
        )


class StackedMLP:
    """M perceptrons of one architecture, evaluated and differentiated together.

    **Shape**: input (M, B, n_inputs), output (M, B, n_outputs); layer l has weights
    (M, in, out) and biases (M, 1, out), all of them views of the flat buffer ``parameters``.
    Of the last layer's weights and outputs it is the transpose that is contiguous.

    >>> import torch
    >>> stack = StackedMLP(Architecture(3, (50,), 2), n_members=5)
    >>> stack.initialise(seeds=range(5))
    >>> stack.forward(torch.zeros(5, 32, 3)).shape
    torch.Size([5, 32, 2])
    """

    def __init__(
        self,
        architecture: Architecture,
        n_members: int,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        n_extra: int = 0,
    ) -> None:
        self.architecture = architecture
        self.n_members = n_members
        size = n_members * (architecture.n_parameters + n_extra)
        self.parameters = torch.zeros(size, dtype=dtype, device=device)
        self.gradients = torch.zeros_like(self.parameters)
        self.weights, self.biases, self.extra = self._views(self.parameters, n_extra)
        self.weight_grads, self.bias_grads, self.extra_grads = self._views(self.gradients, n_extra)
        self.buffers: list[Tensor] = []
        self._inputs: list[Tensor] = []
        self._before: list[Tensor] = []
        self._masks: Sequence[Tensor | None] = ()

    def _views(self, flat: Tensor, n_extra: int) -> tuple[list[Tensor], list[Tensor], Tensor]:
        """Cut a flat buffer into layers, each a contiguous block over all members."""
        weights, biases, start = [], [], 0
        members = self.n_members
        for n_in, n_out in pairwise(self.architecture.sizes):
            stop = start + members * n_in * n_out
            weights.append(flat[start:stop].view(members, n_in, n_out))
            start, stop = stop, stop + members * n_out
            biases.append(flat[start:stop].view(members, 1, n_out))
            start = stop
        weights[-1] = weights[-1].view(members, n_out, n_in).mT
        return weights, biases, flat[start:].view(members, n_extra)

    @property
    def blocks(self) -> list[Tensor]:
        """The networks' parameters, weights of all layers first, then biases."""
        return [*self.weights, *self.biases]

    def member_views(self, flat: Tensor) -> list[Tensor]:
        """All blocks of a flat buffer laid out like ``parameters``, each with M rows."""
        weights, biases, extra = self._views(flat, self.extra.shape[1])
        return [*weights, *biases, extra]

    def initialise(self, seeds: Sequence[int]) -> None:
        """PyTorch's default for a linear layer, U(−1/√in, 1/√in), from each member's own seed."""
        for member, seed in enumerate(seeds):
            generator = torch.Generator().manual_seed(seed)
            for weight, bias in zip(self.weights, self.biases, strict=True):
                bound = 1 / math.sqrt(weight.shape[1])
                for block in (weight[member], bias[member]):
                    draw = torch.empty(block.shape, dtype=torch.float64)
                    block.copy_(draw.uniform_(-bound, bound, generator=generator))

    def forward(
        self, x: Tensor, masks: Sequence[Tensor | None] = (), weight: Tensor | None = None
    ) -> Tensor:
        """Raw outputs; keeps what :meth:`backward` needs.

        ``masks`` holds, per weight layer, the scaled dropout mask of its input (or None). Rows do
        not depend on each other, so that those of ``weight`` 0 need no care.
        """
        self._inputs, self._before, self._masks = [], [], masks
        for layer in range(len(self.weights) - 1):
            x = self._input(layer, x)
            x = torch.baddbmm(self.biases[layer], x, self.weights[layer])
            self._before.append(x)
            x = _activate(x, self.architecture.activation)
        return _output(self._input(-1, x), self.weights[-1], self.biases[-1])

    def _input(self, layer: int, x: Tensor) -> Tensor:
        if self._masks and (mask := self._masks[layer]) is not None:
            x = x * mask
        self._inputs.append(x)
        return x

    def backward(self, grad: Tensor, *, input_gradient: bool = False) -> Tensor | None:
        """Write the parameters' gradients for ``grad`` = ∂loss/∂output; the inputs' on request."""
        torch.bmm(grad.mT, self._inputs[-1], out=self.weight_grads[-1].mT)
        torch.sum(grad, 1, keepdim=True, out=self.bias_grads[-1])
        for layer in range(len(self.weights) - 1, 0, -1):
            grad = self._input_gradient(layer, grad)
            grad = _activation_gradient(grad, self._before[layer - 1], self.architecture.activation)
            torch.bmm(self._inputs[layer - 1].mT, grad, out=self.weight_grads[layer - 1])
            torch.sum(grad, 1, keepdim=True, out=self.bias_grads[layer - 1])
        return self._input_gradient(0, grad) if input_gradient else None

    def _input_gradient(self, layer: int, grad: Tensor) -> Tensor:
        grad = torch.bmm(grad, self.weights[layer].mT)
        if self._masks and (mask := self._masks[layer]) is not None:
            grad = grad * mask
        return grad

    def outputs(self, members: slice, x: Tensor) -> Tensor:
        """Raw outputs of some members for the same rows, as in prediction."""
        weights = [weight[members] for weight in self.weights]
        biases = [bias[members] for bias in self.biases]
        return forward_rows(weights, biases, x, self.architecture.activation)


def forward_rows(
    weights: Sequence[Tensor], biases: Sequence[Tensor], x: Tensor, activation: Activation
) -> Tensor:
    """Raw outputs of all members for the same rows; in memory, units come before rows.

    **Shape**: x (N, n_inputs) → (M, N, n_outputs).
    """
    h = x.mT.expand(weights[0].shape[0], -1, -1)
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        h = _activate(torch.baddbmm(bias.mT, weight.mT, h), activation)
    return torch.baddbmm(biases[-1].mT, weights[-1].mT, h).mT


def forward_blocks(
    weights: Sequence[Tensor], biases: Sequence[Tensor], x: Tensor, activation: Activation
) -> Tensor:
    """As :func:`forward_rows`, every product with the same number of rows, whatever N.

    **Shape**: x (N, n_inputs) → (M, N, n_outputs).
    """
    n_rows, n_blocks = len(x), -(-len(x) // BLOCK_ROWS)
    if n_rows < n_blocks * BLOCK_ROWS:
        x = torch.nn.functional.pad(x, (0, 0, 0, n_blocks * BLOCK_ROWS - n_rows))
    blocks = x.view(n_blocks, BLOCK_ROWS, x.shape[1])
    outputs = x.new_empty(len(weights[0]), biases[-1].shape[2], n_blocks, BLOCK_ROWS)
    for member, into in enumerate(outputs):
        h = blocks
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            h = torch.baddbmm(bias[member], h, weight[member].expand(n_blocks, -1, -1))
            h = _activate_in_place(h, activation)
        into.copy_(_output(h, weights[-1][member], biases[-1][member]).permute(2, 0, 1))
    return outputs.flatten(2)[..., :n_rows].mT


def raw_outputs(
    parameters: Sequence[NDArray[Any]],
    x: NDArray[Any],
    activation: Activation,
    device: str,
    transform: Callable[[torch.Tensor], torch.Tensor] | None = None,
    *,
    single: bool = False,
) -> Floats:
    """Outputs of all members for scaled rows, in chunks.

    ``parameters`` hold the weights of all layers, then the biases; ``transform`` is applied to
    each chunk of raw outputs. Networks are trained in float32 but predict in float64, where the
    device has it: float32 products round differently in batches of different size, and differences
    between members amplify that. In float64 a row's answer depends on its batch by less than 1e-12
    of the targets' scale, which ``predict`` promises.

    With ``single`` they predict in float32, three to four times as fast. All products then have
    the same number of rows, so that the same kernel computes each row whatever its batch: what is
    left is a dependence on its place, below 1e-6 of the targets' scale, and none on most machines.

    **Shape**: x (N, d) → (M, N, outputs).
    """
    single = single or torch.device(device).type == "mps"
    dtype = torch.float32 if single else torch.float64
    tensors = [torch.as_tensor(block).to(device, dtype) for block in parameters]
    n_layers = len(tensors) // 2
    weights, biases = tensors[:n_layers], tensors[n_layers:]
    width = max(weight.shape[0] * weight.shape[2] for weight in weights)
    chunk = max(1, _CHUNK_VALUES // width)
    if single:
        chunk = BLOCK_ROWS * max(1, _BLOCK_VALUES // (BLOCK_ROWS * weights[0].shape[2]))
    forward = forward_blocks if single else forward_rows
    pieces = []
    work = float(min(chunk, len(x)) * width * max(weight.shape[1] for weight in weights))
    with torch.inference_mode(), threads_for(work):
        for start in range(0, max(len(x), 1), chunk):
            rows = torch.as_tensor(x[start : start + chunk]).to(weights[0])
            raw = forward(weights, biases, rows, activation)
            if transform is not None:
                raw = transform(raw)
            pieces.append(raw.mT.cpu().numpy())
    # in memory the outputs come before the rows, as they do in a chunk
    return np.concatenate(pieces, axis=2, dtype=np.float64).swapaxes(1, 2)


def _output(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x W + b, in memory with the outputs before the rows."""
    return torch.baddbmm(bias.mT, weight.mT.expand(len(x), -1, -1), x.mT).mT


def _activate_in_place(x: Tensor, activation: Activation) -> Tensor:
    """For prediction, where no gradient needs what was there before."""
    if activation == "silu":
        return torch.nn.functional.silu(x, inplace=True)
    return _activate(x, activation)


def _activate(x: Tensor, activation: Activation) -> Tensor:
    match activation:
        case "relu":
            return torch.relu_(x)  # in place: its sign is all that the gradient needs
        case "tanh":
            return torch.tanh_(x)  # in place: the gradient is 1 − tanh²
        case "gelu":
            return torch.nn.functional.gelu(x)
        case "silu":
            return torch.nn.functional.silu(x)


def _activation_gradient(grad: Tensor, kept: Tensor, activation: Activation) -> Tensor:
    """``kept`` is the value after relu and tanh (done in place), before gelu and silu."""
    aten = torch.ops.aten
    match activation:
        case "relu":
            return aten.threshold_backward(grad, kept, 0)  # type: ignore[no-any-return]
        case "tanh":
            return aten.tanh_backward(grad, kept)  # type: ignore[no-any-return]
        case "gelu":
            return aten.gelu_backward(grad, kept)  # type: ignore[no-any-return]
        case "silu":
            return aten.silu_backward(grad, kept)  # type: ignore[no-any-return]


class FusedAdam:
    """Adam or AdamW on the flat buffer, by the kernel of ``torch.optim.Adam(fused=True)``.

    The kernel is called directly: for small stacks the optimiser class spends several times the
    kernel's own time on per-step bookkeeping.
    """

    def __init__(self, stack: Networks, settings: Settings) -> None:
        self.stack = stack
        self.clip_norm = settings.clip_norm
        self.kernel = {"adam": torch._fused_adam_, "adamw": torch._fused_adamw_}[settings.optimizer]
        self.count = torch.zeros((), device=settings.device)
        self.rate = settings.learning_rate
        self.moments = [torch.zeros_like(stack.parameters) for _ in range(2)]
        buffers = [stack.parameters, stack.gradients, *self.moments]
        self.parts = [(buffers, settings.weight_decay)]
        if settings.weight_decay and stack.extra.numel():
            # the objective's own scalars are no weights, and 0 is no better place for them
            end = len(stack.parameters) - stack.extra.numel()
            weights, extra = [b[:end] for b in buffers], [b[end:] for b in buffers]
            self.parts = [(weights, settings.weight_decay), (extra, 0.0)]

    def step(self) -> None:
        if self.clip_norm is not None:
            self._clip(self.clip_norm)
        self.count += 1
        for (parameters, gradients, first, second), decay in self.parts:
            self.kernel(
                [parameters],
                [gradients],
                [first],
                [second],
                [],
                [self.count],
                lr=self.rate,
                beta1=0.9,
                beta2=0.999,
                weight_decay=decay,
                eps=1e-8,
                amsgrad=False,
                maximize=False,
            )

    def _clip(self, limit: float) -> None:
        """Scale each member's gradient to a norm of at most ``limit``."""
        blocks = self.stack.member_views(self.stack.gradients)
        norm = torch.stack([b.square().flatten(1).sum(1) for b in blocks]).sum(0).sqrt()
        factor = (limit / norm.clamp(min=1e-12)).clamp(max=1)
        for block in blocks:
            block.mul_(factor.view(-1, *(1,) * (block.ndim - 1)))
