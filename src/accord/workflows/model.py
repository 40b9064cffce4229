"""The model that the command saves: preprocessing, ensemble, recalibration, trust, and its card."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from accord import persistence
from accord.calibration import Calibrator, widened
from accord.distributions import Distribution
from accord.estimators import DistributionalRegressor
from accord.tables import OptionError, Schema, quoted
from accord.trust import TrustScore
from accord.workflows.profile import TableProfile

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ModelCard:
    """Where a model comes from and what is known about it; JSON throughout.

    ``held_out`` and ``unusual`` are figures from models that had not seen those rows.
    """

    source: str
    sha256: str
    target: str
    n_rows: int
    n_columns: int
    coverage: float
    settings: dict[str, Any]
    held_out: dict[str, float]
    unusual: dict[str, float]
    limits: list[str]
    versions: dict[str, str]
    created: str
    target_range: tuple[float, float]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@final
class TableModel:
    """Answers tables: everything between the columns of a file and a distribution per row."""

    def __init__(
        self,
        *,
        schema: Schema,
        preprocessor: Pipeline,
        regressor: DistributionalRegressor,
        calibrator: Calibrator | None,
        widening: float,
        trust: TrustScore,
        profile: TableProfile,
        target_profile: TableProfile,
        card: ModelCard,
    ) -> None:
        self.preprocessor = preprocessor
        self.regressor = regressor
        self.calibrator = calibrator
        self.widening = widening
        self.trust = trust
        self.profile = profile
        self.target_profile = target_profile
        # Plain dictionaries: what a model file holds should outlive the classes.
        self._schema = schema.to_dict()
        self._card = card.to_dict()

    @property
    def schema(self) -> Schema:
        return Schema.from_dict(self._schema)

    @property
    def card(self) -> ModelCard:
        state: Mapping[str, Any] = self._card
        low, high = state["target_range"]
        return ModelCard(**{**state, "target_range": (low, high)})

    def features(self, X: pd.DataFrame) -> Floats:
        """The matrix that the networks see.

        **Shape**: (N, features).
        """
        return np.asarray(self.preprocessor.transform(X), dtype=np.float64)

    def predict_dist(self, X: pd.DataFrame) -> Distribution:
        """The recalibrated predictive distribution of each row."""
        return self.distribution(self.features(X))

    def distribution(
        self, features: Floats, *, unusual: NDArray[np.bool_] | None = None
    ) -> Distribution:
        """Of features, whose unusual rows need not be sought again where they are known."""
        dist = self.regressor.predict_dist(features)
        if self.calibrator is not None:
            dist = self.calibrator(dist)
        if self.widening == 1:
            return dist
        if unusual is None:
            unusual = self.trust.is_unusual(features)
        return widened(dist, unusual, self.widening)

    def save(self, path: str | Path) -> None:
        """Write everything to one file that is safe to load."""
        card = self.card
        metadata = {"kind": "table model", "target": card.target, "card": card.to_dict()}
        persistence.save(self, path, metadata=metadata)


def load_model(path: str | Path) -> TableModel:
    """Load what :meth:`TableModel.save` wrote; any other file is refused."""
    path = Path(path)
    if not path.exists():
        raise OptionError(f"{path} does not exist. Check the path of the model file.")
    model = persistence.load(path)
    if not isinstance(model, TableModel):
        raise OptionError(
            f"model file {quoted(path.name)} must come from 'accord fit', got a "
            f"{type(model).__name__}. Load it with accord.load in Python."
        )
    return model
