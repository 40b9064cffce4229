"""The study's records by split, and two methods compared on the same splits.

A difference is judged by Wilcoxon's signed-rank test. Splits of one set share rows, so the sets
are its units: each has one vote, the median difference over its splits.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from accord._types import Floats
from accord.paper.claims import LEVEL, Outcome
from accord.paper.records import Record
from accord.paper.results import Results
from accord.paper.shift.families import SHIFTS
from accord.paper.shift.plan import FAMILIES
from accord.paper.study import Source

__all__ = ["NAME", "Comparison", "compared", "records", "values"]

NAME = "shift"
Place = tuple[str, str, int]  # family, dataset, split


def records(results: Results, method: str, families: Sequence[str] = SHIFTS) -> dict[Place, Record]:
    """A method's records by family, dataset and split, in the order of the families."""
    return {
        (family, dataset, record.split): record
        for family in families
        for dataset in FAMILIES[family]
        for record in results.at(dataset, Source(NAME, method, family))
    }


def values(
    results: Results, method: str, measure: str, families: Sequence[str] = SHIFTS
) -> dict[Place, float]:
    """A measure of a method on every split."""
    found = records(results, method, families)
    return {place: record.measures[measure] for place, record in found.items()}


class Comparison(NamedTuple):
    """Ours − theirs: the median over splits, how often ours is lower, and Wilcoxon's p.

    ``p_sets`` is that of the sets' median differences, ``p_splits`` that of all splits.
    """

    median: float
    lower: int
    n: int
    n_sets: int
    p_sets: float
    p_splits: float

    def outcome(self, level: float = LEVEL) -> Outcome:
        """Whether ours is lower."""
        if self.p_sets >= level:
            return "undecided"
        return "holds" if self.median < 0 else "does not hold"

    def text(self) -> str:
        median = f"{self.median:+.3f}".replace("-", "−")
        return (
            f"median difference {median}; lower on {self.lower} of {self.n} splits; "
            f"p = {self.p_sets:.2g} over {self.n_sets} sets, {self.p_splits:.2g} over splits"
        )


def compared(
    results: Results, ours: str, theirs: str, measure: str, families: Sequence[str] = SHIFTS
) -> Comparison | None:
    """Two methods on the splits that both have; None without any."""
    one, two = (values(results, method, measure, families) for method in (ours, theirs))
    gaps = {place: one[place] - two[place] for place in one if place in two}
    if not gaps:
        return None
    by_set: dict[str, list[float]] = {}
    for (_, dataset, _), gap in gaps.items():
        by_set.setdefault(dataset, []).append(gap)
    all_gaps = np.array(list(gaps.values()))
    of_sets = np.array([np.median(own) for own in by_set.values()])
    return Comparison(
        float(np.median(all_gaps)),
        int((all_gaps < 0).sum()),
        len(all_gaps),
        len(of_sets),
        _p(of_sets),
        _p(all_gaps),
    )


def _p(gaps: Floats) -> float:
    """Two-sided; 1 where nothing differs."""
    from scipy.stats import wilcoxon

    return float(wilcoxon(gaps).pvalue) if np.any(gaps) else 1.0
