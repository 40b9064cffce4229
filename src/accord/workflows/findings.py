"""What a fit finds in its table: columns, leaks, held-out rows, and other levels of coverage."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeRegressor

from accord._types import Bools, Floats, Indices
from accord._wording import count, percent, quoted
from accord.distributions import PARTS
from accord.metrics import r2
from accord.portfolio import HeldOut
from accord.splits import groups_of_copies
from accord.tables import ONE_HOT_CATEGORIES, Column, TrainingData
from accord.tabular import Assessment, TableRegressor, as_floats, cell_text, held_out_receipts
from accord.workflows.explain import used_shares
from accord.workflows.verdict import marginal_width

# Rows and columns that are searched for leaks.
_SEARCHED_ROWS, _SEARCHED_COLUMNS = 3_000, 200
_FEWEST_ROWS = 20
# Smooth curves need many steps; noise that has no steps is not followed by large leaves.
_LEAVES, _ROWS_OF_LEAF = 64, 3
# A column that explains this much by itself may be the target in another form.
_TOO_MUCH = 0.95
# Rows that a page lists: the widest, those that are furthest off, and others drawn at random.
_WIDEST, _FURTHEST, _LISTED = 100, 100, 500
_WITH_RECEIPT = 12
_STATED = tuple(round(share / 100, 2) for share in range(50, 100))
# Mean widths are known well enough from so many rows.
_WIDTH_ROWS = 1_000


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
            "Is it known before the target is? If not, list it in ignore (--ignore)."
            for name in self.suspected
        ]
        if self.copies:
            repeat = count(self.copies, "held-out row repeats", "held-out rows repeat")
            found.append(
                f"{repeat} a row that the models had seen: the figures are too good. Remove copies "
                "from the table."
            )
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        return {"alone": self.alone, "suspected": self.suspected, "copies": self.copies}


# Training and test rows of each fold, (n,) each.
Folds = Sequence[tuple[Bools, Bools]]


def find_leaks(model: TableRegressor) -> Leaks:
    """Look for leaks in the rows that a model was trained on."""
    data = model.training_
    fold = np.full(len(data.y), -1)
    for number, part in enumerate(model.engine_.judged_):
        fold[part.rows] = number
    return Leaks(alone_explained(data, fold), _copies(data, fold))


def alone_explained(data: TrainingData, fold: Indices) -> dict[str, float]:
    """The share of variance that each column explains by itself, on rows left out.

    A line or a tree of one column, whichever does better; categories by their mean target. Rows are
    left out with their fold, so that copies and groups stay together; those of none, −1, are not
    looked at.

    **Shape**: fold (N,).
    """
    places = np.flatnonzero(data.exact & (fold >= 0))
    places = np.sort(np.random.default_rng(0).permutation(places)[:_SEARCHED_ROWS])
    y, own = data.y[places], fold[places]
    if len(y) < _FEWEST_ROWS or np.ptp(y) == 0 or np.ptp(own) == 0:
        return {}
    X = data.X[data.schema.varying].iloc[places, :_SEARCHED_COLUMNS]
    folds = [(own != number, own == number) for number in np.unique(own)]
    return {str(name): _explained(X[name], y, folds) for name in X.columns}


def _explained(column: "pd.Series[Any]", y: Floats, folds: Folds) -> float:
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


def _by_line(x: Floats, y: Floats, folds: Folds) -> Floats:
    """Least squares in the other folds."""
    found = np.empty(len(y))
    for train, test in folds:
        offset = x[train] - x[train].mean()
        slope = offset @ y[train] / (offset @ offset or 1.0)
        found[test] = y[train].mean() + slope * (x[test] - x[train].mean())
    return found


def _by_tree(x: Floats, y: Floats, folds: Folds) -> Floats:
    """A small tree of the other folds; inputs are checked once, as there are many columns."""
    tree = DecisionTreeRegressor(
        max_leaf_nodes=_LEAVES, min_samples_leaf=_ROWS_OF_LEAF, random_state=0
    )
    found, single = np.empty(len(y)), x.astype(np.float32)
    for train, test in folds:
        tree.fit(single[train], y[train], check_input=False)
        found[test] = tree.predict(single[test], check_input=False)
    return found


def _by_category(values: Any, y: Floats, folds: Folds) -> Floats:
    """The mean target of each category in the other folds; of all rows where it is new."""
    found = np.empty(len(y))
    for train, test in folds:
        means = pd.Series(y[train]).groupby(values[train]).mean()
        found[test] = pd.Series(values[test]).map(means).fillna(y[train].mean())
    return found


def _copies(data: TrainingData, fold: Indices) -> int:
    """Held-out rows that repeat a row outside their fold."""
    same = groups_of_copies(data.X, data.y, n_parts=int(fold.max()) + 1)
    frame = pd.DataFrame({"row": same, "fold": fold})
    elsewhere = frame.groupby("row")["fold"].transform("nunique") > 1
    return int((elsewhere & (frame["fold"] >= 0)).sum())


@dataclass(frozen=True)
class DescribedColumn:
    """A column of the table: what was found in it, what was done, what to look at.

    ``alone`` is the share of the target's variance that it explains by itself.
    """

    name: str
    used: bool
    found: str
    done: str
    hint: str
    alone: float | None


def described_columns(model: TableRegressor, leaks: Leaks) -> list[DescribedColumn]:
    """What was decided about each column, and why, in words."""
    profile, columns = model.profile_, {column.name: column for column in model.schema_.columns}
    missing = {
        name: round(share * profile.n_rows)
        for name, share in zip(profile.names, profile.missing, strict=True)
    }
    hints = {suspect.column: suspect.sentence for suspect in model.suspects_}
    used = used_shares(model)
    return [
        DescribedColumn(
            name=decision.column,
            used=decision.used and used[decision.column] != 0,
            found=decision.reason,
            done=_done(
                columns[decision.column], missing[decision.column], used.get(decision.column)
            )
            if decision.column in columns
            else "not used",
            hint=hints.get(decision.column, ""),
            alone=leaks.alone.get(decision.column),
        )
        for decision in model.training_.decisions
    ]


def _done(column: Column, missing: int, share: float | None) -> str:
    if column.constant:
        return "not used, but watched: rows with another value are unusual"
    if share is None:  # no feature came of it
        return "not used: its values say nothing of the target"
    if share == 0:
        return "not used: held-out rows are predicted as well without it"
    partly = "" if share == 1 else "; features that held-out rows do not need are left out"
    return f"{_encoding(column, missing)}{partly}"


def _encoding(column: Column, missing: int) -> str:
    gaps = f"; {count(missing, 'gap')}" if missing else ""
    if column.kind == "category":
        n = len(column.categories)
        own = "their mean target, and how well it is known"
        how = "a feature each" if n <= ONE_HOT_CATEGORIES else own
        return f"{how}{gaps}"
    filled = f"{gaps} filled with the median, and marked" if missing else ""
    if column.kind == "date":
        return f"the moment, and its place in the year, month, week and day{filled}"
    return f"standardised{filled}"


@dataclass(frozen=True)
class JudgedRow:
    """A row that was held out: its prediction, what was observed, and its main cells.

    ``noise``, ``disagreement`` and ``distance`` are shares of its variance; ``unusual`` says
    whether it is unlike the rows that the predicting models had seen.
    """

    row: int
    observed: float
    mean: float
    lower: float
    upper: float
    noise: float
    disagreement: float
    distance: float
    unusual: bool
    cells: tuple[str, ...]

    @property
    def inside(self) -> bool:
        return self.lower <= self.observed <= self.upper

    @property
    def width(self) -> float:
        return self.upper - self.lower

    @property
    def error(self) -> float:
        return self.observed - self.mean

    @property
    def mainly(self) -> tuple[str, float]:
        """The largest part of the variance, and its share."""
        return max(((name, getattr(self, name)) for name in PARTS), key=lambda part: part[1])

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "inside": self.inside, "width": self.width, "error": self.error}


@dataclass(frozen=True)
class WideRow:
    """One of the rows with the widest intervals, and the sentences that say why."""

    judged: JudgedRow
    receipt: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {**self.judged.to_json(), "receipt": list(self.receipt)}


def listed_rows(model: TableRegressor, columns: Sequence[str]) -> tuple[JudgedRow, ...]:
    """Some of the held-out rows, all if they are few, in their order; with these columns."""
    found = model.held_out_
    if len(found) <= _LISTED:
        return _judged_rows(model, columns, np.arange(len(found)))
    width, off = found.upper - found.lower, np.abs(found.y - found.mean)
    off /= np.maximum(found.std, np.finfo(float).tiny)
    chosen = [np.argsort(-width, kind="stable")[:_WIDEST], np.argsort(-off)[:_FURTHEST]]
    others = np.setdiff1d(np.arange(len(found)), np.concatenate(chosen))
    room = _LISTED - (len(found) - len(others))
    chosen.append(np.random.default_rng(0).permutation(others)[:room])
    return _judged_rows(model, columns, np.unique(np.concatenate(chosen)))


def widest_rows(model: TableRegressor, columns: Sequence[str]) -> tuple[WideRow, ...]:
    """The held-out rows with the widest intervals, the widest first, each with its receipt."""
    found = model.held_out_
    order = np.argsort(found.lower - found.upper, kind="stable")[:_WITH_RECEIPT]
    receipts = _receipts(model, found.rows[order])
    judged = _judged_rows(model, columns, order)
    return tuple(WideRow(one, receipts[one.row]) for one in judged)


def _judged_rows(
    model: TableRegressor, columns: Sequence[str], lines: Indices
) -> tuple[JudgedRow, ...]:
    found = model.held_out_[lines]
    places = np.searchsorted(model.training_.rows, found.rows)
    cells = model.training_.X.iloc[places][list(columns)]
    unusual = _unusual(model)
    variance = np.square(np.stack([getattr(found, name) for name in PARTS]))
    shares = variance / np.maximum(variance.sum(axis=0), np.finfo(float).tiny)
    return tuple(
        JudgedRow(
            row=int(found.rows[line]),
            observed=float(found.y[line]),
            mean=float(found.mean[line]),
            lower=float(found.lower[line]),
            upper=float(found.upper[line]),
            **dict(zip(PARTS, shares[:, line].tolist(), strict=True)),
            unusual=bool(unusual[places[line]]),
            cells=tuple(cell_text(cell) for cell in cells.iloc[line]),
        )
        for line in range(len(found))
    )


def _unusual(model: TableRegressor) -> Bools:
    """Which training rows are unlike those that their models had seen, (N,)."""
    flags = np.zeros(len(model.training_.y), bool)
    for part in model.engine_.judged_:
        flags[part.rows] = part.unusual
    return flags


def _receipts(model: TableRegressor, numbers: Indices) -> dict[int, tuple[str, ...]]:
    """The receipt of each of these rows of the table, in sentences."""
    found: dict[int, tuple[str, ...]] = {}
    for part in model.engine_.judged_:
        found |= _of_part(model, part, numbers)
    return found


def _of_part(model: TableRegressor, part: HeldOut, numbers: Indices) -> dict[int, tuple[str, ...]]:
    own = model.training_.rows[part.rows]
    lines = np.flatnonzero(np.isin(own, numbers))
    if not len(lines):
        return {}
    receipts = held_out_receipts(
        model, model.engine_, model.training_.X, held_out=part, lines=lines
    )
    return {
        int(number): tuple(receipts.text(place).splitlines())
        for place, number in enumerate(own[lines])
    }


@dataclass(frozen=True)
class LevelCurve:
    """Stated coverages, and for each the share of rows inside and the mean width.

    ``without_model`` is the width of the interval that holds as many of the target's own values.

    **Shape**: all (L,).
    """

    rows: int
    stated: Floats
    covered: Floats
    width: Floats
    without_model: Floats


def level_curve(found: Assessment, parts: Sequence[HeldOut]) -> LevelCurve:
    """Coverage and width of the rows of ``found``, whose distributions are in ``parts``."""
    stated = np.array(sorted({*_STATED, found.coverage}))
    if not len(found):
        nothing = np.full(len(stated), np.nan)
        return LevelCurve(0, stated, nothing, nothing, nothing)
    width = _mean_widths(stated, parts)
    width[stated == found.coverage] = found.mean_width
    return LevelCurve(
        rows=len(found),
        stated=stated,
        covered=np.array([found.covered_at(level) for level in stated]),
        width=width,
        without_model=marginal_width(found.y, stated),
    )


def _mean_widths(stated: Floats, parts: Sequence[HeldOut]) -> Floats:
    """Mean widths at each level, from at most ``_WIDTH_ROWS`` rows."""
    step = max(1, sum(len(part.rows) for part in parts) // _WIDTH_ROWS)
    tails = np.concatenate([0.5 - stated / 2, 0.5 + stated / 2])
    ends = [np.asarray(part.dist[::step].quantile(tails)) for part in parts]
    low, high = np.split(np.concatenate(ends), 2, axis=1)
    return np.asarray((high - low).mean(axis=0))
