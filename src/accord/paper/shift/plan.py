"""On which sets each family of shift is tried.

Every set has outliers and one or two of gap, tail and cluster. Groups need a column that says which
rows belong together, and time needs days. Where conformal prediction has fewer than 49 rows to
learn from, its quantile at one per cent is infinite, and no CRPS can be had by quantiles: Autos and
Servo, below 200 rows, are left out, and so are the cluster and the gap of Yacht.
"""

from accord.paper import published, sets
from accord.paper.shift.families import GROUP_COLUMNS, RANDOM

__all__ = ["CONTROLLED", "FAMILIES", "SETS", "STOCKS"]

_TOO_SMALL = ("autos", "servo")
SETS = tuple(
    name for name in (*published.datasets("table3"), *sets.DEVELOPMENT) if name not in _TOO_SMALL
)
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
        "tamielectric",
    ),
    "cluster": (
        *("concrete", "energy", "kin8nm", "power", "wine"),
        *("elevators", "skillcraft", "solar"),
    ),
    "group": tuple(name for name in GROUP_COLUMNS if name not in _TOO_SMALL),
    "time": (STOCKS,),
    RANDOM: SETS,
}
