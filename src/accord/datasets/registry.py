"""Datasets by name, by the name the literature uses, or nearly so."""

import re
from difflib import get_close_matches

from accord.datasets.entries import ENTRIES, Entry

__all__ = ["info", "names"]


def names() -> list[str]:
    """Names that :func:`~accord.datasets.load` knows.

    Example:
        >>> names()[:3]
        ['boston', 'concrete', 'energy']
    """
    return [entry.name for entry in ENTRIES]


def info(name: str) -> Entry:
    """What is known of a dataset without loading it: size, names, units, licence, address.

    Args:
        name: A name of :func:`names`, or one under which the literature knows it; letter case
            and separators do not matter.

    Example:
        >>> info("Naval propulsion plant").name, info("naval").n, info("naval").licence
        ('naval', 11934, 'CC BY 4.0, UCI Machine Learning Repository')
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a string, got {type(name).__name__}.")
    by_spelling = {
        _bare(spelling): entry
        for entry in ENTRIES
        for spelling in (entry.name, entry.title, *entry.aliases)
    }
    if (entry := by_spelling.get(_bare(name))) is not None:
        return entry
    near = get_close_matches(_bare(name), by_spelling, n=3, cutoff=0.6)
    suggestions = list(dict.fromkeys(by_spelling[spelling].name for spelling in near))
    hint = f"Did you mean {' or '.join(map(repr, suggestions))}? " if suggestions else ""
    raise ValueError(
        f"name must be a known dataset, got {name!r}. {hint}Known: {', '.join(names())}."
    )


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
