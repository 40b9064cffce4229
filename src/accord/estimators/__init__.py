"""scikit-learn estimators: the BVM ensemble and its rivals, behind one interface."""

from accord.estimators.bvm import BVMRegressor
from accord.estimators.deep_ensemble import DeepEnsembleRegressor
from accord.estimators.distributional import DistributionalRegressor, Uncertainty
from accord.estimators.evidential import EvidentialRegressor
from accord.estimators.mc_dropout import MCDropoutRegressor
from accord.estimators.mse_ensemble import MSEEnsembleRegressor
from accord.estimators.network_ensemble import NetworkEnsembleRegressor
from accord.estimators.pbp import PBPRegressor
from accord.estimators.together import fit_together

__all__ = [
    "BVMRegressor",
    "DeepEnsembleRegressor",
    "DistributionalRegressor",
    "EvidentialRegressor",
    "MCDropoutRegressor",
    "MSEEnsembleRegressor",
    "NetworkEnsembleRegressor",
    "PBPRegressor",
    "Uncertainty",
    "fit_together",
]
