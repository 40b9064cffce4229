"""What was tried, side by side: methods with their errors, tolerances, and epochs of training."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from accord._checks import check_finite, check_non_negative, check_not_empty, check_same_shape
from accord._types import Floats
from accord.metrics import finite
from accord.plots.figures import axes_or_new
from accord.plots.style import (
    BLUE,
    DASHED,
    SMALL,
    VERMILLION,
    ink,
    legend_below,
    method_look,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def metric_by_method(
    estimates: Mapping[str, float],
    *,
    errors: Mapping[str, float] | None = None,
    metric: str = "NLL",
    ax: "Axes | None" = None,
) -> "Axes":
    """A dot per method with its standard error, the lowest one filled.

    Methods are drawn from top to bottom in the order given. Those missing in ``errors`` get no bar.

    >>> metric_by_method({"ours": 2.4, "theirs": 2.6}, errors={"ours": 0.1}).get_xlabel()
    'NLL, lower is better'
    """
    check_not_empty("estimates", list(estimates))
    values = np.array(list(estimates.values()), dtype=np.float64)
    check_finite("estimates", values)
    spread = np.array([(errors or {}).get(name, 0.0) for name in estimates], dtype=np.float64)
    check_finite("errors", spread)
    check_non_negative("errors", spread)
    ax = axes_or_new(ax, height=0.9 + 0.36 * len(values))
    place = np.arange(len(values))
    best = int(values.argmin())
    bars = spread > 0
    ax.errorbar(
        values[bars], place[bars], xerr=spread[bars], fmt="none", ecolor=BLUE, elinewidth=1.6
    )
    ax.plot(values, place, color=BLUE, lw=0, marker="o", ms=7, mfc="none", mew=1.6)
    ax.plot(values[best], best, color=BLUE, lw=0, marker="o", ms=7.5)
    _write_values(ax, values, spread)
    ax.set(xlabel=f"{metric}, lower is better", ylim=(len(values) - 0.5, -0.7))
    ax.set_yticks(place, list(estimates))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    return ax


def trade_off(
    points: Mapping[str, tuple[float, float]],
    *,
    xlabel: str,
    ylabel: str,
    aim: float | None = None,
    log_x: bool = False,
    ax: "Axes | None" = None,
) -> "Axes":
    """Methods as points of a plane, such as width against coverage, or time against a score.

    ``aim`` is the value of y that is right, drawn as a line.

    >>> trade_off({"ours": (2.0, 0.95)}, xlabel="width", ylabel="coverage", aim=0.95).get_xlabel()
    'width'
    """
    check_not_empty("points", list(points))
    values = np.array(list(points.values()), dtype=np.float64)
    check_finite("points", values)
    ax = axes_or_new(ax, height=4.2)
    if log_x:
        ax.set_xscale("log")
    if aim is not None:
        ax.axhline(aim, color=ink(ax), lw=1, ls=DASHED, label="stated")
    for place, (name, (x, y)) in enumerate(points.items()):
        ax.plot(x, y, lw=0, ms=8, label=name, **method_look(place))
    ax.margins(0.08, 0.12)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    legend_below(ax, columns=2)
    return ax


def _write_values(ax: "Axes", values: Floats, spread: Floats) -> None:
    """Each value above its dot, all with the decimals that a typical error or gap calls for."""
    known = spread[spread > 0] if (spread > 0).any() else np.diff(np.unique(values))
    typical = float(np.median(known)) if known.size else 0.01
    decimals = int(np.clip(1 - np.floor(np.log10(typical)), 0, 4))
    for y, (value, error) in enumerate(zip(values, spread, strict=True)):
        number = f"{value:.{decimals}f}".replace("-", "−")
        ax.annotate(
            f"{number} ± {error:.{decimals}f}" if error > 0 else number,
            (value, y),
            xytext=(0, 7),
            textcoords="offset points",
            ha="center",
            fontsize=SMALL - 1,
            color=ink(ax),
        )


class ToleranceCurveLike(Protocol):
    """Held-out NLL of each tolerance that was tried, and the one chosen.

    **Shape**: ``values``, ``in_distribution`` and ``out_of_distribution`` (G,).
    """

    @property
    def values(self) -> ArrayLike: ...
    @property
    def in_distribution(self) -> ArrayLike: ...
    @property
    def out_of_distribution(self) -> ArrayLike: ...
    @property
    def chosen(self) -> float: ...


def tolerance_curve(curve: ToleranceCurveLike, *, ax: "Axes | None" = None) -> "Axes":
    """NLL of random held-out rows and of held-out outliers against the tolerance, choice marked.

    The values tried, usually 0 and then a geometric series, are spaced evenly. Lower is better.
    """
    values = finite("values", curve.values)
    check_not_empty("values", values)
    series = {
        "rows like the training rows": (
            finite("in_distribution", curve.in_distribution),
            BLUE,
            "o",
        ),
        "outliers": (finite("out_of_distribution", curve.out_of_distribution), VERMILLION, "s"),
    }
    ax = axes_or_new(ax, height=3.8)
    place = np.arange(len(values))
    chosen = int(np.abs(values - curve.chosen).argmin())
    for name, (losses, color, marker) in series.items():
        check_same_shape(values=values, losses=losses)
        ax.plot(place, losses, color=color, marker=marker, ms=5, lw=1.6, label=f"held-out {name}")
        ax.plot(chosen, losses[chosen], color=color, marker=marker, ms=11, mfc="none", mew=1.6)
    ax.axvline(chosen, color=ink(ax), alpha=0.6, lw=1, ls=DASHED, zorder=1)
    ax.set_xticks(place, [f"{value:.3g}" for value in values])
    ax.set(xlabel="tolerance ε, as a share of the target's range", ylabel="NLL, lower is better")
    ax.annotate(
        f"chosen: ε = {values[chosen]:.3g}",
        (chosen, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(5, -2),
        textcoords="offset points",
        va="top",
        fontsize=SMALL,
        color=ink(ax),
    )
    legend_below(ax, columns=2)
    return ax


def training_curves(
    history: ArrayLike,
    *,
    validation: ArrayLike | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Loss per epoch: each member thinly, their mean boldly; held-out loss beside it if given.

    **Shape**: ``history`` and ``validation`` (E,) or (E, M), epochs first.
    """
    ax = axes_or_new(ax, height=3.6)
    _losses(ax, _per_epoch("history", history), BLUE, "-", "training loss")
    if validation is not None:
        _losses(ax, _per_epoch("validation", validation), VERMILLION, "--", "held-out loss")
    ax.set(xlabel="epoch", ylabel="loss")
    legend_below(ax, columns=2)
    return ax


def _losses(ax: "Axes", losses: Floats, color: str, dash: str, name: str) -> None:
    epochs = np.arange(1, len(losses) + 1)
    members = losses.shape[1]
    if members > 1:
        ax.plot(epochs, losses, color=color, lw=0.8, alpha=0.35)
    label = f"{name}, mean of {members} members" if members > 1 else name
    ax.plot(epochs, losses.mean(axis=1), color=color, lw=2.0, ls=dash, label=label)


def _per_epoch(name: str, values: ArrayLike) -> Floats:
    losses = finite(name, values)
    check_not_empty(name, losses)
    if losses.ndim not in (1, 2):
        raise ValueError(
            f"{name} must have shape (E,) or (E, M), epochs first, got {losses.shape}. "
            "Pass one column per member."
        )
    return losses[:, None] if losses.ndim == 1 else losses
