"""How far a row is from the data that a model has learnt from, and what follows from that.

Trust scores; and receipts: where the uncertainty of a row comes from, and what would narrow it.
"""

from accord.trust.explain import Cells, Columns, Unknown, array_receipts, explain
from accord.trust.proximity import UNUSUAL_SHARE, Growth, Neighbors, Proximity
from accord.trust.receipts import (
    Attribution,
    Parts,
    Receipts,
    four_digits,
    rounded,
    unlike_category,
    unlike_gap,
    unlike_number,
)
from accord.trust.score import TrustScore

__all__ = [
    "UNUSUAL_SHARE",
    "Attribution",
    "Cells",
    "Columns",
    "Growth",
    "Neighbors",
    "Parts",
    "Proximity",
    "Receipts",
    "TrustScore",
    "Unknown",
    "array_receipts",
    "explain",
    "four_digits",
    "rounded",
    "unlike_category",
    "unlike_gap",
    "unlike_number",
]
