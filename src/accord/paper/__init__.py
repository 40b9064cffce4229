"""Every table and figure of the paper, from one call, beside what was published.

One module per study (:mod:`~accord.paper.table1` and the others) holds its runs, departures,
tables, claims and figures. Loaded on first use, since some bring torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accord.paper.claims import RULE, JudgedClaim
    from accord.paper.page import BEYOND, claim_grid, claim_groups, group_sentences
    from accord.paper.published import Figure, figure
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
    from accord.paper.runner import Listener, TerminalProgress
    from accord.paper.study import Departure, Study
    from accord.paper.tables import ResultTable

# public name -> the module that defines it
_EXPORTS = {
    "BEYOND": "page",
    "Departure": "study",
    "MeanOverSplits": "results",
    "Figure": "published",
    "Listener": "runner",
    "OWN_STUDIES": "reproduction",
    "RULE": "claims",
    "Reproduction": "reproduction",
    "STUDIES": "reproduction",
    "Study": "study",
    "StudyCost": "reproduction",
    "ResultTable": "tables",
    "TerminalProgress": "runner",
    "JudgedClaim": "claims",
    "claim_grid": "page",
    "claim_groups": "page",
    "figure": "published",
    "group_sentences": "page",
    "lay_out": "reproduction",
    "reproduce": "reproduction",
    "standard_errors_apart": "results",
    "study_named": "reproduction",
}

__all__ = [
    "BEYOND",
    "OWN_STUDIES",
    "RULE",
    "STUDIES",
    "Departure",
    "Figure",
    "JudgedClaim",
    "Listener",
    "MeanOverSplits",
    "Reproduction",
    "ResultTable",
    "Study",
    "StudyCost",
    "TerminalProgress",
    "claim_grid",
    "claim_groups",
    "figure",
    "group_sentences",
    "lay_out",
    "reproduce",
    "standard_errors_apart",
    "study_named",
]


def __getattr__(name: str) -> object:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'accord.paper' has no attribute {name!r}")
    return getattr(import_module(f"accord.paper.{_EXPORTS[name]}"), name)
