"""The report on a comparison: one table, and plots of all methods."""

import numpy as np
from markupsafe import Markup

from accord import plots
from accord.metrics import METRICS
from accord.plots import PALETTE
from accord.report import figures
from accord.report.page import render
from accord.workflows import COLUMNS, KINDS, SPLIT_WORDS, CompareResult, SplitKind


def compare_report(result: CompareResult) -> str:
    """A page on all methods, from :func:`accord.workflows.compare_methods`."""
    return render(
        "compare.html",
        result=result,
        kinds=[(kind, SPLIT_WORDS[kind]) for kind in KINDS],
        columns=COLUMNS,
        likelihood={kind: _dots(result, kind) for kind in KINDS if result.scores},
        reliability={kind: _reliability(result, kind) for kind in KINDS if result.scores},
    )


def _dots(result: CompareResult, kind: SplitKind) -> Markup:
    """A dot per method; methods far off the scale are listed in the table only."""
    scores = {score.method: score for score in result.ranked(kind)}
    values = {name: score.figures["nll"] for name, score in scores.items()}
    shown = _comparable(values)
    errors = {name: np.nan_to_num(scores[name].errors["nll"]) for name in shown}
    words = ", ".join(f"{name} {value:.3g}" for name, value in values.items())
    alt = f"{METRICS['nll'].title} on {SPLIT_WORDS[kind]}, lower is better: {words}."
    return figures.draw(
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


def _reliability(result: CompareResult, kind: SplitKind) -> Markup:
    """The best methods only: beyond six, colours and markers repeat."""
    best = [score.method for score in result.ranked(kind)][: len(PALETTE)]
    return figures.reliability({name: result.assessments[name, kind] for name in best})
