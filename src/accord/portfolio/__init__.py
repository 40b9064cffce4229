"""Cross-fitted ensembles, calibrated on out-of-fold predictions."""

import time as clock
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.model_selection import GroupKFold, KFold

from accord._progress import Progress
from accord._types import Bools, Floats, Indices
from accord.calibration import Conformal
from accord.distributions import Decomposed, Distribution, Normal
from accord.estimators import BVMRegressor, DistributionalRegressor, fit_together
from accord.proximity import Proximity
from accord.splits import outlier_split

_EFFORT: dict[str, Any] = {
    "quick": (2, 20, 0.02),
    "standard": (5, 40, "local"),
    "best": (10, 80, "local"),
}
_UNUSUAL_SHARE = 0.05


@dataclass(frozen=True)
class HeldOut:
    """Predictions for rows that the predicting models had not seen.

    **Shape**: (n,) throughout; ``rows`` are places in the training data.
    """

    rows: Indices
    dist: Distribution
    unusual: Bools


@dataclass(frozen=True)
class Entry:
    """A configuration, its out-of-fold score and its weight."""

    name: str
    about: str
    nll: float
    weight: float
    seconds: float


class PortfolioRegressor(DistributionalRegressor):
    """An ensemble per fold; what is saved is what was judged."""

    def __init__(
        self,
        *,
        effort: str = "standard",
        time_budget: float | None = None,
        tolerance: Any = "choose",
        bounds: Any = None,
        coverage: float = 0.95,
        random_state: Any = None,
    ) -> None:
        self.effort = effort
        self.time_budget = time_budget
        self.tolerance = tolerance
        self.bounds = bounds
        self.coverage = coverage
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        time: Any = None,
        y_tolerance: Any = None,
        y_lower: Any = None,
        y_upper: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        start = clock.perf_counter()
        X, targets = self._checked_pair(X, y)
        y = targets[:, 0]
        known = {"y_tolerance": y_tolerance, "y_lower": y_lower, "y_upper": y_upper}
        known = {name: np.asarray(value) for name, value in known.items() if value is not None}
        folds = self._folds(len(y), groups, time)
        usual, far = outlier_split(X, fraction=max(0.1, 2 / len(y)), random_state=0)
        jobs = []
        for train, _ in [*folds, (usual, far)]:
            members, epochs, tolerance = _EFFORT[self.effort]
            model = BVMRegressor(
                n_members=members, epochs=epochs, tolerance=tolerance, random_state=0
            )
            options = {name: value[train] for name, value in known.items()}
            jobs.append((model, X[train], y[train], options))
        models = fit_together(jobs)
        self.models_ = models[:-1]
        if progress is not None:
            progress(0.95, "Calibrating")
        exact = np.isnan(known["y_lower"]) if "y_lower" in known else np.ones(len(y), bool)
        mean, std, doubt = np.empty((3, len(y)))
        for model, (_, test) in zip(self.models_, folds, strict=True):
            mean[test], std[test], doubt[test] = _moments([model], X[test])
        rows = np.flatnonzero(exact)
        base = Decomposed(Normal(mean[rows], std[rows]), doubt[rows])
        self.calibrator_ = Conformal().fit(base, y[rows])
        self.proximity_ = Proximity(random_state=0).fit(X)
        own = self.proximity_.distance_leave_one_out()
        self.threshold_ = float(np.quantile(own, 1 - _UNUSUAL_SHARE))
        self.held_out_ = HeldOut(rows, self._calibrated(base), own[rows] > self.threshold_)
        far = far[exact[far]]
        far_mean, far_std, far_doubt = _moments([models[-1]], X[far])
        shifted = self._calibrated(Decomposed(Normal(far_mean, far_std), far_doubt))
        self.shifted_ = HeldOut(far, shifted, np.ones(len(far), bool))
        nll = -float(np.mean(np.asarray(self.held_out_.dist.log_prob(y[rows]))))
        seconds = clock.perf_counter() - start
        self.leaderboard_ = (Entry("BVM ensemble", "one hidden layer", nll, 1.0, seconds),)
        self.notes_: tuple[str, ...] = ()
        return self

    def _folds(self, n: int, groups: Any, time: Any) -> list[tuple[Indices, Indices]]:
        if groups is not None:
            return list(GroupKFold(5).split(np.empty(n), groups=groups))
        if time is not None:
            order = np.argsort(np.asarray(time), kind="stable")
            return [(order[a], order[b]) for a, b in KFold(5).split(order)]
        return list(KFold(5, shuffle=True, random_state=0).split(np.empty(n)))

    def _predictive(self, X: Floats) -> Distribution:
        mean, std, doubt = _moments(self.models_, X)
        return self._calibrated(Decomposed(Normal(mean, std), doubt))

    def _calibrated(self, dist: Distribution) -> Distribution:
        return self.calibrator_(dist)

    def is_unusual(self, X: Any) -> Bools:
        """Rows further from the training rows than all but a twentieth of these are."""
        return self.proximity_.distance(X) > self.threshold_

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        for name in ("held_out_", "shifted_", "leaderboard_"):
            state.pop(name, None)
        return state


def _moments(models: list[BVMRegressor], X: Floats) -> tuple[Floats, Floats, Floats]:
    dists = [model.predict_dist(X) for model in models]
    means = np.stack([np.asarray(dist.mean) for dist in dists])
    noise = np.mean([np.square(np.asarray(dist.aleatoric)) for dist in dists], axis=0)
    doubt = np.mean([np.square(np.asarray(dist.epistemic)) for dist in dists], axis=0)
    doubt = doubt + means.var(axis=0)
    return means.mean(axis=0), np.sqrt(noise + doubt), np.sqrt(doubt)
