"""Numbers from columns: what networks are given in place of a table's cells.

scikit-learn and skrub have transformers for each of these steps. They are written here because
a fitted model is a file of plain arrays, which must not hold other packages' objects, and because
every output column must name the column of the table that it comes from.
"""

from collections.abc import Callable
from typing import Any, Self, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from accord._types import Bools, Floats, Indices
from accord.tables.schema import Column, Schema, as_numbers

# Up to this many categories get a column each; beyond, one column with the mean target is
# steadier than many columns that are almost always zero.
ONE_HOT_CATEGORIES = 20
_RARE = 3  # categories with fewer rows share a column, and unseen ones with them
# Up to so many, one column after the other is quicker than a part of the frame.
_FEW_COLUMNS = 64
_FOLDS = 5
# Of so many rows, each is too small a part of its category's mean to be told from it.
_OFTEN = 20
_MISSING, _UNKNOWN = "\0", "\0\0"  # no cell of a text file holds them
DAY, WEEK = 86_400.0, 7 * 86_400.0
# Values further out than this, in standard deviations, say nothing more; float32 still holds them.
FARTHEST = 1e6
# A number that no training row lacked is put so far above the median, in standard deviations: too
# little to change an answer, and enough to be known from a median that was measured.
_APART = 1e-6

Block = dict[str, Any]


