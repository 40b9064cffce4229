"""From a template and values to a page; whatever comes from a table is escaped."""

import base64
import hashlib
from datetime import UTC, datetime
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from accord._version import __version__
from accord._wording import count, duration, number, percent, to_scale, unit_of, units_of, written
from accord.metrics import METRICS, Metric


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
