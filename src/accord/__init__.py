"""Regression whose uncertainty can be trusted.

The public names, each loaded on first use, so that ``import accord`` costs nothing. Type checkers
and editors see them as what they are.
"""

from typing import TYPE_CHECKING

from accord._lazy import loader

__version__ = "0.1.0"

if TYPE_CHECKING:
    from accord import (
        agreement,
        calibration,
        datasets,
        distributions,
        estimators,
        losses,
        metrics,
        plots,
        splits,
        validation,
    )
    from accord.agreement import (
        AllWithin,
        AtLeast,
        AtMost,
        EachOutput,
        Exact,
        Inside,
        NormWithin,
        Within,
        WithinRelative,
        probability_of_agreement,
    )
    from accord.calibration import Recalibrated
    from accord.distributions import (
        Empirical,
        Laplace,
        Logistic,
        Mixture,
        MultivariateNormal,
        Normal,
        PredictiveModel,
        Smoothed,
        StudentT,
        Uniform,
    )
    from accord.estimators import (
        BVMRegressor,
        DeepEnsembleRegressor,
        EvidentialRegressor,
        JointBVMRegressor,
        MCDropoutRegressor,
        ModuleRegressor,
        MSEEnsembleRegressor,
        PBPRegressor,
    )
    from accord.losses import AgreementLoss, BVMLoss, DatasetAgreementLoss, JointAgreementLoss
    from accord.persistence import load
    from accord.portfolio import PortfolioRegressor
    from accord.tabular import GuardedRegressor, TableRegressor, guard
    from accord.trust import TrustScore

__all__ = [
    "AgreementLoss",
    "AllWithin",
    "AtLeast",
    "AtMost",
    "BVMLoss",
    "BVMRegressor",
    "DatasetAgreementLoss",
    "DeepEnsembleRegressor",
    "EachOutput",
    "Empirical",
    "EvidentialRegressor",
    "Exact",
    "GuardedRegressor",
    "Inside",
    "JointAgreementLoss",
    "JointBVMRegressor",
    "Laplace",
    "Logistic",
    "MCDropoutRegressor",
    "MSEEnsembleRegressor",
    "Mixture",
    "ModuleRegressor",
    "MultivariateNormal",
    "NormWithin",
    "Normal",
    "PBPRegressor",
    "PortfolioRegressor",
    "PredictiveModel",
    "Recalibrated",
    "Smoothed",
    "StudentT",
    "TableRegressor",
    "TrustScore",
    "Uniform",
    "Within",
    "WithinRelative",
    "__version__",
    "agreement",
    "calibration",
    "datasets",
    "distributions",
    "estimators",
    "guard",
    "load",
    "losses",
    "metrics",
    "plots",
    "probability_of_agreement",
    "splits",
    "validation",
]

_HOMES = {
    # packages and modules
    "": (
        "agreement",
        "calibration",
        "datasets",
        "distributions",
        "estimators",
        "losses",
        "metrics",
        "plots",
        "splits",
        "validation",
    ),
    # where each other name lives
    "agreement": (
        "AllWithin",
        "AtLeast",
        "AtMost",
        "EachOutput",
        "Exact",
        "Inside",
        "NormWithin",
        "Within",
        "WithinRelative",
        "probability_of_agreement",
    ),
    "calibration": ("Recalibrated",),
    "distributions": (
        "Empirical",
        "Laplace",
        "Logistic",
        "Mixture",
        "MultivariateNormal",
        "Normal",
        "PredictiveModel",
        "Smoothed",
        "StudentT",
        "Uniform",
    ),
    "estimators": (
        "BVMRegressor",
        "DeepEnsembleRegressor",
        "EvidentialRegressor",
        "JointBVMRegressor",
        "MCDropoutRegressor",
        "MSEEnsembleRegressor",
        "ModuleRegressor",
        "PBPRegressor",
    ),
    "losses": (
        "AgreementLoss",
        "BVMLoss",
        "DatasetAgreementLoss",
        "JointAgreementLoss",
    ),
    "persistence": ("load",),
    "portfolio": ("PortfolioRegressor",),
    "tabular": ("GuardedRegressor", "TableRegressor", "guard"),
    "trust": ("TrustScore",),
}

# Hidden from type checkers, so that a misspelt name is an error to them too.
if not TYPE_CHECKING:
    __getattr__ = loader(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