@final
class TableEncoder:
    """From a frame with a schema's columns to a float64 matrix without gaps.

    - Numbers, booleans and times are standardised; a missing one gets the median and, where the
      training rows had gaps, a column that says so; where they had none, a value beside the median
      that no row has. A time of day also gets its place in the day.
    - A category has a column of its own, zero or one; a missing one is a category too; rare and
      unseen ones share a column. Beyond 20 categories there are two: the mean target of their
      training rows, drawn towards the overall mean by how few they are, and how far that mean is
      their own, so that models learn how little they know of rare ones. For the training rows
      themselves both are learnt from the other rows (cross-fitting).
    - Dates are the moment itself and its place in the year, the month, the week and the day.

    Features that are constant in the training rows are left out. Those of columns that are
    watched are the exception: 0 in every training row, and 1 where the value is another one. They
    come last. The state is plain arrays and dictionaries.

    Args:
        schema: The columns of the frame.
        watch: Whether columns with one value have such a feature. It is for models that know what
            to do with it: others have weights for it that no training row has formed.
        random_state: Draws the folds of cross-fitting.

    Example:
        >>> from accord.tables.cells import CellFormat
        >>> schema = Schema("y", (Column("a", CellFormat("number")),), {})
        >>> encoder = TableEncoder(schema)
        >>> encoder.fit_transform(pd.DataFrame({"a": [1.0, 3.0, None]}), np.zeros(3)).round(2)
        array([[-1.22, -0.71],
               [ 1.22, -0.71],
               [ 0.  ,  1.41]])
        >>> encoder.feature_names()
        ['a', 'a']
    """

    def __init__(
        self, schema: Schema, *, watch: bool = False, random_state: int | None = None
    ) -> None:
        self.schema = schema
        self.watch = watch
        self.random_state = random_state

    def fit(self, X: pd.DataFrame, y: Floats) -> Self:
        """Learn the encoding from training rows and their targets.

        **Shape**: X (N, columns), y (N,).
        """
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: pd.DataFrame, y: Floats) -> Floats:
        """Learn the encoding and give the training rows' features.

        **Shape**: X (N, columns), y (N,) → (N, features).
        """
        y = np.asarray(y, dtype=np.float64)
        folds = np.random.default_rng(self.random_state).permutation(len(X)) % _FOLDS
        self.blocks_: list[Block] = []
        parts = []
        for kind, columns in self.groups:
            values = _values(X, columns, kind)
            block = {"kind": kind, **_FIT[kind](values, y, columns)}
            if kind == "target":
                own = _cross_fitted(block, values, y, folds)
                block |= _scaling(own)
                parts.append(_standardised(own, block))
            else:
                parts.append(_APPLY[kind](block, values))
            self.blocks_.append(block)
        whole = _side_by_side(parts, len(X))
        kept = np.ptp(whole, axis=0) > 0 if len(whole) else np.zeros(whole.shape[1], bool)
        kept[self._first_watched :] = True
        # A matrix without columns is of no use to anybody; rows that are all alike keep one.
        self.kept_: Indices = np.flatnonzero(kept) if kept.any() else np.arange(1)
        return whole if kept.all() else np.ascontiguousarray(whole[:, self.kept_])

    def transform(self, X: pd.DataFrame) -> Floats:
        """The features of new rows.

        **Shape**: X (n, columns) → (n, features).
        """
        parts, start = [], 0
        for block, (kind, columns) in zip(self.blocks_, self.groups, strict=True):
            part = _APPLY[kind](block, _values(X, columns, kind))
            kept = np.isin(np.arange(start, start := start + part.shape[1]), self.kept_)
            parts.append(part if kept.all() else part[:, kept])
        return _side_by_side(parts, len(X))

    def category_features(self, column: Column) -> Floats:
        """The features of a column's categories, then of a missing and of an unknown one.

        **Shape**: (categories + 2, features of this column), before constant ones are left out.
        """
        for block, (kind, columns) in zip(self.blocks_, self.groups, strict=True):
            if columns[0] == column:
                cells = [*column.categories, None, _UNKNOWN]
                frame = pd.DataFrame({column.name: pd.Series(cells, dtype=object)})
                return _APPLY[kind](block, _values(frame, columns, kind))
        raise KeyError(column.name)

    def blanks(self) -> list[tuple[Indices, Floats]]:
        """The features of each column, and their values where its cell says nothing.

        That is a category that no training row had, a number that is missing, a time or date that
        is missing and that no training row lacked, or another value in a column that is watched.

        **Shape**: (k,) each.
        """
        found, start = [], 0
        for block, (kind, columns) in zip(self.blocks_, self.groups, strict=True):
            places = np.arange(start, start := start + len(block["labels"]))
            if kind in ("one-hot", "target"):
                found.append((places, self.category_features(columns[0])[-1]))
                continue
            if kind == "watched":
                found += [(places[[own]], np.ones(1)) for own in range(len(columns))]
                continue
            values = _APPLY[kind](block, np.full((1, len(columns)), np.nan))[0]
            complete = np.setdiff1d(np.arange(len(columns)), block["gaps"])
            if kind == "numbers":
                cells = [[own] for own in complete]
                cells += [[own, len(columns) + gap] for gap, own in enumerate(block["gaps"])]
                found += [(places[own], values[own]) for own in cells]
            elif len(complete):
                found.append((places, values))
        return [
            (np.searchsorted(self.kept_, places[kept]), values[kept])
            for places, values in found
            if (kept := np.isin(places, self.kept_)).any()
        ]

    @property
    def groups(self) -> list[tuple[str, list[Column]]]:
        """The columns of each block."""
        return grouped(self.schema, watch=self.watch)

    @property
    def watching(self) -> Indices:
        """The features that are 0 in every training row, (w,)."""
        return np.flatnonzero(self.kept_ >= self._first_watched)

    @property
    def _first_watched(self) -> int:
        return sum(len(block["labels"]) for block in self.blocks_ if block["kind"] != "watched")

    def feature_names(self) -> list[str]:
        """For each feature the column of the table that it comes from."""
        return [source for source, _ in self._described()]

    def feature_labels(self) -> list[str]:
        """For each feature what it is, in words: ``"town = Ulm"``, ``"age is missing"``."""
        return [label for _, label in self._described()]

    def measured(self) -> dict[str, tuple[int, float, float]]:
        """For each column of numbers, times or dates: which feature it is, its centre and scale.

        The value is centre + scale · feature; that of a date is in seconds since 1970.
        """
        labels = [label for block in self.blocks_ for label in block["labels"]]
        scalings = [
            pair for block in self.blocks_ for pair in _scalings(block, len(block["labels"]))
        ]
        return {
            source: (feature, scalings[place][0], scalings[place][1])
            for feature, (place, (source, _)) in enumerate(
                zip(self.kept_, self._described(), strict=True)
            )
            if labels[place] == "{}"
        }

    def _described(self) -> list[tuple[str, str]]:
        found = [
            (source, label.format(source))
            for block in self.blocks_
            for source, label in zip(block["sources"], block["labels"], strict=True)
        ]
        return [found[place] for place in self.kept_]


