"""How a model came about: the choice of its tolerance and its training."""

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from accord._checks import check_not_empty, check_same_shape
from accord._types import Floats
from accord.metrics import finite
from accord.plots.figures import axes_or_new
from accord.plots.style import BLUE, DASHED, SMALL, VERMILLION, ink, legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ToleranceCurveLike", "tolerance_curve", "training_curves"]


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
