"""Reports: results as one self-contained HTML page, for screens of any width and for paper.

Each is loaded on first use, with the workflow that it reports on and no other.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accord.report.compare import compare_report
    from accord.report.evaluate import evaluate_report
    from accord.report.fit import fit_report
    from accord.report.monitor import monitor_report
    from accord.report.reproduce import reproduction_report
    from accord.report.validate import validate_report

_HOMES = {
    "compare_report": "compare",
    "evaluate_report": "evaluate",
    "fit_report": "fit",
    "monitor_report": "monitor",
    "reproduction_report": "reproduce",
    "validate_report": "validate",
}

__all__ = [
    "compare_report",
    "evaluate_report",
    "fit_report",
    "monitor_report",
    "reproduction_report",
    "validate_report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'accord.report' has no attribute {name!r}")
    value = getattr(import_module(f"accord.report.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
