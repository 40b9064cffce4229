"""What a table model looks like: its held-out rows, and what a column does to its predictions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from accord._checks import check_choice
from accord._types import Floats
from accord.plots import Evidence, dependence_curve, evidence_figure, style
from accord.plots import figure as new_figure
from accord.tables import check_present, conform, number_column
from accord.tabular.assessment import Assessment, held_out_places
from accord.tabular.card import as_floats, cell_text
from accord.tabular.rows import with_roles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from accord.tabular.regressor import TableRegressor

Kind = Literal["number", "date", "category"]
Picture = Literal[
    "overview",
    "predictions",
    "calibration",
    "distance",
    "uncertainty",
    "errors",
    "residuals",
    "dependence",
]

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

    def draw(self, ax: "Axes") -> None:
        """The curve and its two bands."""
        named = self.labels if self.kind == "category" else ()
        dependence_curve(
            at=self.at,
            mean=self.mean,
            lower=self.lower,
            upper=self.upper,
            unknown=self.unknown,
            labels=[style.plain(label) for label in named],
            dates=self.kind == "date",
            ax=ax,
        )


def partial_dependence(
    model: "TableRegressor", X: pd.DataFrame, columns: Sequence[str], *, random_state: int
) -> tuple[Dependence, ...]:
    """Curves of the first few of these columns, from rows that have the schema's types."""
    some = np.sort(np.random.default_rng(random_state).permutation(len(X))[:_ROWS])
    rows = X.iloc[some].reset_index(drop=True)
    curves = [_dependence(model, X, rows, name) for name in columns[:_COLUMNS]]
    return tuple(curve for curve in curves if len(curve.at) > 1)


def _dependence(
    model: "TableRegressor", X: pd.DataFrame, rows: pd.DataFrame, name: str
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
        at = as_floats(pd.DataFrame({name: values}))[:, 0]

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


def plot_table(
    self: "TableRegressor",
    kind: Picture = "overview",
    X: Any = None,
    y: str | ArrayLike | None = None,
    *,
    column: str | None = None,
    ax: "Axes | None" = None,
) -> "Figure":
    """Draw what the model's predictions are worth, on rows that it was not trained on.

    Args:
        kind: "overview", four of the others in one figure; "predictions", rows with their
            intervals; "calibration", observed against stated coverage; "distance", coverage near
            the training rows and far from them; "uncertainty", where it comes from; "errors",
            errors against the stated deviation; "residuals", errors against the prediction;
            "dependence", what a column does to predictions.
        X: Rows to draw. By default the training rows, each predicted by models that had not seen
            it; a model from a file no longer has them and needs ``X``.
        y: Their targets, or the name of the column; by default the target's own name.
        column: The column of a "dependence".
        ax: Axes to draw into, instead of a new figure.

    Returns:
        The matplotlib figure. A notebook shows it; ``savefig`` writes it.
    """
    check_is_fitted(self, "engine_")
    check_choice("kind", kind, Picture.__args__)  # type: ignore[attr-defined]
    if kind != "dependence":
        return evidence_figure(_evidence(self, X, y), kind, ax=ax)
    schema = self.schema_
    if column is None:
        raise TypeError(
            f"a dependence needs a column, got none. Name one, as in column={schema.varying[0]!r}."
        )
    check_present([("dependence", column)], schema.names, source="the model")
    rows = _known_rows(self) if X is None else self._conformed(X).X
    curves = partial_dependence(self, rows, [column], random_state=0)
    if not curves:
        raise ValueError(
            f"column must have at least two values to vary, got {column!r} with one. Name another."
        )
    return _dependence_figure(self, curves[0], ax)


def _evidence(model: "TableRegressor", X: Any, y: str | ArrayLike | None) -> Evidence:
    """Held-out rows, or given ones, beside the model's predictions for them."""
    if X is None:
        _known_rows(model)
        found = model.held_out_
        how_far = model.engine_.proximity_.distance_leave_one_out()[
            held_out_places(model.engine_.judged_)
        ]
    else:
        found, how_far = _assessed(model, X, y)
    return Evidence(
        y=found.y,
        mean=found.mean,
        std=found.std,
        noise=found.noise,
        disagreement=found.disagreement,
        distance=found.distance,
        interval=np.stack([found.lower, found.upper], axis=1),
        reliability=found.reliability(),
        coverage=found.coverage,
        target=model.schema_.target,
        how_far=np.asarray(how_far),
    )


def _assessed(
    model: "TableRegressor", X: Any, y: str | ArrayLike | None
) -> tuple[Assessment, Floats]:
    """New rows with a target, and how far they are from the training rows."""
    schema = model.schema_
    table, roles = with_roles(X, {"target": schema.target if y is None else y})
    check_present(roles.items(), table.data.column_names, source=table.name)
    observed = number_column(table, "target", roles["target"])
    known = np.flatnonzero(~np.isnan(observed))
    features = model.transform(conform(table.data, schema, source=table.name).X.iloc[known])
    found = Assessment.of(
        model.answer(features)[0], observed[known], rows=known + 1, coverage=model.coverage
    )
    return found, np.asarray(model.engine_.proximity_.distance(features))


def _known_rows(model: "TableRegressor") -> pd.DataFrame:
    """The training rows, as long as the model has them."""
    if not hasattr(model, "training_"):
        raise ValueError(
            "plot without X draws the held-out rows, which a model file does not hold, got a model "
            "that was loaded. Give labelled rows, as in model.plot('overview', frame), or plot "
            "before saving."
        )
    return model.training_.X


def _dependence_figure(model: "TableRegressor", curve: Dependence, ax: "Axes | None") -> "Figure":
    if ax is None:
        _, (ax,) = new_figure(height=4.2)
    curve.draw(ax)
    ax.set(xlabel=style.plain(curve.column), ylabel=style.plain(model.schema_.target))
    made: Any = ax.get_figure(root=True)
    return made  # type: ignore[no-any-return]
