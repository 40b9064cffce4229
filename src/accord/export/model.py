"""A whole model as one graph: its answer's distributions become the named outputs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from accord._checks import check_probability
from accord._types import Floats
from accord.export.file import import_onnx, write
from accord.export.graph import Graph, Value, joined
from accord.export.mixture import MixtureGraph
from accord.export.parts import state


def central_tails(levels: Floats) -> tuple[Floats, Floats]:
    """Of each level the smaller tail, and on which side it lies: 1 below, −1 above."""
    return np.minimum(levels, 1 - levels), np.where(levels <= 0.5, 1.0, -1.0)


@dataclass(frozen=True)
class GraphAnswer:
    """What a model's graph says of rows.

    ``tails`` gives the tail probabilities of the mixture at which quantiles of some levels are
    taken, and their sides. ``score`` is the distance to the training rows, 1 where rows begin to
    be unusual; ``unusual`` whether they are.

    **Shape**: score and unusual (N, 1), or None for a model that does not know.
    """

    mixture: MixtureGraph
    bounds: tuple[float, float] = (-np.inf, np.inf)
    tails: Callable[[Floats], tuple[Floats, Floats]] = central_tails
    score: Value | None = None
    unusual: Value | None = None


def export_estimator(
    model: Any, path: str | Path, *, levels: Sequence[float], metadata: Mapping[str, Any]
) -> None:
    """Write an estimator of a matrix ``X`` as an ONNX file."""
    import_onnx()
    graph = Graph()
    names = getattr(model, "feature_names_in_", None)
    width = model.n_features_in_
    answer = state(model, graph.input("X", np.float64, width=width))
    columns = [f"x{i}" for i in range(width)] if names is None else [str(n) for n in names]
    described = {"target": model.target_names_[0], "inputs": {"X": columns}, **metadata}
    write_answer(graph, answer, path, levels=levels, metadata=described)


def write_answer(
    graph: Graph,
    answer: GraphAnswer,
    path: str | Path,
    *,
    levels: Sequence[float],
    metadata: Mapping[str, Any],
) -> None:
    """State the outputs, and write the file.

    Outputs: ``y_mean`` and ``y_std`` (N,), ``y_quantiles`` (N, levels), and for a model that knows
    unusual rows ``unusual_score`` and ``unusual`` (N,).
    """
    found = np.atleast_1d(np.asarray(levels, dtype=np.float64))
    check_probability("levels", found, strict=True, remedy="Write 0.95 for 95 %.")
    quantiles, median = _quantiles(answer, found)
    mean, std = _moments(answer, median)
    graph.output("y_mean", mean.column(0), np.float64)
    graph.output("y_std", std.column(0), np.float64)
    graph.output("y_quantiles", quantiles, np.float64, width=len(found))
    if answer.score is not None:
        graph.output("unusual_score", answer.score.column(0), np.float64)
    if answer.unusual is not None:
        graph.output("unusual", answer.unusual.column(0), np.bool_)
    write(graph, path, metadata={"levels": found.tolist(), **metadata})


def _moments(answer: GraphAnswer, median: Value) -> tuple[Value, Value]:
    low, high = answer.bounds
    if np.isinf(low) and np.isinf(high):
        return answer.mixture.moments()
    return answer.mixture.moments_within(low, high, median)


def _quantiles(answer: GraphAnswer, levels: Floats) -> tuple[Value, Value]:
    """Quantiles within the bounds, and the mixture's own median: one search for all.

    A tail of probability 0 begins where the support ends.

    **Shape**: levels (L,) → (N, L) and (N, 1).
    """
    tails, sign = answer.tails(levels)
    some = np.flatnonzero(tails > 0)
    found = answer.mixture.quantiles(np.append(tails[some], 0.5), np.append(sign[some], 1.0))
    median = found.take([len(some)], 1)
    ends = np.where(sign > 0, answer.mixture.lowest, np.inf)
    column = dict(zip(some.tolist(), range(len(some)), strict=True))
    columns = [
        found.take([column[place]], 1) if place in column else 0.0 * median + float(ends[place])
        for place in range(len(levels))
    ]
    low, high = answer.bounds
    return joined(columns, 1).at_least(low).at_most(high), median
