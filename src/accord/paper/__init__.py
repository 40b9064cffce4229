"""Every table and figure of the paper, from one call, beside what was published.

One module per study (:mod:`~accord.paper.table1` and the others) holds its runs, departures,
tables, claims and figures. Names are loaded on first use, so that a record depends on the code that
makes it (:func:`accord._code.code_digest`), and not on that of pages.
"""

from typing import TYPE_CHECKING

from accord._lazy import lazy_names

if TYPE_CHECKING:
    from accord.paper.claims import RULE as RULE
    from accord.paper.claims import JudgedClaim as JudgedClaim
    from accord.paper.page import BEYOND as BEYOND
    from accord.paper.page import claim_grid as claim_grid
    from accord.paper.page import claim_groups as claim_groups
    from accord.paper.page import group_sentences as group_sentences
    from accord.paper.reproduction import OWN_STUDIES as OWN_STUDIES
    from accord.paper.reproduction import STUDIES as STUDIES
    from accord.paper.reproduction import Reproduction as Reproduction
    from accord.paper.reproduction import StudyCost as StudyCost
    from accord.paper.reproduction import lay_out as lay_out
    from accord.paper.reproduction import reproduce as reproduce
    from accord.paper.reproduction import study_named as study_named
    from accord.paper.results import MeanOverSplits as MeanOverSplits
    from accord.paper.results import standard_errors_apart as standard_errors_apart
    from accord.paper.study import Departure as Departure
    from accord.paper.study import Figure as Figure
    from accord.paper.study import Study as Study
    from accord.paper.study import published as published
    from accord.paper.tables import ResultTable as ResultTable
else:  # so that a misspelt name is an error to type checkers, too
    __getattr__, __dir__, __all__ = lazy_names(__name__)
