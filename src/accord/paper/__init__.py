"""Every table and figure of the paper, from one call, beside what was published.

One module per study (:mod:`~accord.paper.table1` and the others) holds its runs, departures,
tables, claims and figures. Names are loaded on first use, so that a record depends on the code that
makes it (:func:`accord._code.code_digest`), and not on that of pages.
"""

from typing import TYPE_CHECKING

from accord._lazy import loader

if TYPE_CHECKING:
    from accord.paper.claims import RULE, JudgedClaim
    from accord.paper.page import BEYOND, claim_grid, claim_groups, group_sentences
    from accord.paper.reproduction import (
        OWN_STUDIES,
        STUDIES,
        Reproduction,
        StudyCost,
        lay_out,
        reproduce,
        study_named,
    )
    from accord.paper.results import MeanOverSplits, standard_errors_apart
    from accord.paper.study import Departure, Figure, Study, published
    from accord.paper.tables import ResultTable

_HOMES = {
    "claims": ("RULE", "JudgedClaim"),
    "page": ("BEYOND", "claim_grid", "claim_groups", "group_sentences"),
    "reproduction": (
        "OWN_STUDIES",
        "STUDIES",
        "Reproduction",
        "StudyCost",
        "lay_out",
        "reproduce",
        "study_named",
    ),
    "results": ("MeanOverSplits", "standard_errors_apart"),
    "study": ("Departure", "Figure", "Study", "published"),
    "tables": ("ResultTable",),
}

__all__ = [
    "BEYOND",
    "OWN_STUDIES",
    "RULE",
    "STUDIES",
    "Departure",
    "Figure",
    "JudgedClaim",
    "MeanOverSplits",
    "Reproduction",
    "ResultTable",
    "Study",
    "StudyCost",
    "claim_grid",
    "claim_groups",
    "group_sentences",
    "lay_out",
    "published",
    "reproduce",
    "standard_errors_apart",
    "study_named",
]

__getattr__ = loader(__name__, _HOMES)
