"""Predictive envelopes along one axis: the paper's toy and stock figures."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from accord._checks import check_not_empty, check_positive, check_same_shape
from accord._types import Floats
from accord._wording import percent
from accord.distributions import Distribution
from accord.metrics import as_array, finite, predictive
from accord.metrics import coverage as covered
from accord.plots.figures import axes_or_new
from accord.plots.style import (
    BLUE,
    LINES,
    ORANGE,
    PALETTE,
    VERMILLION,
    date_axis,
    ink,
    legend,
    legend_below,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["envelope", "series_envelope"]


def envelope(
    *,
    x: ArrayLike,
    dist: Distribution | None = None,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    n_std: float = 3.0,
    split: bool = False,
    truth: ArrayLike | None = None,
    x_data: ArrayLike | None = None,
    y_data: ArrayLike | None = None,
    show_legend: bool = True,
    ax: "Axes | None" = None,
) -> "Axes":
    """Predicted mean with its band of ±``n_std`` σ along one feature, the truth and the data.

    ``split`` colours the aleatoric band and what the epistemic part adds to it differently.

    **Shape**: ``x``, ``mean``, ``std``, ``truth`` (G,); ``x_data``, ``y_data`` (N,).
    """
    check_positive("n_std", n_std)
    grid = _line("x", x)
    q = predictive(grid, dist=dist, mean=mean, std=std)
    order = np.argsort(grid, kind="stable")
    at, center = grid[order], as_array("mean", q.mean)[order]
    whole, noise = as_array("std", q.std)[order], as_array("aleatoric", q.aleatoric)[order]
    ax = axes_or_new(ax)
    inner = n_std * (noise if split else whole)
    label = f"±{n_std:g}σ" + (", noise alone" if split else "")
    ax.fill_between(at, center - inner, center + inner, color=BLUE, alpha=0.35, lw=0, label=label)
    if split:
        _ring(ax, at, center, inner, n_std * whole, f"±{n_std:g}σ, with the epistemic part")
    ax.plot(at, center, color=BLUE, lw=1.8, label="predicted mean")
    if truth is not None:
        line = finite("truth", truth)
        check_same_shape(x=grid, truth=line)
        ax.plot(at, line[order], color=VERMILLION, lw=1.4, ls=(0, (5, 2)), label="truth")
    _data(ax, x_data, y_data)
    ax.set(xlabel="x", ylabel="y", xlim=(at[0], at[-1]))
    if show_legend:
        legend(ax, loc="best")
    return ax


def _ring(ax: "Axes", x: Floats, center: Floats, inner: Floats, outer: Floats, label: str) -> None:
    for sign, name in ((1, label), (-1, None)):
        ends = (center + sign * inner, center + sign * outer)
        ax.fill_between(x, *ends, color=ORANGE, alpha=0.4, lw=0, label=name)


def _data(ax: "Axes", x_data: ArrayLike | None, y_data: ArrayLike | None) -> None:
    if (x_data is None) != (y_data is None):
        raise TypeError("data must be x_data= with y_data=, got one of the two. Pass both.")
    if x_data is None or y_data is None:
        return
    x, y = finite("x_data", x_data), finite("y_data", y_data)
    check_same_shape(x_data=x, y_data=y)
    ax.plot(x, y, color=ink(ax), lw=0, marker="o", ms=4.2, mec="none", label="data")


def _line(name: str, values: ArrayLike) -> Floats:
    line = finite(name, values)
    check_not_empty(name, line)
    if line.ndim != 1:
        raise ValueError(f"{name} must have shape (N,), got {line.shape}. Plot one feature.")
    return line


def series_envelope(
    *,
    x: ArrayLike,
    y_true: ArrayLike,
    methods: Mapping[str, Distribution],
    coverage: float = 0.95,
    ax: "Axes | None" = None,
) -> "Axes":
    """A series with the central intervals of several methods around it, e.g. forecasts of prices.

    ``x`` may be numbers or dates. The legend says how many observations each method has inside.

    **Shape**: ``x``, ``y_true`` (N,), in the order in which they are to be joined.
    """
    check_not_empty("methods", list(methods))
    y = _line("y_true", y_true)
    at: Any = np.asarray(x)
    check_same_shape(x=at, y_true=y)
    ax = axes_or_new(ax, height=4.6)
    for k, (name, dist) in enumerate(methods.items()):
        _band(ax, at, y, name, dist, coverage, k)
    ax.plot(at, y, color=ink(ax), lw=0, marker="o", ms=4.5, mec="none", label="observed")
    ax.set_ylabel("target")
    ax.margins(x=0.02)
    if np.issubdtype(at.dtype, np.datetime64):
        date_axis(ax.xaxis, ticks=9)
    legend_below(ax, columns=2)
    return ax


def _band(
    ax: "Axes", x: Any, y: Floats, name: str, dist: Distribution, coverage: float, k: int
) -> None:
    q = predictive(y, dist=dist)
    interval, center = as_array("interval", q.interval(coverage)), as_array("mean", q.mean)
    drawn = drawable_interval(interval, center, y)
    inside = percent(covered(y_true=y, interval=interval), 0)
    look: dict[str, Any] = {"color": PALETTE[k % len(PALETTE)], "ls": LINES[k % len(LINES)]}
    ax.fill_between(x, *drawn.T, color=look["color"], alpha=0.12, lw=0)
    for end in interval.T:  # where infinite: no edge
        ax.plot(x, end, **look, lw=1.0)
    label = f"{name}: {inside} in its {coverage * 100:g} % interval"
    ax.plot(x, center, **look, lw=2.0, label=label)


def drawable_interval(interval: Floats, mean: Floats, y: Floats) -> Floats:
    """Intervals with infinite ends moved just beyond all that is finite.

    Conformal intervals are infinite where too few calibration rows allow no bound.

    **Shape**: ``interval`` (N, 2), ``mean`` and ``y`` (N,) → (N, 2).
    """
    shown = np.concatenate([interval[np.isfinite(interval)], y, mean])
    low, high = float(shown.min()), float(shown.max())
    beyond = 0.15 * (high - low) if high > low else 1.0
    return np.clip(interval, low - beyond, high + beyond)
