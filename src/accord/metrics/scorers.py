"""The metrics as scikit-learn scorers, for ``cross_val_score``, ``GridSearchCV`` and the like.

>>> from functools import partial
>>> from sklearn.gaussian_process import GaussianProcessRegressor
>>> from sklearn.model_selection import cross_val_score
>>> from accord.metrics import scorers
>>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.0]
>>> model = GaussianProcessRegressor(alpha=0.1, optimizer=None)
>>> cross_val_score(model, X, y, cv=2, scoring=scorers.crps_scorer).shape
(2,)
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from accord.distributions import Distribution, predictive_of
from accord.metrics.calibration import ece, ence, mce
from accord.metrics.intervals import coverage, interval_score
from accord.metrics.scores import agreement, crps, gaussian_nll, mae, nll, r2, rmse

__all__ = [
    "DistributionScorer",
    "agreement_scorer",
    "coverage_scorer",
    "crps_scorer",
    "ece_scorer",
    "ence_scorer",
    "gaussian_nll_scorer",
    "interval_scorer",
    "mae_scorer",
    "mce_scorer",
    "nll_scorer",
    "r2_scorer",
    "rmse_scorer",
]


@dataclass(frozen=True, slots=True)
class DistributionScorer:
    """A metric of ``dist`` as a callable (estimator, X, y) for which greater is better.

    ``metric`` is called as ``metric(y_true=y, dist=dist)``, with ``sample_weight`` if given; bind
    options with ``functools.partial``. The estimator has ``predict_dist``, or
    ``predict(X, return_std=True)``, whose answer is taken as Gaussian; a Pipeline may end in one.

    With scikit-learn's metadata routing, ``weighted`` says whether the scorer asks for
    ``sample_weight`` (or for metadata of another name); :meth:`set_score_request` sets it.

    >>> from functools import partial
    >>> DistributionScorer(partial(interval_score, coverage=0.9)).greater_is_better
    False
    """

    metric: Callable[..., float]
    greater_is_better: bool = False
    weighted: bool | str | None = None

    def set_score_request(self, *, sample_weight: bool | str | None) -> "DistributionScorer":
        """A scorer like this one that asks for weights, does not, or calls them otherwise."""
        return replace(self, weighted=sample_weight)

    def get_metadata_routing(self) -> Any:
        """What the scorer asks for, in scikit-learn's form."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=self.weighted)
        return request

    def __call__(
        self, estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """The metric of the estimator's predictions for ``X`` against ``y``, signed."""
        given = {} if sample_weight is None else {"sample_weight": sample_weight}
        value = self.metric(y_true=y, dist=predictive_of(estimator, X), **given)
        return value if self.greater_is_better else -value


def _coverage_gap(
    *,
    y_true: ArrayLike,
    dist: Distribution,
    coverage_stated: float = 0.95,
    sample_weight: ArrayLike | None = None,
) -> float:
    observed = coverage(
        y_true=y_true, dist=dist, coverage=coverage_stated, sample_weight=sample_weight
    )
    return abs(observed - coverage_stated)


def agreement_scorer(rule: Any) -> DistributionScorer:
    """The mean probability of agreement under ``rule`` (a number ε: within ±ε)."""
    return DistributionScorer(partial(agreement, rule=rule), greater_is_better=True)


def coverage_scorer(coverage: float = 0.95) -> DistributionScorer:
    """Minus the distance between the observed and the stated coverage of central intervals."""
    return DistributionScorer(partial(_coverage_gap, coverage_stated=coverage))


def interval_scorer(coverage: float = 0.95) -> DistributionScorer:
    """Minus the interval (Winkler) score of central intervals."""
    return DistributionScorer(partial(interval_score, coverage=coverage))


crps_scorer = DistributionScorer(crps)
ece_scorer = DistributionScorer(ece)
ence_scorer = DistributionScorer(ence)
gaussian_nll_scorer = DistributionScorer(gaussian_nll)
mae_scorer = DistributionScorer(mae)
mce_scorer = DistributionScorer(mce)
nll_scorer = DistributionScorer(nll)
r2_scorer = DistributionScorer(r2, greater_is_better=True)
rmse_scorer = DistributionScorer(rmse)
