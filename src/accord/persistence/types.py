"""The written list of types that a model file may hold, by names that do not change.

A class may move or be renamed: then its row here points to the new place, and files that were
written before still load. The stable name on the left never changes. A new type that is part of a
saved model needs a row; nothing else is ever loaded.
"""

import importlib
from functools import cache
from typing import Any

# Stable name → where the class is now. The place is a package's public name where it has one.
TYPES: dict[str, str] = {
    "BVMRegressor": "accord.estimators:BVMRegressor",
    "DeepEnsembleRegressor": "accord.estimators:DeepEnsembleRegressor",
    "EvidentialRegressor": "accord.estimators:EvidentialRegressor",
    "JointBVMRegressor": "accord.estimators:JointBVMRegressor",
    "MCDropoutRegressor": "accord.estimators:MCDropoutRegressor",
    "MSEEnsembleRegressor": "accord.estimators:MSEEnsembleRegressor",
    "ModuleRegressor": "accord.estimators:ModuleRegressor",
    "PBPRegressor": "accord.estimators:PBPRegressor",
    # Rules of agreement that a BVMRegressor was given.
    "Exact": "accord.agreement:Exact",
    "Within": "accord.agreement:Within",
    "WithinRelative": "accord.agreement:WithinRelative",
    "Asymmetric": "accord.agreement:Asymmetric",
    "ErrorInside": "accord.agreement:ErrorInside",
    "AtLeast": "accord.agreement:AtLeast",
    "AtMost": "accord.agreement:AtMost",
    "Inside": "accord.agreement:Inside",
    "Both": "accord.agreement.rules:Both",
    "Either": "accord.agreement.rules:Either",
    "Negated": "accord.agreement.rules:Negated",
    "Share": "accord.agreement:Share",
    # Rules over several outputs that a JointBVMRegressor was given.
    "AllWithin": "accord.agreement:AllWithin",
    "EachOutput": "accord.agreement:EachOutput",
    "JointBoth": "accord.agreement.joint_rules:JointBoth",
    "JointEither": "accord.agreement.joint_rules:JointEither",
    "JointNot": "accord.agreement.joint_rules:JointNot",
    "NormWithin": "accord.agreement:NormWithin",
    "Growth": "accord.trust:Growth",
    "ToleranceCurve": "accord.estimators:ToleranceCurve",
    "Proximity": "accord.trust:Proximity",
    "TrustScore": "accord.trust:TrustScore",
    "Conformal": "accord.calibration:Conformal",
    "ExtraLayers": "accord.calibration:ExtraLayers",
    "IsotonicCalibration": "accord.calibration:IsotonicCalibration",
    "LikelihoodRatio": "accord.calibration:LikelihoodRatio",
    "Recalibrated": "accord.calibration:Recalibrated",
    "VarianceScaling": "accord.calibration:VarianceScaling",
    "CellFormat": "accord.tables:CellFormat",
    "Column": "accord.tables:Column",
    "Schema": "accord.tables:Schema",
    "TableEncoder": "accord.tables:TableEncoder",
    "TableRegressor": "accord.tabular:TableRegressor",
    "GuardedRegressor": "accord.tabular:GuardedRegressor",
    "TableProfile": "accord.tabular:TableProfile",
    "PortfolioRegressor": "accord.portfolio:PortfolioRegressor",
    "JudgedModel": "accord.portfolio:JudgedModel",
    "LeaderboardEntry": "accord.portfolio:LeaderboardEntry",
    "Residuals": "accord.portfolio:Residuals",
    "Member": "accord.portfolio.blend:Member",
    "LocalTolerance": "accord.portfolio.blend:LocalTolerance",
    "Blanks": "accord.portfolio.local:Blanks",
    "Widening": "accord.portfolio.local:Widening",
    "Calibration": "accord.portfolio.components:Calibration",
    "TargetScale": "accord.portfolio.targets:TargetScale",
    "FeatureEncoding": "accord.portfolio.encoding:FeatureEncoding",
    "NetworkModel": "accord.portfolio.models:NetworkModel",
    "NetworkRecipe": "accord.portfolio.recipes:NetworkRecipe",
    "GaussianProcessModel": "accord.portfolio.gaussian_process:GaussianProcessModel",
    "GaussianProcessRecipe": "accord.portfolio.recipes:GaussianProcessRecipe",
    "GaussianProcess": "accord.portfolio.gaussian_process:GaussianProcess",
    "BoostingModel": "accord.portfolio.boosting:BoostingModel",
    "BoostingRecipe": "accord.portfolio.recipes:BoostingRecipe",
    "Trees": "accord.portfolio.boosting:Trees",
    "RidgeModel": "accord.portfolio.ridge:RidgeModel",
    "RidgeRecipe": "accord.portfolio.recipes:RidgeRecipe",
    "Line": "accord.portfolio.ridge:Line",
    # What a run that was stopped goes on from.
    "Candidate": "accord.portfolio.crossfit:Candidate",
    "Components": "accord.portfolio.components:Components",
    # What an estimator of this package may be built of or around; their state is plain numbers.
    "sklearn.Pipeline": "sklearn.pipeline:Pipeline",
    "sklearn.StandardScaler": "sklearn.preprocessing:StandardScaler",
    "sklearn.MinMaxScaler": "sklearn.preprocessing:MinMaxScaler",
    "sklearn.RobustScaler": "sklearn.preprocessing:RobustScaler",
    "sklearn.LinearRegression": "sklearn.linear_model:LinearRegression",
    "sklearn.Ridge": "sklearn.linear_model:Ridge",
    "sklearn.RidgeCV": "sklearn.linear_model:RidgeCV",
    "sklearn.Lasso": "sklearn.linear_model:Lasso",
    "sklearn.LassoCV": "sklearn.linear_model:LassoCV",
    "sklearn.ElasticNet": "sklearn.linear_model:ElasticNet",
    "sklearn.ElasticNetCV": "sklearn.linear_model:ElasticNetCV",
    "sklearn.HuberRegressor": "sklearn.linear_model:HuberRegressor",
    "sklearn.QuantileRegressor": "sklearn.linear_model:QuantileRegressor",
    "sklearn.BayesianRidge": "sklearn.linear_model:BayesianRidge",
    "sklearn.LogisticRegression": "sklearn.linear_model:LogisticRegression",
    "sklearn.KFold": "sklearn.model_selection:KFold",
    "sklearn.ShuffleSplit": "sklearn.model_selection:ShuffleSplit",
}


@cache
def class_of(name: str) -> type[Any]:
    """The class with a stable name; ``KeyError`` if the list has none.

    >>> class_of("sklearn.StandardScaler").__name__
    'StandardScaler'
    """
    module, _, attribute = TYPES[name].partition(":")
    found: type[Any] = getattr(importlib.import_module(module), attribute)
    return found


def given_on_load(cls: type[Any]) -> tuple[str, ...]:
    """Parts of an object that are code, which no file holds: its user gives them on loading."""
    return tuple(getattr(cls, "_given_on_load", ()))


def name_of(cls: type[Any]) -> str:
    """The stable name of a class; ``KeyError`` if it is not on the list."""
    for name, place in TYPES.items():
        # Only modules of candidates are imported: a model needs few of those on the list.
        if place.endswith(f":{cls.__name__}") and class_of(name) is cls:
            return name
    raise KeyError(cls.__qualname__)
