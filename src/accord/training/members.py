"""From trained members to a predictive distribution in the target's units."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from accord._threads import threads_for
from accord._types import Floats
from accord.training.stack import BLOCK_ROWS, Activation, forward_blocks, forward_rows

# Rows predicted at a time, over all members: hidden activations then stay in the processor's cache.
_CHUNK_VALUES = 2**21
# The same for one member, in single precision.
_BLOCK_VALUES = 2**17


@dataclass(frozen=True)
class Scaling:
    """An affine map of columns, value = shift + scale · scaled.

    **Shape**: shift and scale (d,).
    """

    shift: Floats
    scale: Floats

    @staticmethod
    def standard(values: Floats) -> "Scaling":
        """To mean 0 and standard deviation 1; constant columns are only shifted."""
        deviation = values.std(axis=0)
        size = np.abs(values).max(axis=0, initial=0.0)
        constant = deviation <= 10 * np.finfo(float).eps * size
        return Scaling(values.mean(axis=0), np.where(constant, 1.0, deviation))

    @staticmethod
    def range(values: Floats) -> "Scaling":
        """To [0, 1]; constant columns are only shifted."""
        width = np.ptp(values, axis=0)
        return Scaling(values.min(axis=0), np.where(width > 0, width, 1.0))

    @staticmethod
    def none(values: Floats) -> "Scaling":
        """As they are."""
        return Scaling(np.zeros(values.shape[1:]), np.ones(values.shape[1:]))

    def scaled(self, values: Floats) -> Floats:
        return (values - self.shift) / self.scale


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
