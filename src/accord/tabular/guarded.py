"""A guard for any model: distributions, intervals and alarms around its predictions."""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, _safe_indexing, column_or_1d
from sklearn.utils.validation import check_is_fitted

from accord import persistence
from accord._checks import check_finite, check_probability
from accord._types import ArrowFrame, Bools, Floats, Indices
from accord._wording import count
from accord.distributions import Distribution, PredictiveModel
from accord.plots import plot_model
from accord.portfolio import (
    Blank,
    HeldOutRows,
    Part,
    Residuals,
    fold_count,
    random_parts,
    split_blanks,
)
from accord.splits import groups_of_copies
from accord.tables import (
    Schema,
    TableEncoder,
    prepare_training,
)
from accord.tabular.card import TableProfile
from accord.tabular.receipts import table_receipts
from accord.tabular.rows import Rows, array_of, conformed, named, with_roles
from accord.trust import Columns, Receipts

_FEWEST_ROWS = 20
# A category that no table has.
_UNKNOWN = "\0\0"
# Rows among which columns are shuffled to see which of them matter.
_SHUFFLED_ROWS = 200


def guard(
    model: Any, *, fitted: bool = False, coverage: float = 0.95, random_state: int | None = None
) -> "GuardedRegressor":
    """Any regressor with intervals that hold, and alarms for rows unlike its data.

    The same as :class:`GuardedRegressor`; ``fit`` comes next.

    Example:
        >>> from sklearn.linear_model import LinearRegression
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-1, 1, (200, 2))
        >>> y = X[:, 0] + (0.1 + 0.2 * (X[:, 1] > 0)) * rng.normal(size=200)
        >>> guarded = guard(LinearRegression(), random_state=0).fit(X, y)
        >>> lower, upper = guarded.predict_interval([[0.0, -0.5], [0.0, 0.5]], coverage=0.9).T
        >>> narrow, wide = upper - lower
        >>> bool(wide > 1.5 * narrow)
        True
    """
    return GuardedRegressor(model, fitted=fitted, coverage=coverage, random_state=random_state)


