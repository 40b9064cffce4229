"""From a template and values to a page; whatever comes from a table is escaped."""

from datetime import UTC, datetime
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from accord._version import __version__
from accord._wording import count, duration, number, percent

# Names of the figures, their titles, what they mean, and how they are written.
FIGURE_ROWS: tuple[tuple[str, str, str, str], ...] = (
    ("rows", "rows", "rows with an observed target", "count"),
    ("coverage", "coverage", "share inside their interval", "percent"),
    ("mean_width", "mean width", "mean width of an interval, in target units", "number"),
    ("median_width", "median width", "half of the intervals are narrower", "number"),
    ("rmse", "RMSE", "root mean squared error of the mean, in target units", "number"),
    ("mae", "MAE", "mean absolute error of the mean, in target units", "number"),
    ("r2", "R²", "share of the target's variance explained", "number"),
    ("nll", "NLL", "negative log-likelihood; lower is better", "number"),
    (
        "crps",
        "CRPS",
        "continuous ranked probability score, in target units; lower is better",
        "number",
    ),
    ("ece", "ECE", "mean gap between stated and observed coverage", "percent"),
    ("mce", "MCE", "largest such gap", "percent"),
)

VALIDATION_ROWS: tuple[tuple[str, str, str, str], ...] = (
    ("agreement", "agreement", "probability of agreement under the rule", "number"),
    ("bias", "bias", "mean of predicted minus observed", "number"),
    (
        "interval_score",
        "interval score",
        "width plus penalty for misses; lower is better",
        "number",
    ),
)


def render(template: str, **values: Any) -> str:
    """The page that a template makes of values."""
    made = datetime.now(UTC)
    return (
        _environment()
        .get_template(template)
        .render(
            version=__version__,
            made=f"{made.day} {made:%B %Y, %H:%M} UTC",
            style=_style(),
            **values,
        )
    )


def _kept_together(value: Any) -> Any:
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
        "percent": percent,
        "count": count,
        "duration": duration,
    }
    return environment


def _place_on_meter(share: float) -> float:
    """Per cent of the way from half of the rows to all of them."""
    return round(200 * (max(share, 0.5) - 0.5), 2)


@cache
def _style() -> Markup:
    source, _, _ = PackageLoader("accord.report").get_source(_environment(), "style.css")
    return Markup(source)
