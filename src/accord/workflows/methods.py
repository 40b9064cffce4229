"""The methods that are compared: those of this library, and others where they are installed.

To add one, write an entry of ``METHODS``: a name, how it is trained, how it is made from a seed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol, Self, final

import numpy as np

from accord._types import Floats
from accord.distributions import Decomposed, Distribution, Normal
from accord.estimators import (
    BVMRegressor,
    DeepEnsembleRegressor,
    EvidentialRegressor,
    MCDropoutRegressor,
    MSEEnsembleRegressor,
    PBPRegressor,
)
from accord.portfolio import PortfolioRegressor

# A method that states no uncertainty at all would have no likelihood.
_SMALLEST_SHARE = 1e-6


class Regressor(Protocol):
    """What a method must be able to do."""

    def fit(self, X: Floats, y: Floats) -> object: ...
    def predict_dist(self, X: Floats) -> Distribution: ...


@dataclass(frozen=True)
class Method:
    """A method by name: how it is made from a seed, and the package that it needs."""

    name: str
    about: str
    make: Callable[[int], Regressor]
    package: str | None = None

    @property
    def installed(self) -> bool:
        return self.package is None or find_spec(self.package) is not None


@final
class NGBoost:
    """NGBoost with its own settings, behind this library's interface."""

    def __init__(self, seed: int) -> None:
        from ngboost import NGBRegressor

        self.model = NGBRegressor(random_state=seed, verbose=False)

    def fit(self, X: Floats, y: Floats) -> Self:
        self._scale = float(np.std(y))
        self.model.fit(X, y)
        return self

    def predict_dist(self, X: Floats) -> Distribution:
        found = self.model.pred_dist(X)
        return Normal(found.loc, np.maximum(found.scale, _SMALLEST_SHARE * self._scale))


@final
class CatBoost:
    """CatBoost's RMSEWithUncertainty and its virtual ensemble, behind this library's interface."""

    def __init__(self, seed: int) -> None:
        from catboost import CatBoostRegressor

        self.model = CatBoostRegressor(
            loss_function="RMSEWithUncertainty",
            posterior_sampling=True,
            random_seed=seed,
            verbose=False,
            allow_writing_files=False,
            thread_count=1,
        )

    def fit(self, X: Floats, y: Floats) -> Self:
        self._scale = float(np.std(y))
        self.model.fit(X, y)
        return self

    def predict_dist(self, X: Floats) -> Distribution:
        found = self.model.virtual_ensembles_predict(
            X, prediction_type="TotalUncertainty", virtual_ensembles_count=10, thread_count=1
        )
        mean, knowledge, noise = np.asarray(found, dtype=np.float64).T
        floor = (_SMALLEST_SHARE * self._scale) ** 2
        total = np.sqrt(np.maximum(knowledge + noise, floor))
        return Decomposed(Normal(mean, total), np.sqrt(np.minimum(knowledge, total**2)))


METHODS = (
    Method(
        "Portfolio",
        "what 'accord fit' trains, with quick effort: cross-fitted, calibrated out of fold",
        lambda s: PortfolioRegressor(effort="quick", random_state=s),
    ),
    Method(
        "BVM",
        "five networks trained by agreement, with a local tolerance; not recalibrated",
        lambda s: BVMRegressor(random_state=s),
    ),
    Method(
        "Deep ensemble",
        "five networks trained by Gaussian likelihood",
        lambda s: DeepEnsembleRegressor(random_state=s),
    ),
    Method(
        "MSE ensemble",
        "networks trained by squared error; their spread is the uncertainty",
        lambda s: MSEEnsembleRegressor(random_state=s),
    ),
    Method(
        "MC dropout",
        "one network with dropout at training and at prediction",
        lambda s: MCDropoutRegressor(random_state=s),
    ),
    Method(
        "PBP",
        "probabilistic backpropagation: one network, moments instead of weights",
        lambda s: PBPRegressor(random_state=s),
    ),
    Method(
        "Evidential",
        "networks that predict a distribution over Gaussians",
        lambda s: EvidentialRegressor(random_state=s),
    ),
    Method("NGBoost", "natural gradient boosting, its own settings", NGBoost, package="ngboost"),
    Method(
        "CatBoost",
        "boosted trees, RMSEWithUncertainty, a virtual ensemble of ten",
        CatBoost,
        package="catboost",
    ),
)
