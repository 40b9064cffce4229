"""The model card: where a model comes from, how it was made, what it is not good for."""

import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from accord._version import __version__
from accord.tables import Table, TrainingData
from accord.workflows.assessment import Assessment
from accord.workflows.model import ModelCard
from accord.workflows.wording import number, percent

_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow")
_FEW_ROWS = 200


def make_card(
    source: Table,
    data: TrainingData,
    *,
    random: Assessment,
    unusual: Assessment,
    settings: dict[str, Any],
) -> ModelCard:
    """All that should be known about a model, kept inside its file."""
    exact = data.y[data.exact]
    return ModelCard(
        source=source.name,
        sha256=source.sha256,
        target=data.schema.target,
        n_rows=len(data.y),
        n_columns=len(data.schema.columns),
        coverage=random.coverage,
        settings=settings,
        held_out=random.figures(),
        unusual=unusual.figures(),
        limits=_limits(data, random, unusual),
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


def _limits(data: TrainingData, random: Assessment, unusual: Assessment) -> list[str]:
    exact = data.y[data.exact]
    limits = [
        f"Trained on targets from {number(exact.min())} to {number(exact.max())}; means outside "
        "that range cannot be predicted.",
        f"Coverage was measured on {len(random):,} random and {len(unusual):,} unusual rows of one "
        "table. Rows from elsewhere may differ: look at the 'unusual' column, and use 'accord "
        "evaluate' once true values are known.",
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
