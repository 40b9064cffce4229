"""The report on a reproduction: claims, aims, tables and figures on one page."""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from accord.experiments import Reproduction
from accord.experiments.aims import NOTE
from accord.experiments.verdicts import Verdict
from accord.report.figures import with_page_colours
from accord.report.page import render

_LEVELS = {True: "good", False: "poor", None: "caution"}
_SEVERAL = {"holds": "hold", "does not hold": "do not", "not run": "were not run"}


class _Claim(NamedTuple):
    """One claim, and what came of it under each predictive."""

    where: str
    text: str
    verdicts: list[Verdict]


def reproduction_report(result: Reproduction) -> str:
    """A page on the paper's tables and figures, from :func:`accord.experiments.reproduce`."""
    return render(
        "reproduction.html",
        result=result,
        claims=_grouped(result.claims),
        aims=_grouped(result.aims),
        aims_note=NOTE,
        levels=_LEVELS,
        words=_SEVERAL,
        seconds=sum(cost.seconds for cost in result.costs),
        networks=sum(cost.networks for cost in result.costs),
        figures=[(Markup(with_page_colours(f.svg)), f.words) for f in result.figures],
    )


def _grouped(verdicts: Sequence[Verdict]) -> list[_Claim]:
    claims: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        claims.setdefault((verdict.where, verdict.claim), []).append(verdict)
    return [_Claim(where, text, own) for (where, text), own in claims.items()]
