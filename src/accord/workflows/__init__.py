"""The library calls behind the command: each takes tables and returns a typed result."""

from accord.workflows.assessment import Assessment
from accord.workflows.catalogue import DatasetsResult, describe_datasets, export_dataset
from accord.workflows.comparing import compare_methods
from accord.workflows.comparison import CompareResult, MethodScore
from accord.workflows.demonstration import DemoResult, demo
from accord.workflows.drift import Drift
from accord.workflows.effects import FeatureEffect
from accord.workflows.evaluating import evaluate_table
from accord.workflows.fitting import fit_table
from accord.workflows.model import ModelCard, TableModel, load_model
from accord.workflows.prediction import predict_table
from accord.workflows.progress import Progress
from accord.workflows.results import EvaluateResult, FitResult, PredictResult
from accord.workflows.validating import ValidateResult, validate_predictions
from accord.workflows.verdict import Verdict

__all__ = [
    "Assessment",
    "CompareResult",
    "DatasetsResult",
    "DemoResult",
    "Drift",
    "EvaluateResult",
    "FeatureEffect",
    "FitResult",
    "MethodScore",
    "ModelCard",
    "PredictResult",
    "Progress",
    "TableModel",
    "ValidateResult",
    "Verdict",
    "compare_methods",
    "demo",
    "describe_datasets",
    "evaluate_table",
    "export_dataset",
    "fit_table",
    "load_model",
    "predict_table",
    "validate_predictions",
]
