"""Reports: results as one self-contained HTML page, for screens of any width and for paper.

Each is loaded on first use, with the workflow that it reports on and no other.
"""

from typing import TYPE_CHECKING

from accord._lazy import lazy_names

if TYPE_CHECKING:
    from accord.report.compare import compare_report as compare_report
    from accord.report.evaluate import evaluate_report as evaluate_report
    from accord.report.fit import fit_report as fit_report
    from accord.report.monitor import monitor_report as monitor_report
    from accord.report.reproduce import reproduction_report as reproduction_report
    from accord.report.validate import validate_report as validate_report
else:  # so that a misspelt name is an error to type checkers, too
    __getattr__, __dir__, __all__ = lazy_names(__name__)
