"""The model card: where a model comes from, how it was made, what it is not good for."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Self

import numpy as np

from accord._types import Floats
from accord._version import __version__
from accord._wording import count, number, percent
from accord.tables import Table, TrainingData
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
        n_columns=len(data.schema.columns),
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
