"""From a template and values to a page, and its figures.

Whatever comes from a table is escaped. Figures are inline SVG whose colours follow the page's
light or dark mode.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from accord import __version__, plots
from accord._types import Floats
from accord._wording import count, duration, number, percent, to_scale, unit_of, units_of, written
from accord.metrics import METRICS, Metric
from accord.plots import style
from accord.tabular import Assessment

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def render(template: str, *, interactive: bool = False, **values: Any) -> str:
    """The page that a template makes of values; an ``interactive`` one has a script.

    The page's policy names that script by its hash, so that no other one can run.
    """
    made = datetime.now(UTC)
    script = _source("page.js") if interactive else ""
    return (
        _environment()
        .get_template(template)
        .render(
            version=__version__,
            made=f"{made.day} {made:%B %Y, %H:%M} UTC",
            style=Markup(_source("style.css")),
            script=Markup(script),
            script_hash=_hash(script) if script else "",
            metrics=METRICS.values(),
            explained=explained,
            **values,
        )
    )


def explained(metric: Metric, target: str) -> str:
    """What a figure of merit says, its unit, and which way is better.

    >>> explained(METRICS["crps"], "strength [MPa]")
    'continuous ranked probability score, in MPa; lower is better'
    """
    unit = f", in {units_of(target)}" if metric.unit == "target" else ""
    better = "" if metric.better == "neither" else f"; {metric.better} is better"
    return f"{metric.meaning}{unit}{better}"


def _kept_together(value: object) -> object:
    """No line break between a number and its percent sign."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return value.replace(" %", "\N{NO-BREAK SPACE}%")
    return value


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("accord.report"),
        autoescape=True,
        finalize=_kept_together,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["place"] = _place_on_meter
    environment.filters |= {
        "number": number,
        "to_scale": to_scale,
        "unit": unit_of,
        "units": units_of,
        "percent": percent,
        "count": count,
        "duration": duration,
        "written": written,
    }
    return environment


def _place_on_meter(share: float) -> float:
    """Per cent of the way from none of the rows to all of them."""
    return round(100 * share, 2)


@cache
def _source(name: str) -> str:
    source, _, _ = PackageLoader("accord.report").get_source(_environment(), name)
    return source


def _hash(script: str) -> str:
    """A script as a content security policy names it."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


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


class Point(TypedDict):
    """A place in a figure, in shares of its size from the top left, and the lines about it."""

    x: float
    y: float
    text: list[str]


def draw(
    paint: Callable[["Axes"], object], *, alt: str, width: float = NARROW, height: float = 3.6
) -> Markup:
    """A figure of one pair of axes as an element of the page."""
    figure, (ax,) = plots.figure(width=width, height=height)
    paint(ax)
    return Markup(with_page_colours(plots.to_svg(figure, alt=alt)))


def draw_readable(
    paint: Callable[["Axes"], object],
    points: Callable[["Axes"], list[Point]],
    *,
    alt: str,
    width: float,
    height: float,
) -> Markup:
    """A figure whose points say their values where a pointer or the arrow keys are."""
    figure, (ax,) = plots.figure(width=width, height=height)
    paint(ax)
    svg = Markup(with_page_colours(plots.to_svg(figure, alt=alt)))
    # Writing the figure has laid it out: only now is known where its points are.
    return Markup('<div class="plot" data-points="{}">{}</div>').format(
        json.dumps(points(ax), ensure_ascii=False), svg
    )


def on_page(ax: "Axes", x: float, y: float) -> tuple[float, float]:
    """A place in data coordinates as shares of the figure's width and height, from the top left."""
    figure = ax.figure
    across, up = figure.transFigure.inverted().transform(ax.transData.transform((x, y)))
    return round(float(across), 4), round(1 - float(np.clip(up, 0.02, 0.98)), 4)


def with_page_colours(svg: str) -> str:
    """A figure whose colours are the page's own."""
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, variable)
    return svg


