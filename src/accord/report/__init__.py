"""Reports: results as one self-contained HTML page, for screens of any width and for paper."""

from accord.report.compare import compare_report
from accord.report.evaluate import evaluate_report
from accord.report.fit import fit_report
from accord.report.monitor import monitor_report
from accord.report.reproduce import reproduction_report
from accord.report.validate import validate_report

__all__ = [
    "compare_report",
    "evaluate_report",
    "fit_report",
    "monitor_report",
    "reproduction_report",
    "validate_report",
]
