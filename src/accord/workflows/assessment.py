"""Predictions for rows that the model had not seen, beside what came true."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from accord.distributions import Distribution
from accord.metrics import ReliabilityCurve, crps

Floats = NDArray[np.float64]

_LEVELS = np.arange(1, 20) / 20


@dataclass(frozen=True)
class Assessment:
    """Held-out rows, what was predicted for them and how that compares with what was observed.

    ``pit`` is F(y), the probability that the prediction gave to values up to the observed one: all
    reliability figures follow from it. ``rows`` are row numbers in the file, from 1. ``tolerance``
    is the part of ``aleatoric`` that the tolerance adds: beside noise, it says how far a row is
    from the training rows.

    **Shape**: arrays (N,).
    """

    rows: NDArray[np.int64]
    y: Floats
    mean: Floats
    std: Floats
    aleatoric: Floats
    epistemic: Floats
    lower: Floats
    upper: Floats
    pit: Floats
    log_density: Floats
    crps: Floats
    tolerance: Floats
    coverage: float

    @classmethod
    def of(
        cls,
        dist: Distribution,
        y: ArrayLike,
        *,
        rows: ArrayLike,
        coverage: float,
        tolerance_share: ArrayLike = 0.0,
    ) -> "Assessment":
        """Compare predictive distributions with observed values.

        ``tolerance_share`` is the share of each row's variance that its tolerance adds.

        >>> from accord.distributions import Normal
        >>> Assessment.of(Normal([0.0, 0.0], 1.0), [0.5, 3.0], rows=[1, 2], coverage=0.95).covered
        0.5
        """
        values = np.asarray(y, dtype=np.float64)
        std = np.asarray(dist.std)
        lower, upper = np.moveaxis(np.asarray(dist.interval(coverage)), -1, 0)
        return cls(
            rows=np.asarray(rows, dtype=np.int64),
            y=values,
            mean=np.asarray(dist.mean),
            std=std,
            aleatoric=np.asarray(dist.aleatoric),
            epistemic=np.asarray(dist.epistemic),
            lower=lower,
            upper=upper,
            pit=np.asarray(dist.cdf(values)),
            log_density=np.asarray(dist.log_prob(values)),
            crps=np.asarray(crps(y_true=values, dist=dist, average=False)),
            tolerance=std * np.sqrt(np.asarray(tolerance_share, dtype=np.float64)),
            coverage=coverage,
        )

    @classmethod
    def join(cls, parts: Sequence["Assessment"]) -> "Assessment":
        """Several assessments of different rows as one, in the order of the rows."""
        order = np.argsort(np.concatenate([part.rows for part in parts]), kind="stable")
        columns: dict[str, Any] = {
            field.name: np.concatenate([getattr(part, field.name) for part in parts])[order]
            for field in fields(cls)
            if field.name != "coverage"
        }
        return cls(**columns, coverage=parts[0].coverage)

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, chosen: NDArray[np.bool_]) -> "Assessment":
        """Some of the rows."""
        columns: dict[str, Any] = {
            field.name: getattr(self, field.name)[chosen]
            for field in fields(self)
            if field.name != "coverage"
        }
        return Assessment(**columns, coverage=self.coverage)

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Which observations lie in their intervals."""
        return np.asarray((self.lower <= self.y) & (self.y <= self.upper))

    @property
    def covered(self) -> float:
        """Share of the observations inside their intervals."""
        return float(self.inside.mean())

    @property
    def covered_range(self) -> tuple[float, float]:
        """Shares that are plausible given so many rows: the 95 % Wilson interval."""
        result = stats.binomtest(int(self.inside.sum()), len(self)).proportion_ci(method="wilson")
        return float(result.low), float(result.high)

    @property
    def typical_width(self) -> float:
        """Median width of the intervals."""
        return float(np.median(self.upper - self.lower))

    @property
    def variance_shares(self) -> tuple[float, float, float]:
        """What noise, tolerance and ignorance contribute to the variance of all rows together."""
        ignorance, slack = np.sum(self.epistemic**2), np.sum(self.tolerance**2)
        total = np.sum(self.aleatoric**2) + ignorance
        return (
            float(1 - (slack + ignorance) / total),
            float(slack / total),
            float(ignorance / total),
        )

    def reliability(self) -> ReliabilityCurve:
        """Observed share inside central intervals of 5 %, 10 %, … 95 %."""
        observed = (np.abs(2 * self.pit - 1)[:, None] <= _LEVELS).mean(axis=0)
        return ReliabilityCurve(_LEVELS, observed, len(self))

    def figures(self) -> dict[str, float]:
        """The numbers worth writing down, by name."""
        error = self.y - self.mean
        spread = float(np.sum((self.y - self.y.mean()) ** 2))
        curve = self.reliability()
        return {
            "rows": float(len(self)),
            "coverage": self.covered,
            "typical_width": self.typical_width,
            "rmse": float(np.sqrt(np.mean(error**2))),
            "mae": float(np.mean(np.abs(error))),
            "r2": 1 - float(np.sum(error**2)) / spread if spread > 0 else float("nan"),
            "nll": -float(np.mean(self.log_density)),
            "crps": float(np.mean(self.crps)),
            "ece": curve.ece,
            "mce": curve.mce,
        }
