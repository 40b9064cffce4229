"""What is kept of a training table, so that later rows can be compared with it."""

from collections.abc import Collection
from typing import Any, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from accord._types import Floats
from accord._wording import number
from accord.splits import groups_of_copies, row_hashes
from accord.tables import as_numbers

LEVELS = np.linspace(0, 1, 101)
CATEGORIES = 50
# In robust standard deviations; a rare category or a gap counts as the deviation that as few
# rows of a normal distribution exceed.
_REMARKABLE = 2.0
# Columns in which a row is said to stand out, at most.
_NAMED = 3
_RAREST = 1e-9
# Enough training rows are remembered, by hash, to notice when a model is tested on them.
_REMEMBERED_ROWS = 20_000
_BY_CHANCE = 0.01


@final
class TableProfile:
    """A summary of each column: quantiles of numbers and dates, shares of categories, of gaps.

    Plain arrays and dictionaries, as a model file holds them. ``single`` is the share of rows whose
    category is no other row's: as many new rows are likely to have one that is new (Good, 1953).

    **Shape**: for d columns, missing (d,), quantiles (d, 101), NaN for categories.
    """

    def __init__(self, X: pd.DataFrame) -> None:
        self.names = [str(name) for name in X.columns]
        self.n_rows = len(X)
        self.missing: Floats = X.isna().mean().to_numpy(dtype=np.float64)
        self.quantiles: Floats = np.full((X.shape[1], len(LEVELS)), np.nan)
        self.shares: dict[str, dict[str, float]] = {}
        self.single: dict[str, float] = {}
        numeric = [place for place, kind in enumerate(X.dtypes) if kind.kind != "O"]
        if numeric:
            values = as_floats(X.iloc[:, numeric])
            self.quantiles[numeric] = np.nanquantile(values, LEVELS, axis=0).T
        for place in sorted(set(range(X.shape[1])) - set(numeric)):
            counts = X.iloc[:, place].value_counts()
            shares, name = (counts / max(1, counts.sum())).head(CATEGORIES), self.names[place]
            self.shares[name] = {str(k): float(v) for k, v in shares.items()}
            self.single[name] = float((counts == 1).sum()) / max(1, len(X))

    def deviations(self, X: pd.DataFrame) -> Floats:
        """How far each cell is from what was usual, in robust standard deviations.

        **Shape**: X (n, d) → (n, d).
        """
        X = X[self.names]
        missing = X.isna().to_numpy()
        deviation = np.zeros(X.shape)
        for name, shares in self.shares.items():
            known = [_from_rarity(shares.get(str(value), 0.0)) for value in X[name]]
            deviation[:, self.names.index(name)] = known
        numeric = [place for place, name in enumerate(self.names) if name not in self.shares]
        low, middle, high = self.quantiles[numeric][:, [16, 50, 84]].T
        spread = (high - low) / 2
        whole = np.ptp(self.quantiles[numeric], axis=1) / 4
        spread = np.where(spread > 0, spread, np.where(whole > 0, whole, 1.0))
        values = as_floats(X.iloc[:, numeric])
        apart = np.abs(values - middle) / spread
        # what two thirds of the rows lie between is usual, and one of two values is
        usual = (low <= values) & (values <= high)
        deviation[:, numeric] = np.where(usual, np.minimum(apart, 1.0), apart)
        gaps = np.array([_from_rarity(share) for share in self.missing])
        return np.where(missing, gaps, deviation)

    def peculiarities(
        self, X: pd.DataFrame, *, unused: Collection[str] = ()
    ) -> list[tuple[tuple[str, str], ...]]:
        """For each row, the columns in which it stands out most, and its value there.

        Where none does, those whose value is missing. Columns that are ``unused`` are no reason
        for anything.

        **Shape**: X (n, d).
        """
        use = np.array([name not in unused for name in self.names])
        deviation, missing = use * self.deviations(X), use & X[self.names].isna().to_numpy()
        found = []
        for row, line in enumerate(deviation):
            order = np.argsort(-line, kind="stable")[:_NAMED]
            places = [place for place in order if line[place] >= _REMARKABLE]
            places = places or [place for place in order if missing[row, place]]
            names = [self.names[place] for place in places]
            found.append(tuple((name, cell_text(X[name].iloc[row])) for name in names))
        return found


def as_floats(X: pd.DataFrame) -> Floats:
    """Numbers, and dates in seconds since 1970; missing ones are NaN.

    **Shape**: X (n, d) → (n, d).
    """
    dates = [place for place, kind in enumerate(X.dtypes) if kind.kind == "M"]
    if not dates:
        return X.to_numpy(dtype=np.float64)
    values = np.empty(X.shape)
    numbers = [place for place in range(X.shape[1]) if place not in set(dates)]
    values[:, numbers] = X.iloc[:, numbers].to_numpy(dtype=np.float64)
    for place in dates:
        values[:, place] = as_numbers(X.iloc[:, place].to_numpy(dtype="datetime64[us]"))
    return values


def remembered_rows(X: pd.DataFrame, y: Floats) -> NDArray[np.uint64]:
    """Hashes of some of the rows, in ascending order.

    None where rows are alike because their values are few: to find one again says nothing.

    **Shape**: X (n, d), y (n,) → (min(n, 20 000),) or (0,).
    """
    if len(np.unique(groups_of_copies(X, y))) > len(np.unique(row_hashes(X, y))):
        return np.zeros(0, np.uint64)
    some = np.random.default_rng(0).permutation(len(y))[:_REMEMBERED_ROWS]
    return np.sort(row_hashes(X.iloc[some], y[some]))


def share_remembered(
    hashes: NDArray[np.uint64], remembered: NDArray[np.uint64], *, n_rows: int
) -> float:
    """Estimated share of hashed rows that are among ``n_rows``, some of which are remembered.

    A few rows may be alike by chance, as lines with a total are: they count as none.

    >>> numbers = np.arange(1_000, dtype=np.uint64)
    >>> share_remembered(numbers, numbers[:5], n_rows=5)
    0.0
    >>> share_remembered(numbers, numbers[:50], n_rows=100)
    0.1
    """
    if not len(remembered):
        return 0.0
    found = float(np.isin(hashes, remembered).mean()) * n_rows / len(remembered)
    return min(1.0, found) if found >= _BY_CHANCE else 0.0


def _from_rarity(share: float) -> float:
    """The normal deviation that a share of rows exceeds on either side."""
    return float(-ndtri(max(share, _RAREST) / 2))


def cell_text(value: Any) -> str:
    """A cell as people read it: dates without a time, numbers to four digits."""
    if pd.isna(value):
        return "missing"
    if isinstance(value, pd.Timestamp | np.datetime64):
        return str(pd.Timestamp(value).date())
    if isinstance(value, float | np.floating):
        return number(float(value), 4)
    return str(value)
