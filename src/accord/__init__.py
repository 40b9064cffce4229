"""Regression with neural networks whose uncertainty can be trusted.

The public names, each loaded on first use, so that ``import accord`` costs nothing.
"""

from importlib import import_module
from typing import Any

from accord._version import __version__

# public name -> the module that defines it (None: the name is itself a submodule)
_EXPORTS: dict[str, str | None] = {
    # models
    "BVMRegressor": "accord.estimators",
    "DeepEnsembleRegressor": "accord.estimators",
    "EvidentialRegressor": "accord.estimators",
    "MCDropoutRegressor": "accord.estimators",
    "MSEEnsembleRegressor": "accord.estimators",
    "PBPRegressor": "accord.estimators",
    "PortfolioRegressor": "accord.portfolio",
    "Recalibrated": "accord.calibration",
    "TableRegressor": "accord.tabular",
    "TrustScore": "accord.trust",
    "load": "accord.persistence",
    # losses
    "AgreementLoss": "accord.losses",
    "BVMLoss": "accord.losses",
    # distributions
    "Empirical": "accord.distributions",
    "Laplace": "accord.distributions",
    "Logistic": "accord.distributions",
    "Mixture": "accord.distributions",
    "Normal": "accord.distributions",
    "Smoothed": "accord.distributions",
    "StudentT": "accord.distributions",
    "Uniform": "accord.distributions",
    # agreement
    "AtLeast": "accord.agreement",
    "AtMost": "accord.agreement",
    "Exact": "accord.agreement",
    "Inside": "accord.agreement",
    "Within": "accord.agreement",
    "WithinRelative": "accord.agreement",
    "probability_of_agreement": "accord.agreement",
    # submodules
    "agreement": None,
    "calibration": None,
    "datasets": None,
    "distributions": None,
    "estimators": None,
    "losses": None,
    "metrics": None,
    "plots": None,
    "splits": None,
    "validation": None,
}

__all__ = ["__version__", *sorted(_EXPORTS)]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'accord' has no attribute {name!r}")
    home = _EXPORTS[name]
    value = import_module(f"accord.{name}") if home is None else getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
