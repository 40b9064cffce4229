"""Figures that judge: can the stated probabilities be believed, and how do methods compare?"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from accord._checks import (
    check_count,
    check_finite,
    check_non_negative,
    check_not_empty,
    check_same_shape,
)
from accord._types import Floats
from accord._wording import percent
from accord.distributions import Distribution
from accord.metrics import (
    MINIMUM_ROWS,
    ReliabilityCurve,
    as_array,
    check_enough_rows,
    deviation_bins,
    finite,
    histogram_band,
    pit,
    predictive,
    targets,
)
from accord.plots.style import (
    BLUE,
    DASHED,
    SMALL,
    VERMILLION,
    axes_or_new,
    evenly,
    ink,
    legend,
    legend_below,
    method_look,
    note,
    number_axis,
    percent_axis,
    scatter_look,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def reliability_diagram(
    curves: ReliabilityCurve | Mapping[str, ReliabilityCurve],
    *,
    ax: "Axes | None" = None,
) -> "Axes":
    """Observed against expected coverage, one line per method, with a consistency band.

    A calibrated model's whole line stays inside the band 95 times in 100. Samples of different size
    have different bands: those of the smallest and of the largest one are drawn.

    >>> from accord.metrics import reliability_curve
    >>> curve = reliability_curve(y_true=range(10), mean=range(10), std=[1.0] * 10)
    >>> reliability_diagram({"ours": curve}).get_xlabel()
    'expected coverage'
    """
    named = {"": curves} if isinstance(curves, ReliabilityCurve) else curves
    check_not_empty("curves", list(named))
    ax = axes_or_new(ax, width=5.0, height=5.5)
    for k, (name, curve) in enumerate(named.items()):
        label = f"{name} (ECE {curve.ece:.3f})" if name else f"ECE {curve.ece:.3f}"
        ax.plot(curve.expected, curve.observed, label=label, **method_look(k), ms=5.5, lw=1.6)
    by_size = sorted(named.values(), key=lambda curve: curve.n)
    bands = {by_size[0].n: by_size[0], by_size[-1].n: by_size[-1]}
    # where two bands lie upon each other the grey is darker: one label stands for both
    keys = [_calibrated(*bands), None]
    for curve, key in zip(bands.values(), keys, strict=False):
        _consistency_band(ax, curve, key)
    ax.plot([0, 1], [0, 1], color=ink(ax), alpha=0.6, lw=1, ls=DASHED, zorder=1)
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.set(xlabel="expected coverage", ylabel="observed coverage")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks([0.0, 0.25, 0.5, 0.75, 1.0])
        percent_axis(axis)
    note(ax, 0.04, 0.97, "too cautious", style="italic")
    note(ax, 0.97, 0.03, "over-confident", style="italic", ha="right", va="bottom")
    legend_below(ax)
    return ax


def _consistency_band(ax: "Axes", curve: ReliabilityCurve, label: str | None) -> None:
    band = curve.band()
    x = np.concatenate([[0.0], curve.expected, [1.0]])
    lower, upper = (np.concatenate([[0.0], end, [1.0]]) for end in band.T)
    ax.fill_between(x, lower, upper, color=ink(ax), alpha=0.15, lw=0, zorder=0.5, label=label)


def _calibrated(*sizes: int) -> str:
    rows = "; darker: ".join(f"{n:,}" for n in sizes)
    return f"95 % range of a calibrated model (n = {rows})"


def pit_histogram(
    *,
    y_true: ArrayLike,
    dist: Distribution | None = None,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    n_bins: int = 10,
    ax: "Axes | None" = None,
) -> "Axes":
    """Histogram of the PIT values F(t), as multiples of the calibrated height, with its band.

    Flat: calibrated. A valley: over-confident. A hill: too cautious. A slope: biased. Bars that
    leave the band have the other colour; all bars of a calibrated model stay inside 95 times in
    100.

    **Shape**: ``y_true`` (N,) or (N, K) with at least ten values; several outputs are pooled.
    """
    u = pit(y_true=y_true, dist=dist, mean=mean, std=std).ravel()
    check_enough_rows(u.size, MINIMUM_ROWS, "a PIT histogram")
    low, high = n_bins * histogram_band(n_bins=n_bins, n=u.size)
    counts, edges = np.histogram(u, bins=n_bins, range=(0.0, 1.0))
    heights = counts * n_bins / u.size
    colors = [BLUE if low <= height <= high else VERMILLION for height in heights]
    ax = axes_or_new(ax, width=6.0, height=4.0)
    ax.bar(edges[:-1], heights, width=0.92 / n_bins, align="edge", color=colors, alpha=0.85)
    label = _calibrated(u.size)
    ax.axhspan(low, high, color=ink(ax), alpha=0.15, lw=0, zorder=0.5, label=label)
    ax.axhline(1.0, color=ink(ax), alpha=0.7, lw=1, ls=DASHED)
    for end in (low, high):
        ax.axhline(end, color=ink(ax), alpha=0.5, lw=0.8)
    ax.set(xlim=(0, 1), ylim=(0, 1.1 * max(heights.max(), high)))
    ax.set(xlabel="PIT value F(t)", ylabel="relative frequency")
    ax.grid(visible=False, axis="x")
    legend_below(ax)
    return ax


def error_against_deviation(
    *,
    y_true: ArrayLike,
    dist: Distribution | None = None,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    n_bins: int = 10,
    ax: "Axes | None" = None,
) -> "Axes":
    """Errors t − μ against predicted σ: the cones ±σ and ±2σ, and what is found in groups.

    The squares are the root mean squared errors of groups of equal count
    (`accord.metrics.deviation_bins`); if the deviations are right, they follow the edge of the
    inner cone. Axes are for the bulk of the rows; it is written how many lie beyond. Of many rows
    only some are drawn; the squares are of all.

    **Shape**: ``y_true`` (N,) or (N, K); several outputs are pooled.
    """
    y = targets(y_true)
    q = predictive(y, dist=dist, mean=mean, std=std)
    bins = deviation_bins(y_true=y, dist=q, n_bins=n_bins)
    sigma, error = as_array("std", q.std).ravel(), (y - as_array("mean", q.mean)).ravel()
    ax = axes_or_new(ax)
    reach = _reach(sigma)
    _cones(ax, 1.04 * reach)
    if reach < sigma.max():
        _leave_out(ax, sigma, error, reach)
    drawn = evenly(sigma.size)
    ax.scatter(sigma[drawn], error[drawn], color=BLUE, **scatter_look(len(drawn)))
    label = f"root mean squared error of {n_bins} groups"
    ax.plot(bins.predicted, bins.observed, color=VERMILLION, marker="s", ms=6, lw=1.4, label=label)
    ax.axhline(0.0, color=ink(ax), alpha=0.4, lw=0.8)
    ax.set(xlabel="predicted standard deviation σ", ylabel="error, observed − predicted")
    number_axis(ax.xaxis)
    number_axis(ax.yaxis)
    legend_below(ax)
    return ax


def _reach(values: Floats) -> float:
    """The largest value, unless a few are so large that nothing else could be seen."""
    bulk = 1.5 * float(np.quantile(values, 0.95))
    largest = float(values.max())
    return bulk if largest > 3 * bulk > 0 else largest


def _leave_out(ax: "Axes", sigma: Floats, error: Floats, reach: float) -> None:
    """Axes for the bulk of the rows, with the number of those beyond."""
    height = max(2.2 * reach, _reach(np.abs(error[sigma <= reach])))
    ax.set_ylim(-height, height)
    beyond = int(((sigma > reach) | (np.abs(error) > height)).sum())
    words = "row lies" if beyond == 1 else "rows lie"
    note(ax, 0.01, 0.02, f"{beyond} {words} beyond these axes", va="bottom")


def _cones(ax: "Axes", reach: float) -> None:
    ends = np.array([0.0, reach])
    for k, name in ((2, "±2σ"), (1, "±σ")):
        ax.fill_between(ends, -k * ends, k * ends, color=ink(ax), alpha=0.11, lw=0, zorder=0.5)
        ax.annotate(
            name,
            (reach, k * reach),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=SMALL,
            color=ink(ax),
            annotation_clip=False,
        )
    ax.set_xlim(0.0, reach)


def coverage_by_distance(
    *,
    distance: ArrayLike,
    inside: ArrayLike,
    coverage: float,
    n_groups: int = 8,
    ax: "Axes | None" = None,
) -> "Axes":
    """Observed coverage in groups of rows, from those near the training rows to the furthest.

    Bars are exact 95 % ranges: a group whose bar is below the line has intervals too narrow.

    **Shape**: ``distance`` and ``inside`` (N,).
    """
    from scipy import stats

    check_count("n_groups", n_groups)
    far = as_array("distance", distance)
    hits = np.asarray(inside, dtype=bool)
    check_same_shape(distance=far, inside=hits)
    groups = np.array_split(np.argsort(far, kind="stable"), max(1, min(n_groups, len(far) // 5)))
    ax = axes_or_new(ax)
    place = (np.arange(len(groups)) + 0.5) / len(groups)
    share = np.array([hits[rows].mean() for rows in groups])
    ranges = [
        stats.binomtest(int(hits[rows].sum()), len(rows)).proportion_ci(method="exact")
        for rows in groups
    ]
    low, high = np.array([[found.low, found.high] for found in ranges]).T
    ax.axhline(coverage, color=ink(ax), lw=1, ls=DASHED, label=f"stated, {percent(coverage)}")
    ax.errorbar(
        place, share, [share - low, high - share], color=BLUE, lw=0, elinewidth=1.6, marker="o",
        ms=5, label="observed, with 95 % confidence range",
    )  # fmt: skip
    lowest = float(low.min())
    # room for the legend below the lowest end
    ax.set(xlim=(0, 1), ylim=(max(0.0, min(0.5, lowest - 0.2 * (1 - lowest))), 1.02))
    ax.set(xlabel="rows, from nearest to furthest", ylabel="share inside")
    percent_axis(ax.xaxis)
    percent_axis(ax.yaxis)
    ax.grid(visible=False, axis="x")
    legend(ax, loc="lower left")
    return ax


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