def grouped(schema: Schema, *, watch: bool) -> list[tuple[str, list[Column]]]:
    """Numbers in one block, which is quick for thousands of them, all else by column.

    Those to ``watch`` are the last block, numbers first.
    """
    varying = [column for column in schema.columns if not column.constant]
    numbers = [c for c in varying if c.kind in ("number", "boolean")]
    groups: list[tuple[str, list[Column]]] = [("numbers", numbers)] if numbers else []
    for column in varying:
        if column.kind == "category":
            few = len(column.categories) <= ONE_HOT_CATEGORIES
            groups.append(("one-hot" if few else "target", [column]))
        elif column.kind in ("time", "date"):
            groups.append((column.kind, [column]))
    watched = [column for column in schema.columns if watch and column.watched]
    watched.sort(key=lambda column: column.kind == "category")
    return [*groups, ("watched", watched)] if watched else groups


def _values(X: pd.DataFrame, columns: list[Column], kind: str) -> NDArray[Any]:
    if kind == "one-hot":
        return X[columns[0].name].to_numpy(dtype=object)
    if kind == "target":
        values = X[columns[0].name].to_numpy(dtype=object, copy=True)
        values[pd.isna(values)] = _MISSING
        return values
    if kind == "date":
        return as_numbers(np.asarray(X[columns[0].name], dtype="datetime64[us]"))[:, None]
    if kind == "watched":
        return np.column_stack([_unlike_training(X[c.name].to_numpy(), c) for c in columns])
    names = [column.name for column in columns]
    if len(names) > _FEW_COLUMNS:
        return X[names].to_numpy(dtype=np.float64)
    return np.column_stack([X[name].to_numpy(dtype=np.float64) for name in names])


def _side_by_side(parts: list[Floats], n: int) -> Floats:
    if len(parts) == 1:
        return np.ascontiguousarray(parts[0])
    return np.hstack(parts) if parts else np.zeros((n, 0))


# --- columns with one value ----------------------------------------------------------------------


def _unlike_training(values: NDArray[Any], column: Column) -> Floats:
    """1 where a watched column has another value; what is missing in a constant one may be any."""
    return (column.others(values) | (pd.isna(values) & column.constant)).astype(np.float64)


def _fit_watched(values: Floats, y: Floats, columns: list[Column]) -> Block:
    return {
        "sources": [column.name for column in columns],
        "labels": ["{} is another than in training"] * len(columns),
    }


# --- numbers -----------------------------------------------------------------------------------


def _fit_numbers(values: Floats, y: Floats, columns: list[Column]) -> Block:
    missing = np.isnan(values)
    known = ~missing.all(axis=0)
    median = np.zeros(values.shape[1])
    median[known] = np.nanmedian(values[:, known], axis=0)
    gaps = np.flatnonzero(missing.any(axis=0))
    names = [column.name for column in columns]
    scaling = _scaling(_filled(values, missing, median, gaps))
    complete = np.setdiff1d(np.arange(len(names)), gaps)
    apart = np.maximum(_APART * scaling["scale"][complete], 8 * np.spacing(abs(median[complete])))
    median[complete] += apart
    return {
        "median": median,
        "gaps": gaps,
        "sources": [*names, *(names[place] for place in gaps)],
        "labels": ["{}"] * len(names) + ["{} is missing"] * len(gaps),
        **scaling,
    }


def _apply_numbers(block: Block, values: Floats) -> Floats:
    missing = np.isnan(values)
    return _standardised(_filled(values, missing, block["median"], block["gaps"]), block)


def _filled(values: Floats, missing: Bools, median: Floats, gaps: Indices) -> Floats:
    """Numbers with medians in their gaps, and a column for each one that had gaps in training."""
    if not missing.any() and not len(gaps):
        return values
    return np.hstack([np.where(missing, median, values), missing[:, gaps]])


