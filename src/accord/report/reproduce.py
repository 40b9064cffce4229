"""The report on a reproduction: verdicts at a glance, then study by study."""

from markupsafe import Markup

from accord.paper import BEYOND, RULE, Reproduction, claim_groups, group_sentences
from accord.report.page import render, with_page_colours

_LEVELS = {
    "holds": "good",
    "does not hold": "poor",
    "undecided": "caution",
    "not run": "caution",
}


def reproduction_report(result: Reproduction) -> str:
    """A page on the paper's tables and figures, from :func:`accord.paper.reproduce`."""
    return render(
        "reproduce.html",
        result=result,
        sentences=group_sentences(result.parts),
        groups=claim_groups(result.parts),
        rule=RULE.replace("*", ""),
        beyond_note=BEYOND,
        levels=_LEVELS,
        seconds=sum(cost.seconds for cost in result.costs),
        networks=sum(cost.networks for cost in result.costs),
        figures={
            part.study.name: [(Markup(with_page_colours(f.svg)), f.words) for f in part.figures]
            for part in result.parts
        },
    )
