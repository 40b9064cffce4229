"""The report on a fit: can the model be relied on, and is it any use?"""

import numpy as np

from accord._wording import count
from accord.report import figures
from accord.report.page import FIGURE_ROWS, render
from accord.tables import ONE_HOT_CATEGORIES, Column, Schema
from accord.tabular import Assessment
from accord.workflows import QUARTILES, RULE, FitResult, reliability

_LEVELS = (0.5, 0.8, 0.9, 0.95)
_SHOWN_EFFECTS = 12
_SHOWN_COLUMNS = 200


def fit_report(result: FitResult) -> str:
    """A page on a fitted model, from :func:`accord.workflows.fit_table`."""
    held_out, shifted = result.held_out, result.shifted
    card = result.model.card_
    columns = described(result.model.schema_, dict(zip(*_missing(result), strict=True)))
    return render(
        "fit.html",
        card=card,
        verdict=result.verdict,
        judged=reliability(held_out),
        judged_unusual=reliability(shifted),
        use=result.use,
        held_out=held_out,
        shifted=shifted,
        r2=held_out.figures()["r2"],
        rule=RULE,
        hero_wide=figures.intervals(held_out, target=card.target, wide=True),
        hero_narrow=figures.intervals(held_out, target=card.target, wide=False),
        reliability=figures.reliability({"held-out rows": held_out, "unusual rows": shifted}),
        levels=[
            (level, at_level(held_out, level), at_level(shifted, level))
            for level in sorted({*_LEVELS, held_out.coverage})
        ],
        quarters=held_out.groups(held_out.mean, QUARTILES),
        by_distance=figures.coverage_by_distance(held_out, result.distances),
        sources=figures.uncertainty_sources(held_out),
        errors=figures.errors(held_out),
        effects=result.effects[:_SHOWN_EFFECTS],
        leaderboard=sorted(card.leaderboard, key=lambda entry: entry["nll"]),
        columns=columns[:_SHOWN_COLUMNS],
        n_columns=len(columns),
        unusual_rows=result.unusual_rows,
        notes=result.notes,
        seconds=result.seconds,
        figure_rows=FIGURE_ROWS,
    )


def at_level(found: Assessment, level: float) -> float:
    """Observed share inside the central intervals of a level."""
    if level == found.coverage:
        return found.covered
    return float(np.mean(np.abs(2 * found.pit - 1) <= level)) if len(found) else float("nan")


def described(schema: Schema, missing: dict[str, int]) -> list[tuple[str, str]]:
    """What was done to each column, in words."""
    used = [(column.name, _use(column, missing.get(column.name, 0))) for column in schema.columns]
    return used + [(name, f"not used: {why}") for name, why in schema.ignored.items()]


def _use(column: Column, missing: int) -> str:
    gaps = f"; {count(missing, 'gap')}" if missing else ""
    if column.kind == "category":
        n = len(column.categories)
        how = "a feature each" if n <= ONE_HOT_CATEGORIES else "replaced by their mean target"
        return f"{count(n, 'category', 'categories')}, {how}{gaps}"
    filled = f"{gaps} filled with the median, and marked" if missing else ""
    if column.kind == "date":
        return f"date: the moment, and its place in the year, month, week and day{filled}"
    return f"{column.kind}, standardised{filled}"


def _missing(result: FitResult) -> tuple[list[str], list[int]]:
    profile = result.model.profile_
    return profile.names, [round(share * profile.n_rows) for share in profile.missing]
