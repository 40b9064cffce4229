"""Regression whose uncertainty can be trusted.

The public names, each loaded on first use, so that ``import accord`` costs nothing. Type checkers
and editors see them as what they are.
"""

from typing import TYPE_CHECKING

from accord._lazy import lazy_names

__version__ = "0.1.0"

if TYPE_CHECKING:
    from accord import agreement as agreement
    from accord import calibration as calibration
    from accord import datasets as datasets
    from accord import distributions as distributions
    from accord import estimators as estimators
    from accord import losses as losses
    from accord import metrics as metrics
    from accord import plots as plots
    from accord import splits as splits
    from accord import validation as validation
    from accord.agreement import AllWithin as AllWithin
    from accord.agreement import AtLeast as AtLeast
    from accord.agreement import AtMost as AtMost
    from accord.agreement import EachOutput as EachOutput
    from accord.agreement import Exact as Exact
    from accord.agreement import Inside as Inside
    from accord.agreement import NormWithin as NormWithin
    from accord.agreement import Within as Within
    from accord.agreement import WithinRelative as WithinRelative
    from accord.agreement import probability_of_agreement as probability_of_agreement
    from accord.calibration import Recalibrated as Recalibrated
    from accord.distributions import Empirical as Empirical
    from accord.distributions import Laplace as Laplace
    from accord.distributions import Logistic as Logistic
    from accord.distributions import Mixture as Mixture
    from accord.distributions import MultivariateNormal as MultivariateNormal
    from accord.distributions import Normal as Normal
    from accord.distributions import PredictiveModel as PredictiveModel
    from accord.distributions import Smoothed as Smoothed
    from accord.distributions import StudentT as StudentT
    from accord.distributions import Uniform as Uniform
    from accord.estimators import BVMRegressor as BVMRegressor
    from accord.estimators import DeepEnsembleRegressor as DeepEnsembleRegressor
    from accord.estimators import EvidentialRegressor as EvidentialRegressor
    from accord.estimators import JointBVMRegressor as JointBVMRegressor
    from accord.estimators import MCDropoutRegressor as MCDropoutRegressor
    from accord.estimators import ModuleRegressor as ModuleRegressor
    from accord.estimators import MSEEnsembleRegressor as MSEEnsembleRegressor
    from accord.estimators import PBPRegressor as PBPRegressor
    from accord.losses import AgreementLoss as AgreementLoss
    from accord.losses import BVMLoss as BVMLoss
    from accord.losses import DatasetAgreementLoss as DatasetAgreementLoss
    from accord.losses import JointAgreementLoss as JointAgreementLoss
    from accord.persistence import load as load
    from accord.portfolio import PortfolioRegressor as PortfolioRegressor
    from accord.tabular import GuardedRegressor as GuardedRegressor
    from accord.tabular import TableRegressor as TableRegressor
    from accord.tabular import guard as guard
    from accord.trust import TrustScore as TrustScore
else:  # so that a misspelt name is an error to type checkers, too
    __getattr__, __dir__, __all__ = lazy_names(__name__)
    __all__ += ["__version__"]
