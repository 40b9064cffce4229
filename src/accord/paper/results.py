"""The records of a reproduction: means over splits with their standard errors, and differences."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import hypot, isfinite, nan, sqrt
from typing import Literal, NamedTuple

import numpy as np

from accord._types import Floats
from accord.metrics import PAPER_LEVELS
from accord.paper.stacks import Record
from accord.paper.study import Figure, Source

Written = tuple[str, str, str, str, str]
_Statistic = Literal["mean", "max"]
_CALIBRATION: dict[str, _Statistic] = {"ece": "mean", "mce": "max"}


@dataclass(frozen=True)
class MeanOverSplits:
    """A mean over n splits and its standard error (NaN for a single split)."""

    value: float
    error: float
    n: int

    @classmethod
    def over(cls, values: Sequence[float]) -> "MeanOverSplits":
        """Mean and standard error s/√n of per-split values.

        Example:
            >>> MeanOverSplits.over([1.0, 2.0, 3.0])
            MeanOverSplits(value=2.0, error=0.577..., n=3)
        """
        sample = np.asarray(values, dtype=np.float64)
        error = float(sample.std(ddof=1)) / sqrt(len(sample)) if len(sample) > 1 else nan
        return cls(float(sample.mean()), error, len(sample))


class PairedMeans(NamedTuple):
    """Two methods on the same splits: the mean of each, and the mean of their difference."""

    ours: MeanOverSplits
    theirs: MeanOverSplits
    difference: MeanOverSplits


def paired_difference(ours: Sequence[float], theirs: Sequence[float]) -> MeanOverSplits:
    """Mean of the per-split differences: what the splits share cancels.

    Example:
        >>> paired_difference([2.0, 12.0], [1.0, 11.0])
        MeanOverSplits(value=1.0, error=0.0, n=2)
    """
    if len(ours) != len(theirs):
        raise ValueError(f"both sides must have the same splits, got {len(ours)}, {len(theirs)}.")
    return MeanOverSplits.over(np.subtract(ours, theirs).tolist())


def standard_errors_apart(ours: MeanOverSplits, printed: Figure) -> float:
    """(ours − published) in combined standard errors.

    The combination is √(s² + s_p² + r²): our standard error, the published one, and what printing
    has rounded off. A published single run is taken to vary as one of ours does, a published mean
    without an error as our mean does. NaN where our own error is unknown (a single split).

    Example:
        >>> round(standard_errors_apart(MeanOverSplits(2.6, 0.06, 20), Figure(2.5, 0.08, 2)), 2)
        1.0
    """
    theirs = printed.error
    if theirs is None:
        theirs = ours.error * (sqrt(ours.n) if printed.single else 1.0)
    combined = hypot(ours.error, theirs, printed.rounding)
    return (ours.value - printed.value) / combined if isfinite(combined) else nan


def jackknife(curves: Floats, statistic: _Statistic, minus: Floats | None = None) -> MeanOverSplits:
    """Calibration error of the mean reliability curve, its standard error by leaving out splits.

    ``curves`` holds each split's observed − expected fractions at the levels. The statistic is that
    of the *mean* curve: a single split of a small set has too few rows for its own. With ``minus``
    it is the difference of two methods' errors on the same splits.

    **Shape**: curves and minus (n_splits, n_levels); statistic ``"mean"`` (ECE) or ``"max"`` (MCE).

    Example:
        >>> jackknife(np.array([[0.1, -0.1], [0.1, 0.3]]), "mean").value
        0.1
    """
    n = len(curves)
    value, replicates = _left_out(curves, statistic)
    if minus is not None:
        theirs, their_replicates = _left_out(minus, statistic)
        value, replicates = value - theirs, replicates - their_replicates
    if n < 2:
        return MeanOverSplits(value, nan, n)
    error = sqrt((n - 1) / n * float(((replicates - replicates.mean()) ** 2).sum()))
    return MeanOverSplits(value, error, n)


def _left_out(curves: Floats, statistic: _Statistic) -> tuple[float, Floats]:
    """The statistic of the mean curve, and of the means that leave out one split each."""
    rest = (curves.sum(axis=0) - curves) / max(len(curves) - 1, 1)
    return float(_reduced(curves.mean(axis=0), statistic)), _reduced(rest, statistic)


def _reduced(curves: Floats, statistic: _Statistic) -> Floats:
    sizes = np.abs(curves)
    return np.asarray(sizes.mean(axis=-1) if statistic == "mean" else sizes.max(axis=-1))


class Results:
    """Records by dataset and source, their splits in order.

    ``written`` are means that stand in a reproduction's tables, for pages without its records; by
    dataset, measure, method, recipe and predictive.
    """

    def __init__(
        self, records: Iterable[Record], written: Mapping[Written, MeanOverSplits] | None = None
    ) -> None:
        self._written = written or {}
        self.records = sorted(records, key=lambda record: record.split)
        self._by_place: dict[tuple[str, Source], dict[int, Record]] = {}
        for record in self.records:
            place = self._by_place.setdefault((record.dataset, record.source), {})
            place[record.split] = record

    def at(self, dataset: str, source: Source) -> list[Record]:
        """The records of all splits; none if they are not there."""
        return list(self._by_place.get((dataset, source), {}).values())

    def estimate(
        self, dataset: str, source: Source, measure: str, *, first: int | None = None
    ) -> MeanOverSplits | None:
        """Mean over the splits; the calibration errors ``ece`` and ``mce`` of the mean curve.

        ``first`` leaves all but the first splits out, so that methods with fewer can stand beside
        the others.
        """
        records = self.at(dataset, source)[:first]
        if not records:
            name = measure if first is None else of_first(measure, first)
            key = (dataset, name, source.method, source.recipe, source.predictive)
            return self._written.get(key)
        if measure in _CALIBRATION:
            return jackknife(_gaps(records), _CALIBRATION[measure])
        return MeanOverSplits.over([record.measures[measure] for record in records])

    def compared(
        self, dataset: str, ours: Source, theirs: Source, measure: str
    ) -> PairedMeans | None:
        """Both means and that of ours − theirs, over the splits that both have."""
        pairs = self.pairs(dataset, ours, theirs)
        if not pairs:
            return None
        sides = [[pair[side] for pair in pairs] for side in (0, 1)]
        if measure in _CALIBRATION:
            kind, (one, two) = _CALIBRATION[measure], map(_gaps, sides)
            return PairedMeans(
                jackknife(one, kind), jackknife(two, kind), jackknife(one, kind, minus=two)
            )
        left, right = ([record.measures[measure] for record in side] for side in sides)
        return PairedMeans(
            MeanOverSplits.over(left), MeanOverSplits.over(right), paired_difference(left, right)
        )

    def difference(
        self, dataset: str, ours: Source, theirs: Source, measure: str
    ) -> MeanOverSplits | None:
        """Mean of ours − theirs over the splits that both have."""
        found = self.compared(dataset, ours, theirs, measure)
        return None if found is None else found.difference

    def wins(self, dataset: str, ours: Source, theirs: Source, measure: str) -> str:
        """On how many of the common splits our measure is the lower one: "17 of 20"."""
        pairs = self.pairs(dataset, ours, theirs)
        won = sum(a.measures[measure] < b.measures[measure] for a, b in pairs)
        return f"{won} of {len(pairs)}"

    def pairs(self, dataset: str, ours: Source, theirs: Source) -> list[tuple[Record, Record]]:
        """Both sides' records, split by split."""
        one = self._by_place.get((dataset, ours), {})
        two = self._by_place.get((dataset, theirs), {})
        return [(one[split], two[split]) for split in sorted(one.keys() & two.keys())]

    def reliability(self, dataset: str, source: Source) -> Floats:
        """Observed fractions at the nine levels; **Shape** (n_splits, 9)."""
        return np.asarray(_gaps(self.at(dataset, source)) + np.array(PAPER_LEVELS))

    def networks(self, study: str) -> int:
        """Networks trained for a study's own records."""
        return sum(record.networks for record in self.records if record.source.study == study)

    def seconds(self, study: str) -> float:
        """Time of one core spent on a study's own records, in this run and earlier ones."""
        return sum(record.seconds for record in self.records if record.source.study == study)


def of_first(measure: str, first: int) -> str:
    """What a measure over the first splits alone is called where it is written."""
    return f"{measure} of {first} splits"


def _gaps(records: Sequence[Record]) -> Floats:
    observed = np.array([record.curves["observed"] for record in records], dtype=np.float64)
    return np.asarray(observed - np.array(PAPER_LEVELS))
