"""The library calls behind the command: each takes tables and returns a typed result.

Each name is loaded on first use, so that a command pays only for what it needs.
"""

from typing import TYPE_CHECKING

from accord._lazy import loader

if TYPE_CHECKING:
    from accord.workflows.compare import (
        COLUMNS,
        KINDS,
        SPLIT_WORDS,
        CompareResult,
        MethodScore,
        SplitKind,
        compare_methods,
    )
    from accord.workflows.datasets import (
        DatasetsResult,
        describe_datasets,
        export_dataset,
        export_demo,
    )
    from accord.workflows.drift import ColumnDrift, Drift, measure_drift
    from accord.workflows.evaluate import EvaluateResult, evaluate_table
    from accord.workflows.explain import FeatureEffect, UnusualRow
    from accord.workflows.export import ExportResult, export_model
    from accord.workflows.findings import JudgedRow, Leaks, LevelCurve, WideRow
    from accord.workflows.fit import FitResult, fit_table
    from accord.workflows.history import ALARM, History, MonitoredTable
    from accord.workflows.methods import METHODS, Method, method_named, table_model
    from accord.workflows.monitor import MonitorResult, RowToLabel, monitor_table
    from accord.workflows.predict import (
        PredictResult,
        load_model,
        predict_table,
        prediction_columns,
    )
    from accord.workflows.validate import ValidateResult, validate_predictions
    from accord.workflows.verdict import QUARTILES, RULE, Reliability, Use, Verdict, reliability

_HOMES = {
    "compare": (
        "COLUMNS",
        "KINDS",
        "SPLIT_WORDS",
        "CompareResult",
        "MethodScore",
        "SplitKind",
        "compare_methods",
    ),
    "datasets": ("DatasetsResult", "describe_datasets", "export_dataset", "export_demo"),
    "evaluate": ("EvaluateResult", "evaluate_table"),
    "explain": ("FeatureEffect", "UnusualRow"),
    "export": ("ExportResult", "export_model"),
    "findings": ("JudgedRow", "Leaks", "LevelCurve", "WideRow"),
    "fit": ("FitResult", "fit_table"),
    "drift": ("ColumnDrift", "Drift", "measure_drift"),
    "history": ("ALARM", "History", "MonitoredTable"),
    "methods": ("METHODS", "Method", "method_named", "table_model"),
    "monitor": ("MonitorResult", "RowToLabel", "monitor_table"),
    "predict": (
        "PredictResult",
        "load_model",
        "predict_table",
        "prediction_columns",
    ),
    "validate": ("ValidateResult", "validate_predictions"),
    "verdict": ("QUARTILES", "RULE", "Reliability", "Use", "Verdict", "reliability"),
}

__all__ = [
    "ALARM",
    "COLUMNS",
    "KINDS",
    "METHODS",
    "QUARTILES",
    "RULE",
    "SPLIT_WORDS",
    "ColumnDrift",
    "CompareResult",
    "DatasetsResult",
    "Drift",
    "EvaluateResult",
    "ExportResult",
    "FeatureEffect",
    "FitResult",
    "History",
    "JudgedRow",
    "Leaks",
    "LevelCurve",
    "Method",
    "MethodScore",
    "MonitorResult",
    "MonitoredTable",
    "PredictResult",
    "Reliability",
    "RowToLabel",
    "SplitKind",
    "UnusualRow",
    "Use",
    "ValidateResult",
    "Verdict",
    "WideRow",
    "compare_methods",
    "describe_datasets",
    "evaluate_table",
    "export_dataset",
    "export_demo",
    "export_model",
    "fit_table",
    "load_model",
    "measure_drift",
    "method_named",
    "monitor_table",
    "predict_table",
    "prediction_columns",
    "reliability",
    "table_model",
    "validate_predictions",
]

__getattr__ = loader(__name__, _HOMES)
