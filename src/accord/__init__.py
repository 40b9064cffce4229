"""Regression whose uncertainty can be trusted.

The public names, each loaded on first use, so that ``import accord`` costs nothing. Type checkers
and editors see them as what they are.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

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

# where each public name lives that is not itself a package or module
_HOMES = {
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
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

# Hidden from type checkers, so that a misspelt name is an error to them too.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            # name and obj let Python add "Did you mean: …?"
            raise AttributeError(
                f"module 'accord' has no attribute {name!r}", name=name, obj=sys.modules[__name__]
            )
        module = import_module(f"accord.{_HOME_OF.get(name, name)}")
        value = getattr(module, name) if name in _HOME_OF else module
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
