"""The library calls behind the command: each takes tables and returns a typed result.

Each name is loaded on first use, so that a command pays only for what it needs.
"""

from typing import TYPE_CHECKING

from accord._lazy import lazy_names

if TYPE_CHECKING:
    from accord.workflows.compare import COLUMNS as COLUMNS
    from accord.workflows.compare import KINDS as KINDS
    from accord.workflows.compare import SPLIT_WORDS as SPLIT_WORDS
    from accord.workflows.compare import CompareResult as CompareResult
    from accord.workflows.compare import MethodScore as MethodScore
    from accord.workflows.compare import SplitKind as SplitKind
    from accord.workflows.compare import compare_methods as compare_methods
    from accord.workflows.datasets import DatasetsResult as DatasetsResult
    from accord.workflows.datasets import describe_datasets as describe_datasets
    from accord.workflows.datasets import export_dataset as export_dataset
    from accord.workflows.datasets import export_demo as export_demo
    from accord.workflows.drift import ColumnDrift as ColumnDrift
    from accord.workflows.drift import Drift as Drift
    from accord.workflows.drift import measure_drift as measure_drift
    from accord.workflows.evaluate import EvaluateResult as EvaluateResult
    from accord.workflows.evaluate import evaluate_table as evaluate_table
    from accord.workflows.explain import FeatureEffect as FeatureEffect
    from accord.workflows.explain import UnusualRow as UnusualRow
    from accord.workflows.export import ExportResult as ExportResult
    from accord.workflows.export import export_model as export_model
    from accord.workflows.findings import JudgedRow as JudgedRow
    from accord.workflows.findings import Leaks as Leaks
    from accord.workflows.findings import LevelCurve as LevelCurve
    from accord.workflows.findings import WideRow as WideRow
    from accord.workflows.fit import FitResult as FitResult
    from accord.workflows.fit import fit_table as fit_table
    from accord.workflows.history import ALARM as ALARM
    from accord.workflows.history import History as History
    from accord.workflows.history import MonitoredTable as MonitoredTable
    from accord.workflows.methods import METHODS as METHODS
    from accord.workflows.methods import Method as Method
    from accord.workflows.methods import method_named as method_named
    from accord.workflows.methods import table_model as table_model
    from accord.workflows.monitor import MonitorResult as MonitorResult
    from accord.workflows.monitor import RowToLabel as RowToLabel
    from accord.workflows.monitor import monitor_table as monitor_table
    from accord.workflows.predict import PredictResult as PredictResult
    from accord.workflows.predict import load_model as load_model
    from accord.workflows.predict import predict_table as predict_table
    from accord.workflows.predict import prediction_columns as prediction_columns
    from accord.workflows.validate import ValidateResult as ValidateResult
    from accord.workflows.validate import validate_predictions as validate_predictions
    from accord.workflows.verdict import QUARTILES as QUARTILES
    from accord.workflows.verdict import RULE as RULE
    from accord.workflows.verdict import Reliability as Reliability
    from accord.workflows.verdict import Use as Use
    from accord.workflows.verdict import Verdict as Verdict
    from accord.workflows.verdict import reliability as reliability
else:  # so that a misspelt name is an error to type checkers, too
    __getattr__, __dir__, __all__ = lazy_names(__name__)
