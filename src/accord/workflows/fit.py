"""From a table to a model and the evidence about it."""

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_predict

from accord._progress import Progress, parts, silent
from accord._types import Floats
from accord.portfolio import ends_of
from accord.tables import TableSource
from accord.tabular import (
    Assessment,
    Dependence,
    RowGroup,
    TableRegressor,
    as_floats,
    held_out_places,
    partial_dependence,
)
from accord.workflows.explain import (
    FeatureEffect,
    UnusualRow,
    feature_effects,
    most_unusual,
    unused_columns,
)
from accord.workflows.findings import (
    DescribedColumn,
    JudgedRow,
    Leaks,
    LevelCurve,
    WideRow,
    described_columns,
    find_leaks,
    level_curve,
    listed_rows,
    widest_rows,
)
from accord.workflows.verdict import QUARTILES, Use, Verdict, fit_verdict, use_of

if TYPE_CHECKING:
    from distributed import Client

    from accord.work import Checkpoint

_LEVELS = (0.5, 0.8, 0.9, 0.95)
# Relative cost of training and of explaining, for the progress bar.
_TRAIN, _EXPLAIN = 90.0, 10.0
# Columns whose cells are shown with each row.
_MAIN_COLUMNS = 4
# Groups of rows by distance, as many as the figure has.
_DISTANCES = 8
# The linear model is only for comparison: on so many rows its width is known well enough.
_LINEAR_ROWS, _LINEAR_COLUMNS = 20_000, 1_000


@dataclass(frozen=True)
class FitResult:
    """A fitted model and the evidence about it.

    ``distances`` are those of the held-out rows to the other training rows. ``curves`` say what
    other levels of coverage would bring, for held-out and for unusual rows; ``main_columns`` are
    those whose cells ``rows`` and ``widest`` show. ``order`` is what the held-out rows can be put
    in order by: the name of a time, or of nothing but their place in the table, and its values.
    """

    model: TableRegressor
    verdict: Verdict
    held_out: Assessment
    shifted: Assessment
    use: Use
    distances: Floats
    effects: tuple[FeatureEffect, ...]
    unusual_rows: tuple[UnusualRow, ...]
    curves: tuple[LevelCurve, LevelCurve]
    main_columns: tuple[str, ...]
    rows: tuple[JudgedRow, ...]
    widest: tuple[WideRow, ...]
    dependence: tuple[Dependence, ...]
    order: tuple[str, Floats]
    leaks: Leaks
    notes: tuple[str, ...]
    seconds: float

    def levels(self) -> list[tuple[float, float, float]]:
        """Stated coverages, and those of held-out and of unusual rows."""
        return [
            (level, self.held_out.covered_at(level), self.shifted.covered_at(level))
            for level in sorted({*_LEVELS, self.held_out.coverage})
        ]

    def quarters(self) -> list[RowGroup]:
        """Coverage and width from small to large predictions."""
        return self.held_out.groups(self.held_out.mean, QUARTILES)

    def by_distance(self) -> list[RowGroup]:
        """Coverage and width from rows near the training rows to those furthest from them."""
        titles = (f"{group} of {_DISTANCES}" for group in range(1, _DISTANCES + 1))
        return self.held_out.groups(self.distances, tuple(titles))

    def columns(self) -> list[DescribedColumn]:
        """What was found in each column and what was done with it."""
        return described_columns(self.model, self.leaks)

    def to_json(self) -> dict[str, Any]:
        """All that the report shows, for machines."""
        return {
            "verdict": self.verdict.level,
            "in_short": self.verdict.short,
            "headline": self.verdict.headline,
            "summary": self.verdict.summary,
            "remarks": list(self.verdict.remarks),
            "held_out": self.held_out.figures(),
            "unusual": self.shifted.figures(),
            "width": vars(self.use),
            "levels": [
                {"stated": stated, "held_out": held_out, "unusual": unusual}
                for stated, held_out, unusual in self.levels()
            ],
            "by_level": {
                name: vars(curve)
                for name, curve in zip(("held_out", "unusual"), self.curves, strict=True)
            },
            "quarters": [vars(quarter) for quarter in self.quarters()],
            "by_distance": [vars(group) for group in self.by_distance()],
            "parts_of_variance": {
                "held_out": self.held_out.variance_shares,
                "unusual": self.shifted.variance_shares,
            },
            "effects": [vars(effect) for effect in self.effects],
            "unusual_rows": [
                {**vars(row), "peculiar": dict(row.peculiar)} for row in self.unusual_rows
            ],
            "partial_dependence": [vars(curve) for curve in self.dependence],
            "leaks": self.leaks.to_json(),
            "widest_rows": [row.to_json() for row in self.widest],
            "rows": [row.to_json() for row in self.rows],
            "main_columns": list(self.main_columns),
            "columns": [vars(column) for column in self.columns()],
            "leaderboard": self.model.card_.leaderboard,
            "notes": list(self.notes),
            "card": self.model.card_.to_dict(),
            "seconds": round(self.seconds, 2),
        }


