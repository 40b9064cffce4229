"""The report on a fit: can the model be relied on, and is it any use?"""

from dataclasses import dataclass

from accord._wording import count
from accord.report import figures, panels
from accord.report.page import render
from accord.tables import ONE_HOT_CATEGORIES, Column
from accord.workflows import RULE, FitResult

_SHOWN_EFFECTS = 12
_SHOWN_COLUMNS = 200


def fit_report(result: FitResult) -> str:
    """A page on a fitted model, from :func:`accord.workflows.fit_table`."""
    held_out, shifted = result.held_out, result.shifted
    card = result.model.card_
    columns = described(result)
    return render(
        "fit.html",
        interactive=True,
        card=card,
        verdict=result.verdict,
        use=result.use,
        held_out=held_out,
        shifted=shifted,
        r2=held_out.figures()["r2"],
        rule=RULE,
        hero_wide=figures.intervals(held_out, target=card.target, wide=True),
        hero_narrow=figures.intervals(held_out, target=card.target, wide=False),
        reliability=figures.reliability({"held-out rows": held_out, "unusual rows": shifted}),
        panel=panels.level_panel(result),
        levels=panels.level_rows(result),
        rows=result.rows,
        main_columns=result.main_columns,
        widest=result.widest,
        dependence=panels.dependence_figures(result),
        residuals=panels.residual_figures(result),
        ordered_by=result.order[0],
        leaks=result.leaks,
        quarters=result.quarters(),
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
    )


@dataclass(frozen=True)
class DescribedColumn:
    """A column of the table: what was found in it, what was done, what to look at.

    ``alone`` is the share of the target's variance that it explains by itself.
    """

    name: str
    found: str
    done: str
    hint: str
    alone: float | None


def described(result: FitResult) -> list[DescribedColumn]:
    """What was decided about each column, and why, in words."""
    model = result.model
    profile, columns = model.profile_, {column.name: column for column in model.schema_.columns}
    missing = {
        name: round(share * profile.n_rows)
        for name, share in zip(profile.names, profile.missing, strict=True)
    }
    hints = {suspect.column: suspect.sentence for suspect in model.suspects_}
    return [
        DescribedColumn(
            name=decision.column,
            found=decision.reason,
            done=_use(columns[decision.column], missing[decision.column])
            if decision.used
            else "not used",
            hint=hints.get(decision.column, ""),
            alone=result.leaks.alone.get(decision.column),
        )
        for decision in model.training_.decisions
    ]


def _use(column: Column, missing: int) -> str:
    gaps = f"; {count(missing, 'gap')}" if missing else ""
    if column.kind == "category":
        n = len(column.categories)
        how = "a feature each" if n <= ONE_HOT_CATEGORIES else "replaced by their mean target"
        return f"{how}{gaps}"
    filled = f"{gaps} filled with the median, and marked" if missing else ""
    if column.kind == "date":
        return f"the moment, and its place in the year, month, week and day{filled}"
    return f"standardised{filled}"
