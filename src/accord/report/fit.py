"""The report on a fit: can the model be relied on, and is it any use?"""

import shlex
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from accord import plots
from accord._types import Floats
from accord._wording import count, number, percent
from accord.plots import style
from accord.report import page
from accord.tabular import Dependence
from accord.workflows import RULE, FitResult, LevelCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_SHOWN_EFFECTS = 12
_SHOWN_COLUMNS = 200
# Levels that a table shows to readers without a script, and on paper.
_IN_TABLE = (0.5, 0.8, 0.9, 0.95, 0.99)
_NAMES = ("held-out rows", "unusual rows")
# Inches of a small figure, of which three stand side by side.
_SMALL = 4.2


def fit_report(result: FitResult, *, model_file: str = "model.accord") -> str:
    """A page on a fitted model, from :func:`accord.workflows.fit_table`.

    ``model_file`` is the model's name in commands that the page proposes.
    """
    held_out, shifted = result.held_out, result.shifted
    card = result.model.card_
    columns = result.columns()
    used = {column.name for column in columns if column.used}
    return page.render(
        "fit.html",
        interactive=True,
        card=card,
        verdict=result.verdict,
        use=result.use,
        held_out=held_out,
        shifted=shifted,
        r2=held_out.figures()["r2"],
        rule=RULE,
        hero_wide=page.intervals(held_out, target=card.target, wide=True),
        hero_narrow=page.intervals(held_out, target=card.target, wide=False),
        reliability=page.reliability(
            {name: found for name, found in zip(_NAMES, (held_out, shifted), strict=True) if found}
        ),
        panel=level_panel(result),
        levels=level_rows(result),
        rows=result.rows,
        main_columns=result.main_columns,
        widest=result.widest,
        dependence=dependence_figures(result),
        residuals=residual_figures(result),
        ordered_by=result.order[0],
        leaks=result.leaks,
        quarters=result.quarters(),
        by_distance=page.coverage_by_distance(held_out, result.distances),
        sources=page.uncertainty_sources(held_out),
        errors=page.errors(held_out),
        effects=[e for e in result.effects if e.name in used][:_SHOWN_EFFECTS],
        leaderboard=sorted(card.leaderboard, key=lambda entry: entry["nll"]),
        columns=columns[:_SHOWN_COLUMNS],
        n_columns=len(columns),
        n_used=len(used),
        unusual_rows=result.unusual_rows,
        notes=result.notes,
        seconds=result.seconds,
        model_file=shlex.quote(model_file),
    )


def level_panel(result: FitResult) -> dict[str, Any]:
    """Texts and places of every level, for a slider; ``start`` is the level of the report."""
    stated = result.curves[0].stated
    groups = [
        _level_group(name, curve)
        for name, curve in zip(_NAMES, result.curves, strict=True)
        if curve.rows
    ]
    return {
        "start": int(np.flatnonzero(stated == result.held_out.coverage)[0]),
        "levels": {"stated": [percent(float(level)) for level in stated], "groups": groups},
        "names": [name for name, curve in zip(_NAMES, result.curves, strict=True) if curve.rows],
    }


def _level_group(name: str, curve: LevelCurve) -> dict[str, Any]:
    widths = np.concatenate([curve.width, curve.without_model])
    widest = float(widths[np.isfinite(widths)].max(initial=0.0)) or 1.0
    return {
        "rows": count(curve.rows, name.removesuffix("s")),
        "covered": [percent(float(share)) for share in curve.covered],
        "width": [number(float(width)) for width in curve.width],
        "without": [number(float(width)) for width in curve.without_model],
        "places": {
            "stated": _places(curve.stated),
            "covered": _places(curve.covered),
            "width": _places(curve.width / widest),
            "without": _places(curve.without_model / widest),
        },
    }


def _places(shares: Floats) -> list[float]:
    """Per cent of a rail; what is infinite ends with it."""
    return [round(100 * float(share), 1) for share in np.clip(shares, 0.0, 1.0)]


def level_rows(result: FitResult) -> list[tuple[float, list[tuple[float, float]]]]:
    """Some levels, and for each group of rows the share inside and the mean width."""
    stated = result.curves[0].stated
    wanted = sorted({*_IN_TABLE, result.held_out.coverage})
    places = [int(np.abs(stated - level).argmin()) for level in wanted]
    return [
        (
            float(stated[at]),
            [(float(c.covered[at]), float(c.width[at])) for c in result.curves if c.rows],
        )
        for at in places
    ]


def dependence_figures(result: FitResult) -> list[tuple[str, Markup]]:
    """A small figure per main column: the mean prediction for its values, and two bands."""
    drawn = [v for c in result.dependence for v in (c.lower, c.upper, c.mean)]
    ends = np.concatenate(drawn) if drawn else np.zeros(1)
    ends = ends[np.isfinite(ends)]
    low, high = float(ends.min()), float(ends.max())
    return [(curve.column, _dependence(curve, low, high)) for curve in result.dependence]


def _dependence(curve: Dependence, low: float, high: float) -> Markup:
    """All on one scale, so that a steep curve is a strong column; an infinite end is off it."""
    margin = 0.04 * (high - low or 1.0)

    def paint(ax: "Axes") -> None:
        curve.draw(ax)
        ax.set_ylim(low - margin, high + margin)

    first, last = curve.labels[0], curve.labels[-1]
    alt = (
        f"Mean prediction by {curve.column}: {number(float(curve.mean[0]))} at {first}, "
        f"{number(float(curve.mean[-1]))} at {last}."
    )
    return page.draw(paint, alt=alt, width=_SMALL, height=2.9)


def residual_figures(result: FitResult) -> list[Markup]:
    """Errors against the prediction, and against time or the order of the table."""
    found = result.held_out
    error = found.y - found.mean
    name, order = result.order
    dates = bool(name) and result.model.training_.X[name].dtype.kind == "M"
    label = style.plain(name) if name else "rows, in the order of the table"
    return [
        page.draw(
            lambda ax: plots.residuals(
                against=found.mean, residual=error, xlabel="predicted", ax=ax
            ),
            alt="Errors of held-out rows against their prediction.",
            height=4.0,
        ),
        page.draw(
            lambda ax: plots.residuals(
                against=order, residual=error, xlabel=label, dates=dates, ax=ax
            ),
            alt=f"Errors of held-out rows against {name or 'their place in the table'}.",
            height=4.0,
        ),
    ]
