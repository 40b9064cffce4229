"""From a table to answers: the estimator for tables, and what it knows about itself."""

from accord.tabular.assessment import Assessment, RowGroup, point_figures
from accord.tabular.card import ModelCard, make_card
from accord.tabular.profile import TableProfile, as_floats
from accord.tabular.regressor import Bounds, Effort, TableRegressor

__all__ = [
    "Assessment",
    "Bounds",
    "Effort",
    "ModelCard",
    "RowGroup",
    "TableProfile",
    "TableRegressor",
    "as_floats",
    "make_card",
    "point_figures",
]
