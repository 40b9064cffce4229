"""Every table and figure of the paper, from one call, beside what was published."""

from importlib import import_module
from typing import Any

# public name -> the module that defines it; loaded on first use, since some bring torch
_EXPORTS = {
    "STUDIES": "studies",
    "Listener": "progress",
    "Model": "descriptions",
    "Reading": "descriptions",
    "Reproduction": "reproduction",
    "Study": "descriptions",
    "StudyCost": "reproduction",
    "Table": "tables",
    "TerminalProgress": "progress",
    "Verdict": "verdicts",
    "duration": "progress",
    "reproduce": "reproduction",
    "study_named": "studies",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'accord.experiments' has no attribute {name!r}")
    return getattr(import_module(f"accord.experiments.{_EXPORTS[name]}"), name)