def _scaling(values: Floats) -> dict[str, Floats]:
    """Mean and deviation, computed so that neither 1e300 nor 1e-300 leaves the range of floats."""
    largest = np.abs(values).max(axis=0, initial=0.0)
    largest = np.where(largest > 0, largest, 1.0)
    unit = values / largest
    deviation = unit.std(axis=0)
    varies = deviation > 10 * np.finfo(np.float64).eps
    return {
        "centre": unit.mean(axis=0) * largest,
        "scale": np.where(varies, deviation, 1.0) * largest,
        "varies": varies,
    }


def _scalings(block: Block, n_features: int) -> list[list[float]]:
    """Centre and scale of each of a block's features; not a number where it has none."""
    known = np.column_stack([block.get("centre", ()), block.get("scale", ())]).tolist()
    return [*known, *[[np.nan, np.nan]] * (n_features - len(known))]


def _standardised(values: Floats, block: Block) -> Floats:
    # Halves, since the difference of two large numbers of unlike sign may exceed the largest.
    features = values / 2
    features -= block["centre"] / 2  # in place: a table may fill most of the memory
    features /= block["scale"]
    features *= 2
    np.clip(features, -FARTHEST, FARTHEST, out=features)
    features[:, ~block["varies"]] = 0.0
    return np.asarray(features)


# --- times and dates ---------------------------------------------------------------------------


def _circular(phase: Floats) -> Floats:
    """Sine and cosine of a share of a period, zero where it is missing.

    **Shape**: (n, p) → (n, 2p).
    """
    angle = 2 * np.pi * phase
    both = np.hstack([np.sin(angle), np.cos(angle)])
    return np.where(np.isnan(both), 0.0, both)


_PERIODS = ("year", "month", "week", "day")
# What the sines and the cosines of a moment's places say, in this order.
_CIRCLES = {
    "time": [f"time of day in {{}} ({f})" for f in ("sine", "cosine")],
    "date": [f"place of {{}} in the {p} ({f})" for f in ("sine", "cosine") for p in _PERIODS],
}


def _fit_moment(values: Floats, y: Floats, columns: list[Column]) -> Block:
    block = _fit_numbers(values, y, columns)
    labels = [*block["labels"], *_CIRCLES[columns[0].kind]]
    return {**block, "sources": [columns[0].name] * len(labels), "labels": labels}


def _apply_moment(block: Block, values: Floats) -> Floats:
    phase = values / DAY if block["kind"] == "time" else _calendar(values[:, 0])
    return np.hstack([_apply_numbers(block, values), _circular(phase)])


def _calendar(seconds: Floats) -> Floats:
    """How far in its year, month, week and day a moment lies, as shares.

    **Shape**: (n,) → (n, 4).
    """
    missing = np.isnan(seconds)
    moments = (np.where(missing, 0.0, seconds) * 1e6).astype(np.int64).astype("datetime64[us]")
    shares = []
    for unit in ("Y", "M"):
        start = moments.astype(f"datetime64[{unit}]")
        end = (start + 1).astype("datetime64[us]")
        begin = start.astype("datetime64[us]")
        shares.append((moments - begin) / (end - begin))
    shares += [seconds % WEEK / WEEK, seconds % DAY / DAY]
    return np.where(missing[:, None], np.nan, np.stack(shares, axis=1))


# --- categories --------------------------------------------------------------------------------


def _fit_one_hot(values: NDArray[Any], y: Floats, columns: list[Column]) -> Block:
    counts = pd.Series(values).value_counts()  # missing ones are not counted
    common = sorted(str(name) for name in counts.index[counts >= _RARE])
    missing = bool(pd.isna(values).any())
    labels = ["{} = " + _braced(name) for name in common]
    labels += ["{} is another or unseen"] + ["{} is missing"] * missing
    return {
        "categories": common,
        "missing": missing,
        "sources": [columns[0].name] * len(labels),
        "labels": labels,
    }


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _apply_one_hot(block: Block, values: NDArray[Any]) -> Floats:
    codes = pd.Categorical(values, categories=block["categories"]).codes.astype(np.intp)
    width = len(block["categories"])
    codes = np.where(codes < 0, width, codes)
    if block["missing"]:
        codes = np.where(pd.isna(values), width + 1, codes)
    matrix = np.zeros((len(values), width + 1 + block["missing"]))
    matrix[np.arange(len(values)), codes] = 1.0
    return matrix


