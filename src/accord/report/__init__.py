"""Reports: results as one self-contained HTML page, for screens of any width and for paper.

Each is loaded on first use, with the workflow that it reports on and no other.
"""

from typing import TYPE_CHECKING

from accord._lazy import loader

if TYPE_CHECKING:
    from accord.report.compare import compare_report
    from accord.report.evaluate import evaluate_report
    from accord.report.fit import fit_report
    from accord.report.monitor import monitor_report
    from accord.report.reproduce import reproduction_report
    from accord.report.validate import validate_report

_HOMES = {
    "compare": ("compare_report",),
    "evaluate": ("evaluate_report",),
    "fit": ("fit_report",),
    "monitor": ("monitor_report",),
    "reproduce": ("reproduction_report",),
    "validate": ("validate_report",),
}

__all__ = [
    "compare_report",
    "evaluate_report",
    "fit_report",
    "monitor_report",
    "reproduction_report",
    "validate_report",
]

__getattr__ = loader(__name__, _HOMES)
