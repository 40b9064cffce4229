"""On which sets each family of shift is tried.

Every set has outliers and one or two of gap, tail and cluster. Groups need a column that says which
rows belong together, and time needs days.
"""

from accord.paper import published, sets
from accord.paper.shift.families import GROUP_COLUMNS, RANDOM

__all__ = ["CONTROLLED", "FAMILIES", "SETS", "STOCKS"]

SETS = (*published.datasets("table3"), *sets.DEVELOPMENT)
STOCKS = "google"
CONTROLLED = ("concrete", "energy", "kin8nm", "yacht")

FAMILIES: dict[str, tuple[str, ...]] = {
    "outliers": SETS,
    "gap": (
        *("boston", "concrete", "energy", "kin8nm", "power", "protein", "wine"),
        *("airfoil", "pumadyn32nm"),
    ),
    "tail": (
        *("boston", "concrete", "kin8nm", "naval", "power", "wine", "yacht"),
        *("autos", "tamielectric"),
    ),
    "cluster": (
        *("concrete", "energy", "kin8nm", "power", "wine", "yacht"),
        *("elevators", "servo", "skillcraft", "solar"),
    ),
    "group": tuple(GROUP_COLUMNS),
    "time": (STOCKS,),
    RANDOM: SETS,
}
