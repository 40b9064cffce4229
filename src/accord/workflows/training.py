"""The models behind a fit: one on all rows, and those that are asked about rows they never saw."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from accord.distributions import Distribution
from accord.estimators import BVMRegressor, fit_together
from accord.splits import outlier_split
from accord.tables import Schema, TrainingData, make_preprocessor
from accord.training import EpochReport as Epochs
from accord.trust import TrustScore
from accord.workflows.plan import Plan

Rows = NDArray[np.intp]

_TRUST_ROWS = 19  # the fewest on which TrustScore can set its threshold
_UNUSUAL_SHARE = 0.1
_UNUSUAL_ROWS = 10
_MAX_UNUSUAL_SHARE = 0.3
_TEST_SHARE = 0.2


@dataclass(frozen=True)
class Split:
    """Rows that a model learns from, and rows that it is asked about."""

    train: Rows
    test: Rows


@dataclass(frozen=True)
class Trained:
    """Preprocessing, ensemble, and what rows are usual, all learnt from the same rows.

    From very few rows nothing is learnt about what is usual.
    """

    preprocessor: Pipeline
    regressor: BVMRegressor
    trust: TrustScore | None

    def features(self, X: pd.DataFrame) -> NDArray[np.float64]:
        return np.asarray(self.preprocessor.transform(X), dtype=np.float64)

    def predict_dist(self, X: pd.DataFrame) -> Distribution:
        return self.regressor.predict_dist(self.features(X))

    def is_unusual(self, X: pd.DataFrame) -> NDArray[np.bool_]:
        if self.trust is None:
            return np.zeros(len(X), bool)
        return self.trust.is_unusual(self.features(X))

    def tolerance_share(self, X: pd.DataFrame) -> NDArray[np.float64]:
        """What share of each row's variance comes from smoothing by the tolerance."""
        features = self.features(X)
        without = np.asarray(self.regressor.without_tolerance().predict_dist(features).variance)
        total = np.asarray(self.regressor.predict_dist(features).variance)
        share: NDArray[np.float64] = np.clip(1 - without / total, 0.0, 1.0)
        return share


def random_splits(n_rows: int, n_folds: int, *, seed: int) -> list[Split]:
    """Disjoint random fifths as test rows, as many as asked for."""
    order = np.random.default_rng(seed).permutation(n_rows)
    size = max(1, round(_TEST_SHARE * n_rows))
    folds = []
    for place in range(n_folds):
        test = np.sort(order[place * size : (place + 1) * size])
        folds.append(Split(np.setdiff1d(np.arange(n_rows), test), test))
    return folds


def unusual_split(X: pd.DataFrame, y: NDArray[np.float64], schema: Schema, *, seed: int) -> Split:
    """The most anomalous rows by their features as test rows."""
    features = make_preprocessor(schema, random_state=seed).fit_transform(X, y)
    share = max(_UNUSUAL_SHARE, min(_MAX_UNUSUAL_SHARE, _UNUSUAL_ROWS / len(X)))
    return Split(*outlier_split(features, fraction=share, random_state=seed))


def train_all(
    data: TrainingData,
    rows_of_each: list[Rows],
    plan: Plan,
    *,
    members: int,
    seed: int,
    advance: Callable[[float], None] | None = None,
) -> list[Trained]:
    """One model per set of rows, trained together; ``advance`` is told the share done."""
    jobs: list[tuple[Any, ...]] = []
    trained = []
    for rows in rows_of_each:
        X, y = data.X.iloc[rows], data.y[rows]
        preprocessor = make_preprocessor(data.schema, random_state=seed)
        features = preprocessor.fit_transform(X, y)
        regressor = BVMRegressor(
            n_members=members,
            tolerance=plan.tolerance.for_range(float(np.ptp(y)) or 1.0),
            epochs=plan.epochs,
            batch_size=plan.batch_size,
            random_state=seed,
        )
        jobs.append((regressor, features, y, _knowledge(data, rows)))
        enough = len(rows) >= _TRUST_ROWS
        trust = TrustScore(kind="distance", random_state=0).fit(features) if enough else None
        trained.append(Trained(preprocessor, regressor, trust))
    widths = [features.shape[1] for _, features, *_ in jobs]
    fit_together(jobs, listener=None if advance is None else share_of_epochs(widths, advance))
    if any(model.regressor.n_iter_ < plan.epochs for model in trained):
        # Training ends early only if it was interrupted: half-trained models are no result.
        raise KeyboardInterrupt
    return trained


def share_of_epochs(
    widths: Sequence[int], advance: Callable[[float], None]
) -> Callable[[Epochs], None]:
    """A listener that makes one share of the epochs of several stacks.

    Jobs with equally many features are trained as one stack, one stack after the other.

    >>> told = []
    >>> listen = share_of_epochs([3, 3, 4], told.append)
    >>> for epoch in (1, 2, 1, 2):
    ...     listen(Epochs(epoch, 2, 5, 0.0, 0.0))
    >>> [round(share, 2) for share in told]
    [0.33, 0.67, 0.83, 1.0]
    """
    stacks = [widths.count(width) for width in dict.fromkeys(widths)]
    finished, last = 0, 0

    def listen(epochs: Epochs) -> None:
        nonlocal finished, last
        finished += epochs.epoch <= last
        last = epochs.epoch
        done = sum(stacks[:finished])
        running = stacks[finished] if finished < len(stacks) else 0
        advance((done + running * epochs.epoch / epochs.n_epochs) / len(widths))

    return listen


def _knowledge(data: TrainingData, rows: Rows) -> dict[str, Any]:
    """What is known of the targets beyond their values, as ``fit`` takes it."""
    known = {"y_tolerance": data.tolerance, "y_lower": data.lower, "y_upper": data.upper}
    return {name: values[rows] for name, values in known.items() if values is not None}
