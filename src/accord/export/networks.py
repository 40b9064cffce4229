"""Stacked networks in a graph: batched matrix products, the member axis first."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord._types import Floats
from accord.export.curves import NORMAL
from accord.export.graph import Graph, Value


def network_outputs(parameters: Sequence[NDArray[Any]], x: Value, activation: str) -> Value:
    """Raw outputs of all members; ``parameters`` hold the weights of all layers, then the biases.

    **Shape**: x (N, d) → (M, N, outputs).
    """
    graph = x.graph
    n_layers = len(parameters) // 2
    weights, biases = parameters[:n_layers], parameters[n_layers:]
    h = x.wider(0)
    for number, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        h = h @ _stored(graph, weight) + _stored(graph, bias)
        if number < n_layers - 1:
            h = _activated(h, activation)
    return h


def _stored(graph: Graph, block: NDArray[Any]) -> Value:
    """Weights in the precision that they were trained in: half the size for float32."""
    return graph.constant(block).cast(np.float64)


def _activated(h: Value, activation: str) -> Value:
    match activation:
        case "relu":
            return h.at_least(0.0)
        case "tanh":
            return h.graph.add("Tanh", h)
        case "silu":
            return h * sigmoid(h)
        case "gelu":
            return h * NORMAL.both(h)[0]
    raise ValueError(f"activation must be one that the graph knows, got {activation!r}.")


def sigmoid(x: Value) -> Value:
    return x.graph.add("Sigmoid", x)


def heads(raw: Value, k: int, *, mean: str, variance: str, floor: float) -> tuple[Value, Value]:
    """Means and variances from the first 2k raw outputs, as :class:`accord.training.Heads` does.

    **Shape**: raw (M, N, ≥ 2k) → (M, N, k) each.
    """
    centers, spreads = raw.take(np.arange(k), 2), raw.take(np.arange(k, 2 * k), 2)
    if mean == "sigmoid":
        centers = sigmoid(centers)
    match variance:
        case "sigmoid":
            spreads = sigmoid(spreads)
        case "softplus":
            spreads = spreads.at_least(0.0) + (1 + (-spreads.abs()).exp()).log()
        case "exp":
            spreads = spreads.exp()
    return centers, spreads + floor


def by_row(values: Value, width: int) -> Value:
    """The curves of all members side by side: (M, N, K) → (N, M·K)."""
    return values.moved(1, 0, 2).shaped(0, width)


def affine(x: Value, shift: Floats, scale: Floats) -> Value:
    """(x − shift) / scale, of columns."""
    return (x - shift[None]) / scale[None]
