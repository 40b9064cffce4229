"""The features of a table, and what is known of the table beyond them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from accord.portfolio.local import Blank
from accord.portfolio.streamed import MoreRows


@final
@dataclass(frozen=True)
class EncodedTable:
    """Features that a table was encoded as: given to be trained on, and changed meanwhile.

    Attributes:
        features: (N, d).
        blanks: Features with the values that they have where nothing is known, such as those of a
            category that no row has, or of a missing number: how much wider such rows must be is
            learnt, where no or few rows are such.
        more: All rows of a table of which these are a sample; networks of the blend are trained
            further on them, and used if that makes held-out rows more likely.
    """

    features: Any
    blanks: Sequence[Blank] = ()
    more: MoreRows | None = None
