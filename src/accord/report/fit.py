"""The report on a fit: what was learnt, and whether it can be believed."""

import numpy as np

from accord.report import figures
from accord.report.page import render
from accord.report.vocabulary import FIGURE_ROWS
from accord.workflows import Assessment, FitResult

_LEVELS = (0.5, 0.8, 0.9, 0.95)
_SHOWN_EFFECTS = 12


def fit_report(result: FitResult) -> str:
    """A page on a fitted model, from :func:`accord.workflows.fit_table`."""
    random, unusual = result.random, result.unusual
    card = result.model.card
    return render(
        "fit.html",
        card=card,
        verdict=result.verdict,
        random=random,
        unusual=unusual,
        baseline=baseline_width(random),
        hero_wide=figures.intervals(random, target=card.target, wide=True),
        hero_narrow=figures.intervals(random, target=card.target, wide=False),
        reliability=figures.reliability({"random rows": random, "unusual rows": unusual}),
        levels=[
            (level, at_level(random, level), at_level(unusual, level))
            for level in sorted({*_LEVELS, random.coverage})
        ],
        sources=figures.uncertainty_sources(random),
        errors=figures.errors(random),
        tolerance=None if result.tolerance is None else figures.tolerance(result.tolerance),
        chosen=card.settings["chosen_tolerance"],
        training=figures.training(result.history),
        effects=result.effects[:_SHOWN_EFFECTS],
        n_effects=len(result.effects),
        unusual_rows=result.unusual_rows,
        notes=result.notes,
        seconds=result.seconds,
        figure_rows=FIGURE_ROWS,
    )


def baseline_width(found: Assessment) -> float:
    """Width of the interval that holds as many observed values without any model."""
    tail = (1 - found.coverage) / 2
    low, high = np.quantile(found.y, [tail, 1 - tail])
    return float(high - low)


def at_level(found: Assessment, level: float) -> float:
    """Observed share inside the central intervals of a level."""
    if level == found.coverage:
        return found.covered
    return float(np.mean(np.abs(2 * found.pit - 1) <= level))