def fit_table(
    model: TableRegressor,
    table: TableSource,
    target: str,
    *,
    sample_weight: str | None = None,
    y_tolerance: str | None = None,
    y_lower: str | None = None,
    y_upper: str | None = None,
    progress: Progress | None = None,
    checkpoint: "str | Path | Checkpoint | None" = None,
    client: "Client | None" = None,
) -> FitResult:
    """Fit a model to a CSV file, a Parquet file or a DataFrame, and judge it.

    The figures come from rows that the predicting models had not seen: each row from the folds
    that left it out, and the most unusual rows from models that had seen no rows like them.

    Args:
        model: What is fitted; :func:`table_model` makes one of a method by its name.
        table: File or DataFrame with the target among its columns.
        target: The column to predict.
        sample_weight, y_tolerance, y_lower, y_upper: Columns with the weight of each row, with its
            tolerance, and with the bounds of censored targets, where an empty cell is no bound.
        progress: Called with the share of the work that is done.
        checkpoint: For the portfolio, a folder for what is finished, from which the same call goes
            on after it was stopped; removed at the end.
        client: For the portfolio, a Dask client, whose workers train.
    """
    start = perf_counter()
    training, explaining = parts(progress or silent, (_TRAIN, _EXPLAIN))
    model.fit(
        table,
        target,
        sample_weight=sample_weight,
        y_tolerance=y_tolerance,
        y_lower=y_lower,
        y_upper=y_upper,
        progress=training,
        checkpoint=checkpoint,
        client=client,
    )
    return _explained(model, start=start, progress=explaining)


def _explained(model: TableRegressor, *, start: float, progress: Progress) -> FitResult:
    """A fitted model with the evidence about it."""
    seed = model.random_state or 0
    progress(0.0, "Explaining")
    width = use_of(model.held_out_, linear=_linear_width(model))
    target = model.training_.schema.target
    effects = tuple(
        feature_effects(
            lambda X: model.engine_.predict_dist(model.transform(X)),
            model.training_.X,
            columns=model.training_.schema.varying,
            unused=unused_columns(model),
            random_state=seed,
            progress=lambda share, what="": progress(0.8 * share, what),
        )
    )
    columns = tuple(effect.name for effect in effects)
    moving = tuple(effect.name for effect in effects if effect.mean > 0)
    main, leaks = columns[:_MAIN_COLUMNS], find_leaks(model)
    result = FitResult(
        model=model,
        verdict=fit_verdict(model.held_out_, model.shifted_, width, target=target),
        held_out=model.held_out_,
        shifted=model.shifted_,
        use=width,
        distances=_distances(model)[held_out_places(model.engine_.judged_)],
        effects=effects,
        unusual_rows=_most_unusual(model),
        curves=(
            level_curve(model.held_out_, model.engine_.judged_),
            level_curve(model.shifted_, model.engine_.shifted_),
        ),
        main_columns=main,
        rows=listed_rows(model, main),
        widest=widest_rows(model, main),
        dependence=partial_dependence(model, model.training_.X, moving, random_state=seed),
        order=_order(model),
        leaks=leaks,
        notes=(*model.notes_, *leaks.sentences()),
        seconds=perf_counter() - start,
    )
    progress(1.0, "Explaining")
    return result


def _order(model: TableRegressor) -> tuple[str, Floats]:
    """What the held-out rows can be put in order by: a time, else their place in the table."""
    named = [model.time, *(found.column for found in model.suspects_ if found.role == "time")]
    X = model.training_.X
    for name in named:
        if name in X.columns and X[name].dtype.kind != "O":
            return str(name), as_floats(X[[name]])[held_out_places(model.engine_.judged_), 0]
    return "", model.held_out_.rows.astype(np.float64)


def _distances(model: TableRegressor) -> Floats:
    """How far each training row is from the others."""
    return np.asarray(model.engine_.proximity_.distance_leave_one_out(), dtype=np.float64)


def _most_unusual(model: TableRegressor) -> tuple[UnusualRow, ...]:
    """The rows furthest from the others, as predicted by models that had seen no rows like them."""
    places = held_out_places(model.engine_.shifted_)
    return most_unusual(
        model.shifted_,
        model.training_.X.iloc[places],
        distance=_distances(model)[places],
        model=model,
    )


def _linear_width(model: TableRegressor) -> float | None:
    """Mean width of a cross-fitted linear model's intervals, by the quantiles of its errors.

    They are made as those without a model: central, and within the bounds. None where columns are
    many, or where censored rows, of which a line knows nothing, would have to be left out.
    """
    data = model.training_
    if len(data.schema.varying) > _LINEAR_COLUMNS or not data.exact.all():
        return None
    places = np.random.default_rng(0).permutation(len(data.y))[:_LINEAR_ROWS]
    features, y = model.transform(data.X.iloc[places]), data.y[places]
    folds = KFold(5, shuffle=True, random_state=0)
    predicted = cross_val_predict(Ridge(alpha=1.0), features, y, cv=folds)
    tail = (1 - model.coverage) / 2
    errors = np.quantile(y - predicted, [tail, 1 - tail])
    ends = np.clip(predicted[:, None] + errors, *ends_of(model.bounds_))
    return float(np.mean(np.diff(ends, axis=1)))
