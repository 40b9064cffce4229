"""Receipts: where the uncertainty of a row comes from, and what would narrow it."""

from accord.explanation.columns import Columns
from accord.explanation.explain import Cells, explain
from accord.explanation.receipts import Attribution, Parts, Receipts
from accord.explanation.words import (
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
    "explain",
    "four_digits",
    "rounded",
    "unlike_category",
    "unlike_gap",
    "unlike_number",
]
