"""What is kept beside a model: its card, and a summary of the table that it was trained on."""

import platform
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Self, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from accord import __version__
from accord._types import Floats
from accord._wording import count, number, percent
from accord.splits import groups_of_copies, row_hashes
from accord.tables import Table, TrainingData, as_numbers
from accord.tabular.assessment import Assessment

_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow")
_FEW_ROWS = 200
_GROUPS = 10
# Fewer rows than this say little about a share of 95 %.
_ROWS_PER_GROUP = 30


@dataclass(frozen=True)
class Expectation:
    """What is to be expected of some rows before their targets are known.

    ``low`` and ``high`` are two standard errors from ``coverage``; ``error`` is the mean absolute
    error.
    """

    coverage: float
    low: float
    high: float
    error: float


@dataclass(frozen=True)
class DistanceCurve:
    """Coverage and errors of rows that models had not seen, by distance to those they had.

    Distances are values of :class:`accord.trust.Growth`: 0 at the median of the training rows, 1 at
    their 95 % quantile. Rows form groups of about equal size, near ones first; ``farthest`` is the
    largest distance in each. ``covered`` is the share of its rows inside their interval,
    ``error_ratio`` their mean absolute error over their mean stated standard deviation.

    **Shape**: all (G,).
    """

    farthest: Floats
    rows: Floats
    covered: Floats
    error_ratio: Floats

    @classmethod
    def of(cls, parts: Sequence[tuple[Assessment, Floats]]) -> Self:
        """The curve of assessed rows with their distances, from several sources."""
        distance = np.concatenate([distances for _, distances in parts])
        inside = np.concatenate([found.inside for found, _ in parts])
        error = np.concatenate([np.abs(found.y - found.mean) for found, _ in parts])
        std = np.concatenate([found.std for found, _ in parts])
        number = int(np.clip(len(distance) // _ROWS_PER_GROUP, 1, _GROUPS))
        # rows at one distance belong into one group, however many they are
        farthest = np.unique([part[-1] for part in np.array_split(np.sort(distance), number)])
        place = np.searchsorted(farthest, distance)
        groups = [place == group for group in range(len(farthest))]
        return cls(
            farthest=farthest,
            rows=np.array([float(group.sum()) for group in groups]),
            covered=np.array([inside[group].mean() for group in groups]),
            error_ratio=np.array([_ratio(error[group], std[group]) for group in groups]),
        )

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Self:
        return cls(**{name: np.asarray(values, dtype=np.float64) for name, values in state.items()})

    def to_dict(self) -> dict[str, list[float]]:
        return {name: values.tolist() for name, values in vars(self).items()}

    def expect(self, distance: Floats, std: Floats) -> Expectation:
        """What rows at these distances, with these stated deviations, are likely to show.

        Rows beyond all groups are counted among the farthest: there, the true error may be larger.

        **Shape**: distance and std (N,).

        Example:
            >>> curve = DistanceCurve.from_dict(
            ...     {"farthest": [1, 9], "rows": [100, 50], "covered": [0.96, 0.88],
            ...      "error_ratio": [0.8, 0.8]})
            >>> found = curve.expect(np.array([0.0, 3.0]), np.array([1.0, 4.0]))
            >>> round(found.coverage, 3), round(found.error, 3)
            (0.92, 2.0)
        """
        group = np.searchsorted(self.farthest, distance).clip(max=len(self.farthest) - 1)
        share = np.bincount(group, minlength=len(self.farthest)) / len(distance)
        coverage = float(share @ self.covered)
        # One row more on either side: a group without a miss is not free of error.
        smooth = (self.covered * self.rows + 1) / (self.rows + 2)
        spread = 2 * float(np.sqrt(np.sum(share**2 * smooth * (1 - smooth) / self.rows)))
        return Expectation(
            coverage=coverage,
            low=max(0.0, coverage - spread),
            high=min(1.0, coverage + spread),
            error=float(np.mean(std * self.error_ratio[group])),
        )


@dataclass(frozen=True)
class ModelCard:
    """Where a model comes from and what is known about it; JSON throughout.

    ``held_out`` and ``unusual`` are figures of rows that the predicting models had not seen;
    ``by_distance`` is the :class:`DistanceCurve` of both. Networks may have seen more rows,
    ``n_trained``, than the sample of ``n_rows`` that everything was chosen and judged on.
    """

    source: str
    sha256: str
    target: str
    n_rows: int
    n_columns: int
    coverage: float
    settings: dict[str, Any]
    leaderboard: list[dict[str, Any]]
    held_out: dict[str, float]
    unusual: dict[str, float]
    by_distance: dict[str, list[float]]
    limits: list[str]
    versions: dict[str, str]
    created: str
    target_range: tuple[float, float]
    n_trained: int | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def facts(self) -> dict[str, str]:
        """The most important of it in a few words, by title."""
        found, far = self.held_out, self.unusual
        stated = f"{percent(self.coverage)} interval"
        rows = count(self.n_rows, "row")
        if (self.n_trained or 0) > self.n_rows:
            rows = f"{self.n_trained:,} rows, judged on a sample of {self.n_rows:,}"
        facts = {
            "state": f"fitted on {rows}, {count(self.n_columns, 'column')}",
            "predicts": self.target,
            "held-out rows": f"{percent(found['coverage'])} lie in their {stated}",
            "mean width": number(found["interval_width"]),
            "variance explained": percent(found["r2"], 0),
        }
        if "coverage" in far:
            facts["unusual rows"] = f"{percent(far['coverage'])} lie in their {stated}"
        return facts


def make_card(
    table: Table,
    data: TrainingData,
    *,
    held_out: Assessment,
    shifted: Assessment,
    by_distance: DistanceCurve,
    leaderboard: list[dict[str, Any]],
    settings: dict[str, Any],
    n_trained: int,
) -> ModelCard:
    """All that should be known about a model, kept inside its file."""
    exact = data.y[data.exact]
    return ModelCard(
        source=table.name,
        sha256=table.sha256,
        target=data.schema.target,
        n_rows=len(data.y),
        n_columns=len(data.schema.varying),
        coverage=held_out.coverage,
        settings=settings,
        leaderboard=leaderboard,
        held_out=held_out.figures(),
        unusual=shifted.figures(),
        by_distance=by_distance.to_dict(),
        limits=_limits(data, held_out, shifted),
        versions=installed_versions(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        target_range=(float(exact.min()), float(exact.max())),
        n_trained=n_trained,
    )


def installed_versions() -> dict[str, str]:
    """Python and the packages that numbers depend on."""
    own = {"accord": __version__, "python": platform.python_version()}
    return own | {name: version(name) for name in _PACKAGES}


def _limits(data: TrainingData, held_out: Assessment, shifted: Assessment) -> list[str]:
    exact = data.y[data.exact]
    limits = [
        f"Trained on targets from {number(exact.min(), 4)} to {number(exact.max(), 4)}: "
        "predictions outside that range are guesses.",
        f"Coverage was measured on {len(held_out):,} held-out and {len(shifted):,} unusual rows of "
        "one table. Rows from elsewhere may differ: look at the 'unusual' column, and show them to "
        "'accord monitor', again once true values are known.",
        "Effects of columns describe the model, not causes.",
    ]
    if len(data.y) < _FEW_ROWS:
        limits.append(f"{len(data.y)} rows are few: expect all figures to change with more data.")
    if not data.exact.all():
        share = percent(1 - float(np.mean(data.exact)))
        limits.append(
            f"{share} of the rows are censored; coverage was measured on the measured rows only."
        )
    return limits


def card_settings(
    parameters: Mapping[str, Any], bounds: tuple[float | None, float | None] | None, about: str
) -> dict[str, Any]:
    """A model's parameters as its card holds them; ``about`` describes the engine in use."""
    names = ("effort", "time_budget", "group", "time", "random_state")
    return {name: parameters[name] for name in names} | {
        "engine": None if parameters["engine"] is None else about,
        "tolerance": str(parameters["tolerance"]),
        "bounds": None if bounds is None else list(bounds),
    }


def _ratio(error: Floats, std: Floats) -> float:
    stated = float(std.mean())
    return float(error.mean()) / stated if stated > 0 else 1.0


LEVELS = np.linspace(0, 1, 101)
_CATEGORIES = 50
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
            shares, name = (counts / max(1, counts.sum())).head(_CATEGORIES), self.names[place]
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
        # beside the only value, any other one is as rare as can be
        apart = np.where((whole > 0) | (apart == 0), apart, _from_rarity(0.0))
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
