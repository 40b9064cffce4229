"""Figures for a page: inline SVG whose colours follow the page's light or dark mode."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from accord import plots
from accord.plots import style
from accord.workflows import Assessment
from accord.workflows.wording import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Widths in inches: about 350 px on a phone and 560 px beside text stay readable at 10 points.
NARROW, WIDE = 4.9, 7.4

# The palette's colours as the page's variables, which differ between light and dark.
_VARIABLES = {
    style.BLUE: "var(--blue)",
    style.VERMILLION: "var(--vermillion)",
    style.GREEN: "var(--green)",
    style.PURPLE: "var(--purple)",
    style.ORANGE: "var(--orange)",
    style.SKY: "var(--sky)",
}


def draw(
    paint: Callable[["Axes"], Any], *, alt: str, width: float = NARROW, height: float = 3.6
) -> Markup:
    """A figure of one pair of axes as an element of the page."""
    figure, (ax,) = plots.figure(width=width, height=height)
    paint(ax)
    return Markup(with_page_colours(plots.to_svg(figure, alt=alt)))


def with_page_colours(svg: str) -> str:
    """A figure whose colours are the page's own."""
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, variable)
    return svg


def plain(text: str, *, limit: int = 40) -> str:
    """Text as matplotlib shows it letter by letter: a dollar sign starts no formula."""
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    printable = "".join(c if c.isprintable() else "�" for c in short)
    return printable.replace("\\", "\\\\").replace("$", r"\$")


def intervals(found: Assessment, *, target: str, wide: bool, rows: str = "held-out rows") -> Markup:
    """Rows in the order of their prediction, with intervals and what was observed."""
    shown = _evenly(np.argsort(found.mean, kind="stable"), 150 if wide else 60)
    lower, upper = _finite_ends(found, shown)

    def paint(ax: "Axes") -> None:
        place = np.arange(len(shown))
        y, inside = found.y[shown], found.inside[shown]
        ink = style.ink(ax)
        ax.vlines(
            place, lower, upper, color=style.SKY, alpha=0.6, lw=2.6 if wide else 3.2,
            label=f"{percent(found.coverage)} interval",
        )  # fmt: skip
        ax.plot(
            place, found.mean[shown], color=style.BLUE, lw=0, marker="_", ms=5, mew=1.6,
            label="predicted mean",
        )  # fmt: skip
        ax.plot(place[inside], y[inside], color=ink, lw=0, marker="o", ms=2.9, label="observed")
        ax.plot(
            place[~inside], y[~inside], color=style.VERMILLION, lw=0, marker="D", ms=5,
            label="observed, outside",
        )  # fmt: skip
        ax.set(xlabel=f"{rows}, in order of their prediction", ylabel=plain(target))
        ax.set(xlim=(-1, len(shown)), xticks=[])
        ax.grid(visible=False, axis="x")
        style.legend_below(ax, columns=4 if wide else 2)

    alt = (
        f"{rows.capitalize()} in order of their predicted {target}: {percent(found.covered)} of "
        f"{len(found)} observed values lie inside their {percent(found.coverage)} interval."
    )
    size = {"width": WIDE, "height": 5.0} if wide else {"width": NARROW, "height": 4.2}
    return draw(paint, alt=alt, **size)


def _evenly(order: Any, at_most: int) -> Any:
    places = np.linspace(0, len(order) - 1, min(at_most, len(order))).round().astype(int)
    return order[np.unique(places)]


def _finite_ends(found: Assessment, shown: Any) -> tuple[Any, Any]:
    """Interval ends that can be drawn: an infinite one ends beyond everything else."""
    values = np.concatenate([found.y, found.mean, found.lower, found.upper])
    values = values[np.isfinite(values)]
    reach = np.ptp(values) or 1.0
    low, high = values.min() - 0.1 * reach, values.max() + 0.1 * reach
    return np.clip(found.lower[shown], low, high), np.clip(found.upper[shown], low, high)


def reliability(curves: Mapping[str, Assessment]) -> Markup:
    """Observed against stated coverage at all levels."""
    named = {plain(name): found.reliability() for name, found in curves.items()}
    words = "; ".join(f"{name}: mean gap {percent(curve.ece)}" for name, curve in named.items())
    alt = f"Observed against stated coverage, where the diagonal is ideal. {words}."
    return draw(
        lambda ax: plots.reliability_diagram(named, ax=ax), alt=alt, width=NARROW, height=5.2
    )


def uncertainty_sources(found: Assessment) -> Markup:
    """Aleatoric and epistemic parts, from the surest to the least sure rows."""
    alt = (
        "Uncertainty of held-out rows from surest to least sure, split into noise and ignorance: "
        f"{percent(found.variance_shares[2], 0)} of the variance is ignorance."
    )
    return draw(
        lambda ax: plots.uncertainty_split(
            aleatoric=found.aleatoric, epistemic=found.epistemic, ax=ax
        ),
        alt=alt,
        height=4.0,
    )


def errors(found: Assessment) -> Markup:
    """Errors against predicted deviation."""
    alt = "Errors of held-out rows against their predicted standard deviation."
    return draw(
        lambda ax: plots.error_against_deviation(
            y_true=found.y, mean=found.mean, std=found.std, ax=ax
        ),
        alt=alt,
        height=4.2,
    )


def tolerance(curve: plots.ToleranceCurveLike) -> Markup:
    """How each tolerance did on inner held-out rows and outliers."""
    alt = (
        "Negative log-likelihood against tolerance, for rows like the training rows and for "
        f"outliers; {curve.chosen:.3g} of the range was chosen."
    )
    return draw(lambda ax: plots.tolerance_curve(curve, ax=ax), alt=alt, height=3.9)


def training(history: Any) -> Markup:
    """Loss per epoch and member."""
    epochs, members = history.shape
    alt = f"Training loss of {members} members over {epochs} epochs."
    return draw(lambda ax: plots.training_curves(history, ax=ax), alt=alt, height=3.4)
