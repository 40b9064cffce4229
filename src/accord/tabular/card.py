"""The model card: where a model comes from, how it was made, what it is not good for."""

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from accord._version import __version__
from accord._wording import count, number, percent
from accord.tables import Table, TrainingData
from accord.tabular.assessment import Assessment
from accord.tabular.expectation import DistanceCurve

_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow")
_FEW_ROWS = 200


@dataclass(frozen=True)
class ModelCard:
    """Where a model comes from and what is known about it; JSON throughout.

    ``held_out`` and ``unusual`` are figures of rows that the predicting models had not seen;
    ``by_distance`` is the :class:`DistanceCurve` of both.
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

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def facts(self) -> dict[str, str]:
        """The most important of it in a few words, by title."""
        found, far = self.held_out, self.unusual
        stated = f"{percent(self.coverage)} interval"
        facts = {
            "state": f"fitted on {count(self.n_rows, 'row')}, {count(self.n_columns, 'column')}",
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
    )


def installed_versions() -> dict[str, str]:
    """Python and the packages that numbers depend on."""
    found = {"accord": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _limits(data: TrainingData, held_out: Assessment, shifted: Assessment) -> list[str]:
    exact = data.y[data.exact]
    limits = [
        f"Trained on targets from {number(exact.min())} to {number(exact.max())}: predictions "
        "outside that range are guesses.",
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
