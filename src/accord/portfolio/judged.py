"""One estimator by itself, with the evidence that a portfolio has about its blend.

A portfolio is judged on rows that its models had not seen. Here copies of one estimator are
trained on the same folds, and without the most unusual rows, for that evidence alone. What predicts
is the estimator as it would be by itself, trained on all rows.
"""

import time as clock
from collections.abc import Callable
from inspect import signature
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from accord._progress import Progress, silent
from accord._types import Bools, Floats, Indices
from accord.distributions import Distribution
from accord.estimators import (
    BVMRegressor,
    DistributionalRegressor,
    fit_together,
    target_knowledge,
)
from accord.portfolio.blanks import Blanks
from accord.portfolio.crossfit import LeaderboardEntry
from accord.portfolio.folds import HeldOut, Part, held_out_parts, unusual_part
from accord.training import EpochReport
from accord.trust import Growth, Proximity

# Share of the work after which predictions of held-out rows are left to be made.
_TRAINED = 0.98


@final
class JudgedModel:
    """An estimator trained on all rows, and what copies of it say of rows that they had not seen.

    Nothing is calibrated, widened or kept within bounds: predictions are the estimator's own.

    Args:
        estimator: Any distributional estimator of this library; it is copied, not fitted.
        random_state: Seed of the folds. The estimator has its own.

    Attributes:
        estimator_: The estimator that predicts, trained on all rows.
        judged_: For each fold, predictions of its rows by a copy trained on the other folds.
        shifted_: Predictions of the most unusual rows by a copy that had seen none of them, one
            part.
        leaderboard_: The estimator with its out-of-fold NLL.
        rows_seen_: Rows that it has learnt from.
        proximity_: Distance to the training rows.
        notes_: What was done, in sentences.
        blanks_: None: what is not known widens nothing.
    """

    blanks_ = Blanks()

    def __init__(
        self, estimator: DistributionalRegressor, *, random_state: int | None = None
    ) -> None:
        self.estimator = estimator
        self.random_state = random_state

    def fit(
        self,
        X: Floats,
        y: Floats,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
        y_tolerance: ArrayLike | None = None,
        y_lower: ArrayLike | None = None,
        y_upper: ArrayLike | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Train the estimator, and copies of it for the evidence.

        The options are those of :meth:`PortfolioRegressor.fit`; weights and what is known of
        single targets need an estimator whose own ``fit`` takes it.

        **Shape**: X (N, d), all others (N,).
        """
        start = clock.perf_counter()
        progress = progress or silent
        options = {"sample_weight": sample_weight, "y_tolerance": y_tolerance}
        options |= {"y_lower": y_lower, "y_upper": y_upper}
        known = {name: np.asarray(v) for name, v in options.items() if v is not None}
        self._check_taken(known)
        measured = _measured(y, y_lower, y_upper)
        seed = int(np.random.default_rng(self.random_state).integers(2**31))
        folds = held_out_parts(X, y, measured, groups=groups, time=time, seed=seed)
        parts = [Part(np.arange(len(y)), np.arange(0)), *folds, _unusual(X, measured, seed)]
        models = fit_together(
            [
                (clone(self.estimator), X[p.train], y[p.train], _of_rows(known, p.train))
                for p in parts
            ],
            listener=_reporting(progress),
        )
        self.estimator_: DistributionalRegressor = models[0]
        self.rows_seen_ = len(y)
        own = getattr(self.estimator_, "growth_", None)
        # an estimator that knows distances itself is asked once for both
        self.growth_: Growth = Growth().fit(X) if own is None else own
        growth = self.growth_.leave_one_out()
        unusual = self.growth_.is_unusual(growth)
        self.judged_ = tuple(
            _asked(model, X, rows, growth[rows], unusual)
            for model, part in zip(models[1:-1], folds, strict=True)
            if len(rows := part.test[measured[part.test]])
        )
        far = parts[-1]
        away = Growth().fit(X[far.train])(X[far.test])
        self.shifted_ = (_asked(models[-1], X, far.test, away, unusual),)
        self._describe(y, clock.perf_counter() - start)
        progress(1.0, "Training")
        return self

    def predict_dist(self, X: Floats) -> Distribution:
        """The estimator's own predictive distribution of each row.

        **Shape**: X (N, d) → (N,).
        """
        return self.estimator_.predict_dist(X)

    def is_unusual(self, X: Floats) -> Bools:
        """Whether rows lie farther from the training rows than all but 5 % of these do.

        **Shape**: X (N, d) → (N,).
        """
        return self.growth_.is_unusual(self.growth_.cut_off(X))

    def answer(self, X: Floats, *, as_known: bool = False) -> tuple[Distribution, Bools]:
        """Predictive distributions, and which rows are unusual.

        They are the same ``as_known``: the estimator's own are not widened for what is unknown.

        **Shape**: X (N, d) → (N,) each.
        """
        model = self.estimator_
        if isinstance(model, BVMRegressor) and model.growth_ is self.growth_:
            dist, growth = model.predict_dist_and_growth(X)
            return dist, self.growth_.is_unusual(growth)
        return self.predict_dist(X), self.is_unusual(X)

    @property
    def proximity_(self) -> Proximity:
        return self.growth_.proximity_

    def __getstate__(self) -> dict[str, Any]:
        """What a model file holds: not the evidence."""
        return {k: v for k, v in vars(self).items() if k not in ("judged_", "shifted_")}

    def _check_taken(self, known: dict[str, Floats]) -> None:
        """Refuse what the estimator cannot make use of."""
        estimator: Any = self.estimator
        taken = signature(estimator.fit).parameters
        for name in known:
            if name not in taken:
                raise ValueError(
                    f"the estimator must take {name} in its fit, got a "
                    f"{type(estimator).__name__}, which does not. Use a BVMRegressor."
                )

    def _describe(self, y: Floats, seconds: float) -> None:
        density = [np.asarray(part.dist.log_prob(y[part.rows])) for part in self.judged_]
        name, about = type(self.estimator).__name__, " ".join(repr(self.estimator).split())
        nll = -float(np.mean(np.concatenate(density)))
        self.leaderboard_ = (LeaderboardEntry(name, about, nll, 1.0, seconds),)
        self.notes_: tuple[str, ...] = (
            f"Held-out rows were predicted by {len(self.judged_)} models with the same settings, "
            "each trained without them; the saved one was trained on all rows.",
            "Predictions are the method's own: not calibrated, not kept within bounds, and wider "
            "away from the data only as far as the method itself does that.",
        )


def _measured(y: Floats, lower: Any, upper: Any) -> Bools:
    """Which targets are known, not only bounds of them."""
    known = target_knowledge(y[:, None], lower=lower, upper=upper)
    if "lower" not in known:
        return np.ones(len(y), bool)
    return np.asarray(known["lower"][:, 0] == known["upper"][:, 0])


def _unusual(X: Floats, measured: Bools, seed: int) -> Part:
    """The most unusual of the rows whose targets are known, and all others."""
    rows = np.flatnonzero(measured)
    test = rows[unusual_part(X[rows], seed=seed).test]
    return Part(np.setdiff1d(np.arange(len(X)), test), test)


def _of_rows(known: dict[str, Floats], rows: Any) -> dict[str, Floats]:
    return {name: values[rows] for name, values in known.items()}


def _asked(
    model: DistributionalRegressor, X: Floats, rows: Indices, growth: Floats, unusual: Bools
) -> HeldOut:
    return HeldOut(rows, model.predict_dist(X[rows]), growth, unusual[rows])


def _reporting(progress: Progress) -> Callable[[EpochReport], None]:
    """A listener; what is trained in a second round does not move the bar back."""
    reached = 0.0

    def listen(epochs: EpochReport) -> None:
        nonlocal reached
        reached = max(reached, _TRAINED * epochs.epoch / epochs.n_epochs)
        progress(reached, "Training")

    return listen
