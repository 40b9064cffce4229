"""The report on anybody's predictions: do they agree with what was observed?"""

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from accord.plots import style
from accord.report import page
from accord.tabular import Assessment
from accord.workflows import ValidateResult


def validate_report(result: ValidateResult) -> str:
    """A page on predictions, from :func:`accord.workflows.validate_predictions`."""
    found = result.found
    dense = found is not None and found.has_density
    return page.render(
        "validate.html",
        interactive=True,
        result=result,
        verdict=result.verdict,
        belief=result.belief,
        found=found,
        hero_wide=_hero(result, wide=True),
        hero_narrow=_hero(result, wide=False),
        reliability=page.reliability({"these predictions": found}) if dense and found else None,
        errors=page.errors(found) if dense and found and _differ(found) else None,
    )


def _differ(found: Assessment) -> bool:
    """Whether the stated deviations differ: if all are one, errors cannot follow them."""
    return bool(np.ptp(found.std) > 1e-6 * found.std.max())


def _hero(result: ValidateResult, *, wide: bool) -> Markup:
    if result.found is not None:
        return page.intervals(result.found, target=result.truth, wide=wide, rows="rows")

    def paint(ax: Axes) -> None:
        ends = [min(result.y.min(), result.mean.min()), max(result.y.max(), result.mean.max())]
        ax.plot(ends, ends, color=style.ink(ax), alpha=0.6, lw=1, ls=(0, (4, 3)))
        many = np.linspace(0, len(result.y) - 1, min(2000, len(result.y))).astype(int)
        ax.plot(
            result.mean[many], result.y[many], color=style.BLUE, lw=0, marker="o", ms=3.2, alpha=0.7
        )
        ax.set(xlabel="predicted", ylabel=style.plain(result.truth))

    size = {"width": page.WIDE, "height": 5.0} if wide else {"height": 4.2}
    return page.draw(paint, alt="Observed against predicted values.", **size)
