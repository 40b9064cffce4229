"""What every estimator here can do once it predicts a distribution per row."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils import Tags, estimator_html_repr
from sklearn.utils.validation import check_is_fitted, validate_data

from accord._checks import check_target_size
from accord._files import write_whole
from accord._types import Floats
from accord._wording import count, listed_plainly, number, percent, quoted
from accord.distributions import Distribution, PredictiveModel
from accord.plots import plot_model

if TYPE_CHECKING:
    # scikit-learn has no types, and an untyped base would switch off the checks of calls: this is
    # what its regressors can do.
    class _Regressor:
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...

        def set_params(self, **params: Any) -> Self: ...

        def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float: ...

        def __sklearn_tags__(self) -> Tags: ...

        def __getstate__(self) -> dict[str, Any]: ...
else:
    from sklearn.base import BaseEstimator, RegressorMixin

    class _Regressor(RegressorMixin, BaseEstimator):
        """A regressor of scikit-learn."""


class Described(Protocol):
    """An estimator that can say what is known about it."""

    def _facts(self) -> Mapping[str, str]:
        """Titles and what is to be said under each; the first is its state."""


def html_card(estimator: Described) -> str:
    """scikit-learn's picture of an estimator, and under it its state and scores."""
    lines = "".join(
        f'<tr><th scope="row" style="{_CELL};font-weight:600">{escape(title)}</th>'
        f'<td style="{_CELL}">{escape(words)}</td></tr>'
        for title, words in estimator._facts().items()
    )
    # Colours are the notebook's own, light or dark.
    table = f'<table style="{_TABLE}"><tbody>{lines}</tbody></table>'
    return f"<div>{estimator_html_repr(estimator)}{table}</div>"


_TABLE = "margin:.6em 0 0;border-collapse:collapse;font-size:.9em;color:inherit"
_CELL = "text-align:left;padding:2px 18px 2px 0;background:none;border:0;color:inherit"


class DistributionalRegressor(PredictiveModel, _Regressor):
    """A regressor whose prediction for a row is a distribution; the rest follows from it.

    Concrete classes learn in ``fit`` and answer in ``_predictive``, for rows checked already.
    """

    _any_shape: ClassVar[bool] = False  # whether rows may be more than a list of numbers

    _html_repr = html_card

    n_features_in_: int
    single_output_: bool

    def _facts(self) -> dict[str, str]:
        """What a notebook says: the state, and what was chosen where that was a choice."""
        if not hasattr(self, "n_features_in_"):
            return {"state": "not fitted"}
        found = {"state": f"fitted on {count(self.n_features_in_, 'feature')}"}
        entries = sorted(getattr(self, "leaderboard_", ()), key=lambda e: e.nll)
        if chosen := [entry for entry in entries if entry.weight > 0]:
            named = [f"{entry.name} {percent(entry.weight, 0)}" for entry in chosen]
            found["mixed"] = listed_plainly(named)
            found["NLL out of fold"] = f"{number(chosen[0].nll)} ({chosen[0].name})"
        return found

    @abstractmethod
    def _predictive(self, X: Floats) -> Distribution:
        """The predictive distribution, of shape (N,), or (N, T) for several outputs."""

    def predict_dist(self, X: Any) -> Distribution:
        """The predictive distribution of each row: mean, std, pdf, cdf, quantile, sample, …

        **Shape**: (N,), or (N, T) if fitted on several outputs.
        """
        return self._predictive(self._checked(X))

    def log_score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Mean log-density of the targets under their predictions; higher is better."""
        rows = self._log_density(self._checked(X), np.asarray(y, dtype=float))
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        return float(np.average(rows, weights=weights))

    def _log_density(self, X: Floats, y: Floats) -> Floats:
        """Of all targets of each row: of independent ones, unless a class says otherwise."""
        log_density = np.asarray(self._predictive(X).log_prob(y))
        return np.asarray(log_density.reshape(len(log_density), -1).sum(axis=1))

    plot = plot_model

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file that is safe to load (``accord.load``)."""
        from accord.persistence import save

        save(self, path)

    def export(self, path: str | Path, *, levels: Sequence[float] = (0.025, 0.5, 0.975)) -> None:
        """Write the fitted model as one ONNX graph, for programs without Python.

        Its input is ``X`` (N, d), float64; its outputs are ``y_mean``, ``y_std``, ``y_quantiles``
        at ``levels`` and, for a model that knows them, ``y_noise``, ``y_disagreement``,
        ``y_distance``, ``unusual_score`` and ``unusual``. A part that has no graph is named in a
        ``ValueError``, and nothing is written. Needs ``pip install 'accord[export]'``.
        """
        from accord.export import estimator_graph

        check_is_fitted(self)
        write_whole(path, estimator_graph(self, levels=levels, metadata={}))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _checked(self, X: Any) -> Floats:
        check_is_fitted(self)
        checked: Floats = validate_data(
            self, X, reset=False, dtype=np.float64, allow_nd=self._any_shape
        )
        return checked

    def _checked_pair(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Floats, Floats]:
        """Check features and targets, and with ``reset`` remember how many and what names.

        **Shape**: X (N, …), y (N,) or (N, T) → (N, …) and (N, T).
        """
        if isinstance(y, str):
            raise TypeError(
                f"y must hold the targets, got the text {quoted(y)}. Give the column itself, and X "
                "without it; accord.TableRegressor takes the name of a column."
            )
        given = y
        X, y = validate_data(
            self,
            X,
            y,
            reset=reset,
            dtype=np.float64,
            multi_output=True,
            y_numeric=True,
            allow_nd=self._any_shape,
        )
        single = y.ndim == 1
        check_target_size("y", y)
        y = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
        if reset:
            self.single_output_ = single
            self.target_names_ = target_names(given, y.shape[1])
        if y.shape[1] != len(self.target_names_):
            raise ValueError(
                f"y must have {len(self.target_names_)} targets as in the first fit, "
                f"got {y.shape[1]}."
            )
        return X, y

    def _shaped(self, values: Floats) -> Floats:
        """(…, N, T) as the user gave the targets: without the last axis for a single one."""
        return values[..., 0] if self.single_output_ else values


def target_names(y: Any, n_targets: int) -> list[str]:
    """Names of the targets, taken from a Series or DataFrame where it has them."""
    if isinstance(y, pd.DataFrame):
        return [str(name) for name in y.columns]
    if isinstance(y, pd.Series) and y.name is not None:
        return [str(y.name)]
    return ["y"] if n_targets == 1 else [f"y{i}" for i in range(n_targets)]
