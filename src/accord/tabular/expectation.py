"""What coverage and errors to expect of new rows, from held-out rows at the same distance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from accord._types import Floats
from accord.tabular.assessment import Assessment

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
        groups = np.array_split(np.argsort(distance, kind="stable"), number)
        return cls(
            farthest=np.array([distance[group].max() for group in groups]),
            rows=np.array([float(len(group)) for group in groups]),
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


def _ratio(error: Floats, std: Floats) -> float:
    stated = float(std.mean())
    return float(error.mean()) / stated if stated > 0 else 1.0
