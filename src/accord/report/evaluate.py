"""The report on new labelled rows: does the model hold?"""

from accord.metrics import MINIMUM_ROWS
from accord.report import page
from accord.workflows import QUARTILES, RULE, EvaluateResult


def evaluate_report(result: EvaluateResult) -> str:
    """A page on a model's answers to new rows, from :func:`accord.workflows.evaluate_table`."""
    found, card = result.found, result.card
    curves = {"all rows": found}
    if result.unusual.sum() >= MINIMUM_ROWS:
        curves |= {"unusual rows": found[result.unusual], "other rows": found[~result.unusual]}
    return page.render(
        "evaluate.html",
        interactive=True,
        card=card,
        source=result.source,
        verdict=result.verdict,
        use=result.use,
        rule=RULE,
        found=found,
        quarters=found.groups(found.mean, QUARTILES),
        by_distance=page.coverage_by_distance(found, result.distances),
        unusual=float(result.unusual.mean()),
        hero_wide=page.intervals(found, target=card.target, wide=True, rows="rows"),
        hero_narrow=page.intervals(found, target=card.target, wide=False, rows="rows"),
        reliability=page.reliability(curves),
        errors=page.errors(found),
        unusual_rows=result.unusual_rows,
        warnings=result.warnings,
    )
