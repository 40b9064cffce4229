"""The report on a comparison: one table, and plots of all methods."""

from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from accord import plots
from accord._wording import number, percent
from accord.metrics import METRICS
from accord.plots import PALETTE, style
from accord.report import page
from accord.workflows import (
    COLUMNS,
    KINDS,
    SPLIT_WORDS,
    CompareResult,
    MethodScore,
    SplitKind,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def compare_report(result: CompareResult) -> str:
    """A page on all methods, from :func:`accord.workflows.compare_methods`."""
    return page.render(
        "compare.html",
        result=result,
        kinds=[(kind, SPLIT_WORDS[kind]) for kind in KINDS],
        columns=COLUMNS,
        likelihood={kind: _dots(result, kind) for kind in KINDS if result.scores},
        reliability={
            kind: page.reliability(
                {s.method: result.assessments[s.method, kind] for s in _best(result, kind)}
            )
            for kind in KINDS
            if result.scores
        },
        plane={kind: _plane(result, kind) for kind in KINDS if result.scores},
        cost={kind: _cost(result, kind) for kind in KINDS if result.scores},
    )


def _plane(result: CompareResult, kind: SplitKind) -> Markup:
    """Coverage against width: near the line, and as far to the left as possible."""
    best = _best(result, kind)
    found = {s.method: (s.figures["interval_width"], s.figures["coverage"]) for s in best}
    words = "; ".join(f"{name}: {number(w)}, {percent(c)}" for name, (w, c) in found.items())

    def paint(ax: "Axes") -> None:
        width = f"mean width of {percent(result.coverage)} intervals"
        plots.trade_off(found, xlabel=width, ylabel="inside", aim=result.coverage, ax=ax)
        style.percent_axis(ax.yaxis)
        style.number_axis(ax.xaxis)

    alt = f"Mean width and coverage on {SPLIT_WORDS[kind]}. {words}."
    return page.draw(paint, alt=alt, height=4.8)


def _cost(result: CompareResult, kind: SplitKind) -> Markup:
    """Likelihood against the time of a fit: below and to the left is better."""
    found = {s.method: (max(s.seconds, 1e-3), s.figures["nll"]) for s in _best(result, kind)}
    words = "; ".join(f"{name}: {number(t, 2)} s, {number(v)}" for name, (t, v) in found.items())

    def paint(ax: "Axes") -> None:
        label = f"{METRICS['nll'].title}, lower is better"
        plots.trade_off(found, xlabel="seconds per fit", ylabel=label, log_x=True, ax=ax)
        style.plain_log_axis(ax.xaxis)

    alt = f"Seconds per fit and NLL on {SPLIT_WORDS[kind]}. {words}."
    return page.draw(paint, alt=alt, height=4.8)


def _best(result: CompareResult, kind: SplitKind) -> list[MethodScore]:
    """The methods that are drawn, the best six: beyond, colours and markers repeat.

    In one order for both kinds of rows, so that a method has the same colour in both.
    """
    ranked = result.ranked(kind)
    shown = _comparable({score.method: score.figures["nll"] for score in ranked})
    drawn = [score for score in ranked if score.method in shown][: len(PALETTE)]
    place = {score.method: number for number, score in enumerate(result.ranked("random"))}
    return sorted(drawn, key=lambda score: place.get(score.method, len(place)))


def _dots(result: CompareResult, kind: SplitKind) -> Markup:
    """A dot per method; methods far off the scale are listed in the table only."""
    scores = {score.method: score for score in result.ranked(kind)}
    values = {name: score.figures["nll"] for name, score in scores.items()}
    shown = _comparable(values)
    errors = {name: np.nan_to_num(scores[name].errors["nll"]) for name in shown}
    words = ", ".join(f"{name} {value:.3g}" for name, value in values.items())
    alt = f"{METRICS['nll'].title} on {SPLIT_WORDS[kind]}, lower is better: {words}."
    return page.draw(
        lambda ax: plots.metric_by_method(shown, errors=errors, metric=METRICS["nll"].title, ax=ax),
        alt=alt,
        height=1.0 + 0.42 * len(shown),
    )


def _comparable(values: dict[str, float]) -> dict[str, float]:
    """Without methods so much worse than the median that they would hide all differences."""
    ordered = sorted(values.values())
    best, middle = ordered[0], ordered[len(ordered) // 2]
    limit = middle + 4 * max(middle - best, 0.1)
    return {name: value for name, value in values.items() if value <= limit}
