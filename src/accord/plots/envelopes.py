"""Along one axis: predictions with their bands, what a column does to them, and the errors left."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from accord._checks import check_count, check_not_empty, check_positive, check_same_shape
from accord._types import Floats
from accord._wording import percent
from accord.distributions import Distribution
from accord.metrics import as_array, finite, predictive
from accord.metrics import coverage as covered
from accord.plots.style import (
    BLUE,
    LINES,
    ORANGE,
    PALETTE,
    SKY,
    VERMILLION,
    axes_or_new,
    date_axis,
    evenly,
    ink,
    legend,
    legend_below,
    number_axis,
    scatter_look,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_LONG_NAME = 14
_SECONDS_A_DAY = 86_400


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


def dependence_curve(
    *,
    at: ArrayLike,
    mean: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    unknown: ArrayLike,
    labels: Sequence[str] = (),
    dates: bool = False,
    ax: "Axes | None" = None,
) -> "Axes":
    """The mean prediction for values of a column, with two bands.

    The outer one is the mean interval, ``lower`` to ``upper``; the inner one is ±2 ``unknown``,
    what the model does not know. An infinite end is drawn beyond all finite ones. With ``labels``,
    ``at`` are places of categories; with ``dates``, seconds since 1970.

    **Shape**: all (g,).
    """
    given = {"at": at, "mean": mean, "unknown": unknown}
    found = {name: finite(name, values) for name, values in given.items()}
    x, center, spread = found["at"], found["mean"], 2 * found["unknown"]
    x = x / _SECONDS_A_DAY if dates else x
    ends = np.stack([as_array("lower", lower), as_array("upper", upper)], axis=-1)
    low, high = drawable_interval(ends, center, center).T
    check_same_shape(**found, lower=low)
    ax = axes_or_new(ax)
    if labels:
        _as_bars(ax, x, center, spread, low, high)
        ax.set_xticks(x, [_shortened(name) for name in labels], rotation=30, ha="right")
    else:
        ax.fill_between(x, low, high, color=SKY, alpha=0.3, lw=0)
        ax.fill_between(x, center - spread, center + spread, color=BLUE, alpha=0.3, lw=0)
        ax.plot(x, center, color=BLUE, lw=2)
        (date_axis if dates else number_axis)(ax.xaxis)
    number_axis(ax.yaxis)
    return ax


def _shortened(name: str) -> str:
    return name if len(name) <= _LONG_NAME else f"{name[: _LONG_NAME - 1]}…"


def _as_bars(
    ax: "Axes", x: Floats, center: Floats, spread: Floats, lower: Floats, upper: Floats
) -> None:
    ax.vlines(x, lower, upper, color=SKY, alpha=0.45, lw=9)
    ax.vlines(x, center - spread, center + spread, color=BLUE, alpha=0.35, lw=9)
    ax.plot(x, center, color=BLUE, lw=0, marker="o", ms=6)
    ax.set_xlim(-0.6, len(x) - 0.4)


def residuals(
    *,
    against: ArrayLike,
    residual: ArrayLike,
    xlabel: str,
    n_groups: int = 12,
    dates: bool = False,
    ax: "Axes | None" = None,
) -> "Axes":
    """Errors against a quantity, with the mean error of groups of rows and twice its error.

    Means that leave the zero line say that the model errs in a direction there. Of many rows only
    some are drawn; the means are of all. With ``dates``, ``against`` is in seconds since 1970.

    **Shape**: ``against`` and ``residual`` (N,).
    """
    check_count("n_groups", n_groups)
    x, error = as_array("against", against), finite("residual", residual)
    check_same_shape(against=x, residual=error)
    known = np.isfinite(x)
    x, error = x[known], error[known]
    x = x / _SECONDS_A_DAY if dates else x
    order = np.argsort(x, kind="stable")
    groups = np.array_split(order, max(1, min(n_groups, len(x) // 5)))
    place = np.array([np.median(x[rows]) for rows in groups])
    center = np.array([error[rows].mean() for rows in groups])
    spread = np.array([2 * error[rows].std(ddof=min(1, len(rows) - 1)) for rows in groups])
    spread /= np.sqrt([len(rows) for rows in groups])
    ax = axes_or_new(ax)
    drawn = order[evenly(len(order))]
    ax.scatter(x[drawn], error[drawn], color=BLUE, **scatter_look(len(drawn)))
    ax.axhline(0.0, color=ink(ax), alpha=0.5, lw=0.9)
    ax.errorbar(
        place, center, spread, color=VERMILLION, lw=1.4, marker="s", ms=5, elinewidth=1.4,
        label="mean error of groups, ± 2 standard errors",
    )  # fmt: skip
    ax.set(xlabel=xlabel, ylabel="error, observed − predicted")
    (date_axis if dates else number_axis)(ax.xaxis)
    number_axis(ax.yaxis)
    legend_below(ax)
    return ax