def _fit_target(values: NDArray[Any], y: Floats, columns: list[Column]) -> Block:
    return {
        **_learnt_means(values, y),
        "sources": [columns[0].name] * 2,
        "labels": ["mean target of {}", "how well the mean target of {} is known"],
    }


def _apply_target(block: Block, values: NDArray[Any]) -> Floats:
    return _standardised(_means_of(block, values), block)


def _means_of(block: Block, values: NDArray[Any]) -> Floats:
    """The mean target of each row's category, and how far it is the category's own; (n, 2)."""
    codes = pd.Categorical(values, categories=block["categories"]).codes
    known = np.column_stack([block["means"], block["shares"]])
    found: Floats = np.vstack([known, [block["overall"], 0.0]])[codes]
    return found  # −1, an unseen category, is the last


def _cross_fitted(block: Block, values: NDArray[Any], y: Floats, folds: Indices) -> Floats:
    """Each training row's encoding, learnt from the rows of the other folds; (N, 2).

    A frequent category has the encoding that new rows get: means of five folds would be as many
    codes for it, all of them others than theirs. Where categories say nothing in all rows together,
    every new row is as if its own were unknown: so are the training rows then, and the column is
    constant.
    """
    encoded = np.zeros((len(values), 2))
    if not block["shares"].any():
        return encoded
    for fold in range(_FOLDS):
        own = folds == fold
        if own.any() and not own.all():
            encoded[own] = _means_of(_learnt_means(values[~own], y[~own]), values[own])
    rows = pd.Series(values)
    often = (rows.map(rows.value_counts()) >= _OFTEN).to_numpy()
    encoded[often] = _means_of(block, values[often])
    return encoded


def _learnt_means(values: NDArray[Any], y: Floats) -> Block:
    """Mean target by category, drawn to the overall mean as empirical Bayes has it.

    A category with n rows keeps the share n τ² / (n τ² + σ²) of its own deviation, with σ² the
    variance within categories and τ² the variance between their true means. 1 less that share is
    what remains unknown of τ².
    """
    overall = float(y.mean())
    groups = pd.Series(y - overall).groupby(pd.Series(values), sort=True)
    counts, sums = groups.count(), groups.sum()
    n, means = counts.to_numpy(dtype=np.float64), (sums / counts).to_numpy(dtype=np.float64)
    repeated = n > 1  # one row alone does not separate its category from its noise
    within, between = float(y.var()), 0.0
    if repeated.any():
        rows, groups_seen = n[repeated].sum(), repeated.sum()
        squares = float(groups.var(ddof=0).to_numpy()[repeated] @ n[repeated])
        within = squares / (rows - groups_seen)
        spread = float(np.average(means[repeated] ** 2, weights=n[repeated]))
        between = max(0.0, spread - within * groups_seen / rows)
    shares = n * between / np.maximum(n * between + within, np.finfo(np.float64).tiny)
    return {
        "categories": [str(name) for name in counts.index],
        "means": overall + shares * means,
        "shares": shares,
        "overall": overall,
    }


_FIT: dict[str, Callable[[Any, Floats, list[Column]], Block]] = {
    "numbers": _fit_numbers,
    "time": _fit_moment,
    "date": _fit_moment,
    "one-hot": _fit_one_hot,
    "target": _fit_target,
    "watched": _fit_watched,
}
_APPLY: dict[str, Callable[[Block, Any], Floats]] = {
    "numbers": _apply_numbers,
    "time": _apply_moment,
    "date": _apply_moment,
    "one-hot": _apply_one_hot,
    "target": _apply_target,
    "watched": lambda block, values: values,
}
