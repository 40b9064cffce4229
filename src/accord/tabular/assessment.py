"""Predictions beside what came true: coverage, width and errors of the same rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord._types import Bools, Floats, Indices
from accord._wording import count, number, percent
from accord.distributions import PARTS, Distribution
from accord.metrics import ReliabilityCurve, crps, interval_score, mae, r2, rmse
from accord.portfolio import HeldOut
from accord.tables import TrainingData


@dataclass(frozen=True)
class RowGroup:
    """Some of the rows: what they have in common, how many they are, and their coverage."""

    title: str
    rows: int
    covered: float
    mean_width: float


@dataclass(frozen=True)
class Assessment:
    """Rows, what was predicted for them and what was observed.

    ``pit`` is F(y), the probability that the prediction gave to values up to the observed one.
    ``rows`` are row numbers in the file, from 1; rows with the same number in ``alike`` (copies,
    the same person) count for less than as many separate ones. ``noise``, ``disagreement``
    and ``distance`` are the three parts of ``std``: their squares add up to its square. Predictions
    that state intervals only have NaN for all that needs a distribution.

    **Shape**: arrays (N,).
    """

    rows: NDArray[np.int64]
    alike: NDArray[np.int64]
    y: Floats
    mean: Floats
    std: Floats
    noise: Floats
    disagreement: Floats
    distance: Floats
    lower: Floats
    upper: Floats
    pit: Floats
    log_density: Floats
    crps: Floats
    coverage: float

    def __repr__(self) -> str:
        if not len(self.rows):
            return "<Assessment of 0 rows>"
        return (
            f"<Assessment of {count(len(self.rows), 'row')}: {percent(self.covered)} in their "
            f"{percent(self.coverage)} interval, mean width {number(self.mean_width, 3)}>"
        )

    @classmethod
    def of(
        cls,
        dist: Distribution,
        y: ArrayLike,
        *,
        rows: ArrayLike,
        coverage: float,
        interval: Floats | None = None,
        alike: ArrayLike | None = None,
    ) -> "Assessment":
        """Compare predictive distributions with observed values.

        ``interval``, of shape (N, 2), takes the place of the distributions' own intervals. Without
        ``alike``, of shape (N,), every row stands for itself.

        >>> from accord.distributions import Normal
        >>> Assessment.of(Normal([0.0, 0.0], 1.0), [0.5, 3.0], rows=[1, 2], coverage=0.95).covered
        0.5
        """
        values = np.asarray(y, dtype=np.float64)
        ends = np.asarray(dist.interval(coverage)) if interval is None else interval
        return cls(
            rows=np.asarray(rows, dtype=np.int64),
            alike=np.asarray(rows if alike is None else alike, dtype=np.int64),
            y=values,
            mean=np.asarray(dist.mean),
            std=np.asarray(dist.std),
            **{name: np.asarray(getattr(dist, name)) for name in PARTS},
            lower=ends[:, 0],
            upper=ends[:, 1],
            pit=np.asarray(dist.cdf(values)),
            log_density=np.asarray(dist.log_prob(values)),
            crps=np.asarray(crps(y_true=values, dist=dist, average=False)),
            coverage=coverage,
        )

    @classmethod
    def of_intervals(
        cls, mean: Floats, interval: Floats, y: Floats, *, rows: ArrayLike, coverage: float
    ) -> "Assessment":
        """Compare intervals, known without a distribution, with observed values.

        **Shape**: mean and y (N,), interval (N, 2).
        """
        names = ("std", *PARTS, "pit", "log_density", "crps")
        unknown = dict.fromkeys(names, np.full(len(y), np.nan))
        number = np.asarray(rows, dtype=np.int64)
        lower, upper = interval.T
        return cls(
            rows=number,
            alike=number,
            y=y,
            mean=mean,
            lower=lower,
            upper=upper,
            coverage=coverage,
            **unknown,
        )

    @classmethod
    def join(cls, parts: "list[Assessment]") -> "Assessment":
        """Several assessments of different rows as one, in the order of the rows."""
        order = np.argsort(np.concatenate([part.rows for part in parts]), kind="stable")
        return cls(
            **_columns(lambda n: np.concatenate([getattr(part, n) for part in parts])[order]),
            coverage=parts[0].coverage,
        )

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, chosen: Bools | Indices | slice) -> "Assessment":
        """Some of the rows."""
        return Assessment(
            **_columns(lambda name: getattr(self, name)[chosen]), coverage=self.coverage
        )

    @property
    def has_density(self) -> bool:
        """Whether distributions were predicted, not intervals only."""
        return len(self) > 0 and bool(np.isfinite(self.pit).all())

    @property
    def inside(self) -> Bools:
        """Which observations lie in their intervals."""
        return np.asarray((self.lower <= self.y) & (self.y <= self.upper))

    @property
    def covered(self) -> float:
        """Share of the observations inside their intervals."""
        return float(self.inside.mean()) if len(self) else float("nan")

    @property
    def covered_range(self) -> tuple[float, float]:
        """The coverages that so many rows allow: the exact (Clopper–Pearson) 95 % interval.

        Of rows that are alike it takes as many as separate rows would tell as much, after Korn and
        Graubard (1998).
        """
        from scipy.special import betaincinv

        rows = self.separate_rows
        if not rows:
            return 0.0, 1.0
        hits = self.covered * rows
        low = betaincinv(hits, rows - hits + 1, 0.025) if hits > 0 else 0.0
        high = betaincinv(hits + 1, rows - hits, 0.975) if hits < rows else 1.0
        return float(low), float(high)

    @property
    def separate_rows(self) -> float:
        """How many separate rows would tell the coverage as well as these, some of them alike.

        The share p of G groups with m_g rows and h_g hits has the variance
        Σ(h_g − p m_g)² / n² · G / (G − 1), and n separate rows would have p(1 − p) / n.
        """
        n = len(self)
        _, place, sizes = np.unique(self.alike, return_inverse=True, return_counts=True)
        if len(sizes) == n:
            return n
        hits, share = np.bincount(place, self.inside), self.covered
        spread = float(np.sum((hits - share * sizes) ** 2))
        if len(sizes) < 2 or spread == 0:  # all inside or all outside
            return len(sizes)
        variance = spread / n**2 * len(sizes) / (len(sizes) - 1)
        return float(np.clip(share * (1 - share) / variance, 1, n))

    def covered_at(self, level: float) -> float:
        """Share of the observations inside the central intervals of another level."""
        if level == self.coverage:
            return self.covered
        return float(np.mean(np.abs(2 * self.pit - 1) <= level)) if len(self) else float("nan")

    @property
    def mean_width(self) -> float:
        return float(np.mean(self.upper - self.lower)) if len(self) else float("nan")

    @property
    def median_width(self) -> float:
        return float(np.median(self.upper - self.lower)) if len(self) else float("nan")

    @property
    def narrow_width(self) -> float:
        """A tenth of the intervals are narrower: beside it, small rows keep their digits."""
        if not len(self):
            return float("nan")
        # no value between two: widths may be infinite
        return float(np.quantile(self.upper - self.lower, 0.1, method="lower"))

    @property
    def variance_shares(self) -> tuple[float, float, float]:
        """What noise, disagreement and distance contribute to the variance of all rows."""
        parts = [float(np.sum(np.square(getattr(self, name)))) for name in PARTS]
        total = sum(parts) or 1.0
        return parts[0] / total, parts[1] / total, parts[2] / total

    def groups(self, values: Floats, titles: tuple[str, ...]) -> list[RowGroup]:
        """Coverage in equally large groups of rows, from small to large ``values``.

        Coverage that holds for all rows together may still be too high for some and too low for
        others: this is where that shows.
        """
        order = np.argsort(values, kind="stable")
        found = []
        for title, places in zip(titles, np.array_split(order, len(titles)), strict=True):
            if len(places):
                part = self[places]
                found.append(RowGroup(title, len(part), part.covered, part.mean_width))
        return found

    def reliability(self) -> ReliabilityCurve:
        """Observed share inside central intervals of 10 %, 20 %, … 90 %."""
        return ReliabilityCurve.of_pit(self.pit)

    def figures(self) -> dict[str, float]:
        """Figures of merit by their names in :data:`accord.metrics.METRICS`."""
        if not len(self):
            return {"rows": 0.0}
        interval = np.stack([self.lower, self.upper], axis=1)
        found = point_figures(self.y, self.mean) | {
            "coverage": self.covered,
            "median_width": self.median_width,
            "interval_width": self.mean_width,
            "interval_score": interval_score(
                y_true=self.y, interval=interval, coverage=self.coverage
            ),
        }
        if not self.has_density:
            return found
        curve = self.reliability()
        return found | {
            "nll": -float(np.mean(self.log_density)),
            "crps": float(np.mean(self.crps)),
            "ece": curve.ece,
            "mce": curve.mce,
        }


def point_figures(y: Floats, mean: Floats) -> dict[str, float]:
    """Figures of merit that need no more than predicted values.

    >>> point_figures(np.array([1.0, 2.0]), np.array([1.0, 3.0]))["bias"]
    0.5
    """
    found = {
        "rows": float(len(y)),
        "rmse": rmse(y_true=y, mean=mean),
        "mae": mae(y_true=y, mean=mean),
        "bias": float(np.mean(mean - y)),
    }
    varied = len(y) > 1 and np.ptp(y) > 0
    return found | {"r2": r2(y_true=y, mean=mean) if varied else float("nan")}


def _columns(make: Callable[[str], Any]) -> dict[str, Any]:
    """A new array for each of an assessment's columns."""
    names = [field.name for field in fields(Assessment) if field.name != "coverage"]
    return {name: make(name) for name in names}


def held_out_places(parts: Sequence[HeldOut]) -> Indices:
    """Places of the held-out rows among the training rows, in their order."""
    return np.sort(np.concatenate([np.empty(0, np.intp), *(part.rows for part in parts)]))


def assessed_part(
    data: TrainingData, part: HeldOut, together: Indices | None, coverage: float
) -> Assessment:
    """Rows that models had not seen, beside their targets."""
    places = np.asarray(part.rows)
    return Assessment.of(
        part.dist,
        data.y[places],
        rows=data.rows[places],
        alike=None if together is None else together[places],
        coverage=coverage,
    )
