"""Receipts: where the uncertainty of a row comes from, and what would narrow it."""

from accord.explanation.explain import Cells, Columns, Unknown, array_receipts, explain
from accord.explanation.receipts import (
    Attribution,
    Parts,
    Receipts,
    four_digits,
    rounded,
    unlike_category,
    unlike_gap,
    unlike_number,
)

__all__ = [
    "Attribution",
    "Cells",
    "Columns",
    "Parts",
    "Receipts",
    "Unknown",
    "array_receipts",
    "explain",
    "four_digits",
    "rounded",
    "unlike_category",
    "unlike_gap",
    "unlike_number",
]
