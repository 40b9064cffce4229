"""scikit-learn estimators: the BVM ensemble and its rivals, behind one interface."""

from accord.estimators.bvm import PRESETS, RECIPES, BVMRegressor
from accord.estimators.distributional import (
    DistributionalRegressor,
    html_card,
    target_names,
)
from accord.estimators.ensemble import NetworkEnsembleRegressor, fit_together
from accord.estimators.joint import JointBVMRegressor
from accord.estimators.mc_dropout import MCDropoutRegressor
from accord.estimators.modules import ModuleRegressor
from accord.estimators.pbp import PBPRegressor
from accord.estimators.plain import DeepEnsembleRegressor, EvidentialRegressor, MSEEnsembleRegressor
from accord.estimators.tolerance import (
    ToleranceCurve,
    check_tolerance,
    choose,
    inner_splits,
    stated_half_width,
    target_knowledge,
)

__all__ = [
    "PRESETS",
    "RECIPES",
    "BVMRegressor",
    "DeepEnsembleRegressor",
    "DistributionalRegressor",
    "EvidentialRegressor",
    "JointBVMRegressor",
    "MCDropoutRegressor",
    "MSEEnsembleRegressor",
    "ModuleRegressor",
    "NetworkEnsembleRegressor",
    "PBPRegressor",
    "ToleranceCurve",
    "check_tolerance",
    "choose",
    "fit_together",
    "html_card",
    "inner_splits",
    "stated_half_width",
    "target_knowledge",
    "target_names",
]
