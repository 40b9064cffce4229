"""A model and its recalibration as one estimator."""

from collections.abc import Callable
from numbers import Integral
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.model_selection import BaseCrossValidator, KFold, ShuffleSplit
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import (
    _check_y,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from accord._checks import (
    RandomState,
    check_choice,
    check_count,
    check_probability,
    sklearn_seed,
)
from accord._types import Floats, Indices
from accord.calibration.calibrators import (
    Calibrator,
    ExtraLayers,
    IsotonicCalibration,
    VarianceScaling,
)
from accord.calibration.conformal import Conformal, LikelihoodRatio
from accord.distributions import Distribution, concatenated, predictive_of
from accord.estimators import DistributionalRegressor, fit_together, target_names

CalibrationMethod = Literal["variance", "isotonic", "layers", "conformal", "weighted-conformal"]
Ratio = Callable[[Any], ArrayLike]


class Recalibrated(MetaEstimatorMixin, DistributionalRegressor):  # type: ignore[misc]
    """A model whose predictions are recalibrated on rows that it was not trained on.

    ========================  ====================================================================
    method                    what it does
    ========================  ====================================================================
    ``"variance"``            one factor on the deviation; needs the fewest rows
    ``"isotonic"``            a monotone map of the cdf: bias, spread and shape
    ``"layers"``              extra network layers on (μ, log σ): differs from row to row
    ``"conformal"``           intervals by rank, with guaranteed coverage
    ``"weighted-conformal"``  the same under a shift of the features towards ``X_new``
    ========================  ====================================================================

    The conformal guarantee holds for ``cv="prefit"`` and for a held-out fraction. With folds, whose
    models are not the final one, coverage is approximate and in practice a little above.

    Args:
        model: An estimator with ``predict_dist`` or with ``predict(X, return_std=True)``.
        method: One of the above, or a :class:`Calibrator`.
        cv: A number of folds: each row is predicted by a model trained on the other folds, and the
            final model is trained on all rows. A fraction: that share of the rows is held out for
            calibration. ``"prefit"``: the model is fitted already, and all rows are for
            calibration. Or a scikit-learn splitter.
        ratio: For "weighted-conformal": p_new(x)/p_old(x) as a function of rows, or a
            :class:`LikelihoodRatio` to be fitted to ``X_new``; its default unless given.
        random_state: Draws folds or held-out rows, and starts the layers.

    Attributes:
        model_: The final model.
        calibrator_: The fitted :class:`Calibrator`.

    Example:
        >>> from sklearn.linear_model import BayesianRidge
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(500, 1))
        >>> y = X[:, 0] + rng.exponential(size=500)
        >>> model = Recalibrated(BayesianRidge(), method="conformal", cv=0.4, random_state=0)
        >>> model.fit(X, y).predict_interval([[0.0], [1.0]], coverage=0.8).round(1)
        array([[0.1, 1.9],
               [1.2, 3. ]])
    """

    def __init__(
        self,
        model: Any,
        *,
        method: CalibrationMethod | Calibrator = "variance",
        cv: int | float | Literal["prefit"] | BaseCrossValidator = 5,
        ratio: Ratio | LikelihoodRatio | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.model = model
        self.method = method
        self.cv = cv
        self.ratio = ratio
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, X_new: Any = None) -> Self:
        """Train the model, unless it is, and recalibrate it on rows held out.

        Args:
            X: Features.
            y: Targets.
            X_new: For "weighted-conformal": rows of the kind that will be predicted.

        **Shape**: X (N, d), y (N,) or (N, T), X_new (N', d).
        """
        X = self._rows(X, reset=True)
        if y is None:
            raise ValueError("Recalibrated requires y to be passed, but the target y is None.")
        targets = _check_y(y, multi_output=True, y_numeric=True)
        check_consistent_length(X, targets)
        calibrator = self._calibrator()
        self.ratio_ = self._fitted_ratio(X, X_new)
        dist, rows, held_out = self._held_out(X, targets)
        self.single_output_ = len(dist.shape) == 1
        self.target_names_ = target_names(y, 1 if self.single_output_ else dist.shape[1])
        self.calibrator_ = calibrator.fit(dist, held_out, **self._weight(rows))
        return self

    def _predictive(self, X: Any) -> Distribution:
        dist: Distribution = self.calibrator_(predictive_of(self.model_, X), **self._weight(X))
        return dist

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self, "calibrator_")
        return self._rows(X, reset=False)

    def _rows(self, X: Any, *, reset: bool) -> Any:
        """Numbers, checked; a data frame stays one, for the model may need its names and types."""
        if hasattr(X, "iloc"):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        return validate_data(self, X, reset=reset, dtype="numeric")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags = get_tags(self.model).target_tags
        return tags

    def _calibrator(self) -> Any:
        if isinstance(self.method, Calibrator):
            return clone(self.method)
        check_choice("method", self.method, get_args(CalibrationMethod))
        match self.method:
            case "variance":
                return VarianceScaling()
            case "isotonic":
                return IsotonicCalibration()
            case "layers":
                return ExtraLayers(random_state=self.random_state)
            case _:
                return Conformal()

    def _held_out(self, X: Any, y: Floats) -> tuple[Distribution, Any, Floats]:
        """Predictions, features and targets of the calibration rows; leaves ``model_`` fitted."""
        held_out = self._train(X, y)
        dist = concatenated([predictive_of(m, _safe_indexing(X, rows)) for m, rows in held_out])
        rows = np.concatenate([rows for _, rows in held_out])
        return dist, _safe_indexing(X, rows), _fitting(y[rows], dist)

    def _train(self, X: Any, y: Floats) -> list[tuple[Any, Indices]]:
        """Models, each with the rows that it was not trained on; sets ``model_``."""
        every = np.arange(len(y))
        if isinstance(self.cv, str):
            check_choice("cv", self.cv, ("prefit",))
            check_is_fitted(self.model)
            self.model_ = self.model
            return [(self.model, every)]
        splits = self._splits(X, y)
        final = [] if isinstance(self.cv, float) else [(every, every)]
        jobs = [
            (clone(self.model), _safe_indexing(X, train), y[train]) for train, _ in splits + final
        ]
        models = fit_together(jobs)
        self.model_ = models[-1]
        return [(model, test) for model, (_, test) in zip(models, splits, strict=False)]

    def _splits(self, X: Any, y: Floats) -> list[tuple[Indices, Indices]]:
        seed = sklearn_seed(self.random_state)
        if isinstance(self.cv, float):
            check_probability("cv", self.cv, strict=True, remedy="Use 0.2 to hold out a fifth.")
            splitter: Any = ShuffleSplit(1, test_size=self.cv, random_state=seed)
        elif isinstance(self.cv, Integral):
            check_count("cv", self.cv, minimum=2)
            splitter = KFold(int(self.cv), shuffle=True, random_state=seed)
        elif hasattr(self.cv, "split"):
            splitter = self.cv
        else:
            raise TypeError(
                "cv must be a number of folds, a fraction, 'prefit' or a splitter, "
                f"got {self.cv!r}. Use 5."
            )
        return list(splitter.split(X, y))

    def _fitted_ratio(self, X: Any, X_new: Any) -> Ratio | None:
        """The likelihood ratio, None for methods that do not weigh their rows."""
        if self.method != "weighted-conformal":
            if X_new is not None or self.ratio is not None:
                raise ValueError(
                    "X_new and ratio belong to method 'weighted-conformal', got them with "
                    f"{self.method!r}. Leave them out, or change the method."
                )
            return None
        if self.ratio is not None and not isinstance(self.ratio, LikelihoodRatio):
            return self.ratio
        if X_new is None:
            raise ValueError(
                "method 'weighted-conformal' needs rows of the kind that will be predicted, got "
                "X_new=None. Pass fit(X, y, X_new=...), or the likelihood ratio itself as ratio."
            )
        fitted: LikelihoodRatio = clone(self.ratio or LikelihoodRatio()).fit(X, X_new)
        return fitted

    def _weight(self, X: Any) -> dict[str, ArrayLike]:
        return {} if self.ratio_ is None else {"weight": self.ratio_(X)}


def _fitting(y: Floats, dist: Distribution) -> Floats:
    """A single column of targets as its predictions are: with or without that axis."""
    single = y.size == len(y) and np.prod(dist.shape) == len(y)
    return y.reshape(dist.shape) if single else y