def intervals(found: Assessment, *, target: str, wide: bool, rows: str = "held-out rows") -> Markup:
    """Rows in the order of their prediction, with intervals and what was observed."""
    at_most = 150 if wide else 60
    shown = style.some_of(np.argsort(found.mean, kind="stable"), at_most)

    def paint(ax: "Axes") -> None:
        plots.sorted_predictions(
            y_true=found.y,
            mean=found.mean,
            interval=np.stack([found.lower, found.upper], axis=1),
            coverage=found.coverage,
            max_rows=at_most,
            show_share=False,
            ax=ax,
        )
        scale = ", logarithmic" if ax.get_yscale() == "log" else ""
        ax.set(xlabel=f"{rows}, in order of their prediction", xticks=[])
        ax.set_ylabel(f"{style.plain(target)}{scale}")
        style.legend_below(ax, columns=4 if wide else 2)

    alt = (
        f"{rows.capitalize()} in order of their predicted {target}: {percent(found.covered)} of "
        f"{len(found)} observed values lie inside their {percent(found.coverage)} interval."
    )
    size = {"width": WIDE, "height": 5.0} if wide else {"width": NARROW, "height": 4.2}
    return draw_readable(paint, lambda ax: _row_points(ax, found[shown]), alt=alt, **size)


def _row_points(ax: "Axes", found: Assessment) -> list[Point]:
    """What is known about each row, where it is drawn."""
    points: list[Point] = []
    for place, (y, row) in enumerate(zip(found.y, found.rows, strict=True)):
        across, down = on_page(ax, place, y)
        points.append({"x": across, "y": down, "text": [f"Row {row:,}", *_lines(found, place)]})
    return points


def _lines(found: Assessment, place: int) -> list[str]:
    spread = found.narrow_width
    y, mean, lower, upper = (
        to_scale(float(values[place]), spread)
        for values in (found.y, found.mean, found.lower, found.upper)
    )
    lines = [
        f"observed {y}, predicted {mean}",
        f"{percent(found.coverage)} interval {lower} … {upper}",
    ]
    variance = float(found.std[place]) ** 2
    if not variance > 0:  # predictions that state intervals only have none
        return lines
    shares = [
        f"{name} {percent(float(part[place]) ** 2 / variance, 0)}"
        for name, part in (
            ("noise", found.noise),
            ("disagreement", found.disagreement),
            ("distance", found.distance),
        )
        if part[place] > 0
    ]
    return [*lines, f"of the variance: {', '.join(shares)}"] if len(shares) > 1 else lines


def reliability(curves: Mapping[str, Assessment]) -> Markup:
    """Observed against stated coverage at all levels."""
    named = {style.plain(name): found.reliability() for name, found in curves.items()}
    words = "; ".join(f"{name}: mean gap {percent(curve.ece)}" for name, curve in named.items())
    alt = f"Observed against stated coverage, where the diagonal is ideal. {words}."
    return draw(
        lambda ax: plots.reliability_diagram(named, ax=ax), alt=alt, width=NARROW, height=5.2
    )


def uncertainty_sources(found: Assessment) -> Markup:
    """The three parts of the uncertainty, from the surest to the least sure rows."""
    noise, disagreement, distance = found.variance_shares
    alt = (
        "Uncertainty of held-out rows from surest to least sure: "
        f"{percent(noise, 0)} of the variance is noise, {percent(disagreement, 0)} disagreement "
        f"between models, {percent(distance, 0)} distance from the training rows."
    )
    return draw(
        lambda ax: plots.uncertainty_split(
            noise=found.noise, disagreement=found.disagreement, distance=found.distance, ax=ax
        ),
        alt=alt,
        height=4.2,
    )


def coverage_by_distance(found: Assessment, distances: Floats) -> Markup:
    """Coverage of rows near the training rows and of rows far from them."""
    alt = (
        "Observed coverage of rows from nearest to furthest from the training rows; "
        f"{percent(found.coverage)} is stated."
    )
    return draw(
        lambda ax: plots.coverage_by_distance(
            distance=distances, inside=found.inside, coverage=found.coverage, ax=ax
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