@final
class GuardedRegressor(PredictiveModel, MetaEstimatorMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor or pipeline of any kind, and what its errors on held-out rows say.

    A model that is not fitted is trained once per fold of the rows; its errors on the rows left out
    teach small networks how large they are where; the models of the folds predict, and their mean
    is the prediction. A prediction beyond all targets seen is doubted by as much as it lies beyond
    them. The model is trained again without the rows that are unlike the rest, to see how
    much wider intervals must be there.

    A model that is ``fitted`` is used as it is, and ``fit`` must get rows **that it was not trained
    on**: with others, errors look smaller than they are and nothing can tell. How wide intervals
    must be away from the rows cannot be tested then, and the usual widening is taken.

    Args:
        model: A regressor with ``fit`` and ``predict``, or a pipeline.
        fitted: Whether the model is to be used as it is.
        coverage: Share of the values that intervals should contain.
        random_state: Seed of everything that the guard draws.

    Attributes:
        models_: The models in use: one per fold, or the fitted one.
        reference_rows_: The rows among which neighbours are sought, numbered from 1.
        residuals_: What was learnt from their errors.

    Example:
        >>> from sklearn.linear_model import LinearRegression
        >>> x = np.linspace(0, 1, 100)[:, None]
        >>> old = LinearRegression().fit(x[::2], x[::2, 0])
        >>> guarded = GuardedRegressor(old, fitted=True).fit(x[1::2], x[1::2, 0] + 0.1)
        >>> guarded.is_unusual([[0.5], [7.0]])
        array([False,  True])
    """

    def __init__(
        self,
        model: Any,
        *,
        fitted: bool = False,
        coverage: float = 0.95,
        random_state: int | None = None,
    ) -> None:
        self.model = model
        self.fitted = fitted
        self.coverage = coverage
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, *, groups: ArrayLike | None = None) -> Self:
        """Train the model on folds, unless it is fitted, and learn from its errors.

        Rows of one of ``groups`` are held out together, and so are copies of a row.

        **Shape**: X (N, columns), y (N,), groups (N,).
        """
        check_probability("coverage", self.coverage, strict=True, remedy="Write 0.95 for 95 %.")
        X = _given(X)
        target = self._checked_target(X, y)
        features = self._learn_encoding(X, target)
        seed = 0 if self.random_state is None else self.random_state
        parts = self._folds(X, target, groups, seed)
        self.models_ = (
            [self.model] if self.fitted else [_trained(self.model, X, target, p) for p in parts]
        )
        mean = self._held_out(X, parts)
        check_finite("predictions of the model", mean, remedy="Mend the model first.")
        rows = HeldOutRows(features, target, mean, parts, self._changes(X, seed))

        def fit_again(part: Part) -> Floats:
            return _predicted(_trained(self.model, X, target, part), _safe_indexing(X, part.test))

        learnable, watched = split_blanks(features, self.encoder_.blanks())
        self.residuals_ = Residuals().fit(
            rows,
            fit_again=None if self.fitted else fit_again,
            blanks=[*watched, *(b for b in learnable if self._answers_without(X, b))],
            without_values=lambda own, fold, put: self._without_values(X, own, fold, put),
            seed=seed,
        )
        self.reference_rows_ = self.residuals_.proximity_.reference_rows_ + 1
        return self

    def predict_dist(self, X: Rows) -> Distribution:
        """The predictive distribution of each row: mean, std, pdf, cdf, quantile, sample, …

        **Shape**: (N,).
        """
        return self._answer(X)[0]

    def explain_uncertainty(self, X: Any, *, coverage: float | None = None) -> Receipts:
        """Why each interval is as wide as it is: its parts, by column, and what would narrow it.

        The parts and the distance by column are exact. Noise and disagreement are not split by
        column: that would take a model that answers rows with some columns of other rows.
        """
        X = _given(X)
        dist = self.predict_dist(X)
        frame = self._conformed(X)[0]
        return table_receipts(
            self,
            self.residuals_,
            frame.set_axis(X.index) if isinstance(X, pd.DataFrame) else frame,
            answer=lambda _: dist,
            as_known=lambda _: self._answer(X, as_known=True)[0],
            coverage=coverage,
        )

    def is_unusual(self, X: Any) -> Bools:
        """Whether a row is unlike those that the guard has learnt from.

        **Shape**: (N,).
        """
        return self._answer(X)[1]

    plot = plot_model

    def save(self, path: str | Path, *, models: bool = True) -> None:
        """Write everything to one file that is safe to load (``accord.load``).

        Linear models of scikit-learn, pipelines with a scaler, and models of this package can be
        written; any other is refused with ``TypeError``, since its bytes would have to be trusted.
        ``models=False`` writes the guard alone: save each of ``models_`` in its own format, and
        :meth:`attach` them after loading.
        """
        check_is_fitted(self, "residuals_")
        if not models:
            alone = copy.copy(self)
            alone.model, alone.models_, alone.n_models_ = None, [], len(self.models_)
            persistence.save(alone, path)
            return
        try:
            persistence.save(self, path)
        except TypeError as error:
            raise TypeError(
                f"a guard is saved with models that can be written safely: {error} Save the guard "
                f"alone with models=False, and each {type(self.models_[0]).__name__} of models_ "
                "in its own format."
            ) from None

    def attach(self, models: Sequence[Any]) -> Self:
        """Give a guard that was saved alone its ``models_`` back, the same in the same order."""
        wanted = getattr(self, "n_models_", 0)
        if len(models) != wanted:
            raise ValueError(
                f"models must be those that the guard was saved without, {wanted} of them, got "
                f"{len(models)}. Give all of models_, in their order."
            )
        for model in models:
            _check_fitted(model)
        self.models_, self.model = list(models), models[0]
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "residuals_")

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # whether gaps are allowed is for the model to say
        return tags

    def _checked_target(self, X: Any, y: ArrayLike) -> Floats:
        if isinstance(y, str):
            raise TypeError(
                f"y must be the targets, got the name {y!r}: a guard gives X to its model as it "
                f"is. Use fit(X.drop(columns={y!r}), X[{y!r}])."
            )
        target = np.asarray(column_or_1d(y), dtype=np.float64)
        check_finite("y", target, remedy="Leave such rows out.")
        if len(target) < _FEWEST_ROWS:
            raise ValueError(
                f"a guard needs at least {_FEWEST_ROWS} rows to learn errors from, got n_samples = "
                f"{len(target)}."
            )
        if len(X) != len(target):
            raise ValueError(f"X and y must have as many rows, got {len(X)} and {len(target)}.")
        if self.fitted:
            _check_fitted(self.model)
        else:
            _check_trainable(self.model)
        return target

    def _learn_encoding(self, X: Any, y: Floats) -> Floats:
        """Numbers that distances and networks need, whatever the model itself is given.

        Row numbers tell no row from another and are left out of these; columns that are the same in
        every row are watched.
        """
        table, roles = with_roles(X, {"target": y})
        data = prepare_training(table, target=roles["target"])
        self._schema = data.schema.to_dict()
        self.encoder_ = TableEncoder(data.schema, watch=True, random_state=0)
        self.profile_ = TableProfile(data.X)
        return self.encoder_.fit_transform(data.X, data.y)

    def _conformed(self, X: Any) -> tuple[pd.DataFrame, Bools]:
        """New rows as the encoder takes them, and which hold what none of the known rows held."""
        found = conformed(X, Schema.from_dict(self._schema))
        return found.X, found.unlike

    def _folds(self, X: Any, y: Floats, groups: ArrayLike | None, seed: int) -> list[Part]:
        together = groups_of_copies(X, y)
        if groups is not None:
            if np.shape(groups) != y.shape:
                raise ValueError(
                    f"groups must have one value per row, {y.shape}, got {np.shape(groups)}."
                )
            together = np.unique(np.asarray(groups), return_inverse=True)[1]
        parts = random_parts(together, fold_count(len(y)), seed=seed)
        if len(parts) < 2:
            raise ValueError(
                f"the rows must form at least 2 groups to hold some out, got {len(parts)}. "
                "Give other groups, or none."
            )
        return parts

    def _held_out(self, X: Any, parts: Sequence[Part]) -> Floats:
        if self.fitted:
            return _predicted(self.model, X)
        mean = np.empty(len(X))
        for model, part in zip(self.models_, parts, strict=True):
            mean[part.test] = _predicted(model, _safe_indexing(X, part.test))
        return mean

    def _changes(self, X: Any, seed: int) -> Floats:
        """How much predictions change when a column is shuffled, for each of its features; (d,)."""
        random = np.random.default_rng(seed)
        frame = X if isinstance(X, pd.DataFrame) else named(X)
        some = frame.iloc[random.permutation(len(frame))[:_SHUFFLED_ROWS]]
        columns = Columns.of(self.encoder_.feature_names())
        before = self._of_frame(some, X)
        change = np.zeros(len(columns))
        label = {str(name): name for name in frame.columns}
        for place, text in enumerate(columns.names):
            name = label[text]
            values = some[name].to_numpy()[random.permutation(len(some))]
            mixed = some.copy()
            mixed[name] = pd.Series(values, index=some.index, dtype=some[name].dtype)
            change[place] = np.abs(self._of_frame(mixed, X) - before).mean()
        return change[columns.owner]

    def _answers_without(self, X: Any, blank: Blank) -> bool:
        """Whether the model predicts rows without a column; if not, none such is ever answered."""
        try:
            self._without_values(X, np.arange(1), 0, [blank])
        except Exception:  # whatever another library raises then
            return False
        return True

    def _without_values(self, X: Any, rows: Indices, fold: int, put: Sequence[Blank]) -> Floats:
        """Predictions of rows by a fold's model, with unknown categories or gaps in columns."""
        frame = (X if isinstance(X, pd.DataFrame) else named(X)).iloc[rows].copy()
        label = {str(name): name for name in frame.columns}
        sources = self.encoder_.feature_names()
        kinds = {column.name: column.kind for column in Schema.from_dict(self._schema).columns}
        for features, _ in put:
            name = sources[features[0]]
            frame[label[name]] = _unknown(frame[label[name]], is_category=kinds[name] == "category")
        model = self.models_[0 if self.fitted else fold]
        if isinstance(X, pd.DataFrame):
            return _predicted(model, frame)
        return _predicted(model, frame.to_numpy(np.result_type(X.dtype, np.float32)))

    def _of_frame(self, frame: pd.DataFrame, like: Any) -> Floats:
        rows = frame if isinstance(like, pd.DataFrame) else frame.to_numpy(dtype=like.dtype)
        return _predicted(self.models_[0], rows)

    def _answer(self, X: Any, *, as_known: bool = False) -> tuple[Distribution, Bools]:
        check_is_fitted(self, "residuals_")
        X = _given(X)
        if not self.models_:
            raise NotFittedError(
                "a guard that was saved alone needs its models, got none. Give them back with "
                "attach(models)."
            )
        frame, unlike = self._conformed(X)
        means = np.stack([_predicted(model, X) for model in self.models_])
        features = self.encoder_.transform(frame)
        dist, unusual = self.residuals_.answer(features, means, as_known=as_known)
        return dist, unusual | unlike


def _given(X: Any) -> Any:
    """Rows as the model gets them: a frame of any library as one of pandas, or an array."""
    if isinstance(X, pd.DataFrame):
        return X
    return pa.table(X).to_pandas(date_as_object=False) if isinstance(X, ArrowFrame) else array_of(X)


def _trained(model: Any, X: Any, y: Floats, part: Part) -> Any:
    try:
        fresh = clone(model)
    except (TypeError, RuntimeError):  # models that are not scikit-learn's to the letter
        fresh = copy.deepcopy(model)
    fresh.fit(_safe_indexing(X, part.train), y[part.train])
    return fresh


def _unknown(column: "pd.Series[Any]", *, is_category: bool) -> "pd.Series[Any]":
    """A column of categories that no row has, or of gaps."""
    if not is_category:
        gap = pd.NaT if column.dtype.kind == "M" else np.nan
        return pd.Series(gap, index=column.index)
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.cat.add_categories([_UNKNOWN])
    return pd.Series(_UNKNOWN, index=column.index, dtype=column.dtype)


def _predicted(model: Any, X: Any) -> Floats:
    found = np.asarray(model.predict(X), dtype=np.float64)
    if found.size != len(X):
        raise ValueError(
            f"the model must predict one number for each row, got shape {found.shape} for "
            f"{count(len(X), 'row')}. Wrap it in a class whose predict gives the mean alone."
        )
    return found.reshape(-1)


def _last(model: Any) -> Any:
    from sklearn.pipeline import Pipeline  # brings a terminal's progress bars along

    return model[-1] if isinstance(model, Pipeline) else model


def _check_trainable(model: Any) -> None:
    if isinstance(model, type) or not (hasattr(model, "fit") and hasattr(model, "predict")):
        raise TypeError(
            f"the model must have fit and predict, got {model!r}. Give an object like "
            "LinearRegression(), or a fitted one with fitted=True."
        )


def _check_fitted(model: Any) -> None:
    if isinstance(model, type) or not hasattr(model, "predict"):
        raise TypeError(f"the model must have predict, got {model!r}. Give one that is fitted.")
    if not isinstance(_last(model), BaseEstimator):
        return  # only scikit-learn's say whether they are fitted
    try:
        check_is_fitted(_last(model))
    except NotFittedError:
        raise ValueError(
            f"with fitted=True the model must be fitted, got a {type(_last(model)).__name__} that "
            "is not. Fit it, or leave fitted out to have it trained on folds."
        ) from None
