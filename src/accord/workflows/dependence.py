"""Partial dependence: what is predicted, on average, if a column has this or that value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from accord._types import Floats
from accord.tabular import TableRegressor, as_floats, cell_text

Kind = Literal["number", "date", "category"]

_COLUMNS = 6
_ROWS = 50
_POINTS = 15
_CATEGORIES = 8
# Beyond these quantiles lie single rows, which would stretch the curve.
_ENDS = (0.02, 0.98)


@dataclass(frozen=True)
class Dependence:
    """Predictions for a column's values, averaged over rows that keep their other cells.

    ``mean`` is the mean prediction, ``lower`` and ``upper`` the mean ends of the intervals;
    ``unknown`` is the root mean square of what the model does not know, √(disagreement² +
    distance²). ``at`` are numbers (of dates, seconds since 1970), or places of ``labels``.

    **Shape**: arrays (g,).
    """

    column: str
    kind: Kind
    at: Floats
    labels: tuple[str, ...]
    mean: Floats
    lower: Floats
    upper: Floats
    unknown: Floats

    def to_json(self) -> dict[str, Any]:
        return vars(self)


def partial_dependence(
    model: TableRegressor, columns: Sequence[str], *, random_state: int
) -> tuple[Dependence, ...]:
    """Curves of the first few of these columns."""
    X = model.training_.X
    some = np.sort(np.random.default_rng(random_state).permutation(len(X))[:_ROWS])
    rows = X.iloc[some].reset_index(drop=True)
    curves = [_dependence(model, X, rows, name) for name in columns[:_COLUMNS]]
    return tuple(curve for curve in curves if len(curve.at) > 1)


def _dependence(
    model: TableRegressor, X: pd.DataFrame, rows: pd.DataFrame, name: str
) -> Dependence:
    values = _values(X[name])
    given = pd.concat([rows.assign(**{name: value}) for value in values], ignore_index=True)
    given[name] = given[name].astype(X[name].dtype)
    dist = model.engine_.predict_dist(model.transform(given))
    lower, upper = np.asarray(dist.interval(model.coverage)).T
    unknown = np.square(dist.disagreement) + np.square(dist.distance)
    kind = _kind(X[name])
    at = np.arange(float(len(values)))
    if kind != "category":
        at = as_floats(pd.DataFrame({name: values}))[:, 0] / (1e6 if kind == "date" else 1.0)

    def averaged(parts: Floats) -> Floats:
        each: Floats = np.asarray(parts).reshape(len(values), len(rows))
        return np.asarray(each.mean(axis=1))

    return Dependence(
        column=name,
        kind=kind,
        at=at,
        labels=tuple(cell_text(value) for value in values),
        mean=averaged(dist.mean),
        lower=averaged(lower),
        upper=averaged(upper),
        unknown=np.sqrt(averaged(unknown)),
    )


def _kind(values: "pd.Series[Any]") -> Kind:
    kinds: dict[str, Kind] = {"O": "category", "M": "date"}
    return kinds.get(values.dtype.kind, "number")


def _values(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Values to try: the most common categories, or numbers and dates evenly by their rank."""
    known = column.dropna()
    if _kind(column) == "category":
        return pd.Series(known.value_counts().index[:_CATEGORIES], dtype=column.dtype)
    ordered = known.sort_values().to_numpy()
    if not len(ordered):
        return pd.Series([], dtype=column.dtype)
    places = np.linspace(*_ENDS, _POINTS) * (len(ordered) - 1)
    return pd.Series(np.unique(ordered[places.round().astype(int)]), dtype=column.dtype)
