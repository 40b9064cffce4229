"""Receipts: where the uncertainty of a row comes from, and what would narrow it."""

from accord.explanation.explain import Cells, Columns, Unknown, explain
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
    "explain",
    "four_digits",
    "rounded",
    "unlike_category",
    "unlike_gap",
    "unlike_number",
]
