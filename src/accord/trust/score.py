"""How far a prediction can be trusted: is the row one that the model knows?"""

from typing import Any, Literal, Self, get_args

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from accord._checks import check_choice, check_probability
from accord._types import Bools, Floats
from accord.distributions import Distribution, MonotoneCurve, curve_through_scores, predictive_of
from accord.trust.proximity import Proximity

TrustKind = Literal["distance", "epistemic", "both"]

_MIN_ROWS = 10
# A row that repeats a training row is at distance 0; its logarithm has to be a number.
_SMALLEST = 1e-12


class TrustScore(BaseEstimator):  # type: ignore[misc]
    """A score per row for how far its prediction can be trusted, and an alarm for unusual rows.

    Two things show that a row is unlike what the model has learned from: its distance to the
    training rows (mean distance to the k nearest, in standardised features), and the epistemic
    share of the predicted variance: how much of the uncertainty is the model's own ignorance,
    beside the noise. Each is put on one scale, that of a standard normal variable over held-out
    rows, by its rank among them; ``"both"`` is their mean. The score is minus that: the higher, the
    more to be trusted.

    The distance is the default, since it finds rows with unusual features best, on average: on
    outlier splits of nine sets its AUROC is 0.935. Of both it is 0.925 with Deep Ensembles and
    0.893 with a local tolerance, of the share alone 0.784 and 0.711
    (``benchmarks/trust_auroc.py``). The share alone knows of rows that are near, and yet unknown.

    A row is called unusual if its score is lower than all but a share ``false_alarm_rate`` of the
    held-out rows'. By the rank argument of conformal prediction, a new row of their kind is called
    unusual with at most that probability, whatever the model.

    Args:
        model: A fitted model with ``predict_dist``. For ``kind="distance"`` it is not needed; of a
            pipeline, the distance is that of the features that its last step sees.
        kind: ``"distance"``, ``"epistemic"``, or ``"both"``.
        false_alarm_rate: Share of usual rows that may be called unusual.
        n_neighbors: k.
        random_state: Draws the reference rows where there are very many.

    Attributes:
        threshold_: Scores below it are unusual.
        held_out_scores_: Scores of the held-out rows, ascending, (n,).

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X, held_out = rng.normal(size=(500, 2)), rng.normal(size=(200, 2))
        >>> trust = TrustScore().fit(X, X_held_out=held_out)
        >>> trust.is_unusual([[0.0, 0.0], [4.0, 4.0]])
        array([False,  True])
        >>> trust.p_value([[0.0, 0.0], [4.0, 4.0]]).round(3)
        array([0.915, 0.005])
    """

    def __init__(
        self,
        model: Any = None,
        *,
        kind: TrustKind = "distance",
        false_alarm_rate: float = 0.05,
        n_neighbors: int = 5,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.model = model
        self.kind = kind
        self.false_alarm_rate = false_alarm_rate
        self.n_neighbors = n_neighbors
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, X_held_out: Any = None) -> Self:
        """Learn what is usual.

        Args:
            X: The rows that the model was trained on.
            y: Ignored.
            X_held_out: Rows of the same kind that it was not trained on; the threshold comes from
                them. For ``kind="distance"`` the training rows themselves can serve, each left
                out in turn.

        **Shape**: X (N, d), X_held_out (n, d) with n ≥ 10.
        """
        self._check_settings(X_held_out)
        self.proximity_ = Proximity(n_neighbors=self.n_neighbors, random_state=self.random_state)
        self.proximity_.fit(self._features(X))
        held_out = self._held_out_signals(X_held_out)
        curves = [curve_through_scores(column) for column in held_out.T]
        self.knots_ = np.stack([curve.knots for curve in curves])
        self.values_ = np.stack([curve.values for curve in curves])
        self.held_out_scores_ = np.sort(self._scores(held_out))
        self.threshold_ = self._threshold()
        return self

    def score_samples(self, X: Any) -> Floats:
        """The higher, the more the prediction for a row can be trusted; about 0 for held-out rows.

        **Shape**: X (N, d) → (N,).
        """
        check_is_fitted(self, "threshold_")
        return self._scores(self._signals(X))

    def is_unusual(self, X: Any) -> Bools:
        """Whether a row's score lies below the threshold.

        **Shape**: X (N, d) → (N,).
        """
        return self.score_samples(X) < self.threshold_

    def p_value(self, X: Any) -> Floats:
        """How often a usual row scores as low: (1 + number of held-out rows that do) / (n + 1).

        **Shape**: X (N, d) → (N,).
        """
        lower = np.searchsorted(self.held_out_scores_, self.score_samples(X), side="right")
        p: Floats = (1 + lower) / (len(self.held_out_scores_) + 1)
        return p

    def _check_settings(self, X_held_out: Any) -> None:
        check_choice("kind", self.kind, get_args(TrustKind))
        check_probability("false_alarm_rate", self.false_alarm_rate, strict=True)
        if self.kind == "distance":
            return
        if self.model is None:
            raise ValueError(
                f"kind={self.kind!r} needs a fitted model, got None. "
                f"Pass TrustScore(model, kind={self.kind!r}), or use kind='distance'."
            )
        if X_held_out is None:
            raise ValueError(
                f"kind={self.kind!r} needs rows that the model was not trained on, got "
                "X_held_out=None. Pass them, or use kind='distance'."
            )

    def _held_out_signals(self, X_held_out: Any) -> Floats:
        if X_held_out is None:
            signals = _log(self.proximity_.distance_leave_one_out())[:, None]
        else:
            signals = self._signals(X_held_out)
        if self.kind != "distance" and np.all(signals[:, -1] == np.log(_SMALLEST)):
            raise ValueError(
                f"kind={self.kind!r} needs a model that states its epistemic uncertainty, got a "
                f"share of 0 in every row from {type(self.model).__name__}. Use kind='distance'."
            )
        if len(signals) < _MIN_ROWS:
            raise ValueError(
                f"a threshold needs at least {_MIN_ROWS} held-out rows, got {len(signals)}. "
                "Hold out more."
            )
        return signals

    def _signals(self, X: Any) -> Floats:
        """Log-distance and log-share, as far as asked for.

        **Shape**: (N, 1) or (N, 2).
        """
        signals = []
        if self.kind != "epistemic":
            signals.append(_log(self.proximity_.distance(self._features(X))))
        if self.kind != "distance":
            signals.append(_log(_epistemic_share(predictive_of(_bare(self.model), X))))
        return np.stack(signals, axis=1)

    def _features(self, X: Any) -> Any:
        """Features as the last step of a pipeline sees them."""
        from sklearn.pipeline import Pipeline

        if isinstance(self.model, Pipeline) and len(self.model) > 1:
            return self.model[:-1].transform(X)
        return X

    def _scores(self, signals: Floats) -> Floats:
        pairs = zip(self.knots_, self.values_, strict=True)
        curves = [MonotoneCurve(knots, values) for knots, values in pairs]
        columns = [
            curve(torch.from_numpy(column.copy())).numpy()
            for curve, column in zip(curves, signals.T, strict=True)
        ]
        scores: Floats = -np.mean(columns, axis=0)
        return scores

    def _threshold(self) -> float:
        """The k-th lowest held-out score, k = ⌊rate (n + 1)⌋: k of n + 1 ranks are below it."""
        n = len(self.held_out_scores_)
        k = int(self.false_alarm_rate * (n + 1) + 1e-9)
        if k < 1:
            raise ValueError(
                f"false_alarm_rate={self.false_alarm_rate} needs at least "
                f"{int(np.ceil(1 / self.false_alarm_rate)) - 1} held-out rows, got {n}. "
                "Hold out more rows or accept more false alarms."
            )
        return float(self.held_out_scores_[k - 1])


def _bare(model: Any) -> Any:
    """The fitted model without the tolerance that it smooths its predictions by, if it has one."""
    from sklearn.pipeline import Pipeline  # brings a terminal's progress bars along

    if isinstance(model, Pipeline):
        return Pipeline([*model.steps[:-1], (model.steps[-1][0], _bare(model[-1]))])
    return model.without_tolerance() if hasattr(model, "without_tolerance") else model


def _epistemic_share(dist: Distribution) -> Floats:
    """epistemic² / (epistemic² + noise²), the largest of a row's outputs.

    A tolerance that grows away from the training data widens a prediction but is no noise: counted
    as such, it would make the share smallest where the model knows least.

    **Shape**: (N,).
    """
    disagreement = np.square(np.asarray(dist.disagreement))
    rest = np.square(np.asarray(dist.std)) - np.asarray(dist.tolerance_variance)
    share = disagreement / np.maximum(rest, np.finfo(np.float64).tiny)
    largest: Floats = share.reshape(len(share), -1).max(axis=1)
    return largest


def _log(values: Floats) -> Floats:
    return np.log(np.maximum(values, _SMALLEST))
