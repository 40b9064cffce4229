"""From a table to answers: the estimator for tables, and what it knows about itself."""

from accord.tabular.assessment import Assessment, RowGroup, held_out_places, point_figures
from accord.tabular.card import (
    DistanceCurve,
    Expectation,
    ModelCard,
    TableProfile,
    as_floats,
    cell_text,
)
from accord.tabular.guarded import GuardedRegressor, guard
from accord.tabular.pictures import Dependence, partial_dependence
from accord.tabular.receipts import held_out_receipts
from accord.tabular.regressor import TableRegressor
from accord.tabular.rows import groups_of, notes_on_splits
from accord.tabular.stream import SampledTable

__all__ = [
    "Assessment",
    "Dependence",
    "DistanceCurve",
    "Expectation",
    "GuardedRegressor",
    "ModelCard",
    "RowGroup",
    "SampledTable",
    "TableProfile",
    "TableRegressor",
    "as_floats",
    "cell_text",
    "groups_of",
    "guard",
    "held_out_places",
    "held_out_receipts",
    "notes_on_splits",
    "partial_dependence",
    "point_figures",
]
