"""What each column does to predictions, and which rows are unlike the others."""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from accord._progress import Progress, silent
from accord._types import Floats
from accord._wording import printable
from accord.distributions import Distribution
from accord.tabular import Assessment, TableRegressor, as_floats

Predict = Callable[[pd.DataFrame], Distribution]

_ROWS = 200
_REPEATS = 3
# Of a wide table only the columns that go most with the predictions are tried, once each.
_COLUMNS = 40
_COLUMNS_IF_WIDE = 15
_WIDE = 200
# A rank correlation of the changes beyond this is called a direction.
_CLEAR = 0.3
_CAPPED = 0.95
_NO_DIRECTION = "no single direction"
# A category is called the highest only if so many rows have it.
_ROWS_OF_CATEGORY = 5
_SHOWN_ROWS = 12
# A row's prediction depends on its batch by about this share of it.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class FeatureEffect:
    """How far predictions move when a column is shuffled, in the target's units.

    ``mean`` and ``uncertainty`` are mean absolute changes of the predicted mean and standard
    deviation; the largest twentieth of the changes count as the next smaller one, since one row far
    from all others could hide the rest. ``direction`` says in words how predictions go with the
    column: "rises with it", "falls with it", "highest for Ulm", or "no single direction".
    """

    name: str
    mean: float
    uncertainty: float
    direction: str


@dataclass(frozen=True)
class UnusualRow:
    """A row unlike the others: where it is, what was predicted, and in what it is unusual."""

    row: int
    observed: float
    mean: float
    lower: float
    upper: float
    peculiar: tuple[tuple[str, str], ...]

    @property
    def inside(self) -> bool:
        return self.lower <= self.observed <= self.upper


def feature_effects(
    predict: Predict,
    X: pd.DataFrame,
    *,
    columns: Collection[str] | None = None,
    unused: Collection[str] = (),
    random_state: int,
    progress: Progress = silent,
) -> list[FeatureEffect]:
    """Effects of the columns that matter most, the largest on the mean first.

    Only ``columns`` are looked at, all unless given. ``unused`` are columns that no model looks at:
    they have no effect, and need no prediction.

    **Shape**: X (N, d).
    """
    rng = np.random.default_rng(random_state)
    X = X.iloc[np.sort(rng.permutation(len(X))[:_ROWS])].reset_index(drop=True)
    dist = predict(X)
    mean, std = np.asarray(dist.mean), np.asarray(dist.std)
    wide = X.shape[1] > _WIDE
    among = X if columns is None else X[list(columns)]
    names = _most_related(among, mean, std, limit=_COLUMNS_IF_WIDE if wide else _COLUMNS)
    tried = [name for name in names if name not in unused]
    found = [FeatureEffect(name, 0.0, 0.0, _NO_DIRECTION) for name in names if name in unused]
    for place, name in enumerate(tried):
        progress(place / len(tried), "Explaining")
        copies = [
            X.assign(**{name: X[name].to_numpy()[rng.permutation(len(X))]})
            for _ in range(1 if wide else _REPEATS)
        ]
        given = pd.concat(copies, ignore_index=True)
        moved = predict(given)
        gained = np.asarray(moved.mean) - np.tile(mean, len(copies))
        found.append(
            FeatureEffect(
                name,
                _change(moved.mean, mean, copies=len(copies)),
                _change(moved.std, std, copies=len(copies)),
                _direction(pd.concat([X[[name]]] * len(copies)), given[[name]], gained),
            )
        )
    return sorted(found, key=lambda effect: -effect.mean)


def most_unusual(
    judged: Assessment,
    X: pd.DataFrame,
    *,
    distance: Floats,
    model: TableRegressor,
) -> tuple[UnusualRow, ...]:
    """The judged rows furthest from the training rows, with what is peculiar about each.

    **Shape**: X (n, d), the judged rows; distance (n,).
    """
    order = np.argsort(-distance, kind="stable")[:_SHOWN_ROWS]
    peculiar = model.profile_.peculiarities(X.iloc[order], unused=unused_columns(model))
    return tuple(
        UnusualRow(
            row=int(judged.rows[line]),
            observed=float(judged.y[line]),
            mean=float(judged.mean[line]),
            lower=float(judged.lower[line]),
            upper=float(judged.upper[line]),
            peculiar=words,
        )
        for line, words in zip(order, peculiar, strict=True)
    )


