"""Against one quantity: what a column does to predictions, and where errors are left."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from accord._checks import check_count, check_same_shape
from accord._types import Floats
from accord.metrics import as_array, finite
from accord.plots.envelopes import drawable_interval
from accord.plots.figures import axes_or_new
from accord.plots.style import (
    BLUE,
    SKY,
    VERMILLION,
    date_axis,
    evenly,
    ink,
    legend_below,
    number_axis,
    scatter_look,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["dependence_curve", "residuals"]

_LONG_NAME = 14
_SECONDS_A_DAY = 86_400


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
