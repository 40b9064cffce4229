"""On which sets each family of shift is tried.

Every set has outliers and, for time, one of gap, tail and cluster in turn. Groups need a column
that says which rows belong together, and time needs days.
"""

from accord.paper import published, sets
from accord.paper.shift.families import GROUP_COLUMNS, RANDOM

__all__ = ["CONTROLLED", "FAMILIES", "SETS", "STOCKS"]

SETS = (*published.datasets("table3"), *sets.DEVELOPMENT)
STOCKS = "google"
CONTROLLED = ("concrete", "energy", "kin8nm", "yacht")
# no column of these has a middle or tails
_NO_MIDDLE = ("servo", "solar")


def _in_turn(family: int) -> tuple[str, ...]:
    """A third of the sets; those without a middle are left to the clusters, the last in turn."""
    turns = {name: place % 3 for place, name in enumerate(SETS)}
    return tuple(n for n in SETS if (2 if n in _NO_MIDDLE else turns[n]) == family)


FAMILIES: dict[str, tuple[str, ...]] = {
    "outliers": SETS,
    "gap": _in_turn(0),
    "tail": _in_turn(1),
    "cluster": _in_turn(2),
    "group": tuple(GROUP_COLUMNS),
    "time": (STOCKS,),
    RANDOM: SETS,
}