def used_shares(model: TableRegressor) -> Counter[str]:
    """Of each column's features, the share that the models look at; a plain engine at all.

    Features that are only watched do not count.
    """
    sources = model.encoder_.feature_names()
    features = np.setdiff1d(np.arange(len(sources)), model.encoder_.watching)
    left_out = set(getattr(model.engine_, "left_out_", ()))
    every = Counter(sources[place] for place in features)
    kept = Counter(sources[place] for place in features if place not in left_out)
    return Counter({name: kept[name] / n for name, n in every.items()})


def unused_columns(model: TableRegressor) -> list[str]:
    """Columns that no model looks at, though they vary; others are watched."""
    used = used_shares(model)
    return [name for name in model.schema_.varying if used[name] == 0]


def _change(moved: ArrayLike, before: Floats, *, copies: int) -> float:
    """Mean absolute change, with the largest twentieth capped; 0 if it is only rounding."""
    change = np.abs(np.asarray(moved).reshape(copies, -1) - before)
    found = float(np.minimum(change, np.quantile(change, _CAPPED)).mean())
    return found if found > _ROUNDING * np.abs(before).max() else 0.0


def _direction(before: pd.DataFrame, after: pd.DataFrame, gained: Floats) -> str:
    """How predictions go with a column, from what they gained when its values were shuffled.

    Shuffled values go with no other column, so that the effect is this column's own.

    **Shape**: before and after (n, 1), gained (n,).
    """
    if before.dtypes.iloc[0].kind == "O":
        return _best_category(after.iloc[:, 0], gained)
    from scipy.stats import rankdata  # a second to import, which most calls do without

    step = (as_floats(after) - as_floats(before))[:, 0]
    known = ~np.isnan(step)
    if known.sum() < 3 or np.ptp(step[known]) == 0 or np.ptp(gained[known]) == 0:
        return _NO_DIRECTION
    related = float(np.corrcoef(rankdata(step[known]), rankdata(gained[known]))[0, 1])
    if abs(related) < _CLEAR:
        return _NO_DIRECTION
    return "rises with it" if related > 0 else "falls with it"


def _best_category(values: "pd.Series[str]", gained: Floats) -> str:
    """The category that raises predictions most, among those of at least a few rows."""
    groups = pd.Series(gained).groupby(values.to_numpy())
    means = groups.mean()[groups.size() >= _ROWS_OF_CATEGORY]
    return f"highest for {printable(means.idxmax(), limit=24)}" if len(means) > 1 else _NO_DIRECTION


def _most_related(X: pd.DataFrame, mean: Floats, std: Floats, *, limit: int) -> list[str]:
    """Columns with the strongest relation to predicted mean or deviation, in the table's order."""
    names = [str(name) for name in X.columns]
    if len(names) <= limit:
        return names
    strength = np.maximum(_relations(X, mean), _relations(X, std))
    return [names[place] for place in np.sort(np.argsort(-strength, kind="stable")[:limit])]


def _relations(X: pd.DataFrame, values: Floats) -> Floats:
    """|correlation| of each column with ``values``; categories by their mean of it.

    **Shape**: X (n, d), values (n,) → (d,).
    """
    scored = X.copy(deep=False)
    for name in X.columns[[kind.kind == "O" for kind in X.dtypes]]:
        scored[name] = pd.Series(values).groupby(X[name].astype(str).to_numpy()).transform("mean")
    columns = as_floats(scored)
    known = ~np.isnan(columns)
    count = np.maximum(known.sum(axis=0), 1)
    x = np.where(known, columns - np.nansum(columns, axis=0) / count, 0.0)
    y = values - values.mean()
    scale = np.sqrt((x**2).sum(axis=0) * (y**2).sum())
    related: Floats = np.abs(y @ x) / np.where(scale > 0, scale, 1.0)
    return related
