"""What is too good to be true: columns that give the target away, and copies of rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeRegressor

from accord._files import quoted
from accord._types import Floats
from accord._wording import count, percent
from accord.metrics import r2
from accord.splits import groups_of_copies
from accord.tables import TrainingData
from accord.tabular import TableRegressor, as_floats

_ROWS, _COLUMNS = 3_000, 200
_FEWEST_ROWS = 20
_FOLDS = 5
# Smooth curves need many steps; noise that has no steps is not followed by large leaves.
_LEAVES, _ROWS_OF_LEAF = 64, 3
# A column that explains this much by itself may be the target in another form.
_TOO_MUCH = 0.95


@dataclass(frozen=True)
class Leaks:
    """How much of the target's variance each column explains alone, and how many rows are copies.

    ``alone`` is out-of-fold R²; ``copies`` counts rows that repeat, in every cell, a row that the
    models which predicted them had seen.
    """

    alone: dict[str, float]
    copies: int

    @property
    def suspected(self) -> list[str]:
        """Columns that may give the target away."""
        return [name for name, share in self.alone.items() if share >= _TOO_MUCH]

    def sentences(self) -> tuple[str, ...]:
        """What to look into; nothing if nothing is suspected."""
        found = [
            f"{quoted(name)} alone explains {percent(self.alone[name])} of the target's variance. "
            "Is it known before the target is? If not, leave it out with --ignore."
            for name in self.suspected
        ]
        if self.copies:
            found.append(
                f"{count(self.copies, 'held-out row')} repeat a row that the models had seen: the "
                "figures are too good. Remove copies from the table."
            )
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        return {"alone": self.alone, "suspected": self.suspected, "copies": self.copies}


def find_leaks(model: TableRegressor) -> Leaks:
    """Look for leaks in the rows that a model was trained on."""
    data = model.training_
    return Leaks(alone_explained(data), _copies(model, data))


def alone_explained(data: TrainingData) -> dict[str, float]:
    """The share of variance that each column explains by itself, on rows left out.

    A line or a tree of one column, whichever does better; categories by their mean target.
    """
    places = np.flatnonzero(data.exact)
    places = np.sort(np.random.default_rng(0).permutation(places)[:_ROWS])
    y = data.y[places]
    if len(y) < _FEWEST_ROWS or np.ptp(y) == 0:
        return {}
    X = data.X.iloc[places, :_COLUMNS]
    return {str(name): _explained(X[name], y) for name in X.columns}


def _explained(column: "pd.Series[Any]", y: Floats) -> float:
    folds = KFold(_FOLDS, shuffle=True, random_state=0)
    if column.dtype.kind == "O":
        predicted = [_by_category(column.astype(str).to_numpy(), y, folds)]
    else:
        x = as_floats(column.to_frame())
        known = x[~np.isnan(x)]
        x = np.where(np.isnan(x), np.median(known) if len(known) else 0.0, x)
        x = x / (np.abs(x).max(initial=0.0) or 1.0)  # squares of large numbers may overflow
        x = (x - x.mean()) / (x.std() or 1.0)
        predicted = [_by_line(x[:, 0], y, folds), _by_tree(x, y, folds)]
    return max(0.0, *(float(r2(y_true=y, mean=mean)) for mean in predicted))


def _by_line(x: Floats, y: Floats, folds: KFold) -> Floats:
    """Least squares in the other folds."""
    found = np.empty(len(y))
    for train, test in folds.split(x):
        offset = x[train] - x[train].mean()
        slope = offset @ y[train] / (offset @ offset or 1.0)
        found[test] = y[train].mean() + slope * (x[test] - x[train].mean())
    return found


def _by_tree(x: Floats, y: Floats, folds: KFold) -> Floats:
    """A small tree of the other folds; inputs are checked once, as there are many columns."""
    tree = DecisionTreeRegressor(
        max_leaf_nodes=_LEAVES, min_samples_leaf=_ROWS_OF_LEAF, random_state=0
    )
    found, single = np.empty(len(y)), x.astype(np.float32)
    for train, test in folds.split(x):
        tree.fit(single[train], y[train], check_input=False)
        found[test] = tree.predict(single[test], check_input=False)
    return found


def _by_category(values: Any, y: Floats, folds: KFold) -> Floats:
    """The mean target of each category in the other folds; of all rows where it is new."""
    found = np.empty(len(y))
    for train, test in folds.split(values):
        means = pd.Series(y[train]).groupby(values[train]).mean()
        found[test] = pd.Series(values[test]).map(means).fillna(y[train].mean())
    return found


def _copies(model: TableRegressor, data: TrainingData) -> int:
    """Held-out rows that repeat a row outside their part."""
    part_of = np.full(len(data.y), -1)
    for number, part in enumerate(model.engine_.judged_):
        part_of[part.rows] = number
    same = groups_of_copies(data.X, data.y, n_parts=len(model.engine_.judged_))
    frame = pd.DataFrame({"row": same, "part": part_of})
    elsewhere = frame.groupby("row")["part"].transform("nunique") > 1
    return int((elsewhere & (frame["part"] >= 0)).sum())
